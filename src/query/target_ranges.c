#include "query/target_ranges.h"

#include <math.h>
#include <stdlib.h>

#include "query/demand_int.h"
#include "query/like.h"

enum {
    KEYS_MAX = 10000,
    CONSTANT_STEPS = 20000 /* for evaluating the constant expressions of a query, about 0.2 ms */
};

/* The keys that a condition allows: a list of (possibly partial) keys, all or none. */
typedef struct keys {
    bool all; /* any key is allowed */
    pkey *list;
    size_t n, room;
} keys;

typedef struct finder {
    arena *arena;
    const query *query;
    const pkey_definition *key;
    const query_select *select; /* the query or subquery whose WHERE is being read */
    query_runner *runner;       /* evaluates constant expressions; made when the first one is met */
} finder;

/* ---- c.a.b = constant ---- */

/* Which path of the partition key an expression is, or -1. */
static int key_path(const finder *f, const query_expr *e) {
    find_path p;
    bool found = query__demand_path(f->select, e, &p) && p.single && p.n;
    for (size_t i = 0; found && i < f->key->n; i++) {
        const doc_path *path = &f->key->paths[i];
        bool same = path->steps_n == p.n;
        for (size_t j = 0; same && j < p.n; j++) {
            same = slice_eq(path->steps[j], p.steps[j].name);
        }
        if (same) {
            return (int)i;
        }
    }
    return -1;
}

static query_runner *runner_of(finder *f) {
    if (!f->runner) {
        op *own = arena_new(f->arena, op); /* a failed evaluation only means that nothing is known, so the request's op stays untouched */
        op_init(own, f->arena, 0);
        f->runner = arena_new(f->arena, query_runner);
        query_runner_init(f->runner, f->query, own, f->arena, 0);
        query_renew_steps(f->runner, CONSTANT_STEPS);
    }
    return f->runner;
}

/* False: not a constant, or one that takes too long to evaluate. */
static bool constant(finder *f, const query_expr *e, query_value *value_out) {
    if (e->kind == EXPR_LITERAL) {
        *value_out = e->value;
        return true;
    }
    if (e->kind == EXPR_PARAMETER) {
        *value_out = e->slot < 0 ? value_undefined() : f->query->parameters[e->slot].value;
        return true;
    }
    if (!query__is_constant(e)) {
        return false;
    }
    *value_out = query_eval(runner_of(f), e);
    return f->runner->code == OK;
}

/* False: no item has such a key, since undefined and NaN equal nothing. An object means the undefined key,
 * and so does an array in the service's plans. */
static bool to_key(const query_value *v, pkey_value *out) {
    switch (v->type) {
    case TYPE_NULL:
        out->type = PKEY_NULL;
        return true;
    case TYPE_BOOL:
        out->type = v->truth ? PKEY_TRUE : PKEY_FALSE;
        return true;
    case TYPE_NUMBER:
        *out = (pkey_value){.type = PKEY_NUMBER, .number = v->number};
        return !isnan(v->number);
    case TYPE_STRING:
        *out = (pkey_value){.type = PKEY_STRING, .text = v->bytes};
        return true;
    case TYPE_ARRAY:
    case TYPE_OBJECT:
        out->type = PKEY_UNDEFINED;
        return true;
    default:
        return false;
    }
}

/* ---- allowed values for each path of the key ---- */

typedef struct demand {
    bool given[LIMIT_KEY_COMPONENTS];
    pkey_value *values[LIMIT_KEY_COMPONENTS];
    size_t n[LIMIT_KEY_COMPONENTS];
} demand;

static int by_value(const void *a, const void *b) {
    const pkey_value *x = a, *y = b;
    if (x->type != y->type) {
        return x->type < y->type ? -1 : 1;
    }
    if (x->type == PKEY_NUMBER) {
        return (x->number > y->number) - (x->number < y->number);
    }
    return x->type == PKEY_STRING ? slice_cmp(x->text, y->text) : 0;
}

