#include "query/bind.h"

#include <math.h>
#include <stdlib.h>

#include "base/limits.h"
#include "query/bind_int.h"

enum { NOT_GROUPED_SHOWN = 8 }; /* errors about columns that are not grouped, in one answer */

static err bind_select(binder *b, query_select *s);

query_aggregate_kind query_aggregate_of(slice name) {
    static const char *const names[] = {"COUNT", "SUM", "AVG", "MIN", "MAX", "COUNTIF", "MAKELIST", "MAKESET"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (slice_eq_nocase(name, slice_str(names[i]))) {
            return (query_aggregate_kind)i;
        }
    }
    return AGGREGATE_NONE;
}

int query_parameter_order(const void *a, const void *b) {
    return slice_cmp(((const query_parameter *)a)->name, ((const query_parameter *)b)->name);
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
        visible = -1; /* in outer selects all sources are visible */
    }
    return -1;
}

static err bind_name(binder *b, query_expr *e) {
    e->slot = find_slot(b, e->name);
    if (e->slot >= 0) {
        return OK;
    }
    bool infinite = slice_eq(e->name, SLICE_LIT("Infinity"));
    if (infinite || slice_eq(e->name, SLICE_LIT("NaN"))) {
        e->kind = EXPR_LITERAL;
        e->value = value_number(infinite ? INFINITY : NAN);
        return OK;
    }
    return query_fail(b->op, query__at(b, e->span), "SC2001", "Identifier '%.*s' could not be resolved.", slice_shown(e->name), e->name.p);
}

/* ---- computed properties ---- */

static const query_source *source_of(const binder *b, int slot) {
    for (const query_select *s = b->select; s; s = s->outer) {
        if (slot >= s->first_slot && slot < s->first_slot + (int)s->sources_n) {
            return &s->sources[slot - s->first_slot];
        }
    }
    return NULL;
}

/* Whether the slot is the item itself, perhaps under a second alias. */
static bool is_item(const binder *b, int slot) {
    const query_source *source = slot < 0 ? NULL : source_of(b, slot);
    while (source && source->kind == SOURCE_ROOT && source->from && source->from->kind == EXPR_NAME && source->from->slot >= 0) {
        source = source->from->slot < slot ? source_of(b, slot = source->from->slot) : NULL;
    }
    return slot < 0 || (source && source->kind == SOURCE_ROOT && (!source->from || source->from->kind == EXPR_NAME));
}

/* The query was checked when the container was created (query_schema_check). */
static err add_computed(binder *b, slice name, slice text, const query_select **select_out) {
    query_ast *ast;
    binder inner = {.op = b->op, .arena = b->arena, .query = b->query, .text = text, .visible = -1, .from_item = true};
    TRY(query_parse(b->op, b->arena, text, &ast));
    TRY(bind_select(&inner, ast->select));
    if (ast->select->columns_n != 1 || ast->select->sources_n != 1 || *b->computed_n == QUERY_COMPUTED_MAX) {
        return E_BAD_QUERY;
    }
    b->computed[(*b->computed_n)++] = (query_computed){name, ast->select};
    *select_out = ast->select;
    return OK;
}

static err bind_member(binder *b, query_expr *e) {
    const query_expr *inner = e->items[0];
    slice text;
    if (!b->computed || inner->kind != EXPR_NAME || !is_item(b, inner->slot) || !query_schema_computed(&b->query->schema, e->name, &text)) {
        return OK;
    }
    for (size_t i = 0; i < *b->computed_n; i++) {
        if (slice_eq(b->computed[i].name, e->name)) {
            e->computed = b->computed[i].select;
            return OK;
        }
    }
    return add_computed(b, e->name, text, &e->computed);
}

/* ---- parameters ---- */

/* A parameter that was not given is undefined; that is not an error. */
void query__bind_parameter(binder *b, query_expr *e) {
    query_parameter wanted = {.name = e->name};
    const query_parameter *all = b->query->parameters, *found = NULL;
    if (b->query->parameters_n) {
        found = bsearch(&wanted, all, b->query->parameters_n, sizeof wanted, query_parameter_order);
    }
    e->slot = found ? (int)(found - all) : -1;
}

/* ---- calls ---- */

static err bind_items(binder *b, query_expr *e) {
    for (size_t i = 0; i < e->items_n; i++) {
        TRY(query__bind_expr(b, e->items[i]));
    }
    return OK;
}

