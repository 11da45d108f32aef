/* steps_gather.c — steps that wait for all traversers: count, sum, fold, order, tail, sample, barrier. One state per tag. */
#include <math.h>
#include <stdlib.h>

#include "gremlin/steps_int.h"

/* ---- count(), sum(), min(), max(), mean() ---- */

static bool add_number(gremlin_run *m, gremlin_value *sum, gremlin_value v) {
    if (!gremlin_calculate(&m->heap, GREMLIN_ADD, *sum, v, sum)) {
        (void)gremlin__fail(m, E_BAD_QUERY, "The sum is too large");
        return false;
    }
    return true;
}

/* A bulk is a long, and so is the sum of whole numbers; but not that of a list's numbers, which have none: `bulk` is 0. */
static bool times_bulk(gremlin_run *m, gremlin_value v, int64_t bulk, gremlin_value *out) {
    if (bulk <= 1) {
        *out = bulk && gremlin_is_whole(v) ? gremlin_long(v.i) : v;
        return true;
    }
    return gremlin_calculate(&m->heap, GREMLIN_MULTIPLY, v, gremlin_long(bulk), out) ||
           gremlin__fail(m, E_BAD_QUERY, "The sum is too large") == DONE;
}

static void accumulate(gremlin_run *m, gremlin_op op, entry *e, gremlin_value v, int64_t bulk) {
    bool first = e->n == 0;
    if (op != GREMLIN_COUNT_STEP && v.type == GREMLIN_NULL) {
        return; /* null is not counted */
    }
    e->n = bulk_plus(e->n, bulk ? bulk : 1);
    if (op == GREMLIN_COUNT_STEP) {
        return;
    }
    if (op == GREMLIN_MIN_STEP || op == GREMLIN_MAX_STEP) {
        int order = first ? 0 : gremlin_order(v, e->value);
        bool is_nan = !first && gremlin_is_number(v) && isnan(gremlin_as_double(v));
        bool had_nan = !first && gremlin_is_number(e->value) && isnan(gremlin_as_double(e->value));
        bool better = op == GREMLIN_MIN_STEP ? order < 0 : order > 0;
        e->value = first || (had_nan && !is_nan) || (better && !is_nan) ? v : e->value;
        return;
    }
    if (!gremlin_is_number(v)) {
        (void)gremlin__fail(m, E_BAD_QUERY, "%s() needs numbers, but got a value of the type %s", gremlin_op_name(op),
                            gremlin_type_name((gremlin_type)v.type));
        return;
    }
    gremlin_value times;
    if (times_bulk(m, v, bulk, &times)) {
        e->value = first ? times : e->value;
        (void)(first || add_number(m, &e->value, times));
    }
}

/* The mean of whole numbers is a double; of decimals a decimal. */
static gremlin_value mean_of(gremlin_run *m, const entry *e) {
    gremlin_value mean, n = gremlin_long(e->n);
    if (e->value.type == GREMLIN_DECIMAL && gremlin_calculate(&m->heap, GREMLIN_DIVIDE, e->value, n, &mean)) {
        return mean;
    }
    return gremlin_double(gremlin_as_double(e->value) / (double)e->n);
}

static bool reduced(gremlin_run *m, gremlin_op op, const entry *e, gremlin_value *out) {
    if (op == GREMLIN_COUNT_STEP) {
        *out = gremlin_long(e ? e->n : 0);
        return true;
    }
    if (!e || e->n == 0) {
        return false;
    }
    *out = op == GREMLIN_MEAN_STEP ? mean_of(m, e) : e->value;
    return true;
}

bool gremlin__reduce_list(gremlin_run *m, gremlin_op op, const gremlin_items *items, gremlin_value *result_out) {
    entry e = {0};
    for (size_t i = 0; i < items->n; i++) {
        accumulate(m, op, &e, items->at[i], 0);
    }
    return m->failure == OK && reduced(m, op, &e, result_out);
}

