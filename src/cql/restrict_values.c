/* restrict_values.c — keys and ranges of rows that restrictions mean, with the values of one execution.
 *
 * A place between rows is a prefix of clustering values and a side: before or after all rows that begin with it. A range of rows lies
 * between two places, so ranges are intersected and sorted by comparing places. */
#include <assert.h>
#include <stdlib.h>

#include "cql/restrict_int.h"

static const cql_column *const *columns_at(op *o, const cql_table *table, uint32_t first, uint32_t n) {
    const cql_column **columns = arena_array(o->arena, const cql_column *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        columns[i] = &table->columns[first + i];
    }
    return columns;
}

/* ---- products ---- */

typedef struct rows { /* `n` rows of `width` values each */
    cql_value *values;
    uint32_t n, width;
} rows;

static cql_value *row_at(const rows *r, uint32_t i) {
    return r->values + (size_t)i * r->width;
}

/* Each row of `left` followed by each of `right`. */
static err multiply(op *o, rows *left, const cql_value *right, uint32_t right_n, uint32_t right_width) {
    uint64_t n = (uint64_t)left->n * right_n;
    uint32_t width = left->width + right_width;
    if (n > CQL_KEYS_MAX) {
        return op_fail(o, E_BAD_REQUEST, "The IN clauses name more than %d rows or partitions", CQL_KEYS_MAX);
    }
    if (!arena_fits(o->arena, (n + 1) * width * sizeof(cql_value))) {
        return budget_error(o->budget);
    }
    rows product = {arena_array(o->arena, cql_value, (n + 1) * width), (uint32_t)n, width};
    for (uint32_t i = 0, at = 0; i < left->n; i++) {
        for (uint32_t k = 0; k < right_n; k++, at++) {
            if (left->width) {
                memcpy(row_at(&product, at), row_at(left, i), left->width * sizeof(cql_value));
            }
            memcpy(row_at(&product, at) + left->width, right + (size_t)k * right_width, right_width * sizeof(cql_value));
        }
    }
    *left = product;
    return OK;
}

/* ---- partition keys ---- */

typedef struct indexed_row {
    const cql_value *values;
    uint32_t width, position;
} indexed_row;

static int compare_bytes(const void *a, const void *b) {
    const indexed_row *x = a, *y = b;
    for (uint32_t i = 0; i < x->width; i++) {
        int c = slice_cmp(x->values[i].bytes, y->values[i].bytes);
        if (c) {
            return c;
        }
    }
    return (x->position > y->position) - (x->position < y->position);
}

static bool same_bytes(const indexed_row *x, const indexed_row *y) {
    for (uint32_t i = 0; i < x->width; i++) {
        if (!slice_eq(x->values[i].bytes, y->values[i].bytes)) {
            return false;
        }
    }
    return true;
}

/* Drops rows that occurred before; the order of the others stays. */
static void drop_duplicates(op *o, rows *r) {
    indexed_row *sorted = arena_array(o->arena, indexed_row, r->n + 1);
    bool *dropped = arena_array(o->arena, bool, r->n + 1);
    for (uint32_t i = 0; i < r->n; i++) {
        sorted[i] = (indexed_row){row_at(r, i), r->width, i};
    }
    qsort(sorted, r->n, sizeof *sorted, compare_bytes);
    for (uint32_t i = 1; i < r->n; i++) {
        dropped[sorted[i].position] = same_bytes(&sorted[i - 1], &sorted[i]);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        if (!dropped[i]) {
            memmove(row_at(r, kept++), row_at(r, i), r->width * sizeof(cql_value));
        }
    }
    r->n = kept;
}

err cql_restrict_keys(op *o, const cql_run *run, const cql_restrictions *r, const cql_value **keys_out, uint32_t *n_out) {
    rows keys = {.n = 1};
    *n_out = 0;
    assert(r->whole_partition_key);
    for (uint32_t i = 0; i < r->table->partition_n; i++) {
        const cql_value *values;
        uint32_t n;
        TRY(cql__relation_values(o, run, r->partition[i], columns_at(o, r->table, i, 1), &values, &n));
        TRY(multiply(o, &keys, values, n, 1));
    }
    if (keys.n > 1) {
        drop_duplicates(o, &keys);
    }
    for (uint32_t i = 0; keys.width == 1 && i < keys.n; i++) {
        if (keys.values[i].bytes.n == 0) {
            return op_fail(o, E_BAD_REQUEST, "Key may not be empty");
        }
    }
    *keys_out = keys.values;
    *n_out = keys.n;
    return OK;
}

