/* Builds the tree of a find: conditions and an order, which are untrusted BSON, become the tree of the equivalent query text. */
#include "query/filter.h"
#include "query/find_int.h"
#include "query/key.h"

#include "base/limits.h"
#include "query/parse.h"

typedef struct builder {
    op *op;
    arena *arena;
    const container *container;
    query_select *select; /* the select being built */
    unsigned conditions, aliases;
} builder;

static err bad(const builder *b, const char *sentence) {
    return op_fail(b->op, E_BAD_REQUEST, "%s", sentence);
}

/* ---- nodes ---- */

static query_expr *node(builder *b, query_kind kind, size_t items_n) {
    query_expr *e = arena_new(b->arena, query_expr);
    e->kind = kind;
    e->items = arena_array(b->arena, query_expr *, items_n + 1);
    e->items_n = items_n;
    e->depth = 1;
    return e;
}

static void set_item(query_expr *e, size_t i, query_expr *item) {
    e->items[i] = item;
    e->depth = item->depth >= e->depth ? (uint16_t)(item->depth + 1) : e->depth;
}

static query_expr *literal(builder *b, const query_value *v) {
    query_expr *e = node(b, EXPR_LITERAL, 0);
    e->value = *v;
    return e;
}

static query_expr *element_literal(builder *b, const doc_element *element) {
    query_value v = value_of_element(element);
    return literal(b, &v);
}

static query_expr *binary(builder *b, query_operator op, query_expr *left, query_expr *right) {
    query_expr *e = node(b, EXPR_BINARY, 2);
    e->op = op;
    set_item(e, 0, left);
    set_item(e, 1, right);
    return e;
}

static query_expr *named(builder *b, slice name) {
    query_expr *e = node(b, EXPR_NAME, 0);
    e->name = name;
    return e;
}

static query_expr *member(builder *b, query_expr *inner, slice name) {
    query_expr *e = node(b, EXPR_MEMBER, 1);
    e->name = name;
    set_item(e, 0, inner);
    return e;
}

static query_expr *call(builder *b, const char *name, query_expr *first, query_expr *second) {
    query_expr *e = node(b, EXPR_CALL, second ? 2 : 1);
    e->name = slice_str(name);
    set_item(e, 0, first);
    if (second) {
        set_item(e, 1, second);
    }
    return e;
}

static query_expr *negated(builder *b, query_expr *inner) {
    query_expr *e = node(b, EXPR_UNARY, 1);
    e->op = OP_NOT;
    set_item(e, 0, inner);
    return e;
}

/* As a balanced tree, so that its depth is logarithmic. */
static query_expr *joined(builder *b, query_operator op, query_expr **list, size_t n) {
    size_t half = n / 2;
    return n == 1 ? list[0] : binary(b, op, joined(b, op, list, n - half), joined(b, op, list + n - half, half));
}

static query_select *new_select(builder *b, query_source_kind kind, slice alias, query_expr *from) {
    query_select *s = arena_new(b->arena, query_select);
    s->sources = arena_new(b->arena, query_source);
    s->sources[0] = (query_source){.kind = kind, .alias = alias, .alias_given = true, .from = from};
    s->sources_n = 1;
    s->depth = (uint16_t)(from->depth + 1);
    s->outer = b->select;
    return s;
}

/* ---- members of a condition ---- */

typedef enum field {
    FIELD_AND,
    FIELD_OR,
    FIELD_AT,
    FIELD_EQ,
    FIELD_IN,
    FIELD_GE,
    FIELD_GT,
    FIELD_LE,
    FIELD_LT,
    FIELD_BEGINS,
    FIELD_IS,
    FIELD_EXISTS,
    FIELD_FILTER,
    FIELD_WITH,
    FIELD_KEY,
    FIELD_OF,
    FIELD_WITHIN,
    FIELD_ALONE,
    FIELD_IMPLIED,
    FIELDS
} field;

static const char *const field_names[FIELDS] = {"and", "or",     "at",     "eq",   "in",  "ge", "gt",     "le",    "lt",     "begins",
                                                "is",  "exists", "filter", "with", "key", "of", "within", "alone", "implied"};

typedef struct fields {
    doc_element list[FIELDS];
    unsigned given; /* bit mask */
} fields;

static bool has(const fields *f, field which) {
    return f->given >> which & 1;
}

