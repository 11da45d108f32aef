#include "query/group.h"

#include <stdlib.h>

#include "query/aggregate.h"

typedef struct group group;
struct group {
    group *next;  /* in the order of first rows, or as sorted */
    group *chain; /* next in the same bucket */
    uint64_t hash;
    query_value *keys;
    query_value *slots; /* slots of its first row, if columns may use them (shows_rows) */
    query_accumulator *accumulators;
};

struct query_groups {
    arena *keep;
    const query_select *select;
    group *first, **last;
    size_t n;
    group **buckets;
    size_t buckets_n; /* a power of two */
    bool (*wanted)(void *context, const query_value *keys);
    void *context;
};

query_groups *query_groups_new(arena *keep, const query_select *s) {
    query_groups *g = arena_new(keep, query_groups);
    g->keep = keep;
    g->select = s;
    g->last = &g->first;
    g->buckets_n = s->group_n ? 64 : 1;
    g->buckets = arena_array(keep, group *, g->buckets_n);
    return g;
}

static void grow(query_groups *g) {
    size_t n = g->buckets_n * 4;
    if (!arena_fits(g->keep, n * sizeof *g->buckets)) {
        return; /* the budget is exceeded, so the query ends */
    }
    group **buckets = arena_array(g->keep, group *, n);
    for (group *each = g->first; each; each = each->next) {
        each->chain = buckets[each->hash & (n - 1)];
        buckets[each->hash & (n - 1)] = each;
    }
    g->buckets = buckets;
    g->buckets_n = n;
}

static bool same_keys(const query_groups *g, const group *a, const query_value *keys) {
    for (size_t i = 0; i < g->select->group_n; i++) {
        if (a->keys[i].type != keys[i].type || (value_is_defined(&keys[i]) && !value_same(&a->keys[i], &keys[i]))) {
            return false;
        }
    }
    return true;
}

/* Makes a group with keys only. */
static group *add_group(query_groups *g, const query_value *keys, uint64_t hash) {
    const query_select *s = g->select;
    group *made = arena_new(g->keep, group);
    made->hash = hash;
    made->keys = arena_array(g->keep, query_value, s->group_n + 1);
    made->slots = arena_array(g->keep, query_value, s->sources_n + 1);
    made->accumulators = arena_array(g->keep, query_accumulator, s->aggregates_n + 1);
    for (size_t i = 0; i < s->group_n; i++) {
        made->keys[i] = value_keep(g->keep, &keys[i]);
    }
    made->chain = g->buckets[hash & (g->buckets_n - 1)];
    g->buckets[hash & (g->buckets_n - 1)] = made;
    *g->last = made;
    g->last = &made->next;
    if (++g->n > g->buckets_n * 2) {
        grow(g);
    }
    return made;
}

static group *make_group(query_groups *g, query_runner *r, const query_value *keys, uint64_t hash) {
    const query_select *s = g->select;
    group *made = add_group(g, keys, hash);
    for (size_t i = 0; i < s->sources_n && s->shows_rows; i++) {
        made->slots[i] = value_keep(g->keep, &r->slots[s->first_slot + (int)i]);
    }
    for (size_t i = 0; i < s->aggregates_n; i++) {
        accumulator_init(&made->accumulators[i], query_aggregate_of(s->aggregates[i]->name));
    }
    return made;
}

/* Finds or makes a group. NULL: it would be new, and there are already `most`. */
static group *find_group(query_groups *g, query_runner *r, const query_value *keys, size_t most) {
    uint64_t hash = 0;
    for (size_t i = 0; i < g->select->group_n; i++) {
        hash = value_hash(&keys[i], hash + i);
    }
    for (group *each = g->buckets[hash & (g->buckets_n - 1)]; each; each = each->chain) {
        if (each->hash == hash && same_keys(g, each, keys)) {
            return each;
        }
    }
    return g->n < most ? make_group(g, r, keys, hash) : NULL;
}

static const query_value *keys_of(const query_groups *g, query_runner *r) {
    const query_select *s = g->select;
    query_value *keys = arena_array(r->context.arena, query_value, s->group_n + 1);
    for (size_t i = 0; i < s->group_n; i++) {
        keys[i] = query_eval(r, s->group[i]);
        query_pay_value(r, &keys[i]);
    }
    return keys;
}

void query_groups_filter(query_groups *g, bool (*wanted)(void *context, const query_value *keys), void *context) {
    g->wanted = wanted;
    g->context = context;
}

bool query_groups_add(query_groups *g, query_runner *r, uint64_t times, size_t most) {
    const query_value *keys = keys_of(g, r);
    if (g->wanted && !g->wanted(g->context, keys)) {
        return true;
    }
    group *to = find_group(g, r, keys, most);
    for (size_t i = 0; i < g->select->aggregates_n && to; i++) {
        query_value v = query_eval(r, g->select->aggregates[i]->items[0]);
        query_pay_value(r, &v);
        accumulator_add(&to->accumulators[i], g->keep, &v, times);
    }
    query_may_keep(r);
    return to != NULL;
}

bool query_groups_spoiled(const query_groups *g) {
    bool spoiled = false;
    for (size_t i = 0; i < g->select->aggregates_n && g->first && g->select->group_n == 0; i++) {
        const query_accumulator *a = &g->first->accumulators[i];
        spoiled = spoiled || (a->kind == AGGREGATE_SUM && a->spoiled);
    }
    return spoiled;
}

/* ---- saving and loading: for each group an array of its keys and its accumulators ---- */