/* Leaves in `to` what both lists have. Both are sorted. */
static size_t intersect_values(pkey_value *to, size_t n, pkey_value *other, size_t other_n) {
    size_t kept = 0;
    qsort(to, n, sizeof *to, by_value);
    qsort(other, other_n, sizeof *other, by_value);
    for (size_t i = 0, j = 0; i < n && j < other_n;) {
        int order = by_value(&to[i], &other[j]);
        if (order == 0) {
            to[kept++] = to[i];
        }
        i += order <= 0;
        j += order > 0;
    }
    return kept;
}

static void demand_constants(finder *f, demand *d, int path, const query_value *list, size_t n) {
    pkey_value *values = arena_array(f->arena, pkey_value, n + 1);
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (f->key->typed && list[i].type > TYPE_STRING) {
            return; /* typed keys may be objects, which are not read here: nothing is known */
        }
        count += to_key(&list[i], &values[count]);
    }
    if (d->given[path]) {
        d->n[path] = intersect_values(d->values[path], d->n[path], values, count);
        return;
    }
    d->given[path] = true;
    d->values[path] = values;
    d->n[path] = count;
}

static void demand_values(finder *f, demand *d, int path, const query_expr *const *list, size_t n) {
    query_value *values = arena_array(f->arena, query_value, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (!constant(f, list[i], &values[i])) {
            return; /* not a constant: nothing is known */
        }
    }
    demand_constants(f, d, path, values, n);
}

static bool is_call(const query_expr *e, const char *name, size_t arguments) {
    return e->kind == EXPR_CALL && !e->udf && e->items_n == arguments && slice_eq_nocase(e->name, slice_str(name));
}

/* ABS(c.key) = constant: the number and its opposite. */
static void demand_absolute(finder *f, demand *d, const query_expr *call, const query_expr *right) {
    int path = key_path(f, call->items[0]);
    query_value v;
    if (path >= 0 && constant(f, right, &v)) {
        const query_value both[] = {v, value_number(-v.number)};
        bool possible = v.type == TYPE_NUMBER && v.number >= 0;
        demand_constants(f, d, path, both, !possible ? 0 : v.number > 0 ? 2 : 1);
    }
}

static void demand_equal(finder *f, demand *d, const query_expr *left, const query_expr *right) {
    int path = key_path(f, left);
    if (path >= 0) {
        demand_values(f, d, path, &right, 1);
    } else if (is_call(left, "ABS", 1)) {
        demand_absolute(f, d, left, right);
    }
}

/* c.key LIKE a pattern without wildcards */
static void demand_like(finder *f, demand *d, const query_expr *e) {
    int path = key_path(f, e->items[0]);
    query_value pattern, escape = value_string(SLICE_EMPTY);
    if (path < 0 || e->negated || !constant(f, e->items[1], &pattern) || pattern.type != TYPE_STRING ||
        (e->items_n > 2 && (!constant(f, e->items[2], &escape) || escape.type != TYPE_STRING))) {
        return;
    }
    bool whole = false;
    const query_like_pattern *compiled = query_like_compile(f->arena, pattern.bytes, escape.bytes);
    query_value text = value_string(compiled ? query_like_prefix(compiled, &whole) : SLICE_EMPTY);
    if (whole) {
        demand_constants(f, d, path, &text, 1);
    }
}

static bool is_false(finder *f, const query_expr *e) {
    query_value v;
    return constant(f, e, &v) && !value_is_true(&v);
}

static bool is_list(const query_expr *e) {
    return (is_call(e, "ARRAY_CONTAINS", 2) || is_call(e, "_TRY_ARRAY_CONTAINS", 2)) && e->items[0]->kind == EXPR_ARRAY;
}

/* Reads c.key alone, NOT c.key, IS_NULL(c.key), IS_BOOL(c.key), ARRAY_CONTAINS([1, 2], c.key). */
static void demand_test(finder *f, demand *d, const query_expr *e) {
    const query_value truths[] = {value_bool(true), value_bool(false)}, nothing = value_null();
    bool not = e->kind == EXPR_UNARY && e->op == OP_NOT, null = is_call(e, "IS_NULL", 1), truth = is_call(e, "IS_BOOL", 1);
    bool listed = is_list(e);
    int path = key_path(f, listed ? e->items[1] : not || null || truth ? e->items[0] : e);
    if (path < 0) {
        return;
    }
    if (listed) {
        demand_values(f, d, path, (const query_expr *const *)e->items[0]->items, e->items[0]->items_n);
    } else if (null) {
        demand_constants(f, d, path, &nothing, 1);
    } else {
        demand_constants(f, d, path, not ? &truths[1] : truths, truth ? 2 : 1);
    }
}