static void add_aggregate(binder *b, query_expr *e) {
    query_select *s = b->select;
    size_t n = s->aggregates_n;
    if ((n & (n - 1)) == 0) { /* full at 0, 1, 2, 4, … */
        query_expr **list = arena_array(b->arena, query_expr *, 2 * n + 1);
        memcpy(list, n ? (const void *)s->aggregates : "", n * sizeof *list);
        s->aggregates = list;
    }
    s->aggregates[n] = e;
    e->aggregate = (int)s->aggregates_n++;
}

static err nested_aggregate(binder *b, const query_expr *outer) {
    return query_fail(b->op, query__at(b, outer->span), "SC2101",
                      "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.");
}

static err bind_aggregate(binder *b, query_expr *e) {
    if (b->in_aggregate) {
        return nested_aggregate(b, b->in_aggregate);
    }
    if (!b->aggregates_allowed) {
        return query_fail(b->op, query__at(b, e->span), "SC2103", "The aggregate '%.*s' can only stand in SELECT.", slice_shown(e->name),
                          e->name.p);
    }
    if (e->items_n != 1) {
        return query_fail(b->op, query__at(b, e->span), "SC2050", "The %.*s function requires 1 argument(s).", slice_shown(e->name),
                          e->name.p);
    }
    b->in_aggregate = e;
    err code = bind_items(b, e);
    b->in_aggregate = NULL;
    if (code == OK) {
        add_aggregate(b, e);
    }
    return code;
}

static err wrong_count(binder *b, const query_expr *e, const query_function *f) {
    query_span where = query__at(b, e->span);
    int n = slice_shown(e->name);
    if (f->most == QUERY_ANY_NUMBER) {
        return query_fail(b->op, where, "SC2050", "The %.*s function requires at least %u argument(s).", n, e->name.p, f->least);
    }
    return f->least == f->most
               ? query_fail(b->op, where, "SC2050", "The %.*s function requires %u argument(s).", n, e->name.p, f->least)
               : query_fail(b->op, where, "SC2050", "The %.*s function requires %u to %u argument(s).", n, e->name.p, f->least, f->most);
}

/* FullTextScore and RRF may stand in ORDER BY RANK only. */
static err check_rank(binder *b, const query_expr *e, const query_function *f) {
    if (b->ranks || !query_function_is_rank_only(f)) {
        return OK;
    }
    if (slice_eq_nocase(e->name, SLICE_LIT("RRF"))) {
        return query_fail(b->op, query__at(b, query_name_span(b->query->ast, e->name)), "SC2005",
                          "'%.*s' is not a recognized built-in function name.", slice_shown(e->name), e->name.p);
    }
    return query_fail(b->op, query__at(b, e->span), "SC2240", "The %s function is only allowed in the ORDER BY RANK clause.", f->name);
}

/* Looks up the container's setting for the first argument, if that is a property of the item. */
static void bind_setting(binder *b, query_expr *e) {
    query_function_setting wanted = query_function_setting_of(e->function);
    slice steps[LIMIT_PATH_DEPTH];
    size_t n = LIMIT_PATH_DEPTH;
    const query_expr *at_step = e->items_n ? e->items[0] : NULL;
    if (wanted == SETTING_NONE || !at_step) {
        return;
    }
    for (; at_step->kind == EXPR_MEMBER && n; at_step = at_step->items[0]) {
        steps[--n] = at_step->name;
    }
    bool named = at_step->kind == EXPR_NAME && is_item(b, at_step->slot);
    size_t steps_n = named ? LIMIT_PATH_DEPTH - n : 0; /* without steps: the policies' defaults */
    e->setting = wanted == SETTING_DISTANCE ? (uint8_t)query_schema_distance(&b->query->schema, steps + n, steps_n)
                                            : (uint8_t)query_schema_language(&b->query->schema, steps + n, steps_n);
}

/* {"searchListSizeMultiplier": 1 to 100} only matters to a vector index; the bounds are the service's. */
static err check_vector_options(binder *b, const query_expr *e) {
    const query_expr *options = query_function_setting_of(e->function) == SETTING_DISTANCE && e->items_n > 3 ? e->items[3] : NULL;
    for (size_t i = 0; options && options->kind == EXPR_OBJECT && i < options->items_n; i++) {
        const query_expr *value = options->items[i];
        bool minus = value->kind == EXPR_UNARY && value->op == OP_MINUS;
        value = minus ? value->items[0] : value;
        if (!slice_eq(options->names[i], SLICE_LIT("searchListSizeMultiplier")) || value->kind != EXPR_LITERAL ||
            value->value.type != TYPE_NUMBER) {
            continue;
        }
        double number = minus ? -value->value.number : value->value.number;
        if (number < 1 || number > 100) {
            return query_fail(b->op, query__at(b, options->span), "SC2213",
                              "The 'searchListSizeMultiplier' value %g specified in the VectorDistance function is outside the supported "
                              "range. The value must be between 1 and 100.",
                              number);
        }
    }
    return OK;
}

