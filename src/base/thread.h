/* thread.h — starting threads.
 *
 * The system may refuse to start a thread: because of a process limit (ulimit -u, pids.max of a container), or for lack of memory for a
 * stack. Threads that the server cannot work without are started while it opens, which fails if they are refused; others are retried later.
 * Any thread may call. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* False: the system refused. This is logged, with the reason and what to do, at most once every ten seconds. */
bool thread_start(pthread_t *thread_out, const char *name, void *(*run)(void *), void *context);

/* Whether `n` more threads can be started now. Called before opening libraries that abort if they cannot start theirs. Logs like
 * thread_start. */
bool thread_can_start(unsigned n);

/* Asks the kernel for time slices of this length, at least 100 µs. Shorter slices let a thread run sooner after it wakes while others are
 * busy: for threads that wait for events and do little at a time. Has no effect on kernels before 6.12. */
void thread_ask_slices(unsigned slice_us);

/* Message that explains why the server does not open. */
#define THREAD_REFUSED "the system refuses to start more threads: raise the limit of processes (ulimit -u, or pids.max of the container)"

/* pthread_create; tests replace it by a function that fails. */
extern int (*thread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
