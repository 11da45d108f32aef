/* What each candidate means for storage, load and reads, and one number to order them by. */
#include "advise/advise_int.h"

#include <math.h>
#include <stdlib.h>

enum { READ_RU = 3, FAN_OUT_RU_PERCENT = 225, COMPARED_KEYS = 64 };

typedef struct scoring {
    advise *a;
    const advise_report *r;
    const advise_candidate *c;
    advise_key *k;
    const advise_key *first; /* the key of the first path alone; the key itself if it is that */
    const advise_candidate *first_counts;
    double write_ru, one_ru, fan_ru; /* RU/s: of writes, of reads that name their key, of reads that ask every partition */
} scoring;

/* The key's part of what was counted. */
static double weight_of(const heavy *h, uint64_t hash) {
    const heavy_key *found = heavy_find(h, hash);
    return found && h->total > 0 ? found->weight / h->total : 0;
}

/* ---- storage ---- */

static void score_storage(scoring *s) {
    const heavy *h = &s->c->bytes;
    advise_key *k = s->k;
    k->values = h->error == 0 ? (double)h->n : distinct_count(&s->c->values);
    double top = ceil(k->values / 100), sum = 0;
    for (size_t i = 0; i < h->n && (double)i < top; i++) {
        sum += h->keys[i].weight;
    }
    k->largest_share = fmax(h->n ? h->keys[0].weight / h->total : 0, 1 / k->values);
    k->top_share = fmax(sum / h->total, top / k->values);
    k->largest = h->n ? slice_of(h->keys[0].text, h->keys[0].text_n) : SLICE_EMPTY;
    bool unique = k->values > 0.9 * s->r->items;
    double grows = s->r->time_path.n ? 1 - s->c->novelty : !unique;
    k->largest_bytes = k->largest_share * s->r->bytes;
    k->projected_bytes = k->largest_bytes * (1 + (s->r->growth - 1) * grows);
    k->outgrows = k->projected_bytes > s->a->options.logical_max_bytes;
}

/* ---- reads ---- */

/* A prefix is in one physical partition, unless it is larger than that: the part of the reads for which it is. */
static double read_of_wide_prefixes(const scoring *s) {
    const heavy *reads = &s->first_counts->reads, *bytes = &s->first_counts->bytes;
    double most = s->a->options.physical_max_bytes / s->r->projected_bytes, wide = 0;
    for (size_t i = 0; i < reads->n; i++) {
        wide += weight_of(bytes, reads->keys[i].hash) > most ? reads->keys[i].weight : 0;
    }
    return reads->total > 0 ? wide / reads->total : 0;
}

static void score_reads(scoring *s) {
    const advise_candidate *c = s->c;
    double all = c->asked_one + c->asked_known + c->asked_prefix + c->asked_all;
    double reads = s->r->load * (1 - s->r->write_share);
    s->write_ru = s->r->load * s->r->write_share;
    if (all == 0) {
        s->one_ru = reads;
        return;
    }
    double apart = c->asked_prefix * read_of_wide_prefixes(s);
    s->k->one_partition = (c->asked_one + c->asked_prefix - apart) / all;
    s->k->known_keys = (c->asked_known + apart) / all;
    double fan = 1 - s->k->one_partition;
    s->one_ru = reads * s->k->one_partition;
    s->fan_ru = reads * fan * (READ_RU + (s->r->partitions - 1) * (FAN_OUT_RU_PERCENT / 100.0)) / READ_RU;
}

/* ---- load ---- */

static void spread(double *parts, uint32_t n, const double *slots, double slots_sum, double weight) {
    for (size_t i = 0; i < ADVISE_SLOTS && slots_sum > 0; i++) {
        parts[i * n / ADVISE_SLOTS] += weight * slots[i] / slots_sum;
    }
}

static double sum_of(const double *slots) {
    double sum = 0;
    for (size_t i = 0; i < ADVISE_SLOTS; i++) {
        sum += slots[i];
    }
    return sum;
}

static void spread_evenly(double *parts, uint32_t n, double weight) {
    for (uint32_t i = 0; i < n; i++) {
        parts[i] += weight / n;
    }
}

static size_t largest_of(const double *parts, uint32_t n) {
    size_t at = 0;
    for (uint32_t i = 1; i < n; i++) {
        at = parts[i] > parts[at] ? i : at;
    }
    return at;
}