static err read_fields(const builder *b, slice document, fields *f) {
    doc_walk w;
    doc_element e;
    f->given = 0;
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        unsigned i = 0;
        while (i < FIELDS && !slice_eq(e.key, slice_str(field_names[i]))) {
            i++;
        }
        if (i == FIELDS || f->given >> i & 1) {
            return op_fail(b->op, E_BAD_REQUEST, "A condition has an unknown or repeated member \"%.*s\".", slice_shown(e.key), e.key.p);
        }
        f->list[i] = e;
        f->given |= 1u << i;
    }
    return OK;
}

/* ---- paths ---- */

static err read_path(const builder *b, const doc_element *at, find_path *p) {
    doc_walk w;
    doc_element e;
    p->n = 0;
    p->single = true;
    if (at->type != BSON_TYPE_ARRAY) {
        return bad(b, "A path must be an array of steps: strings, and null for any element of an array.");
    }
    for (doc_walk_init(&w, at->value); doc_walk_next(&w, &e);) {
        bool element = e.type == BSON_TYPE_NULL;
        if (p->n == LIMIT_PATH_DEPTH || (!element && e.type != BSON_TYPE_UTF8)) {
            return bad(b, "A path must be an array of at most 32 steps: strings, and null for any element of an array.");
        }
        p->steps[p->n++] = (index_step){.name = element ? SLICE_EMPTY : doc_element_text(&e), .element = element};
        p->single = p->single && !element;
    }
    return p->n && !p->steps[0].element ? OK : bad(b, "A path must begin with the name of a member.");
}

/* ---- tests of one path ---- */

static const struct {
    const char *type, *function;
} type_tests[] = {{"null", "IS_NULL"},   {"bool", "IS_BOOL"},     {"number", "IS_NUMBER"},      {"string", "IS_STRING"},
                  {"array", "IS_ARRAY"}, {"object", "IS_OBJECT"}, {"primitive", "IS_PRIMITIVE"}};

static err test_type(builder *b, query_expr *path, const doc_element *type, query_expr **out) {
    slice name = type->type == BSON_TYPE_UTF8 ? doc_element_text(type) : SLICE_EMPTY;
    for (size_t i = 0; i < sizeof type_tests / sizeof *type_tests; i++) {
        if (slice_eq(name, slice_str(type_tests[i].type))) {
            *out = call(b, type_tests[i].function, path, NULL);
            return OK;
        }
    }
    return bad(b, "\"is\" must be null, bool, number, string, array, object or primitive, as a string.");
}

static err test_in(builder *b, query_expr *path, const doc_element *list, query_expr **out) {
    doc_walk w;
    doc_element e;
    size_t n = 0;
    if (list->type != BSON_TYPE_ARRAY) {
        return bad(b, "\"in\" must be an array.");
    }
    for (doc_walk_init(&w, list->value); doc_walk_next(&w, &e);) {
        n++;
    }
    if ((b->conditions += (unsigned)n) > LIMIT_FIND_CONDITIONS) {
        return bad(b, "A find has too many conditions and values of \"in\".");
    }
    query_value no = value_bool(false);
    *out = n ? node(b, EXPR_IN, n + 1) : literal(b, &no);
    for (size_t i = 0; i < n + (n > 0); i++) {
        if (i == 0) {
            set_item(*out, 0, path);
            doc_walk_init(&w, list->value);
        } else if (doc_walk_next(&w, &e)) {
            set_item(*out, i, element_literal(b, &e));
        }
    }
    return OK;
}

static err test_bounds(builder *b, query_expr *path, const fields *f, query_expr **out) {
    field low = has(f, FIELD_GE) ? FIELD_GE : FIELD_GT, high = has(f, FIELD_LE) ? FIELD_LE : FIELD_LT;
    if ((has(f, FIELD_GE) && has(f, FIELD_GT)) || (has(f, FIELD_LE) && has(f, FIELD_LT))) {
        return bad(b, "A range has one lower bound (ge or gt) and one upper bound (le or lt) at most.");
    }
    query_expr *from = has(f, low) ? element_literal(b, &f->list[low]) : NULL;
    query_expr *to = has(f, high) ? element_literal(b, &f->list[high]) : NULL;
    if (from && to && low == FIELD_GE && high == FIELD_LE) {
        *out = node(b, EXPR_BETWEEN, 3);
        set_item(*out, 0, path);
        set_item(*out, 1, from);
        set_item(*out, 2, to);
        return OK;
    }
    query_expr *above = from ? binary(b, low == FIELD_GE ? OP_GREATER_EQUAL : OP_GREATER, path, from) : NULL;
    query_expr *below = to ? binary(b, high == FIELD_LE ? OP_LESS_EQUAL : OP_LESS, path, to) : NULL;
    *out = above && below ? binary(b, OP_AND, above, below) : above ? above : below;
    return OK;
}

