#include "query/bind.h"

#include <math.h>

#include "query/function.h"

typedef struct binder {
    op *op;
    arena *arena;
    query *query;
    query_select *select; /* whose parts are being bound */
    int visible;          /* sources of it that may be named yet: a JOIN sees those before it */
    bool in_aggregate;
    bool aggregates_allowed;
} binder;

static err bind_select(binder *b, query_select *s);
static err bind_expr(binder *b, query_expr *e);

query_aggregate_kind query_aggregate_of(slice name) {
    static const char *const names[] = {"COUNT", "SUM", "AVG", "MIN", "MAX", "COUNTIF", "MAKELIST", "MAKESET"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (slice_eq_nocase(name, slice_str(names[i]))) {
            return (query_aggregate_kind)i;
        }
    }
    return AGGREGATE_NONE;
}

/* ---- names ---- */

static int find_slot(const binder *b, slice name) {
    int visible = b->visible;
    for (const query_select *s = b->select; s; s = s->outer) {
        for (int i = visible < 0 ? (int)s->sources_n - 1 : visible - 1; i >= 0; i--) {
            if (slice_eq(s->sources[i].alias, name)) {
                return s->first_slot + i;
            }
        }
        visible = -1; /* of the outer ones all */
    }
    return -1;
}

static err bind_name(binder *b, query_expr *e) {
    e->slot = find_slot(b, e->name);
    if (e->slot >= 0) {
        return OK;
    }
    return query_fail(b->op, e->span, "SC2001", "Identifier '%.*s' could not be resolved.", slice_shown(e->name), e->name.p);
}

/* One that was not given is undefined, and no error. */
static void bind_parameter(binder *b, query_expr *e) {
    e->slot = -1;
    for (size_t i = 0; i < b->query->parameters_n; i++) {
        if (slice_eq(b->query->parameters[i].name, e->name)) {
            e->slot = (int)i;
        }
    }
}

/* ---- calls ---- */

static err bind_items(binder *b, query_expr *e) {
    for (size_t i = 0; i < e->items_n; i++) {
        TRY(bind_expr(b, e->items[i]));
    }
    return OK;
}

static void add_aggregate(binder *b, query_expr *e) {
    query_select *s = b->select;
    query_expr **list = arena_array(b->arena, query_expr *, s->aggregates_n + 1);
    memcpy(list, s->aggregates_n ? (const void *)s->aggregates : "", s->aggregates_n * sizeof *list);
    list[s->aggregates_n] = e;
    s->aggregates = list;
    e->aggregate = (int)s->aggregates_n++;
}

static err bind_aggregate(binder *b, query_expr *e) {
    if (b->in_aggregate) {
        return query_fail(b->op, e->span, "SC2101", "An aggregate function cannot be nested in another: '%.*s'.", slice_shown(e->name),
                          e->name.p);
    }
    if (!b->aggregates_allowed) {
        return query_fail(b->op, e->span, "SC2103", "The aggregate '%.*s' can only stand in SELECT.", slice_shown(e->name), e->name.p);
    }
    if (e->items_n != 1) {
        return query_fail(b->op, e->span, "SC2050", "The %.*s function requires 1 argument(s).", slice_shown(e->name), e->name.p);
    }
    b->in_aggregate = true;
    err code = bind_items(b, e);
    b->in_aggregate = false;
    if (code == OK) {
        add_aggregate(b, e);
    }
    return code;
}

static err bind_call(binder *b, query_expr *e) {
    e->aggregate = -1;
    if (e->udf) {
        return bind_items(b, e);
    }
    if (query_aggregate_of(e->name) != AGGREGATE_NONE) {
        return bind_aggregate(b, e);
    }
    const query_function *f = query_function_find(e->name);
    if (!f) {
        return query_fail(b->op, e->span, "SC2005", "'%.*s' is not a recognized built-in function name.", slice_shown(e->name), e->name.p);
    }
    if (e->items_n < f->least || (f->most != 255 && e->items_n > f->most)) {
        return f->least == f->most
                   ? query_fail(b->op, e->span, "SC2050", "The %s function requires %u argument(s).", f->name, f->least)
                   : query_fail(b->op, e->span, "SC2050", "The %s function requires %u to %u argument(s).", f->name, f->least, f->most);
    }
    e->function = f;
    e->prepared = arena_new(b->arena, const void *);
    return bind_items(b, e);
}