static void demand_in(finder *f, demand *d, const query_expr *e) {
    int path = e->negated ? -1 : key_path(f, e->items[0]);
    if (path >= 0) {
        demand_values(f, d, path, (const query_expr *const *)e->items + 1, e->items_n - 1);
    }
}

static keys find_keys(finder *f, const query_expr *e);
static void narrow(keys *to, const keys *other);
static void read_demands(finder *f, const query_expr *e, demand *d, keys *either);

/* A condition that only holds if the subquery has a row, as EXISTS and = do: then the subquery's WHERE held for the item, too. */
static void demand_row(finder *f, const query_select *s, demand *d, keys *either) {
    if (s && s->where && !s->aggregates_n && !s->group_n) {
        const query_select *outer = f->select;
        f->select = s;
        read_demands(f, s->where, d, either);
        f->select = outer;
    }
}

static const query_select *scalar_of(const query_expr *e) {
    return e->kind == EXPR_SUBQUERY ? e->select : NULL;
}

/* Reads the operands of AND. `either`: the keys that those operands allow that are an OR; none, if an operand is never true. */
static void read_demands(finder *f, const query_expr *e, demand *d, keys *either) {
    if (e->kind == EXPR_BINARY && e->op == OP_AND) {
        read_demands(f, e->items[0], d, either);
        read_demands(f, e->items[1], d, either);
    } else if (is_false(f, e)) {
        *either = (keys){.all = false};
    } else if (e->kind == EXPR_BINARY && e->op == OP_OR) {
        keys more = find_keys(f, e);
        narrow(either, &more);
    } else if (e->kind == EXPR_BINARY && e->op == OP_EQUAL) {
        demand_equal(f, d, e->items[0], e->items[1]);
        demand_equal(f, d, e->items[1], e->items[0]);
        demand_row(f, scalar_of(e->items[0]), d, either);
        demand_row(f, scalar_of(e->items[1]), d, either);
    } else if (e->kind == EXPR_IN) {
        demand_in(f, d, e);
    } else if (e->kind == EXPR_LIKE) {
        demand_like(f, d, e);
    } else if (e->kind == EXPR_EXISTS) {
        demand_row(f, e->select, d, either);
    } else {
        demand_test(f, d, e);
    }
}

/* All combinations of the values for the first paths of the key. */
static keys combine(finder *f, const demand *d) {
    size_t levels = 0, n = 1;
    while (levels < f->key->n && d->given[levels] && n * (d->n[levels] ? d->n[levels] : 1) <= KEYS_MAX) {
        n *= d->n[levels];
        levels++;
        if (n == 0) {
            return (keys){.all = false};
        }
    }
    if (levels == 0 || (f->key->kind != PKEY_MULTI_HASH && levels < f->key->n)) {
        return (keys){.all = true};
    }
    keys result = {.list = arena_array(f->arena, pkey, n), .n = n};
    for (size_t i = 0; i < n; i++) {
        size_t rest = i;
        result.list[i].n = (uint8_t)levels;
        for (size_t level = levels; level-- > 0;) {
            result.list[i].values[level] = d->values[level][rest % d->n[level]];
            rest /= d->n[level];
        }
    }
    return result;
}

static void append(finder *f, keys *to, const keys *more) {
    if (more->all || to->n + more->n > KEYS_MAX) {
        to->all = true;
        return;
    }
    if (to->n + more->n > to->room) {
        pkey *list = arena_array(f->arena, pkey, to->room = 2 * (to->n + more->n));
        memcpy(list, to->n ? (const void *)to->list : "", to->n * sizeof *list);
        to->list = list;
    }
    for (size_t i = 0; i < more->n; i++) {
        pkey_copy(&to->list[to->n++], &more->list[i]);
    }
}

static int by_key(const void *a, const void *b) {
    const pkey *x = a, *y = b;
    int order = 0;
    for (size_t i = 0; order == 0 && i < x->n && i < y->n; i++) {
        order = by_value(&x->values[i], &y->values[i]);
    }
    return order;
}

