/* thread.h — starting threads.
 *
 * A thread may be refused: there is a limit of processes (ulimit -u, pids.max of a container), or no memory for a stack. Whoever needs one
 * to serve starts it when it opens, and refuses to open without; whoever can do without tries again later. Any thread. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* False: it was refused. That is logged, with the reason and what to do, once every ten seconds at most. */
bool thread_start(pthread_t *thread_out, const char *name, void *(*run)(void *), void *context);

/* Whether `n` threads more can be started now: for libraries that abort if one of theirs cannot. Logs as thread_start does. */
bool thread_can_start(unsigned n);

/* For a person: why a server does not open. */
#define THREAD_REFUSED "the system refuses to start more threads: raise the limit of processes (ulimit -u, or pids.max of the container)"

/* pthread_create. Tests put one here that fails. */
extern int (*thread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