static err bind_expr(binder *b, query_expr *e) {
    switch (e->kind) {
    case EXPR_NAME:
        return bind_name(b, e);
    case EXPR_PARAMETER:
        bind_parameter(b, e);
        return OK;
    case EXPR_CALL:
        return bind_call(b, e);
    case EXPR_LIKE:
        e->prepared = arena_new(b->arena, const void *);
        return bind_items(b, e);
    case EXPR_SUBQUERY:
    case EXPR_EXISTS:
    case EXPR_ARRAY_OF:
    case EXPR_ALL:
    case EXPR_FIRST:
    case EXPR_LAST:
        return bind_select(b, e->select);
    default:
        return bind_items(b, e);
    }
}

/* ---- sources ---- */

/* The first name of the first source of the outermost select is the container, whatever it is called. */
static err bind_root(binder *b, query_source *source) {
    query_expr *e = source->from;
    while (e && e->kind != EXPR_NAME) {
        e = e->items[0];
    }
    if (!e) {
        return OK;
    }
    e->slot = find_slot(b, e->name);
    if (e->slot < 0 && b->select->outer) {
        return bind_name(b, e);
    }
    return OK; /* slot -1: the item itself */
}

static err bind_sources(binder *b, query_select *s) {
    s->first_slot = (int)b->query->ast->slots;
    b->query->ast->slots += (unsigned)s->sources_n;
    if (b->query->ast->slots > QUERY_SLOTS_MAX) {
        return query_fail(b->op, s->span, "SC2204", "The query has more than %d sources.", QUERY_SLOTS_MAX);
    }
    for (size_t i = 0; i < s->sources_n; i++) {
        query_source *source = &s->sources[i];
        b->visible = (int)i;
        if (find_slot(b, source->alias) >= s->first_slot) {
            return query_fail(b->op, source->span, "SC2023", "The input alias '%.*s' is specified more than once.",
                              slice_shown(source->alias), source->alias.p);
        }
        TRY(source->kind == SOURCE_SUBQUERY ? bind_select(b, source->select)
            : source->kind == SOURCE_ROOT   ? bind_root(b, source)
                                            : bind_expr(b, source->from));
    }
    b->visible = -1;
    return OK;
}

/* ---- columns ---- */

static err check_aliases(binder *b, const query_select *s) {
    for (size_t i = 0; i < s->columns_n; i++) {
        for (size_t j = 0; j < i; j++) {
            if (slice_eq(s->columns[i].alias, s->columns[j].alias)) {
                return query_fail(b->op, s->columns[i].expr->span, "SC2022", "Duplicate alias '%.*s' in the SELECT list.",
                                  slice_shown(s->columns[i].alias), s->columns[i].alias.p);
            }
        }
    }
    return OK;
}

bool query_same_expr(const query_expr *a, const query_expr *b) {
    char room_a[512], room_b[512];
    buf x = {.p = room_a, .cap = sizeof room_a, .max = sizeof room_a}, y = {.p = room_b, .cap = sizeof room_b, .max = sizeof room_b};
    query_print_expr(&x, a);
    query_print_expr(&y, b);
    return buf_ok(&x) && buf_ok(&y) && slice_eq(buf_view(&x), buf_view(&y));
}

/* Outside of aggregates only what the groups are made of may be named. */
static err check_grouped(binder *b, const query_select *s, const query_expr *e) {
    if (e->kind == EXPR_CALL && e->aggregate >= 0) {
        return OK;
    }
    for (size_t i = 0; i < s->group_n; i++) {
        if (query_same_expr(e, s->group[i])) {
            return OK;
        }
    }
    if (e->kind == EXPR_NAME && e->slot >= s->first_slot) {
        return query_fail(b->op, e->span, "SC2102",
                          "Property reference '%.*s' is invalid in the select list because it is not contained in either an aggregate "
                          "function or the GROUP BY clause.",
                          slice_shown(e->name), e->name.p);
    }
    for (size_t i = 0; i < e->items_n; i++) {
        TRY(check_grouped(b, s, e->items[i]));
    }
    return OK;
}