static err test_text(builder *b, query_expr *path, const doc_element *text, query_expr **out) {
    if (text->type != BSON_TYPE_UTF8) {
        return bad(b, "\"begins\" must be a string.");
    }
    *out = call(b, "STARTSWITH", path, element_literal(b, text));
    return OK;
}

static err test(builder *b, query_expr *path, const fields *f, query_expr **out) {
    if (has(f, FIELD_EQ)) {
        *out = binary(b, OP_EQUAL, path, element_literal(b, &f->list[FIELD_EQ]));
        return OK;
    }
    if (has(f, FIELD_EXISTS)) {
        *out = call(b, "IS_DEFINED", path, NULL);
        return OK;
    }
    return has(f, FIELD_IN)       ? test_in(b, path, &f->list[FIELD_IN], out)
           : has(f, FIELD_BEGINS) ? test_text(b, path, &f->list[FIELD_BEGINS], out)
           : has(f, FIELD_IS)     ? test_type(b, path, &f->list[FIELD_IS], out)
                                  : test_bounds(b, path, f, out);
}

/* ---- any element of an array ---- */

static err test_steps(builder *b, query_expr *from, const index_step *steps, size_t n, const fields *f, query_expr **out);

/* EXISTS(SELECT VALUE e FROM e IN list WHERE …) */
static err test_elements(builder *b, query_expr *list, const index_step *rest, size_t n, const fields *f, query_expr **out) {
    slice alias = arena_printf(b->arena, "e%u", ++b->aliases);
    query_select *outer = b->select, *s = new_select(b, SOURCE_ITEMS, alias, list);
    s->value = true;
    s->columns = arena_new(b->arena, query_column);
    s->columns->expr = named(b, alias);
    s->columns_n = 1;
    b->select = s;
    err code = test_steps(b, named(b, alias), rest, n, f, &s->where);
    b->select = outer;
    TRY(code);
    s->depth = s->where->depth >= s->depth ? (uint16_t)(s->where->depth + 1) : s->depth;
    *out = node(b, EXPR_EXISTS, 0);
    (*out)->select = s;
    (*out)->depth = (uint16_t)(s->depth + 1);
    return OK;
}

static bool is_scalar(const doc_element *e) {
    query_value v = value_of_element(e);
    return v.type < TYPE_ARRAY;
}

static err test_steps(builder *b, query_expr *from, const index_step *steps, size_t n, const fields *f, query_expr **out) {
    for (size_t i = 0; i < n; i++) {
        bool last = i + 1 == n;
        if (steps[i].element && last && has(f, FIELD_EQ) && is_scalar(&f->list[FIELD_EQ])) {
            *out = call(b, "ARRAY_CONTAINS", from, element_literal(b, &f->list[FIELD_EQ]));
            return OK;
        }
        if (steps[i].element) {
            return test_elements(b, from, steps + i + 1, n - i - 1, f, out);
        }
        from = member(b, from, steps[i].name);
    }
    return test(b, from, f, out);
}

/* ---- conditions ---- */

static err read_condition(builder *b, const doc_element *e, unsigned depth, query_expr **out);

static err read_list(builder *b, const doc_element *list, query_operator op, unsigned depth, query_expr **out) {
    doc_walk w;
    doc_element e;
    size_t n = 0;
    if (list->type != BSON_TYPE_ARRAY) {
        return bad(b, "\"and\" and \"or\" must be arrays of conditions.");
    }
    for (doc_walk_init(&w, list->value); doc_walk_next(&w, &e);) {
        n++;
    }
    if (n == 0) {
        return bad(b, "\"and\" and \"or\" need one condition at least.");
    }
    query_expr **parts = arena_array(b->arena, query_expr *, n);
    doc_walk_init(&w, list->value);
    for (size_t i = 0; i < n && doc_walk_next(&w, &e); i++) {
        TRY(read_condition(b, &e, depth + 1, &parts[i]));
    }
    *out = joined(b, op, parts, n);
    return OK;
}

