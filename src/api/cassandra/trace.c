#include "api/cassandra/trace.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"

struct cass_traces {
    pthread_mutex_t lock;
    uint64_t n;        /* that were ever kept */
    cass_trace *slots; /* a ring, made with the first trace */
};

cass_traces *cass_traces_new(void) {
    cass_traces *t = mem_zero(sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void cass_traces_free(cass_traces *t) {
    pthread_mutex_destroy(&t->lock);
    free(t->slots);
    free(t);
}

void cass_traces_keep(cass_traces *t, const cass_trace *trace) {
    pthread_mutex_lock(&t->lock);
    if (!t->slots) {
        t->slots = mem_zero(CASS_TRACES * sizeof *t->slots);
    }
    t->slots[t->n++ % CASS_TRACES] = *trace;
    pthread_mutex_unlock(&t->lock);
}

size_t cass_traces_copy(cass_traces *t, cass_trace *into) {
    pthread_mutex_lock(&t->lock);
    uint64_t from = t->n > CASS_TRACES ? t->n - CASS_TRACES : 0;
    for (uint64_t i = from; i < t->n; i++) {
        into[i - from] = t->slots[i % CASS_TRACES];
    }
    size_t n = (size_t)(t->n - from);
    pthread_mutex_unlock(&t->lock);
    return n;
}