/* count(local) and others: of each list by itself. */
static status reduce_local(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin_items items = {0};
        gremlin_value v = batch_at(s)[i].value, result;
        if (gremlin_is_map(v) && s->step->op == GREMLIN_COUNT_STEP) {
            gremlin__emit_value(m, f, s, &batch_at(s)[i], gremlin_long((int64_t)v.map->n));
            continue;
        }
        for (size_t j = 0; gremlin_is_map(v) && j < v.map->n; j++) {
            gremlin_items_add(&m->heap, &items, v.map->at[j].value);
        }
        if (!gremlin_is_map(v)) {
            gremlin__items_of(m, v, &items);
        }
        if (gremlin__reduce_list(m, s->step->op, &items, &result)) {
            gremlin__emit_value(m, f, s, &batch_at(s)[i], result);
        }
    }
    return DONE;
}

status gremlin__step_reduce(gremlin_run *m, flow *f, state *s) {
    if (is_local(s->step)) {
        return reduce_local(m, f, s);
    }
    for (size_t i = 0; i < batch_n(s) && m->failure == OK; i++) {
        entry *e = gremlin__entry(&s->table, batch_at(s)[i].tag, gremlin_null(), NULL);
        if (e) {
            accumulate(m, s->step->op, e, batch_at(s)[i].value, batch_at(s)[i].bulk);
        }
    }
    return m->failure == OK ? DONE : FAILED;
}

status gremlin__reduce_finish(gremlin_run *m, flow *f, state *s) {
    for (uint32_t tag = 0; !is_local(s->step) && tag < f->tags; tag++) {
        gremlin_value result;
        if (reduced(m, s->step->op, gremlin__entry_find(&s->table, tag, gremlin_null()), &result)) {
            gremlin__emit_fresh(m, f, s, tag, result);
        }
    }
    gremlin__table_clear(&s->table);
    return DONE;
}

/* ---- fold() ---- */

bool gremlin__operate(gremlin_run *m, unsigned operator, gremlin_value a, gremlin_value b, gremlin_value *result_out) {
    static const gremlin_arithmetic kinds[] = {[OPERATOR_SUM] = GREMLIN_ADD,
                                               [OPERATOR_MINUS] = GREMLIN_SUBTRACT,
                                               [OPERATOR_MULT] = GREMLIN_MULTIPLY,
                                               [OPERATOR_DIV] = GREMLIN_DIVIDE};
    bool numbers = gremlin_is_number(a) && gremlin_is_number(b);
    if ((operator<= OPERATOR_DIV || operator== OPERATOR_SUM_LONG) && numbers) {
        return gremlin_calculate(&m->heap, operator== OPERATOR_SUM_LONG ? GREMLIN_ADD : kinds[operator], a, b, result_out) ||
                                               gremlin__fail(m, E_BAD_QUERY, "The calculation has no result") == DONE;
    }
    if (operator== OPERATOR_MIN || operator== OPERATOR_MAX) {
        *result_out = (gremlin_order(a, b) < 0) == (operator== OPERATOR_MIN) ? a : b;
        return true;
    }
    if (operator== OPERATOR_ASSIGN) {
        *result_out = b;
        return true;
    }
    if ((operator== OPERATOR_AND || operator== OPERATOR_OR) && a.type == GREMLIN_BOOLEAN && b.type == GREMLIN_BOOLEAN) {
        *result_out = gremlin_boolean(operator== OPERATOR_AND ? a.b && b.b : a.b || b.b);
        return true;
    }
    if (operator== OPERATOR_ADD_ALL && gremlin_is_list(a)) {
        gremlin_items items = {0};
        gremlin__items_of(m, a, &items);
        gremlin__items_of(m, b, &items);
        *result_out = gremlin_items_list(&m->heap, &items, (gremlin_type)a.type);
        return true;
    }
    (void)gremlin__fail(m, E_BAD_QUERY, "Operator.%s does not take values of the types %s and %s",
                        gremlin_member_name(GREMLIN_OPERATOR, operator), gremlin_type_name((gremlin_type)a.type),
                        gremlin_type_name((gremlin_type)b.type));
    return false;
}

enum { FOLDED_AT_ONCE_MAX = 10000000 };