/* The busiest moment: what time puts on one key is in one physical partition, the rest is where the data is. */
static void score_parts(scoring *s) {
    uint32_t n = s->r->partitions;
    advise_key *k = s->k;
    const advise_candidate *c = s->c;
    double reads_sum = sum_of(c->read_parts), excess = s->first_counts->excess;
    bool cut = c->kind == ADVISE_HIERARCHICAL && s->first->projected_bytes > s->a->options.physical_max_bytes;
    k->load_parts = arena_alloc(&s->a->arena, 2 * n * sizeof *k->load_parts);
    k->byte_parts = k->load_parts + n;
    memset(k->load_parts, 0, 2 * n * sizeof *k->load_parts);
    if (cut) {
        spread_evenly(k->byte_parts, n, s->r->bytes);
        spread_evenly(k->load_parts, n, s->write_ru + s->one_ru);
    } else {
        spread(k->byte_parts, n, c->first_parts, c->bytes.total, s->r->bytes);
        spread(k->load_parts, n, c->first_parts, c->bytes.total, s->write_ru * (1 - excess));
        spread(k->load_parts, n, c->read_parts, reads_sum, s->one_ru);
        k->load_parts[largest_of(k->byte_parts, n)] += s->write_ru * excess;
        if (reads_sum == 0) {
            spread(k->load_parts, n, c->first_parts, c->bytes.total, s->one_ru);
        }
    }
    spread_evenly(k->load_parts, n, s->fan_ru);
}

/* The key with the largest sum of writes and reads, among the heaviest of either. */
static double busiest_key(const scoring *s, double write_ru) {
    const heavy *lists[] = {&s->c->bytes, &s->c->reads};
    double most = 0;
    for (size_t l = 0; l < 2; l++) {
        for (size_t i = 0; i < lists[l]->n && i < COMPARED_KEYS; i++) {
            uint64_t hash = lists[l]->keys[i].hash;
            most = fmax(most, write_ru * weight_of(&s->c->bytes, hash) + s->one_ru * weight_of(&s->c->reads, hash));
        }
    }
    return fmax(most, (write_ru + s->one_ru) / s->k->values);
}

static void score_load(scoring *s) {
    advise_key *k = s->k;
    double share = s->r->throughput / s->r->partitions, refused = 0, excess = s->c->excess;
    k->ru_per_second = s->write_ru + s->one_ru + s->fan_ru;
    for (uint32_t i = 0; i < s->r->partitions; i++) {
        refused += fmax(0, k->load_parts[i] - share);
    }
    k->refused = k->ru_per_second > 0 ? refused / k->ru_per_second : 0;
    double busiest = s->write_ru * excess + busiest_key(s, s->write_ru * (1 - excess));
    k->hottest = k->ru_per_second > 0 ? fmin(1, busiest / k->ru_per_second) : 0;
}

/* ---- one number ---- */

static double nature(const scoring *s) {
    double lost = 0;
    for (size_t i = 0; i < s->c->n; i++) {
        const advise_path *p = &s->a->paths.list[s->c->paths[i]];
        bool instant = p->dates > 0.9 * p->items && p->values_n > 0.3 * p->items;
        lost += (10 * p->fractions + 5 * p->spaced) / p->items + (instant && p->asked == 0 ? 8 : 0) + (p->asked == 0 ? 1.5 : 0);
    }
    return lost;
}

static double complexity(const advise_key *k) {
    static const double lost[] = {[ADVISE_CONCATENATED] = 3, [ADVISE_PRECOMPUTED] = 3.5, [ADVISE_RANDOM] = 8};
    return k->kind == ADVISE_PATH ? 0 : k->kind == ADVISE_HIERARCHICAL ? 1.5 * ((double)k->n - 1) : lost[k->kind];
}