static err too_many_udfs(binder *b) {
    return query_fail(b->op, query__at(b, b->query->ast->select->span), "SC2207",
                      "The SQL query exceeded the maximum number of user-defined function references. The allowed limit is %d.",
                      QUERY_UDFS_MAX);
}

static err bind_udf(binder *b, query_expr *e) {
    query *q = b->query;
    unsigned i = 0;
    while (i < q->udfs_n && !slice_eq(q->udfs[i], e->name)) {
        i++;
    }
    if (i == QUERY_UDFS_MAX) {
        return too_many_udfs(b);
    }
    if (i == q->udfs_n) {
        q->udfs[q->udfs_n++] = e->name;
    }
    e->slot = (int)i;
    return bind_items(b, e);
}

static err bind_call(binder *b, query_expr *e) {
    e->aggregate = -1;
    if (e->udf) {
        return bind_udf(b, e);
    }
    if (query_aggregate_of(e->name) != AGGREGATE_NONE) {
        return bind_aggregate(b, e);
    }
    const query_function *f = query_function_find(e->name);
    if (!f) {
        return query_fail(b->op, query__at(b, query_name_span(b->query->ast, e->name)), "SC2005",
                          "'%.*s' is not a recognized built-in function name.", slice_shown(e->name), e->name.p);
    }
    TRY(check_rank(b, e, f));
    if (e->items_n < f->least || (f->most != QUERY_ANY_NUMBER && e->items_n > f->most)) {
        return wrong_count(b, e, f);
    }
    e->function = b->ranks && slice_eq_nocase(e->name, SLICE_LIT("VectorDistance")) ? query_function_find(SLICE_LIT("_VectorScore")) : f;
    b->query->patterns = b->query->patterns || query_function_is_pattern(f);
    e->prepared = arena_new(b->arena, const void *);
    TRY(bind_items(b, e));
    bind_setting(b, e);
    return check_vector_options(b, e);
}

static bool names_something(const query_expr *e) {
    bool found = e->kind == EXPR_NAME || e->select;
    for (size_t i = 0; i < e->items_n && !found; i++) {
        found = names_something(e->items[i]);
    }
    return found;
}

/* The index must not depend on the row: inner[c.x] is rejected, as on the service. */
static err check_index(binder *b, const query_expr *e) {
    if (!names_something(e->items[1])) {
        return OK;
    }
    return query_fail(b->op, query__at(b, e->span), "SC2990",
                      "The specified query includes 'member indexer' which is currently not supported.");
}

err query__bind_expr(binder *b, query_expr *e) {
    switch (e->kind) {
    case EXPR_NAME:
        return bind_name(b, e);
    case EXPR_PARAMETER:
        query__bind_parameter(b, e);
        return OK;
    case EXPR_CALL:
        return bind_call(b, e);
    case EXPR_MEMBER:
        TRY(query__bind_expr(b, e->items[0]));
        return bind_member(b, e);
    case EXPR_INDEX:
        TRY(bind_items(b, e));
        return check_index(b, e);
    case EXPR_LIKE:
    case EXPR_IN:
        e->prepared = arena_new(b->arena, const void *);
        return bind_items(b, e);
    case EXPR_SUBQUERY:
    case EXPR_EXISTS:
    case EXPR_ARRAY_OF:
    case EXPR_ALL:
    case EXPR_FIRST:
    case EXPR_LAST:
        return b->in_aggregate ? nested_aggregate(b, b->in_aggregate) : bind_select(b, e->select);
    case EXPR_FILTER:
    case EXPR_KEY:
    case EXPR_WITHIN:
        return OK;
    default:
        return bind_items(b, e);
    }
}

/* ---- sources ---- */

/* The first name in the first source of the outermost select, or of a subquery that is this source, means the container, whatever it is
 * called: slot -1, the item itself. */