status gremlin__step_fold(gremlin_run *m, flow *f, state *s) {
    (void)f;
    for (size_t i = 0; i < batch_n(s); i++) {
        const traverser *t = &batch_at(s)[i];
        bool is_new = false;
        entry *e = gremlin__entry(&s->table, t->tag, gremlin_null(), &is_new);
        if (!e) {
            return DONE; /* out of memory: the run ends before its next turn */
        }
        if (is_new && s->step->n) {
            e->value = s->step->args[0];
        }
        for (int64_t j = 0; j < t->bulk && !gremlin__is_out_of_memory(m); j++) {
            if (s->step->n == 0) {
                gremlin_items_add(&m->heap, &e->items, t->value);
            } else if (!gremlin__operate(m, s->step->args[1].n, e->value, t->value, &e->value)) {
                return FAILED;
            }
            if (s->step->n && j == FOLDED_AT_ONCE_MAX) {
                return gremlin__fail(m, E_BAD_QUERY, "fold() would take too long");
            }
        }
    }
    return DONE;
}

status gremlin__fold_finish(gremlin_run *m, flow *f, state *s) {
    for (uint32_t tag = 0; tag < f->tags; tag++) {
        const entry *e = gremlin__entry_find(&s->table, tag, gremlin_null());
        gremlin_items none = {0};
        gremlin__emit_fresh(m, f, s, tag,
                            s->step->n ? (e ? e->value : s->step->args[0])
                                       : gremlin_items_list(&m->heap, e ? &e->items : &none, GREMLIN_LIST));
    }
    gremlin__table_clear(&s->table);
    return DONE;
}

/* ---- order() ----
 *
 * Each kept traverser is followed by a list of its keys: the value of an extra traverser behind it. */

typedef struct sortable {
    traverser t;
    const gremlin_value *keys;
    uint64_t chance, position;
} sortable;

static _Thread_local const gremlin_step *sort_step;

static int compare_keys(const gremlin_step *step, const gremlin_value *a, const gremlin_value *b, uint64_t a_chance, uint64_t b_chance) {
    size_t n = step->by_n ? step->by_n : 1;
    for (size_t i = 0; i < n; i++) {
        unsigned order = step->by_n ? step->bys[i].order : ORDER_ASC;
        int c = order == ORDER_SHUFFLE ? (a_chance > b_chance) - (a_chance < b_chance) : gremlin_order(a[i], b[i]);
        if (c) {
            return order == ORDER_DESC ? -c : c;
        }
    }
    return 0;
}

static int compare_sortables(const void *x, const void *y) {
    const sortable *a = x, *b = y;
    if (a->t.tag != b->t.tag) {
        return a->t.tag < b->t.tag ? -1 : 1;
    }
    int c = compare_keys(sort_step, a->keys, b->keys, a->chance, b->chance);
    return c ? c : (a->position > b->position) - (a->position < b->position);
}

static uint64_t lot(gremlin_run *m) {
    return m->options.random ? random_u64(m->options.random) : 0;
}

static void list_bys(gremlin_run *m, state *s, const traverser *t) {
    size_t n = s->step->by_n ? s->step->by_n : 1;
    (void)m;
    for (size_t i = 0; i < n; i++) {
        gremlin__subject_by(s, t, t->value, gremlin__by(s->step, i));
    }
}

static status order_local(gremlin_run *m, flow *f, state *s);

status gremlin__step_keep_by(gremlin_run *m, flow *f, state *s) {
    if (is_local(s->step)) {
        return s->step->op == GREMLIN_ORDER_STEP ? order_local(m, f, s) : gremlin__sample_local(m, f, s);
    }
    status st = gremlin__with_subjects(m, f, s, list_bys);
    size_t n = s->step->by_n ? s->step->by_n : 1;
    for (size_t i = 0; st == DONE && i < batch_n(s); i++) {
        gremlin_value *keys = arena_array(&m->heap, gremlin_value, n);
        bool whole = true;
        for (size_t j = 0; j < n; j++) {
            const subject *one = &subjects_at(s)[i * n + j];
            keys[j] = one->out;
            whole &= one->productive;
        }
        if (whole) {
            traverser behind = gremlin__fresh(0, gremlin_list_of(&m->heap, GREMLIN_LIST, keys, n));
            gremlin__put(&s->kept, &batch_at(s)[i]);
            gremlin__put(&s->kept, &behind);
        }
    }
    return st;
}

