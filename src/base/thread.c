#include "base/thread.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { SAY_AGAIN_US = 10 * 1000 * 1000, PROBED_MAX = 64 };

int (*thread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = pthread_create;

static void say(const char *name, int code) {
    static _Atomic int64_t said_us = -SAY_AGAIN_US;
    int64_t now = clock_monotonic_us(&clock_system), before = atomic_load(&said_us);
    if (now - before >= SAY_AGAIN_US && atomic_compare_exchange_strong(&said_us, &before, now)) {
        log_error("base", THREAD_REFUSED, "thread=%s reason=\"%s\"", name, strerror(code));
    }
}

bool thread_start(pthread_t *thread_out, const char *name, void *(*run)(void *), void *context) {
    int code = thread_create(thread_out, NULL, run, context);
    if (code != 0) {
        say(name, code);
        return false;
    }
    pthread_setname_np(*thread_out, name);
    return true;
}

static void *wait_for_all(void *lock) {
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

bool thread_can_start(unsigned n) {
    pthread_t threads[PROBED_MAX];
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    unsigned started = 0;
    n = n < PROBED_MAX ? n : PROBED_MAX;
    pthread_mutex_lock(&lock); /* keeps threads from ending before all have started */
    while (started < n && thread_start(&threads[started], "probe", wait_for_all, &lock)) {
        started++;
    }
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    return started == n;
}

/* The kernel's struct sched_attr in its first version (the kernel's header conflicts with the C library's). For ordinary threads `runtime`
 * is the length of a time slice. */
typedef struct kernel_attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
} kernel_attributes;

void thread_ask_slices(unsigned slice_us) {
    kernel_attributes attributes = {.size = sizeof attributes};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) == 0) {
        attributes.runtime = (uint64_t)slice_us * 1000;
        (void)!syscall(SYS_sched_setattr, 0, &attributes, 0);
    }
}
