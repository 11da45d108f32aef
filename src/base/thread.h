/* thread.h — starting threads.
 *
 * A thread may be refused: there is a limit of processes (ulimit -u, pids.max of a container), or no memory for a stack. What cannot
 * be served without a thread starts it while the server opens, and fails to open if it is refused; what can wait tries again later. Any
 * thread may call. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* False: it was refused. That is logged, with the reason and what to do, once every ten seconds at most. */
bool thread_start(pthread_t *thread_out, const char *name, void *(*run)(void *), void *context);

/* Whether `n` more threads can be started now. Asked before opening libraries that abort if one of theirs cannot. Logs as thread_start. */
bool thread_can_start(unsigned n);

/* Asks the kernel for time slices of this length, at least 100 µs. The shorter a thread's slices, the sooner it runs when it wakes while
 * others are busy: for threads that wait for events and do little at a time. Kernels before 6.12 do not know of it; then nothing changes.
 */
void thread_ask_slices(unsigned slice_us);

/* For a person: why a server does not open. */
#define THREAD_REFUSED "the system refuses to start more threads: raise the limit of processes (ulimit -u, or pids.max of the container)"

/* pthread_create. Tests put one here that fails. */
extern int (*thread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
