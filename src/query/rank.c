#include "query/rank.h"

#include <math.h>
#include <stdlib.h>

#include "text/search.h"

/* One score: its call and, for FullTextScore, its phrases and their statistics. */
typedef struct part {
    query_rank_part of;
    search_phrase *phrases;
    size_t phrases_n;
    bool compiled, valid;
    search_statistics statistics;
    uint64_t *hits;
} part;

struct query_rank {
    arena *keep;
    part parts[QUERY_SCORES_MAX];
    size_t n;
    bool fused;
};

/* ---- the scores of ORDER BY RANK ---- */

static bool is_call(const query_expr *e, const char *name) {
    return e->kind == EXPR_CALL && slice_eq_nocase(e->name, slice_str(name));
}

/* Binding has checked that it is a number. */
static double weight_of(const query_expr *e) {
    return e->kind == EXPR_UNARY ? -e->items[0]->value.number : e->value.number;
}

size_t query_rank_parts(const query_select *s, query_rank_part parts_out[QUERY_SCORES_MAX], bool *weighted_out) {
    query_expr *first = s->order[0].expr;
    bool fused = is_call(first, "RRF");
    query_expr *const *calls = fused ? first->items : &first;
    size_t n = fused ? first->items_n : 1;
    *weighted_out = calls[n - 1]->kind == EXPR_ARRAY;
    n -= *weighted_out;
    for (size_t i = 0; i < n; i++) {
        double weight = *weighted_out ? weight_of(calls[n]->items[i]) : 1;
        parts_out[i] = (query_rank_part){.call = calls[i], .weight = weight, .text = is_call(calls[i], "FullTextScore")};
    }
    return n;
}

query_rank *query_rank_new(arena *keep, const query_select *s) {
    query_rank_part parts[QUERY_SCORES_MAX];
    bool weighted;
    query_rank *k = arena_new(keep, query_rank);
    k->keep = keep;
    k->n = query_rank_parts(s, parts, &weighted);
    k->fused = is_call(s->order[0].expr, "RRF");
    for (size_t i = 0; i < k->n; i++) {
        k->parts[i].of = parts[i];
    }
    return k;
}

/* ---- texts ---- */

static void compile(query_rank *k, query_runner *r, part *p) {
    const query_expr *e = p->of.call;
    p->compiled = p->valid = true;
    p->phrases_n = e->items_n - 1;
    p->phrases = arena_array(k->keep, search_phrase, p->phrases_n + 1);
    p->statistics.hits = p->hits = arena_array(k->keep, uint64_t, p->phrases_n + 1);
    for (size_t i = 0; i < p->phrases_n; i++) {
        query_value v = query_eval(r, e->items[i + 1]);
        v = value_keep(k->keep, &v);
        p->valid = p->valid && query_phrase_of(k->keep, (search_language)e->setting, &v, &p->phrases[i]);
    }
}

/* Counts the phrases in the row's text. False: there is no text. */
static bool count_text(query_rank *k, query_runner *r, part *p, uint32_t **counts_out, uint32_t *length_out) {
    if (!p->compiled) {
        compile(k, r, p);
    }
    query_value text = query_eval(r, p->of.call->items[0]);
    *counts_out = arena_array(r->context.arena, uint32_t, p->phrases_n + 1);
    if (text.type != TYPE_STRING || !p->valid) {
        return false;
    }
    search_count(r->context.arena, (search_language)p->of.call->setting, text.bytes, p->phrases, p->phrases_n, *counts_out, length_out,
                 &r->steps);
    if (r->steps == 0) { /* it gave up: its counts are meaningless */
        r->code = r->code == OK ? E_QUERY_TOO_LONG : r->code;
    }
    return true;
}

bool query_rank_counts(const query_rank *k) {
    bool any = false;
    for (size_t i = 0; i < k->n; i++) {
        any = any || k->parts[i].of.text;
    }
    return any;
}

void query_rank_count(query_rank *k, query_runner *r) {
    for (size_t i = 0; i < k->n; i++) {
        part *p = &k->parts[i];
        uint32_t *counts, length;
        if (!p->of.text) {
            continue;
        }
        p->statistics.documents++;
        if (count_text(k, r, p, &counts, &length)) {
            p->statistics.terms += length;
            for (size_t j = 0; j < p->phrases_n; j++) {
                p->hits[j] += counts[j] > 0;
            }
        }
    }
}

/* ---- scores ---- */

size_t query_rank_scores_n(const query_rank *k) {
    return k->n;
}

static query_value text_score(query_rank *k, query_runner *r, part *p) {
    uint32_t *counts, length;
    if (!count_text(k, r, p, &counts, &length)) {
        return value_undefined();
    }
    return value_number(search_bm25(&p->statistics, counts, p->phrases_n, length));
}

void query_rank_scores(query_rank *k, query_runner *r, query_value *scores_out) {
    for (size_t i = 0; i < k->n; i++) {
        part *p = &k->parts[i];
        query_value v = p->of.text ? text_score(k, r, p) : query_eval(r, p->of.call); /* bound to _VectorScore */
        scores_out[i] = v.type == TYPE_NUMBER && p->of.weight < 0 ? value_number(-v.number) : v;
    }
}

/* ---- fusing ranks (RRF) ---- */

typedef struct placed {
    const query_value *score;
    size_t row;
} placed;

static int best_first(const void *a, const void *b) {
    return value_compare(((const placed *)b)->score, ((const placed *)a)->score);
}

/* Equal scores share a rank, and the next score gets the next rank, as the SDKs count. */
void query_rank_fuse(const query_rank *k, arena *scratch, query_value *const *rows, size_t n) {
    double *sums = arena_array(scratch, double, n + 1);
    placed *order = arena_array(scratch, placed, n + 1);
    if (!k->fused || n == 0) {
        return;
    }
    for (size_t i = 0; i < k->n; i++) {
        double weight = fabs(k->parts[i].of.weight);
        uint32_t place = 1;
        for (size_t j = 0; j < n; j++) {
            order[j] = (placed){&rows[j][i], j};
        }
        qsort(order, n, sizeof *order, best_first);
        for (size_t j = 0; j < n; j++) {
            place += j && value_compare(order[j - 1].score, order[j].score) != 0;
            sums[order[j].row] += search_rrf(&place, &weight, 1);
        }
    }
    for (size_t j = 0; j < n; j++) {
        rows[j][0] = value_number(sums[j]);
    }
}