/* docs/advise.md has this list. Charges are compared later, when the cheapest is known. */
static void score_sum(scoring *s) {
    advise_key *k = s->k;
    const advise_candidate *c = s->c;
    double p = s->r->partitions, reads = s->r->reads > 0 ? fmin(1, 2 * (1 - s->r->write_share)) : 0;
    double all = 1 - k->one_partition - k->known_keys, used = fmin(1, k->ru_per_second / s->r->throughput);
    double limit = s->a->options.logical_max_bytes;
    bool closes = s->r->time_path.n && c->novelty > 0.5; /* new items bring new values */
    double score = 100;
    score -= k->outgrows ? 45 : k->projected_bytes > limit / 2 ? 8 : 0;
    score -= 60 * k->refused;
    score -= 8 * fmax(0, k->hottest - 1 / p) * used;
    score -= reads * (4 + 21 * (1 - 1 / p)) * (all + 0.15 * k->known_keys);
    score -= k->values < 100 && !closes ? 12 * (1 - log10(k->values) / 2) * (p == 1 ? 0.3 : 1) : 0;
    score -= k->values > 0.9 * s->r->items && c->asked_one == 0 ? 4 : 0;
    score -= 40 * c->missing / s->r->items + (c->too_long > 0 ? 50 : 0);
    k->score = score - complexity(k) - nature(s);
}

static int better_first(const void *a, const void *b) {
    const advise_key *left = *(advise_key *const *)a, *right = *(advise_key *const *)b;
    int order = (left->score < right->score) - (left->score > right->score);
    return order ? order : slice_cmp(left->name, right->name);
}

/* ---- all ---- */

static slice name_of(advise *a, const advise_key *k) {
    buf name = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < k->n; i++) {
        const char *before = i == 0 ? "" : k->kind == ADVISE_HIERARCHICAL ? ", " : k->kind == ADVISE_CONCATENATED ? "-" : ".hash(";
        buf_addf(&name, "%s%.*s", before, (int)k->paths[i].n, k->paths[i].p);
    }
    buf_addf(&name, "%s", k->kind == ADVISE_RANDOM ? ".random" : k->kind == ADVISE_PRECOMPUTED ? ")" : "");
    char *copy = arena_alloc(&a->arena, name.n + 1);
    memcpy(copy, name.p, name.n + (name.n == 0));
    slice text = slice_of(copy, name.n);
    buf_free(&name);
    return text;
}

static advise_key *make_key(advise *a, const advise_candidate *c) {
    advise_key *k = arena_alloc(&a->arena, sizeof *k);
    *k = (advise_key){.kind = c->kind, .n = c->n};
    for (size_t i = 0; i < c->n; i++) {
        k->paths[i] = a->paths.list[c->paths[i]].path.text;
    }
    k->name = name_of(a, k);
    return k;
}

/* Candidates of single paths come first, so the first path's own key is scored already. */
static void score_one(advise *a, size_t i, const size_t *alone) {
    advise_candidate *c = a->candidates[i];
    size_t first = c->kind == ADVISE_HIERARCHICAL ? alone[c->paths[0]] : i;
    heavy_sort(&c->bytes);
    heavy_sort(&c->reads);
    scoring s = {
        .a = a, .r = &a->report, .c = c, .k = a->report.keys[i], .first = a->report.keys[first], .first_counts = a->candidates[first]};
    score_storage(&s);
    score_reads(&s);
    score_parts(&s);
    score_load(&s);
    score_sum(&s);
}

static void compare_charges(advise_report *r) {
    double least = INFINITY;
    for (size_t i = 0; i < r->n; i++) {
        least = fmin(least, r->keys[i]->ru_per_second);
    }
    for (size_t i = 0; i < r->n; i++) {
        advise_key *k = r->keys[i];
        k->score -= k->ru_per_second > 0 ? 15 * (1 - least / k->ru_per_second) : 0;
        k->score = fmax(0, k->score);
    }
}

static const advise_candidate *candidate_of(const advise *a, advise_key *const *made, const advise_key *k) {
    size_t i = 0;
    while (made[i] != k) {
        i++;
    }
    return a->candidates[i];
}

void advise__score(advise *a) {
    advise_report *r = &a->report;
    size_t alone[ADVISE_PATHS] = {0};
    r->n = a->candidates_n;
    r->keys = arena_alloc(&a->arena, 2 * r->n * sizeof *r->keys);
    advise_key **made = r->keys + r->n;
    for (size_t i = 0; i < r->n; i++) {
        made[i] = r->keys[i] = make_key(a, a->candidates[i]);
        if (r->keys[i]->kind == ADVISE_PATH) {
            alone[a->candidates[i]->paths[0]] = i;
        }
        score_one(a, i, alone);
    }
    compare_charges(r);
    qsort(r->keys, r->n, sizeof *r->keys, better_first);
    for (size_t i = 0; i < r->n; i++) {
        advise__add_reasons(a, r->keys[i], candidate_of(a, made, r->keys[i]), r->keys[0]);
    }
}
