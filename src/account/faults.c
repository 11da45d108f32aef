#include "account/faults.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"

struct faults {
    _Atomic uint32_t n;
    _Atomic uint64_t hits;
    pthread_mutex_t lock; /* guards the members below, and changes of `n` */
    uint32_t id_next;
    fault *list; /* FAULTS_MAX entries, allocated with the first fault */
};

static const struct {
    uint16_t status;
    err code;
} statuses[] = {
    {408, E_TIMEOUT}, {410, E_RANGE_GONE}, {429, E_THROTTLED}, {449, E_RETRY_WITH}, {500, E_INTERNAL}, {503, E_UNAVAILABLE},
};

bool fault_status_read(unsigned status, err *code_out) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        if (statuses[i].status == status) {
            *code_out = statuses[i].code;
            return true;
        }
    }
    return false;
}

faults *faults_new(void) {
    faults *f = mem_zero(sizeof *f);
    pthread_mutex_init(&f->lock, NULL);
    f->id_next = 1;
    return f;
}

void faults_free(faults *f) {
    if (f) {
        pthread_mutex_destroy(&f->lock);
        free(f->list);
        free(f);
    }
}

bool faults_any(const faults *f) {
    return atomic_load_explicit(&f->n, memory_order_relaxed) != 0;
}

uint64_t faults_hits(const faults *f) {
    return atomic_load_explicit(&f->hits, memory_order_relaxed);
}

/* ---- the list ---- */

static void keep_random(fault *of, const random_source *r) {
    of->random[0] = r->state[0];
    of->random[1] = r->state[1];
}

err faults_add(faults *f, const fault *made, uint32_t *id_out) {
    err code = E_BAD_REQUEST;
    random_source r;
    random_seed(&r, made->seed);
    pthread_mutex_lock(&f->lock);
    if (!f->list) {
        f->list = mem_alloc(FAULTS_MAX * sizeof *f->list);
    }
    uint32_t n = f->n;
    if (n < FAULTS_MAX) {
        f->list[n] = *made;
        f->list[n].hits = 0;
        f->list[n].id = *id_out = f->id_next++;
        keep_random(&f->list[n], &r);
        f->n = n + 1;
        code = OK;
    }
    pthread_mutex_unlock(&f->lock);
    return code;
}

static void remove_at(faults *f, uint32_t i) {
    memmove(&f->list[i], &f->list[i + 1], (f->n - i - 1) * sizeof *f->list);
    f->n--;
}

bool faults_remove(faults *f, uint32_t id) {
    bool found = false;
    pthread_mutex_lock(&f->lock);
    for (uint32_t i = 0; i < f->n && !found; i++) {
        found = f->list[i].id == id;
        if (found) {
            remove_at(f, i);
        }
    }
    pthread_mutex_unlock(&f->lock);
    return found;
}

size_t faults_clear(faults *f) {
    pthread_mutex_lock(&f->lock);
    size_t n = f->n;
    f->n = 0;
    pthread_mutex_unlock(&f->lock);
    return n;
}

size_t faults_list(faults *f, fault list[static FAULTS_MAX]) {
    pthread_mutex_lock(&f->lock);
    size_t n = f->n;
    if (n) {
        memcpy(list, f->list, n * sizeof *list);
    }
    pthread_mutex_unlock(&f->lock);
    return n;
}

/* ---- matching ---- */

static bool is_for(const fault *of, const fault_request *r) {
    return (of->operation == FAULT_ANY || (of->operation == FAULT_WRITE) == r->writes) &&
           (!of->database[0] || slice_eq(slice_str(of->database), r->database)) &&
           (!of->container[0] || slice_eq(slice_str(of->container), r->container)) && (of->range < 0 || of->range == r->range);
}

/* Every matching request draws one number from the fault's own generator, so the seed determines which requests are hit. */
static bool is_drawn(fault *of) {
    random_source r = {{of->random[0], of->random[1]}};
    double drawn = (double)(random_u64(&r) >> 11) * 0x1p-53 * 100;
    keep_random(of, &r);
    return drawn < of->percent;
}

bool faults_hit(faults *f, const fault_request *request, fault *hit_out) {
    bool hit = false;
    pthread_mutex_lock(&f->lock);
    for (uint32_t i = 0; i < f->n && !hit; i++) {
        fault *of = &f->list[i];
        hit = is_for(of, request) && is_drawn(of);
        if (hit) {
            of->hits++;
            *hit_out = *of;
            if (of->count && of->hits == of->count) {
                remove_at(f, i);
            }
        }
    }
    pthread_mutex_unlock(&f->lock);
    if (hit) {
        atomic_fetch_add_explicit(&f->hits, 1, memory_order_relaxed);
    }
    return hit;
}
