#include "throughput/provisioned.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { KEPT_SECONDS = 24 * 3600 + 60 };

void provisioned_init(provisioned *p) {
    *p = (provisioned){0};
    pthread_mutex_init(&p->lock, NULL);
}

void provisioned_free(provisioned *p) {
    free(p->list);
    pthread_mutex_destroy(&p->lock);
}

static void drop_first(provisioned *p, size_t n) {
    if (n == 0) { /* the list may be NULL */
        return;
    }
    memmove(p->list, p->list + n, (p->n - n) * sizeof *p->list);
    p->n -= n;
}

/* If the clock was set back, what is later than now has not happened. */
static void forget_future(provisioned *p, int64_t second) {
    while (p->n && p->list[p->n - 1].second > second) {
        p->n--;
    }
}

/* Forgets the changes that were over before the last day. */
static void forget_past(provisioned *p, int64_t second) {
    size_t old = 0;
    while (old + 1 < p->n && p->list[old + 1].second < second - KEPT_SECONDS) {
        old++;
    }
    old += p->n - old == PROVISIONED_CHANGES_MAX;
    drop_first(p, old);
}

static void append(provisioned *p, provisioned_change change) {
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 2;
        p->list = mem_resize(p->list, p->cap * sizeof *p->list);
    }
    p->list[p->n++] = change;
}

static bool is_last(const provisioned *p, int64_t second, double ru) {
    const provisioned_change *last = p->n ? &p->list[p->n - 1] : NULL;
    return last && last->second <= second && !(last->ru < ru) && !(last->ru > ru);
}

/* Only one thread writes at a time, so reading needs no lock here. */
void provisioned_note(provisioned *p, int64_t second, double ru) {
    if (is_last(p, second, ru)) {
        return;
    }
    pthread_mutex_lock(&p->lock);
    forget_future(p, second);
    if (!is_last(p, second, ru)) {
        forget_past(p, second);
        append(p, (provisioned_change){second, ru});
    }
    pthread_mutex_unlock(&p->lock);
}

void provisioned_read(provisioned *p, int64_t from, int64_t step, double *ru_out, size_t n) {
    size_t at = 0; /* the changes before it are over before the step */
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < n; i++) {
        int64_t begin = from + (int64_t)i * step, end = begin + step;
        while (at + 1 < p->n && p->list[at + 1].second <= begin) {
            at++;
        }
        ru_out[i] = -1;
        for (size_t j = at; j < p->n && p->list[j].second < end; j++) {
            ru_out[i] = p->list[j].ru > ru_out[i] ? p->list[j].ru : ru_out[i];
        }
    }
    pthread_mutex_unlock(&p->lock);
}

size_t provisioned_steps(provisioned *p, int64_t from, provisioned_step *steps_out) {
    size_t n = 0;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 1; i < p->n; i++) {
        if (p->list[i].second >= from) {
            steps_out[n++] = (provisioned_step){p->list[i].second, p->list[i - 1].ru, p->list[i].ru};
        }
    }
    pthread_mutex_unlock(&p->lock);
    return n;
}