static err read_filter(builder *b, const fields *f, query_expr **out) {
    const doc_element *id = &f->list[FIELD_FILTER], *with = &f->list[FIELD_WITH];
    bool whole = id->type == BSON_TYPE_INT32 || id->type == BSON_TYPE_INT64;
    query_value number = value_of_element(id);
    const query_filter_kind *kind = whole ? query_filter_kind_of(number.integer) : NULL;
    if (!kind) {
        return bad(b, "\"filter\" must be the number of a registered kind.");
    }
    if (has(f, FIELD_WITH) && with->type != BSON_TYPE_DOCUMENT) {
        return bad(b, "\"with\" must be a document.");
    }
    query_filter *filter = arena_new(b->arena, query_filter);
    filter->kind = kind;
    filter->argument = has(f, FIELD_WITH) ? with->value : SLICE_EMPTY;
    filter->implied = has(f, FIELD_IMPLIED) && f->list[FIELD_IMPLIED].type == BSON_TYPE_BOOL && f->list[FIELD_IMPLIED].value.p[0];
    TRY(kind->prepare ? kind->prepare(b->op, b->container, filter->argument, &filter->ready) : OK);
    *out = node(b, EXPR_FILTER, 0);
    (*out)->filter = filter;
    return OK;
}

/* ---- keys ---- */

static slice key_name(builder *b, slice spec) {
    doc_element name;
    uint64_t passed = 0;
    bool named = doc_find_member_counted(spec, SLICE_LIT("name"), &name, &passed) && name.type == BSON_TYPE_UTF8;
    return named ? arena_copy(b->arena, doc_element_text(&name)) : SLICE_LIT("keys");
}

/* `of` NULL: the index with the same specification. */
static err read_key(builder *b, const doc_element *spec, const doc_element *of, query_key *k) {
    of = of ? of : spec;
    if (spec->type != BSON_TYPE_DOCUMENT || of->type != BSON_TYPE_DOCUMENT) {
        return bad(b, "\"key\" and \"of\" must be specifications of key indexes.");
    }
    k->of = index_key_path(of->value);
    k->name = key_name(b, of->value);
    op o;
    op_init(&o, b->arena, b->op->now_s);
    err code = mql_index_parse(&o, spec->value, &k->pattern);
    return code == OK ? OK : op_fail_as(b->op, code, o.protocol_code, "%.*s", (int)o.detail_n, o.detail);
}

static bool read_bytes(const doc_element *e, slice *bytes_out) {
    enum { BINARY_HEAD = 5 };
    if (e->type != BSON_TYPE_BINARY || e->value.n < BINARY_HEAD) {
        return false;
    }
    *bytes_out = slice_skip(e->value, BINARY_HEAD);
    return true;
}

static bool read_span(const doc_element *pair, query_key_span *span) {
    doc_walk w;
    doc_element e;
    *span = (query_key_span){.point = true};
    if (pair->type != BSON_TYPE_ARRAY || !doc_walk_init(&w, pair->value) || !doc_walk_next(&w, &e) || !read_bytes(&e, &span->from)) {
        return false;
    }
    if (doc_walk_next(&w, &e)) {
        span->point = false;
        return read_bytes(&e, &span->to) && !doc_walk_next(&w, &e);
    }
    return true;
}

static err read_spans(builder *b, const doc_element *list, const query_key_span **spans_out, size_t *n_out) {
    static const char rule[] =
        "\"within\" and \"alone\" must be arrays of [from, to] and [key], binary values, and not have too many of them.";
    doc_walk w;
    doc_element e;
    size_t n = 0;
    for (bool more = list->type == BSON_TYPE_ARRAY && doc_walk_init(&w, list->value); more && doc_walk_next(&w, &e);) {
        n++;
    }
    if (n == 0 || (b->conditions += (unsigned)n) > LIMIT_FIND_CONDITIONS) {
        return bad(b, rule);
    }
    query_key_span *spans = arena_array(b->arena, query_key_span, n);
    doc_walk_init(&w, list->value);
    for (size_t i = 0; i < n && doc_walk_next(&w, &e); i++) {
        if (!read_span(&e, &spans[i])) {
            return bad(b, rule);
        }
    }
    *spans_out = spans;
    *n_out = n;
    return OK;
}