static err bind_root(binder *b, const query_source *source) {
    query_expr *e = source->from, *above = NULL;
    for (; e->kind == EXPR_MEMBER || e->kind == EXPR_INDEX; e = e->items[0]) {
        if (e->kind == EXPR_INDEX) {
            TRY(query__bind_expr(b, e->items[1]));
        }
        above = e;
    }
    if (e->kind != EXPR_NAME) {
        return query__bind_expr(b, e);
    }
    e->slot = find_slot(b, e->name);
    if (e->slot < 0 && !b->from_item) {
        return bind_name(b, e);
    }
    return above && above->kind == EXPR_MEMBER ? bind_member(b, above) : OK;
}

static err bind_sources(binder *b, query_select *s) {
    s->first_slot = (int)b->query->ast->slots;
    b->query->ast->slots += (unsigned)s->sources_n;
    if (b->query->ast->slots > QUERY_SLOTS_MAX) {
        return query_fail(b->op, query__at(b, s->span), "SC2204", "The query has more than %d sources.", QUERY_SLOTS_MAX);
    }
    bool from_item = b->from_item;
    for (size_t i = 0; i < s->sources_n; i++) {
        query_source *source = &s->sources[i];
        b->visible = (int)i;
        if (source->alias.n && find_slot(b, source->alias) >= s->first_slot) {
            return query_fail(b->op, query__at(b, source->span), "SC2023", "The input alias '%.*s' is specified more than once.",
                              slice_shown(source->alias), source->alias.p);
        }
        b->from_item = from_item && i == 0;
        TRY(source->kind == SOURCE_SUBQUERY ? bind_select(b, source->select) : bind_root(b, source));
    }
    b->from_item = false;
    b->visible = -1;
    return OK;
}

/* ---- columns ---- */

static int by_alias(const void *a, const void *b) {
    const query_column *x = *(const query_column *const *)a, *y = *(const query_column *const *)b;
    int order = slice_cmp(x->alias, y->alias);
    return order ? order : (x > y) - (x < y);
}

/* Sorted, since there may be tens of thousands. The error is about the first column whose alias was used before. */
static err check_aliases(binder *b, const query_select *s) {
    const query_column **sorted = arena_array(b->arena, const query_column *, s->columns_n + 1), *again = NULL;
    for (size_t i = 0; i < s->columns_n; i++) {
        sorted[i] = &s->columns[i];
    }
    qsort(sorted, s->columns_n, sizeof *sorted, by_alias);
    for (size_t i = 1; i < s->columns_n; i++) {
        bool doubled = slice_eq(sorted[i]->alias, sorted[i - 1]->alias);
        again = doubled && (!again || sorted[i] < again) ? sorted[i] : again;
    }
    return again ? query_fail(b->op, query__at(b, again->expr->span), "SC2022", "Duplicate alias '%.*s' in the SELECT list.",
                              slice_shown(again->alias), again->alias.p)
                 : OK;
}

bool query_same_expr(const query_expr *a, const query_expr *b) {
    bool same = a->kind == b->kind && a->op == b->op && a->negated == b->negated && a->items_n == b->items_n && !a->select && !b->select;
    same = same && (a->kind == EXPR_CALL ? slice_eq_nocase(a->name, b->name) : slice_eq(a->name, b->name));
    same = same && (a->kind != EXPR_LITERAL || (a->value.type == b->value.type && value_compare(&a->value, &b->value) == 0));
    for (size_t i = 0; same && i < a->items_n; i++) {
        same = query_same_expr(a->items[i], b->items[i]) && (!a->names || slice_eq(a->names[i], b->names[i]));
    }
    return same;
}

/* A hash of an expression: equal if query_same_expr holds, and rarely equal otherwise. */
static uint64_t look_of(const query_expr *e) {
    uint64_t look = (uint64_t)e->kind * 31 + e->op;
    look = (look ^ e->name.n) * 0x9E3779B97F4A7C15;
    for (size_t i = 0; i < e->name.n; i++) {
        look = (look ^ ((unsigned char)e->name.p[i] | 32)) * 0x100000001B3; /* case-insensitive, because function names are */
    }
    for (size_t i = 0; i < e->items_n; i++) {
        look = (look ^ look_of(e->items[i])) * 0x9E3779B97F4A7C15;
        look ^= look >> 32;
    }
    return look;
}

static const uint64_t *group_looks(binder *b, const query_select *s) {
    uint64_t *looks = arena_array(b->arena, uint64_t, s->group_n + 1);
    for (size_t i = 0; i < s->group_n; i++) {
        looks[i] = look_of(s->group[i]);
    }
    return looks;
}