static bool load_sortables(gremlin_run *m, state *s, buf *room) {
    size_t n = queue_n(&s->kept) / 2;
    *room = buf_init_counted(BUF_NO_LIMIT, m->op->budget);
    if (!buf_reserve(room, n * sizeof(sortable) + 1)) {
        return false;
    }
    sortable *at = (sortable *)(void *)room->p;
    for (size_t i = 0; i < n; i++) {
        const traverser *t = queue_at(&s->kept) + 2 * i;
        at[i] = (sortable){t[0], t[1].value.list->at, lot(m), i};
    }
    return true;
}

status gremlin__order_finish(gremlin_run *m, flow *f, state *s) {
    buf room;
    size_t n = queue_n(&s->kept) / 2;
    if (!load_sortables(m, s, &room)) {
        buf_free(&room);
        return gremlin__fail(m, E_MEMORY, "order() needs more memory than a request may have");
    }
    sort_step = s->step;
    if (n) {
        qsort(room.p, n, sizeof(sortable), compare_sortables);
    }
    for (size_t i = 0; i < n; i++) {
        gremlin__pass(m, f, s, &((const sortable *)(const void *)room.p)[i].t);
    }
    buf_free(&room);
    gremlin__queue_clear(&s->kept);
    return DONE;
}

/* order(local): of a list its items, of a map its entries. `kept` has the parts while their keys are evaluated. */
static size_t parts_of(gremlin_run *m, gremlin_value v, gremlin_items *items) {
    if (!gremlin_is_map(v)) {
        gremlin__items_of(m, v, items);
        return items->n;
    }
    for (size_t i = 0; i < v.map->n; i++) {
        gremlin_value e = gremlin_map_of(&m->heap, GREMLIN_MAP, &v.map->at[i], 1);
        ((gremlin_map *)(uintptr_t)e.map)->is_entry = true;
        gremlin_items_add(&m->heap, items, e);
    }
    return items->n;
}

static void list_parts(gremlin_run *m, state *s, const traverser *t) {
    gremlin_items items = {0};
    size_t n = s->step->by_n ? s->step->by_n : 1;
    parts_of(m, t->value, &items);
    for (size_t i = 0; i < items.n; i++) {
        for (size_t j = 0; j < n; j++) {
            gremlin__subject_by(s, t, items.at[i], gremlin__by(s->step, j));
        }
    }
}

static gremlin_value joined(gremlin_run *m, gremlin_value like, const sortable *at, size_t n) {
    gremlin_items items = {0};
    gremlin_pairs pairs = {0};
    for (size_t i = 0; i < n; i++) {
        if (gremlin_is_map(like)) {
            gremlin_pairs_add(&m->heap, &pairs, at[i].t.value.map->at[0].key, at[i].t.value.map->at[0].value);
        } else {
            gremlin_items_add(&m->heap, &items, at[i].t.value);
        }
    }
    return gremlin_is_map(like) ? gremlin_pairs_map(&m->heap, &pairs, GREMLIN_MAP) : gremlin_items_list(&m->heap, &items, GREMLIN_LIST);
}

static status order_local(gremlin_run *m, flow *f, state *s) {
    status st = gremlin__with_subjects(m, f, s, list_parts);
    size_t n = s->step->by_n ? s->step->by_n : 1;
    const subject *at = subjects_at(s);
    for (size_t i = 0; st == DONE && i < batch_n(s); i++) {
        gremlin_items items = {0};
        size_t parts = parts_of(m, batch_at(s)[i].value, &items), kept = 0;
        sortable *sorted = arena_array(&m->heap, sortable, parts + 1);
        for (size_t j = 0; j < parts; j++) {
            gremlin_value *keys = arena_array(&m->heap, gremlin_value, n);
            bool whole = true;
            for (size_t k = 0; k < n; k++, at++) {
                keys[k] = at->out;
                whole &= at->productive;
            }
            if (whole) {
                sorted[kept] = (sortable){gremlin__fresh(0, items.at[j]), keys, lot(m), kept};
                kept++;
            }
        }
        sort_step = s->step;
        qsort(sorted, kept, sizeof *sorted, compare_sortables);
        gremlin__emit_value(m, f, s, &batch_at(s)[i], joined(m, batch_at(s)[i].value, sorted, kept));
    }
    return st;
}