static err read_within(builder *b, const fields *f, query_expr **out) {
    query_key *k = arena_new(b->arena, query_key);
    TRY(read_key(b, &f->list[FIELD_KEY], has(f, FIELD_OF) ? &f->list[FIELD_OF] : NULL, k));
    TRY(read_spans(b, &f->list[FIELD_WITHIN], &k->spans, &k->spans_n));
    TRY(has(f, FIELD_ALONE) ? read_spans(b, &f->list[FIELD_ALONE], &k->alone, &k->alone_n) : OK);
    *out = node(b, EXPR_WITHIN, 0);
    (*out)->key = k;
    return OK;
}

static err read_test(builder *b, const fields *f, query_expr **out) {
    const unsigned bounds = 1u << FIELD_GE | 1u << FIELD_GT | 1u << FIELD_LE | 1u << FIELD_LT;
    unsigned tests = f->given & ~(1u << FIELD_AT);
    find_path p;
    if (!tests || (tests & (tests - 1) && tests & ~bounds)) {
        return bad(b, "A condition of a path must have one of eq, in, begins, is, exists, or bounds (ge, gt, le, lt).");
    }
    if (has(f, FIELD_EXISTS) && f->list[FIELD_EXISTS].type != BSON_TYPE_BOOL) {
        return bad(b, "\"exists\" must be true or false.");
    }
    TRY(read_path(b, &f->list[FIELD_AT], &p));
    TRY(test_steps(b, named(b, SLICE_LIT("c")), p.steps, p.n, f, out));
    bool absent = has(f, FIELD_EXISTS) && !f->list[FIELD_EXISTS].value.p[0];
    *out = absent ? negated(b, *out) : *out;
    return OK;
}

static err read_condition(builder *b, const doc_element *e, unsigned depth, query_expr **out) {
    fields f;
    if (e->type != BSON_TYPE_DOCUMENT) {
        return bad(b, "A condition must be a document.");
    }
    if (depth > LIMIT_FIND_DEPTH || ++b->conditions > LIMIT_FIND_CONDITIONS) {
        return bad(b, "A find has too many conditions, or they are nested too deeply.");
    }
    TRY(read_fields(b, e->value, &f));
    unsigned form = f.given & (1u << FIELD_AND | 1u << FIELD_OR | 1u << FIELD_AT | 1u << FIELD_FILTER | 1u << FIELD_KEY);
    bool alone = f.given == form;
    unsigned filter_only = 1u << FIELD_FILTER | 1u << FIELD_WITH | 1u << FIELD_IMPLIED;
    if (form == 1u << FIELD_AT) {
        TRY(read_test(b, &f, out));
    } else if (form == 1u << FIELD_FILTER && !(f.given & ~filter_only)) {
        TRY(read_filter(b, &f, out));
    } else if (form == 1u << FIELD_KEY && (f.given & ~(form | 1u << FIELD_OF | 1u << FIELD_ALONE)) == 1u << FIELD_WITHIN) {
        TRY(read_within(b, &f, out));
    } else if (alone && (form == 1u << FIELD_AND || form == 1u << FIELD_OR)) {
        TRY(read_list(b, &f.list[has(&f, FIELD_AND) ? FIELD_AND : FIELD_OR], has(&f, FIELD_AND) ? OP_AND : OP_OR, depth, out));
    } else {
        return bad(b, "A condition must be one of {and}, {or}, {at, …}, {filter, with} and {key, within}.");
    }
    return (*out)->depth < QUERY_DEPTH_MAX ? OK : bad(b, "The conditions of a find are nested too deeply.");
}

/* ---- orders ---- */

static err read_down(const builder *b, slice part, bool *down_out) {
    doc_element down;
    uint64_t passed = 0;
    bool given = doc_find_member_counted(part, SLICE_LIT("down"), &down, &passed);
    if (given && down.type != BSON_TYPE_BOOL) {
        return bad(b, "\"down\" must be true or false.");
    }
    *down_out = given && down.value.p[0];
    return OK;
}