static bool save_group(const query_groups *g, const group *each, bson_t *list, size_t index, size_t bytes_max) {
    const query_select *s = g->select;
    char number[16];
    const char *key;
    bson_t saved;
    bool good = true;
    size_t n = bson_uint32_to_string((uint32_t)index, &key, number, sizeof number);
    bson_append_array_begin(list, key, (int)n, &saved);
    for (size_t i = 0; i < s->group_n && good; i++) {
        good = each->keys[i].bytes.n <= bytes_max && value_append_exact(&saved, i, &each->keys[i]);
    }
    for (size_t i = 0; i < s->aggregates_n && good; i++) {
        good = accumulator_save(&each->accumulators[i], &saved, s->group_n + i, bytes_max);
    }
    bson_append_array_end(list, &saved);
    return good && list->len <= bytes_max;
}

bool query_groups_save(const query_groups *g, bson_t *list, size_t bytes_max) {
    size_t n = 0;
    bool good = !g->select->shows_rows;
    for (const group *each = g->first; each && good; each = each->next) {
        good = save_group(g, each, list, n++, bytes_max);
    }
    return good;
}

static bool load_group(query_groups *g, query_runner *r, bson_iter_t saved) {
    const query_select *s = g->select;
    bson_iter_t each;
    query_value *keys = arena_array(r->context.arena, query_value, s->group_n + 1);
    if (!BSON_ITER_HOLDS_ARRAY(&saved) || !bson_iter_recurse(&saved, &each)) {
        return false;
    }
    for (size_t i = 0; i < s->group_n; i++) {
        if (!bson_iter_next(&each)) {
            return false;
        }
        keys[i] = value_of_exact(&each);
    }
    size_t before = g->n;
    group *loaded = find_group(g, r, keys, SIZE_MAX);
    if (g->n == before) {
        return false;
    }
    for (size_t i = 0; i < s->aggregates_n; i++) {
        if (!bson_iter_next(&each) || !accumulator_load(&loaded->accumulators[i], g->keep, &each)) {
            return false;
        }
    }
    return true;
}

bool query_groups_load(query_groups *g, query_runner *r, slice list) {
    bson_t document;
    bson_iter_t each;
    bool good = bson_init_static(&document, (const uint8_t *)list.p, list.n) && bson_iter_init(&each, &document);
    while (good && bson_iter_next(&each)) {
        good = load_group(g, r, each);
    }
    return good;
}

/* ---- visiting groups ---- */

static int by_keys(const void *a, const void *b, void *groups) {
    const group *x = *(group *const *)a, *y = *(group *const *)b;
    int order = 0;
    for (size_t i = 0; i < ((const query_groups *)groups)->select->group_n && order == 0; i++) {
        order = value_compare(&x->keys[i], &y->keys[i]);
    }
    return order;
}

void query_groups_sort(query_groups *g) {
    size_t n = 0;
    group **list = arena_array(g->keep, group *, g->n + 1);
    for (group *each = g->first; each; each = each->next) {
        list[n++] = each;
    }
    qsort_r(list, n, sizeof *list, by_keys, g);
    g->last = &g->first;
    for (size_t i = 0; i < n; i++) {
        *g->last = list[i];
        g->last = &list[i]->next;
    }
    *g->last = NULL;
}

static const group *move_group(query_groups *to, const group *each) {
    const query_select *s = to->select;
    group *made = add_group(to, each->keys, each->hash);
    for (size_t i = 0; i < s->sources_n && s->shows_rows; i++) {
        made->slots[i] = value_keep(to->keep, &each->slots[i]);
    }
    for (size_t i = 0; i < s->aggregates_n; i++) {
        made->accumulators[i] = each->accumulators[i];
        accumulator_move(&made->accumulators[i], to->keep);
    }
    return made;
}

query_groups *query_groups_cut(query_groups *g, size_t n, const query_value **last_out) {
    arena *keep = g->keep;
    query_groups_sort(g);
    arena before = *keep;
    *keep = arena_init_counted(before.budget);
    query_groups *cut = query_groups_new(keep, g->select);
    query_groups_filter(cut, g->wanted, g->context);
    for (const group *each = g->first; each && cut->n < n; each = each->next) {
        *last_out = move_group(cut, each)->keys;
    }
    arena_free(&before);
    return cut;
}

size_t query_groups_count(const query_groups *g) {
    return g->n;
}

void query_groups_count_keys(const query_groups *g, query_key_count *to) {
    for (const group *each = g->first; each; each = each->next) {
        query_key_count_add(to, each->keys, g->select->group_n);
    }
}

static bool show(query_groups *g, query_runner *r, const group *each, query_row visit, void *context) {
    const query_select *s = g->select;
    query_value *results = arena_array(r->context.arena, query_value, s->aggregates_n + 1);
    for (size_t i = 0; i < s->aggregates_n; i++) {
        query_value result = accumulator_result(&each->accumulators[i], r->context.arena);
        results[i] = accumulator_makes_array(&each->accumulators[i]) ? query_made(r, result) : result;
    }
    for (size_t i = 0; i < s->sources_n; i++) {
        r->slots[s->first_slot + (int)i] = each->slots[i];
    }
    r->aggregates = results;
    r->keys = each->keys;
    bool go_on = r->code == OK && visit(context);
    r->aggregates = r->keys = NULL;
    return go_on;
}

void query_groups_each(query_groups *g, query_runner *r, query_row visit, void *context) {
    if (g->n == 0 && g->select->group_n == 0) {
        make_group(g, r, NULL, 0);
    }
    for (const group *each = g->first; each && show(g, r, each, visit, context); each = each->next) {
    }
}