/* Whether it is a source, or a path below one. */
static bool is_property(const query_select *s, const query_expr *e) {
    while (e->kind == EXPR_MEMBER) {
        e = e->items[0];
    }
    return e->kind == EXPR_NAME && e->slot >= s->first_slot;
}

/* Whether it is one of the GROUP BY expressions; then it takes its value from the group. */
static bool is_grouped(const query_select *s, const uint64_t *looks, query_expr *e) {
    uint64_t look = s->group_n ? look_of(e) : 0;
    for (size_t i = 0; i < s->group_n; i++) {
        if (look == looks[i] && query_same_expr(e, s->group[i])) {
            e->group = (unsigned)i + 1;
            return true;
        }
    }
    return false;
}

/* Whether it is a path below a GROUP BY expression: x.name with GROUP BY x. */
static bool is_below_grouped(const query_select *s, const uint64_t *looks, query_expr *e) {
    while (e->kind == EXPR_MEMBER) {
        e = e->items[0];
        if (is_grouped(s, looks, e)) {
            return true;
        }
    }
    return false;
}

/* Several such properties are listed together. There is room for few, and finding each one's location takes as long as the text. */
static err not_grouped(binder *b, const query_expr *e) {
    query_span where = query__at(b, e->span);
    slice text = slice_of(b->text.p + e->span.start, e->span.end - e->span.start);
    slice sentence = arena_printf(b->arena,
                                  "Property reference '%.*s' is invalid in the select list because it is not contained in either an "
                                  "aggregate function or the GROUP BY clause.",
                                  slice_shown(text), text.p);
    if (b->not_grouped++ == 0) {
        return query_fail(b->op, where, "SC2102", "%.*s", (int)sentence.n, sentence.p);
    }
    return query_fail_also(b->op, where, "SC2102", sentence);
}

/* Outside of aggregates, a column may use the GROUP BY expressions only. */
static err check_grouped(binder *b, query_select *s, const uint64_t *looks, query_expr *e) {
    err code = OK;
    if (e->kind == EXPR_CALL && e->aggregate >= 0) {
        return OK;
    }
    if (is_grouped(s, looks, e) || is_below_grouped(s, looks, e)) {
        return OK;
    }
    if (is_property(s, e)) {
        return not_grouped(b, e);
    }
    s->shows_rows |= e->select != NULL;
    for (size_t i = 0; i < e->items_n && b->not_grouped < NOT_GROUPED_SHOWN; i++) {
        err bad = check_grouped(b, s, looks, e->items[i]);
        code = bad ? bad : code;
    }
    return code;
}

static err check_columns(binder *b, query_select *s) {
    err code = OK;
    const uint64_t *looks = group_looks(b, s);
    for (size_t i = 0; i < s->columns_n && b->not_grouped < NOT_GROUPED_SHOWN; i++) {
        err bad = check_grouped(b, s, looks, s->columns[i].expr);
        code = bad ? bad : code;
    }
    return code;
}

static err bind_columns(binder *b, query_select *s) {
    b->aggregates_allowed = true;
    for (size_t i = 0; i < s->columns_n; i++) {
        TRY(query__bind_expr(b, s->columns[i].expr));
    }
    b->aggregates_allowed = false;
    TRY(check_aliases(b, s));
    if (s->star && s->group_n) {
        return query_fail(b->op, query__at(b, s->columns_span), "SC2041", "'SELECT *' is not allowed with GROUP BY.");
    }
    if (s->star && s->sources_n != 1) {
        return query_fail(b->op, query__at(b, s->columns_span), "SC2040", "'SELECT *' is only valid with a single input set.");
    }
    return s->group_n || s->aggregates_n ? check_columns(b, s) : OK;
}

static err bind_counts(binder *b, query_select *s) {
    query_count *counts[] = {&s->top, &s->offset, &s->limit};
    for (size_t i = 0; i < 3; i++) {
        if (counts[i]->given) {
            TRY(query__bind_expr(b, counts[i]->expr));
        }
    }
    return OK;
}

static err bind_rest(binder *b, query_select *s) {
    if (s->outer) {
        TRY(query__check_subquery(b, s));
    }
    TRY(bind_sources(b, s));
    if (s->where) {
        TRY(query__bind_expr(b, s->where));
    }
    for (size_t i = 0; i < s->group_n; i++) {
        TRY(query__bind_expr(b, s->group[i]));
    }
    TRY(bind_columns(b, s));
    TRY(query__bind_order(b, s));
    return bind_counts(b, s);
}