/* ---- tail(), sample(), barrier() ---- */

static int64_t number_of(const gremlin_step *step) {
    return step->n > has_scope(step) ? step->args[has_scope(step)].i : 1;
}

static status tail_local(gremlin_run *m, flow *f, state *s) {
    int64_t wanted = number_of(s->step);
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin_items items = {0};
        gremlin_value v = batch_at(s)[i].value;
        if (gremlin_is_map(v)) {
            size_t n = (int64_t)v.map->n < wanted ? v.map->n : (size_t)wanted;
            gremlin__emit_value(m, f, s, &batch_at(s)[i], gremlin_map_of(&m->heap, GREMLIN_MAP, v.map->at + v.map->n - n, n));
            continue;
        }
        gremlin__items_of(m, v, &items);
        size_t n = (int64_t)items.n < wanted ? items.n : (size_t)wanted;
        if (wanted == 1) {
            if (n) {
                gremlin__emit_value(m, f, s, &batch_at(s)[i], items.at[items.n - 1]);
            }
        } else {
            gremlin__emit_value(m, f, s, &batch_at(s)[i], gremlin_list_of(&m->heap, GREMLIN_LIST, items.at + items.n - n, n));
        }
    }
    return DONE;
}

status gremlin__step_keep(gremlin_run *m, flow *f, state *s) {
    if (s->step->op == GREMLIN_TAIL_STEP && is_local(s->step)) {
        return tail_local(m, f, s);
    }
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin__put(&s->kept, &batch_at(s)[i]);
    }
    return DONE;
}

status gremlin__tail_finish(gremlin_run *m, flow *f, state *s) {
    size_t n = queue_n(&s->kept);
    for (size_t i = 0; i < n; i++) { /* how many there are of each tag */
        const traverser *t = &queue_at(&s->kept)[i];
        entry *e = gremlin__entry(&s->table, t->tag, gremlin_null(), NULL);
        if (e) {
            e->n = bulk_plus(e->n, t->bulk);
        }
    }
    int64_t wanted = is_local(s->step) ? 0 : number_of(s->step);
    for (size_t i = 0; i < n; i++) {
        traverser t = queue_at(&s->kept)[i];
        entry *e = gremlin__entry(&s->table, t.tag, gremlin_null(), NULL);
        int64_t behind = e ? e->n - t.bulk : 0;
        if (e) {
            e->n = behind;
        }
        int64_t kept = wanted - behind < t.bulk ? wanted - behind : t.bulk;
        t.bulk = kept;
        if (kept > 0) {
            gremlin__pass(m, f, s, &t);
        }
    }
    gremlin__table_clear(&s->table);
    gremlin__queue_clear(&s->kept);
    return DONE;
}

static double weight_of(const traverser *pair) {
    gremlin_value key = pair[1].value.list->at[0];
    double weight = gremlin_is_number(key) ? gremlin_as_double(key) : 1;
    return weight > 0 ? weight : 0;
}

/* A weighted sample without replacement: the largest of u^(1/weight) (Efraimidis and Spirakis). */
static int by_lot(const void *x, const void *y) {
    const sortable *a = x, *b = y;
    if (a->t.tag != b->t.tag) {
        return a->t.tag < b->t.tag ? -1 : 1;
    }
    return (a->chance < b->chance) - (a->chance > b->chance);
}

status gremlin__sample_finish(gremlin_run *m, flow *f, state *s) {
    buf room;
    size_t n = queue_n(&s->kept) / 2;
    int64_t wanted = number_of(s->step), taken = 0;
    if (!load_sortables(m, s, &room)) {
        buf_free(&room);
        return gremlin__fail(m, E_MEMORY, "sample() needs more memory than a request may have");
    }
    sortable *at = (sortable *)(void *)room.p;
    for (size_t i = 0; i < n; i++) {
        double weight = weight_of(queue_at(&s->kept) + 2 * i), u = (double)(lot(m) >> 11) / 9007199254740992.0;
        at[i].chance = weight > 0 ? (uint64_t)(pow(u, 1 / weight) * 4503599627370496.0) : 0;
    }
    if (n) {
        qsort(at, n, sizeof *at, by_lot);
    }
    for (size_t i = 0; i < n && !is_local(s->step); i++) {
        taken = i && at[i].t.tag != at[i - 1].t.tag ? 0 : taken;
        int64_t left = wanted - taken;
        at[i].t.bulk = at[i].t.bulk < left ? at[i].t.bulk : left;
        if (left > 0) {
            gremlin__pass(m, f, s, &at[i].t);
            taken = bulk_plus(taken, at[i].t.bulk);
        }
    }
    buf_free(&room);
    gremlin__queue_clear(&s->kept);
    return DONE;
}