/* ---- places ---- */

typedef struct place {
    const cql_value *values;
    uint32_t n;
    bool after;
} place;

typedef struct span {
    place start, end;
    const cql_table *table;
} span;

static int compare_columns(const cql_table *table, const cql_value *x, const cql_value *y, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const cql_column *c = &table->columns[table->partition_n + i];
        int order = cql_compare(c->type, x[i], y[i]);
        if (order) {
            return c->descending ? -order : order;
        }
    }
    return 0;
}

static int compare_places(const cql_table *table, const place *x, const place *y) {
    int c = compare_columns(table, x->values, y->values, x->n < y->n ? x->n : y->n);
    if (c) {
        return c;
    }
    if (x->n == y->n) {
        return x->after - y->after;
    }
    return x->n < y->n ? (x->after ? 1 : -1) : (y->after ? -1 : 1);
}

static int compare_spans(const void *a, const void *b) {
    const span *x = a, *y = b;
    return compare_places(x->table, &x->start, &y->start);
}

typedef struct spans {
    span *items;
    uint32_t n;
} spans;

/* ---- slices ---- */

static const cql_value *joined(op *o, const cql_value *prefix, uint32_t prefix_n, const cql_value *values, uint32_t n) {
    cql_value *all = arena_array(o->arena, cql_value, prefix_n + n + 1);
    if (prefix_n) {
        memcpy(all, prefix, prefix_n * sizeof *all);
    }
    memcpy(all + prefix_n, values, n * sizeof *all);
    return all;
}

/* The spans of one bound below a prefix: (c1, c2) > (v1, v2) is c1 > v1, or c1 = v1 and c2 > v2. With one order for all columns this is one
 * span; columns of mixed order need one for each. */
static void bound_spans(op *o, const cql_table *table, const cql_relation *r, const cql_value *values, const cql_value *prefix,
                        uint32_t prefix_n, spans *out) {
    bool lower = cql__is_lower(r->op), inclusive = r->op == CQL_GE || r->op == CQL_LE;
    uint32_t first = table->partition_n + prefix_n, n = r->columns_n;
    const cql_value *all = joined(o, prefix, prefix_n, values, n);
    bool uniform = true;
    for (uint32_t i = 1; i < n; i++) {
        uniform &= table->columns[first + i].descending == table->columns[first].descending;
    }
    out->items = arena_array(o->arena, span, n + 1);
    out->n = 0;
    for (uint32_t depth = uniform ? n : 1; depth <= n; depth++) {
        bool last = depth == n, included = last && inclusive;
        uint32_t outer = uniform ? prefix_n : prefix_n + depth - 1;
        bool from = lower != table->columns[first + depth - 1].descending; /* the bound is where the span starts */
        place at = {all, prefix_n + depth, from ? !included : included};
        span s = {.start = from ? at : (place){all, outer, false}, .end = from ? (place){all, outer, true} : at, .table = table};
        out->items[out->n++] = s;
    }
}

static void intersect(op *o, const cql_table *table, const spans *x, const spans *y, spans *out) {
    out->items = arena_array(o->arena, span, (size_t)x->n * y->n + 1);
    out->n = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        for (uint32_t k = 0; k < y->n; k++) {
            const span *a = &x->items[i], *b = &y->items[k];
            span s = {.start = compare_places(table, &a->start, &b->start) > 0 ? a->start : b->start,
                      .end = compare_places(table, &a->end, &b->end) < 0 ? a->end : b->end,
                      .table = table};
            if (compare_places(table, &s.start, &s.end) < 0) {
                out->items[out->n++] = s;
            }
        }
    }
}

/* The spans below one prefix. `bounds` has the values of the two slices. */
static void spans_of(op *o, const cql_restrictions *r, const cql_value *prefix, const cql_value *const bounds[2], spans *out) {
    span whole = {.start = {prefix, r->clustering_n, false}, .end = {prefix, r->clustering_n, true}, .table = r->table};
    spans sides[2];
    for (int i = 0; i < 2; i++) {
        sides[i] = (spans){arena_array(o->arena, span, 1), 1};
        sides[i].items[0] = whole;
        if (r->slice[i]) {
            bound_spans(o, r->table, r->slice[i], bounds[i], prefix, r->clustering_n, &sides[i]);
        }
    }
    intersect(o, r->table, &sides[0], &sides[1], out);
}

