/* The sampled reads of the log, for each candidate: how many logical partitions each needs, and which. */
#include "advise/advise_int.h"

typedef enum reach { REACH_ONE, REACH_KNOWN, REACH_PREFIX, REACH_ALL } reach;

static const advise_term *term_of(const advise_operation *o, size_t path) {
    for (size_t i = 0; i < o->terms_n; i++) {
        if (o->terms[i].index == path) {
            return &o->terms[i];
        }
    }
    return NULL;
}

/* A point read names one key of the container as it was recorded; under another key it is a query by id. */
static reach reach_of(const advise_candidate *c, const advise_operation *o) {
    size_t named = 0;
    bool several = false;
    for (const advise_term *t; named < c->n && (t = term_of(o, c->paths[named])) != NULL; named++) {
        several = several || t->several;
    }
    bool suffixed = c->kind == ADVISE_RANDOM || (c->kind == ADVISE_PRECOMPUTED && named == 1);
    bool enough = named == c->n || suffixed || c->kind == ADVISE_HIERARCHICAL;
    if (named == 0 || !enough || (several && suffixed)) {
        return REACH_ALL;
    }
    return several || suffixed ? REACH_KNOWN : named == c->n ? REACH_ONE : REACH_PREFIX;
}

static void count_one(arena *a, advise_candidate *c, const advise_operation *o, double weight) {
    pkey_value values[ADVISE_PATHS] = {0};
    reach r = reach_of(c, o);
    *(r == REACH_ONE ? &c->asked_one : r == REACH_KNOWN ? &c->asked_known : r == REACH_PREFIX ? &c->asked_prefix : &c->asked_all) += weight;
    if (r != REACH_ONE && r != REACH_PREFIX) {
        return;
    }
    for (size_t i = 0; i < o->terms_n; i++) {
        if (o->terms[i].index != SIZE_MAX) {
            values[o->terms[i].index] = o->terms[i].value;
        }
    }
    advise_formed f = advise__form(a, c, values, 0);
    heavy_add(&c->reads, f.id, weight, f.text);
    c->read_parts[(size_t)(f.position * ADVISE_SLOTS)] += weight;
}

void advise__count_reads(advise *a) {
    double counted = 0;
    for (size_t i = 0; i < a->kept_n; i++) {
        advise_operation o;
        const char *why;
        arena_reset(&a->scratch);
        if (!advise__operation_read(&a->scratch, slice_of(a->kept[i].bson, a->kept[i].n), &o, &why) || o.write || o.count == 0) {
            continue;
        }
        for (size_t k = 0; k < o.terms_n; k++) {
            o.terms[k].index = advise__paths_find(&a->paths, o.terms[k].path);
        }
        for (size_t k = 0; k < a->candidates_n; k++) {
            count_one(&a->scratch, a->candidates[k], &o, o.count);
        }
        counted += o.count;
    }
    for (size_t k = 0; k < a->candidates_n; k++) {
        a->candidates[k]->asked_all += a->operations > 0 ? a->long_operations * counted / a->operations : a->long_operations;
    }
    a->report.reads = counted;
}