/* Whether all keys of both lists have as many components. */
static bool are_alike(const keys *a, const keys *b) {
    size_t n = a->n ? a->list[0].n : 0;
    bool alike = true;
    for (size_t i = 0; alike && i < a->n; i++) {
        alike = a->list[i].n == n;
    }
    for (size_t i = 0; alike && i < b->n; i++) {
        alike = b->list[i].n == n;
    }
    return alike;
}

/* Leaves the keys that both lists have. */
static void intersect_keys(keys *to, keys other) {
    size_t kept = 0;
    qsort(to->list, to->n, sizeof *to->list, by_key);
    qsort(other.list, other.n, sizeof *other.list, by_key);
    for (size_t i = 0, j = 0; i < to->n && j < other.n;) {
        int order = by_key(&to->list[i], &other.list[j]);
        if (order == 0) {
            pkey_copy(&to->list[kept++], &to->list[i]);
        }
        i += order <= 0;
        j += order > 0;
    }
    to->n = kept;
}

/* Both conditions must hold. If their keys cannot be compared, because some are prefixes, the shorter list is used; WHERE decides the
 * rest. */
static void narrow(keys *to, const keys *other) {
    if (other->all) {
        return;
    }
    if (to->all) {
        *to = *other;
    } else if (to->n && other->n && are_alike(to, other)) {
        intersect_keys(to, *other);
    } else if (other->n < to->n) {
        *to = *other;
    }
}

/* Reads the operands of OR. All keys go into one list, so that memory is proportional to them, until there are too many. */
static void add_keys(finder *f, const query_expr *e, keys *to) {
    if (to->all) {
        return;
    }
    if (e->kind == EXPR_BINARY && e->op == OP_OR) {
        add_keys(f, e->items[0], to);
        add_keys(f, e->items[1], to);
    } else {
        keys more = find_keys(f, e);
        append(f, to, &more);
    }
}

static keys find_keys(finder *f, const query_expr *e) {
    keys found = {.all = true};
    if (e->kind == EXPR_BINARY && e->op == OP_OR) {
        found.all = false;
        add_keys(f, e, &found);
        return found;
    }
    demand d = {0};
    read_demands(f, e, &d, &found);
    keys together = combine(f, &d);
    narrow(&found, &together);
    return found;
}

/* ---- ranges ---- */

static int by_min(const void *a, const void *b) {
    return epk_cmp(&((const query_range *)a)->min, &((const query_range *)b)->min);
}

query_range *query_ranges(arena *a, const query *q, const pkey_definition *key, size_t *n_out) {
    finder f = {.arena = a, .query = q, .key = key, .select = q->select};
    keys found = q->select->where && key->n ? find_keys(&f, q->select->where) : (keys){.all = true};
    found = q->select->sources_n ? found : (keys){.all = false}; /* SELECT 5 */
    *n_out = found.all ? 1 : 0;
    if (found.all || found.n == 0) {
        return NULL;
    }
    query_range *list = arena_array(a, query_range, found.n);
    for (size_t i = 0; i < found.n; i++) {
        list[i].key = found.list[i];
        list[i].point = found.list[i].n == key->n;
        epk_prefix_range(key, &found.list[i], &list[i].min, &list[i].max);
        if (list[i].point) {
            list[i].max = list[i].min;
        }
    }
    qsort(list, found.n, sizeof *list, by_min);
    for (size_t i = 0; i < found.n; i++) {
        query_range *last = *n_out ? &list[*n_out - 1] : NULL;
        if (last && epk_cmp(&last->min, &list[i].min) == 0) {
            last->shared = last->shared || !pkey_equal(&last->key, &list[i].key);
        } else {
            list[(*n_out)++] = list[i];
        }
    }
    return list;
}

/* ---- items named one by one ---- */

typedef struct points {
    finder finder;
    query_point *list;
    size_t n;
} points;

static bool is_id(const finder *f, const query_expr *e) {
    find_path p;
    return query__demand_path(f->select, e, &p) && p.single && p.n == 1 && slice_eq(p.steps[0].name, SLICE_LIT("id"));
}