static err bind_columns(binder *b, query_select *s) {
    b->aggregates_allowed = true;
    for (size_t i = 0; i < s->columns_n; i++) {
        TRY(bind_expr(b, s->columns[i].expr));
    }
    b->aggregates_allowed = false;
    TRY(check_aliases(b, s));
    if (s->star && s->group_n) {
        return query_fail(b->op, s->span, "SC2041", "'SELECT *' is not allowed with a GROUP BY clause.");
    }
    bool grouped = s->group_n || s->aggregates_n;
    for (size_t i = 0; grouped && i < s->columns_n; i++) {
        TRY(check_grouped(b, s, s->columns[i].expr));
    }
    return OK;
}

static err bind_counts(binder *b, query_select *s) {
    query_count *counts[] = {&s->top, &s->offset, &s->limit};
    for (size_t i = 0; i < 3; i++) {
        if (counts[i]->given) {
            TRY(bind_expr(b, counts[i]->expr));
        }
    }
    return OK;
}

static err bind_rest(binder *b, query_select *s) {
    TRY(bind_sources(b, s));
    if (s->where) {
        TRY(bind_expr(b, s->where));
    }
    for (size_t i = 0; i < s->group_n; i++) {
        TRY(bind_expr(b, s->group[i]));
    }
    TRY(bind_columns(b, s));
    for (size_t i = 0; i < s->order_n; i++) {
        TRY(bind_expr(b, s->order[i].expr));
    }
    if (s->outer && s->order_n) {
        return query_fail(b->op, s->span, "SC2205", "'ORDER BY' is not supported in subqueries.");
    }
    return bind_counts(b, s);
}

static err bind_select(binder *b, query_select *s) {
    binder inner = *b;
    inner.select = s;
    inner.visible = -1;
    inner.in_aggregate = inner.aggregates_allowed = false;
    return bind_rest(&inner, s);
}

/* ---- all of it ---- */

static err read_count(binder *b, const query_count *c, const char *code, const char *name, double *value_out) {
    *value_out = -1;
    if (!c->given) {
        return OK;
    }
    query_value v = c->expr->kind == EXPR_LITERAL ? c->expr->value : value_undefined();
    if (c->expr->kind == EXPR_PARAMETER && c->expr->slot >= 0) {
        v = b->query->parameters[c->expr->slot].value;
    }
    if (v.type != TYPE_NUMBER || v.number < 0 || v.number != floor(v.number) || v.number > INT32_MAX) {
        return query_fail(b->op, c->span, code, "The %s value must be a whole number from 0 to %d.", name, INT32_MAX);
    }
    *value_out = v.number;
    return OK;
}

static err check_limits(binder *b) {
    const query_ast *ast = b->query->ast;
    if (ast->joins > QUERY_JOINS_MAX) {
        return query_fail(b->op, ast->select->span, "SC2203",
                          "The SQL query exceeded the maximum number of joins. The allowed limit is %d.", QUERY_JOINS_MAX);
    }
    if (ast->udf_calls > QUERY_UDFS_MAX) {
        return query_fail(b->op, ast->select->span, "SC2207",
                          "The SQL query exceeded the maximum number of user-defined function references. The allowed limit is %d.",
                          QUERY_UDFS_MAX);
    }
    return OK;
}

err query_prepare(op *o, arena *a, slice text, const query_parameter *parameters, size_t parameters_n, query *query_out) {
    binder b = {.op = o, .arena = a, .query = query_out, .visible = -1};
    *query_out = (query){.parameters = parameters, .parameters_n = parameters_n};
    TRY(query_parse(o, a, text, &query_out->ast));
    query_out->select = query_out->ast->select;
    query_out->ast->slots = 0;
    TRY(check_limits(&b));
    TRY(bind_select(&b, query_out->select));
    query_out->aggregates = query_out->select->aggregates_n > 0 || query_out->select->group_n > 0;
    TRY(read_count(&b, &query_out->select->top, "SC2060", "TOP", &query_out->top));
    TRY(read_count(&b, &query_out->select->offset, "SC2062", "OFFSET", &query_out->offset));
    return read_count(&b, &query_out->select->limit, "SC2061", "LIMIT", &query_out->limit);
}