/* ---- ranges ---- */

static err prefixes_of(op *o, const cql_run *run, const cql_restrictions *r, rows *out) {
    *out = (rows){.n = 1};
    for (uint32_t i = 0; i < r->clustering_n;) {
        const cql_relation *relation = r->clustering[i];
        const cql_value *values;
        uint32_t n, width = relation->columns_n;
        TRY(cql__relation_values(o, run, relation, columns_at(o, r->table, r->table->partition_n + i, width), &values, &n));
        TRY(multiply(o, out, values, n, width));
        i += width;
    }
    return OK;
}

static err slice_values(op *o, const cql_run *run, const cql_restrictions *r, const cql_value *bounds[2]) {
    for (int i = 0; i < 2; i++) {
        uint32_t n;
        bounds[i] = NULL;
        if (r->slice[i]) {
            TRY(cql__relation_values(o, run, r->slice[i],
                                     columns_at(o, r->table, r->table->partition_n + r->clustering_n, r->slice[i]->columns_n), &bounds[i],
                                     &n));
        }
    }
    return OK;
}

static cql_range range_of(const span *s) {
    return (cql_range){.start = {s->start.values, s->start.n, !s->start.after}, .end = {s->end.values, s->end.n, s->end.after}};
}

err cql_restrict_ranges(op *o, const cql_run *run, const cql_restrictions *r, const cql_range **ranges_out, uint32_t *n_out) {
    const cql_value *bounds[2];
    rows prefixes;
    *n_out = 0;
    TRY(prefixes_of(o, run, r, &prefixes));
    TRY(slice_values(o, run, r, bounds));
    uint32_t each = 1;
    for (int i = 0; i < 2; i++) {
        each *= r->slice[i] ? r->slice[i]->columns_n : 1;
    }
    size_t room = (size_t)prefixes.n * each + 1;
    if (!arena_fits(o->arena, room * (sizeof(span) + sizeof(cql_range)))) {
        return budget_error(o->budget);
    }
    spans all = {arena_array(o->arena, span, room), 0};
    for (uint32_t i = 0; i < prefixes.n; i++) {
        spans some;
        spans_of(o, r, prefixes.width ? row_at(&prefixes, i) : NULL, bounds, &some);
        memcpy(all.items + all.n, some.items, some.n * sizeof(span));
        all.n += some.n;
    }
    qsort(all.items, all.n, sizeof(span), compare_spans);
    cql_range *ranges = arena_array(o->arena, cql_range, room);
    for (uint32_t i = 0; i < all.n; i++) {
        if (i == 0 || compare_spans(&all.items[i - 1], &all.items[i]) != 0) { /* equal starts: the same value twice in IN */
            ranges[(*n_out)++] = range_of(&all.items[i]);
        }
    }
    *ranges_out = ranges;
    return OK;
}

/* ---- tokens ---- */

err cql_restrict_tokens(op *o, const cql_run *run, const cql_restrictions *r, int64_t *first_out, int64_t *last_out, bool *any_out) {
    cql_receiver receiver = {SLICE_LIT("partition key token"), cql_type_of(CQL_BIGINT)};
    *first_out = INT64_MIN;
    *last_out = INT64_MAX;
    *any_out = true;
    for (int i = 0; i < 2; i++) {
        cql_value v;
        int64_t token;
        if (!r->token[i]) {
            continue;
        }
        TRY(cql_term_value(o, run, r->token[i]->value, &receiver, &v));
        if (!cql_as_bigint(v, &token)) {
            return op_fail(o, E_BAD_REQUEST, "Invalid null token value");
        }
        cql_operator op = r->token[i]->op;
        if (op == CQL_GT || op == CQL_GE || op == CQL_EQ) {
            *any_out &= !(op == CQL_GT && token == INT64_MAX);
            *first_out = op == CQL_GT && token < INT64_MAX ? token + 1 : token;
        }
        if (op == CQL_EQ ||
            ((op == CQL_LT || op == CQL_LE) && token != INT64_MIN)) { /* the smallest token as an end means the end of the ring */
            *last_out = op == CQL_LT ? token - 1 : token;
        }
    }
    *any_out &= *first_out <= *last_out;
    return OK;
}