static err bind_select(binder *b, query_select *s) {
    binder inner = *b;
    inner.select = s;
    inner.visible = -1;
    inner.in_aggregate = NULL;
    inner.aggregates_allowed = inner.ranks = false;
    return bind_rest(&inner, s);
}

/* ---- the whole query ---- */

static err read_count(binder *b, const query_count *c, const char *code, const char *sentence, double *value_out) {
    *value_out = -1;
    if (!c->given) {
        return OK;
    }
    query_value v = c->expr->kind == EXPR_LITERAL ? c->expr->value : value_undefined();
    if (c->expr->kind == EXPR_PARAMETER && c->expr->slot >= 0) {
        v = b->query->parameters[c->expr->slot].value;
    }
    if (v.type != TYPE_NUMBER || v.number < 0 || v.number != floor(v.number) || v.number > UINT32_MAX) {
        return query_fail(b->op, query__at(b, c->expr->span), code, "%s", sentence);
    }
    *value_out = v.number;
    return OK;
}

static err check_limits(binder *b) {
    const query_ast *ast = b->query->ast;
    if (ast->joins > QUERY_JOINS_MAX) {
        return query_fail(b->op, query__at(b, ast->select->span), "SC2203",
                          "The SQL query exceeded the maximum number of joins. The allowed limit is %d.", QUERY_JOINS_MAX);
    }
    return ast->udf_calls > b->udfs_max ? too_many_udfs(b) : OK;
}

/* Binds query_out->ast; the parameters and the schema are set. */
static err bind(op *o, arena *a, unsigned udfs_max, query *query_out) {
    query_computed computed[QUERY_COMPUTED_MAX];
    size_t computed_n = 0;
    binder b = {.op = o, .arena = a, .query = query_out, .text = query_out->ast->text, .visible = -1, .from_item = true};
    b.udfs_max = udfs_max;
    b.computed = computed;
    b.computed_n = &computed_n;
    query_out->select = query_out->ast->select;
    query_out->ast->slots = 0;
    TRY(check_limits(&b));
    TRY(bind_select(&b, query_out->select));
    query_out->aggregates = query_out->select->aggregates_n > 0 || query_out->select->group_n > 0;
    TRY(read_count(&b, &query_out->select->top, "SC2060", "The count value provided for a TOP clause must be an integer.",
                   &query_out->top));
    TRY(read_count(&b, &query_out->select->offset, "SC2062", "The OFFSET count value exceeds the maximum allowed value.",
                   &query_out->offset));
    return read_count(&b, &query_out->select->limit, "SC2061", "The LIMIT count value exceeds the maximum allowed value.",
                      &query_out->limit);
}

static err prepare(op *o, arena *a, slice text, const query_parameter *parameters, size_t parameters_n, const query_schema *schema,
                   unsigned udfs_max, query *query_out) {
    *query_out = (query){.parameters = parameters, .parameters_n = parameters_n};
    if (schema) {
        query_out->schema = *schema;
    }
    TRY(query_parse(o, a, text, &query_out->ast));
    TRY(bind(o, a, udfs_max, query_out));
    return a->budget ? budget_error(a->budget) : OK;
}

err query_prepare(op *o, arena *a, slice text, const query_parameter *parameters, size_t parameters_n, const query_schema *schema,
                  query *query_out) {
    return prepare(o, a, text, parameters, parameters_n, schema, QUERY_UDFS_MAX, query_out);
}

err query_prepare_part(op *o, arena *a, slice text, const query_parameter *parameters, size_t parameters_n, const query_schema *schema,
                       query *query_out) {
    return prepare(o, a, text, parameters, parameters_n, schema, QUERY_UDFS_REWRITTEN_MAX, query_out);
}

err query__bind_tree(op *o, arena *a, query_ast *ast, query *query_out) {
    *query_out = (query){.ast = ast};
    TRY(bind(o, a, 0, query_out));
    return a->budget ? budget_error(a->budget) : OK;
}

err query_prepare_condition(op *o, arena *a, slice text, query *query_out) {
    *query_out = (query){0};
    TRY(query_parse_condition(o, a, text, &query_out->ast));
    return bind(o, a, QUERY_UDFS_MAX, query_out);
}