enum { ID_SEEN = 1u << LIMIT_KEY_COMPONENTS }; /* the bit after those of the key components */

/* Reads a component of the key, the id, or both if the id is the key. */
static bool name_part(const finder *f, const query_expr *path, const query_value *v, query_point *point, unsigned *seen) {
    int level = key_path(f, path);
    bool id = is_id(f, path);
    unsigned parts = (level >= 0 ? 1u << level : 0) | (id ? ID_SEEN : 0);
    if (!parts || (parts & *seen) || v->type > TYPE_STRING || (level >= 0 && !to_key(v, &point->key.values[level])) ||
        (id && v->type != TYPE_STRING)) {
        return false;
    }
    *seen |= parts;
    point->id = id ? v->bytes : point->id;
    return true;
}

/* IS_DEFINED(path of the key) = false */
static bool name_absent(const finder *f, const query_expr *call, const query_value *v, query_point *point, unsigned *seen) {
    int level = call->kind == EXPR_CALL && !call->udf && call->items_n == 1 && slice_eq_nocase(call->name, SLICE_LIT("IS_DEFINED"))
                    ? key_path(f, call->items[0])
                    : -1;
    if (level < 0 || (*seen & 1u << level) || v->type != TYPE_BOOL || v->truth) {
        return false;
    }
    point->key.values[level] = (pkey_value){.type = PKEY_UNDEFINED};
    *seen |= 1u << level;
    return true;
}

static bool read_parts(finder *f, const query_expr *e, query_point *point, unsigned *seen) {
    query_value v;
    if (e->kind != EXPR_BINARY) {
        return false;
    }
    if (e->op == OP_AND) {
        return read_parts(f, e->items[0], point, seen) && read_parts(f, e->items[1], point, seen);
    }
    return e->op == OP_EQUAL && constant(f, e->items[1], &v) &&
           (name_part(f, e->items[0], &v, point, seen) || name_absent(f, e->items[0], &v, point, seen));
}

static bool read_list(points *p, const query_expr *e) {
    finder *f = &p->finder;
    if (e->negated || f->key->n != 1 || !is_id(f, e->items[0]) || key_path(f, e->items[0]) != 0) {
        return false;
    }
    for (size_t i = 1; i < e->items_n; i++) {
        query_value v;
        unsigned seen = 0;
        query_point *point = &p->list[p->n++];
        point->key.n = 1;
        if (!constant(f, e->items[i], &v) || !name_part(f, e->items[0], &v, point, &seen)) {
            return false;
        }
    }
    return true;
}

static bool read_points(points *p, const query_expr *e) {
    finder *f = &p->finder;
    unsigned seen = 0;
    if (e->kind == EXPR_BINARY && e->op == OP_OR) {
        return read_points(p, e->items[0]) && read_points(p, e->items[1]);
    }
    if (e->kind == EXPR_IN) {
        return read_list(p, e);
    }
    query_point *point = &p->list[p->n++];
    point->key.n = f->key->n;
    return read_parts(f, e, point, &seen) && seen == (ID_SEEN | ((1u << f->key->n) - 1));
}

/* An upper bound for the number of points: leaves of OR and elements of IN. */
static size_t count_points(const query_expr *e) {
    bool either = e->kind == EXPR_BINARY && e->op == OP_OR;
    return either ? count_points(e->items[0]) + count_points(e->items[1]) : e->kind == EXPR_IN ? e->items_n : 1;
}

const query_point *query_named_items(arena *a, const query *q, const pkey_definition *key, size_t *n_out) {
    const query_select *s = q->select;
    bool plain = s->star && s->sources_n == 1 && s->where && !s->order_n && !s->distinct && !q->aggregates && q->top < 0 && q->offset < 0;
    *n_out = 0;
    size_t most = plain ? count_points(s->where) : 0;
    if (!plain || key->n == 0 || most > KEYS_MAX) {
        return NULL;
    }
    points p = {.finder = {.arena = a, .query = q, .key = key, .select = s}, .list = arena_array(a, query_point, most)};
    if (!read_points(&p, s->where)) {
        return NULL;
    }
    *n_out = p.n;
    return p.list;
}