static err read_key_order(builder *b, slice part, const doc_element *spec, query_order *order) {
    doc_element of, prefix;
    uint64_t passed = 0;
    query_key *k = arena_new(b->arena, query_key);
    bool other = doc_find_member_counted(part, SLICE_LIT("of"), &of, &passed);
    if (doc_find_member_counted(part, SLICE_LIT("prefix"), &prefix, &passed) && !read_bytes(&prefix, &k->prefix)) {
        return bad(b, "\"prefix\" must be a binary value.");
    }
    TRY(read_key(b, spec, other ? &of : NULL, k));
    TRY(read_down(b, part, &order->descending));
    k->last = order->descending;
    order->expr = node(b, EXPR_KEY, 0);
    order->expr->key = k;
    return OK;
}

static err read_order_part(builder *b, const doc_element *e, query_order *order) {
    doc_element at;
    find_path p;
    uint64_t passed = 0;
    *order = (query_order){0};
    if (e->type == BSON_TYPE_DOCUMENT && doc_find_member_counted(e->value, SLICE_LIT("key"), &at, &passed)) {
        return read_key_order(b, e->value, &at, order);
    }
    if (e->type != BSON_TYPE_DOCUMENT || !doc_find_member_counted(e->value, SLICE_LIT("at"), &at, &passed)) {
        return bad(b, "An order must be an array of {\"at\": path, \"down\": true or false}.");
    }
    TRY(read_path(b, &at, &p));
    if (!p.single) {
        return bad(b, "The path of an order cannot go through the elements of an array.");
    }
    TRY(read_down(b, e->value, &order->descending));
    query_expr *path = named(b, SLICE_LIT("c"));
    for (size_t i = 0; i < p.n; i++) {
        path = member(b, path, p.steps[i].name);
    }
    order->expr = path;
    return OK;
}

static err read_order(builder *b, slice list, query_select *s) {
    doc_walk w;
    doc_element e;
    s->order = arena_array(b->arena, query_order, LIMIT_FIND_ORDER);
    for (doc_walk_init(&w, list); doc_walk_next(&w, &e);) {
        if (s->order_n == LIMIT_FIND_ORDER) {
            return bad(b, "An order has too many paths.");
        }
        TRY(read_order_part(b, &e, &s->order[s->order_n++]));
    }
    return OK;
}

/* ---- one item of each key ---- */

err query__find_each(op *o, arena *a, const container *c, slice each, query *q) {
    builder b = {.op = o, .arena = a, .container = c};
    query_key *k = arena_new(a, query_key);
    doc_element spec, any, separate;
    uint64_t passed = 0;
    if (!doc_is_well_formed(each, LIMIT_JSON_DEPTH) || !doc_find_member_counted(each, SLICE_LIT("key"), &spec, &passed)) {
        return bad(&b, "One item of each key needs a \"key\".");
    }
    TRY(read_key(&b, &spec, NULL, k));
    if (doc_find_member_counted(each, SLICE_LIT("separate"), &separate, &passed) && !read_bytes(&separate, &k->separate)) {
        return bad(&b, "\"separate\" must be a binary value.");
    }
    q->each_any = doc_find_member_counted(each, SLICE_LIT("any"), &any, &passed) && any.type == BSON_TYPE_BOOL && any.value.p[0];
    q->each = k;
    return OK;
}

/* ---- the whole tree ---- */

err query__find_tree(op *o, arena *a, const container *c, const query_find *find, query_ast **ast_out) {
    builder b = {.op = o, .arena = a, .container = c};
    bool sound = find->where.n + find->order.n <= LIMIT_FIND_BYTES &&
                 (!find->where.n || doc_is_well_formed(find->where, LIMIT_JSON_DEPTH)) &&
                 (!find->order.n || doc_is_well_formed(find->order, LIMIT_JSON_DEPTH));
    if (!sound) {
        return bad(&b, "The conditions of a find are no BSON document, or too long.");
    }
    query_ast *ast = *ast_out = arena_new(a, query_ast);
    query_select *s = new_select(&b, SOURCE_ROOT, SLICE_LIT("c"), named(&b, SLICE_LIT("c")));
    ast->text = SLICE_LIT("");
    ast->select = b.select = s;
    s->star = true;
    if (find->where.n) {
        doc_element where = {.type = BSON_TYPE_DOCUMENT, .value = find->where};
        TRY(read_condition(&b, &where, 0, &s->where));
        s->depth = (uint16_t)(s->where->depth + 1);
    }
    ast->depth = s->depth;
    return find->order.n ? read_order(&b, find->order, s) : OK;
}