status gremlin__sample_local(gremlin_run *m, flow *f, state *s) {
    size_t wanted = number_of(s->step) < 0 ? 0 : (size_t)number_of(s->step);
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin_items items = {0};
        gremlin__items_of(m, batch_at(s)[i].value, &items);
        size_t n = wanted < items.n ? wanted : items.n;
        for (size_t j = 0; j < n; j++) {
            size_t other = j + (m->options.random ? (size_t)random_below(m->options.random, items.n - j) : 0);
            gremlin_value v = items.at[j];
            items.at[j] = items.at[other];
            items.at[other] = v;
        }
        gremlin__emit_value(m, f, s, &batch_at(s)[i], gremlin_list_of(&m->heap, GREMLIN_LIST, items.at, n));
    }
    return DONE;
}

/* normSack: the sacks of all traversers together are 1. */
static void normalize_sacks(state *s) {
    double sum = 0;
    for (size_t i = 0; i < queue_n(&s->kept); i++) {
        const traverser *t = &queue_at(&s->kept)[i];
        sum += gremlin_is_number(t->sack) ? gremlin_as_double(t->sack) * (double)t->bulk : 0;
    }
    for (size_t i = 0; i < queue_n(&s->kept) && sum != 0; i++) {
        traverser *t = &queue_at(&s->kept)[i];
        t->sack = gremlin_is_number(t->sack) ? gremlin_double(gremlin_as_double(t->sack) / sum) : t->sack;
    }
}

status gremlin__barrier_finish(gremlin_run *m, flow *f, state *s) {
    gremlin__merge_equal(m, &s->kept);
    if (s->step->n && s->step->args[0].type == GREMLIN_ENUM) {
        normalize_sacks(s);
    }
    for (size_t i = 0; i < queue_n(&s->kept); i++) {
        gremlin__pass(m, f, s, &queue_at(&s->kept)[i]);
    }
    gremlin__queue_clear(&s->kept);
    return DONE;
}

static bool same_loops(const loop_mark *a, const loop_mark *b) {
    while (a && b && a != b && a->count == b->count) {
        a = a->outer;
        b = b->outer;
    }
    return a == b;
}

/* Traversers that nothing tells apart become one with their bulks together. */
void gremlin__merge_equal(gremlin_run *m, queue *q) {
    const gremlin_source *source = m->traversal->source;
    table seen = {buf_init_counted(BUF_NO_LIMIT, m->op->budget), buf_init_counted(BUF_NO_LIMIT, m->op->budget)};
    bool merges_sacks = source && source->has_sack && source->sack_merge.type == GREMLIN_ENUM;
    bool apart = m->tracks_path || m->tracks_labels || (source && source->has_sack && !merges_sacks);
    size_t kept = 0, n = queue_n(q);
    traverser *at = queue_at(q);
    for (size_t i = 0; i < n && !apart; i++) {
        bool is_new = true;
        entry *e = gremlin__entry(&seen, at[i].tag, at[i].value, &is_new);
        if (e && !is_new && same_loops(at[e->n].loops, at[i].loops) && at[e->n].bulk <= INT64_MAX - at[i].bulk) {
            at[e->n].bulk += at[i].bulk;
            if (merges_sacks) {
                (void)gremlin__operate(m, source->sack_merge.n, at[e->n].sack, at[i].sack, &at[e->n].sack);
            }
            continue;
        }
        if (e && is_new) {
            e->n = (int64_t)kept;
        }
        at[kept++] = at[i];
    }
    if (!apart) {
        q->bytes.n = (q->from + kept) * sizeof *at;
    }
    gremlin__table_free(&seen);
}
