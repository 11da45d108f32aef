/* match_parse.c — parses filters into trees, by two tables of operators. */
#include "mql/match_int.h"
#include "mql/show.h"

/* ---- nodes ---- */

err mql__room(const mql__filter_parser *p) {
    const budget *b = mql__arena(p)->budget;
    return b ? budget_error(b) : OK;
}

void *mql__array(mql__filter_parser *p, size_t n, size_t element_bytes) {
    return arena_fits(mql__arena(p), n * element_bytes) ? arena_zero(mql__arena(p), n * element_bytes) : NULL;
}

const slice *mql__parts_of(arena *a, slice path, size_t *n_out) {
    size_t count = 1;
    for (size_t i = 0; i < path.n; i++) {
        count += path.p[i] == '.';
    }
    slice *parts = arena_fits(a, count * sizeof *parts) ? arena_array(a, slice, count) : NULL, rest = path;
    for (*n_out = 0; parts && *n_out < count; ++*n_out) {
        const char *dot = memchr(rest.p, '.', rest.n);
        parts[*n_out] = slice_of(rest.p, dot ? (size_t)(dot - rest.p) : rest.n);
        rest = slice_skip(rest, parts[*n_out].n + 1);
    }
    return parts;
}

mql_node *mql__node(mql__filter_parser *p, mql_node_kind kind, slice path, mql_value value) {
    mql_node *n = arena_new(mql__arena(p), mql_node);
    n->kind = kind;
    n->path = path;
    n->value = value;
    if (path.p) { /* a path may be "": the field with the empty name */
        n->parts = mql__parts_of(mql__arena(p), path, &n->parts_n);
    }
    return n;
}

mql_node *mql__negated(mql__filter_parser *p, const mql_node *child) {
    mql_node *negation = mql__node(p, MQL_NOT, SLICE_EMPTY, mql_missing());
    negation->first = child;
    return negation;
}

mql__list mql__list_of(mql__filter_parser *p, mql_node_kind kind, slice path, mql_value value) {
    return (mql__list){.parent = mql__node(p, kind, path, value)};
}

void mql__add(mql__list *list, mql_node *child) {
    if (!child) {
        return;
    }
    if (list->last) {
        list->last->next = child;
    } else {
        list->parent->first = child;
    }
    list->last = child;
}

/* ---- operands ---- */

slice mql__shown(mql__filter_parser *p, const doc_element *e) {
    return arena_printf(mql__arena(p), "%.*s: %s", slice_shown(e->key), e->key.p, mql__show(mql__arena(p), mql_of(e)));
}

static err bad_integer(mql__filter_parser *p, const doc_element *e, const char *what) {
    slice shown = mql__shown(p, e);
    return mql_fail(mql__op(p), 9, "%s: %.*s", what, (int)shown.n, shown.p);
}

err mql__parse_integer(mql__filter_parser *p, const doc_element *e, int64_t *integer_out) {
    mql_value v = mql_of(e);
    if (!mql_is_number(v)) {
        return bad_integer(p, e, "Expected a number in");
    }
    if (mql_as_integer(v, integer_out)) {
        return OK;
    }
    double number = mql_as_double(v);
    return bad_integer(p, e,
                       number != number                          ? "Expected an integer, but found NaN in"
                       : !(number >= -0x1p63 && number < 0x1p63) ? "Cannot represent as a 64-bit integer"
                                                                 : "Expected an integer");
}

/* An object with $ref and $id is a reference; `$db` may be there too. */
static bool is_reference(slice document) {
    doc_element e;
    uint64_t passed = 0;
    return doc_find_member_counted(document, SLICE_LIT("$ref"), &e, &passed) &&
           doc_find_member_counted(document, SLICE_LIT("$id"), &e, &passed);
}

static bool first_member(slice document, doc_element *e) {
    doc_walk w;
    return doc_walk_init(&w, document) && doc_walk_next(&w, e);
}

bool mql__is_conditions(mql_value v) {
    doc_element e;
    return v.type == BSON_TYPE_DOCUMENT && first_member(v.bytes, &e) && e.key.n && e.key.p[0] == '$' && !is_reference(v.bytes);
}

/* ---- $and, $or, $nor, $not, $comment ---- */

static err parse_list(mql__filter_parser *p, mql_node_kind kind, const mql__operand *of, mql_node **node_out) {
    doc_walk w;
    doc_element e;
    if (of->e->type != BSON_TYPE_ARRAY) {
        return mql_fail(mql__op(p), 2, "%.*s must be an array", slice_shown(of->e->key), of->e->key.p);
    }
    mql__list list = mql__list_of(p, kind, SLICE_EMPTY, mql_missing());
    *node_out = list.parent;
    for (doc_walk_init(&w, of->e->value); doc_walk_next(&w, &e);) {
        mql_node *child;
        if (e.type != BSON_TYPE_DOCUMENT) {
            return mql_fail(mql__op(p), 2, "$or/$and/$nor entries need to be full objects");
        }
        TRY(mql__parse_document(p, e.value, &child));
        mql__add(&list, child);
    }
    return list.last ? OK : mql_fail(mql__op(p), 2, "$and/$or/$nor must be a nonempty array");
}

static err parse_and(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    return parse_list(p, MQL_AND, of, node_out);
}

static err parse_or(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    return parse_list(p, MQL_OR, of, node_out);
}

static err parse_nor(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    return parse_list(p, MQL_NOR, of, node_out);
}

static err parse_not(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    doc_element e;
    if (of->e->type == BSON_TYPE_REGEX) {
        mql_node *regex;
        TRY(mql__parse_regex_value(p, of->path, mql_of(of->e), &regex));
        *node_out = mql__negated(p, regex);
        return OK;
    }
    if (of->e->type != BSON_TYPE_DOCUMENT) {
        return mql_fail(mql__op(p), 2, "$not needs a regex or a document");
    }
    if (!first_member(of->e->value, &e)) {
        return mql_fail(mql__op(p), 2, "$not cannot be empty");
    }
    mql__list all = mql__list_of(p, MQL_AND, SLICE_EMPTY, mql_missing());
    *node_out = mql__negated(p, all.parent);
    return mql__parse_conditions(p, of->path, of->e->value, &all);
}

static err parse_comment(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    (void)p;
    (void)of;
    *node_out = NULL;
    return OK;
}

static err parse_where(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    (void)of;
    (void)node_out;
    return mql_fail(mql__op(p), 2, "no globalScriptEngine in $where parsing");
}

static err parse_expr(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    const mql_expression *expression;
    if (p->inside) {
        return mql_fail(mql__op(p), 2, "$expr can only be applied to the top-level document");
    }
    TRY(mql_expression_parse(p->scope, mql_of(of->e), &expression));
    *node_out = mql__node(p, MQL_EXPR, SLICE_EMPTY, mql_of(of->e));
    (*node_out)->detail = expression;
    return OK;
}

/* {$sampleRate: p} is {$expr: {$lt: [{$rand: {}}, p]}}. */
static err sample_expression(mql__filter_parser *p, mql_value rate, const mql_expression **expression_out) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    mql_open(&b, SLICE_LIT("$lt"), BSON_TYPE_ARRAY);
    mql_open_next(&b, BSON_TYPE_DOCUMENT);
    mql_add(&b, SLICE_LIT("$rand"), mql_document(SLICE_LIT("\5\0\0\0\0")));
    mql_close(&b);
    mql_add_next(&b, rate);
    mql_close(&b);
    err e = mql_expression_parse(p->scope, mql_document(mql_built(&b)), expression_out);
    buf_free(&out);
    return e;
}

static err parse_sample_rate(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    mql_value rate = mql_of(of->e);
    const mql_expression *expression;
    if (!mql_is_number(rate)) {
        return mql_fail(mql__op(p), 2, "argument to $sampleRate must be a numeric type");
    }
    if (!(mql_as_double(rate) >= 0 && mql_as_double(rate) <= 1)) {
        return mql_fail(mql__op(p), 2, "numeric argument to $sampleRate must be in [0, 1]");
    }
    TRY(sample_expression(p, rate, &expression));
    *node_out = mql__node(p, MQL_EXPR, SLICE_EMPTY, rate);
    (*node_out)->detail = expression;
    return OK;
}

/* {$ref: …, $id: …, $db: …} at the top: fields of a reference. */
static err parse_reference_field(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    mql__operand field = {.path = of->e->key, .e = of->e};
    return mql__parse_eq(p, &field, node_out);
}

/* ---- operators ---- */

static const mql__filter_operator top_operators[] = {
    {SLICE_LIT("$and"), parse_and, true},
    {SLICE_LIT("$or"), parse_or, true},
    {SLICE_LIT("$nor"), parse_nor, true},
    {SLICE_LIT("$expr"), parse_expr, true},
    {SLICE_LIT("$jsonSchema"), mql__parse_json_schema, false},
    {SLICE_LIT("$text"), mql__parse_text, false},
    {SLICE_LIT("$sampleRate"), parse_sample_rate, false},
    {SLICE_LIT("$comment"), parse_comment, true},
    {SLICE_LIT("$where"), parse_where, false},
    {SLICE_LIT("$ref"), parse_reference_field, true},
    {SLICE_LIT("$id"), parse_reference_field, true},
    {SLICE_LIT("$db"), parse_reference_field, true},
};

static const mql__filter_operator field_operators[] = {
    {SLICE_LIT("$eq"), mql__parse_eq, true},
    {SLICE_LIT("$ne"), mql__parse_ne, true},
    {SLICE_LIT("$lt"), mql__parse_lt, true},
    {SLICE_LIT("$lte"), mql__parse_lte, true},
    {SLICE_LIT("$gt"), mql__parse_gt, true},
    {SLICE_LIT("$gte"), mql__parse_gte, true},
    {SLICE_LIT("$in"), mql__parse_in, true},
    {SLICE_LIT("$nin"), mql__parse_nin, true},
    {SLICE_LIT("$not"), parse_not, true},
    {SLICE_LIT("$exists"), mql__parse_exists, true},
    {SLICE_LIT("$type"), mql__parse_type, true},
    {SLICE_LIT("$mod"), mql__parse_mod, true},
    {SLICE_LIT("$size"), mql__parse_size, true},
    {SLICE_LIT("$all"), mql__parse_all, true},
    {SLICE_LIT("$elemMatch"), mql__parse_elem_match, true},
    {SLICE_LIT("$geoWithin"), mql__parse_geo_within, true},
    {SLICE_LIT("$within"), mql__parse_geo_within, true},
    {SLICE_LIT("$geoIntersects"), mql__parse_geo_intersects, true},
    {SLICE_LIT("$near"), mql__parse_near, true},
    {SLICE_LIT("$nearSphere"), mql__parse_near_sphere, true},
    {SLICE_LIT("$minDistance"), mql__parse_near_distance, true},
    {SLICE_LIT("$maxDistance"), mql__parse_near_distance, true},
    {SLICE_LIT("$bitsAllSet"), mql__parse_bits_all_set, false},
    {SLICE_LIT("$bitsAnySet"), mql__parse_bits_any_set, false},
    {SLICE_LIT("$bitsAllClear"), mql__parse_bits_all_clear, false},
    {SLICE_LIT("$bitsAnyClear"), mql__parse_bits_any_clear, false},
    {SLICE_LIT("$regex"), mql__parse_regex, true},
    {SLICE_LIT("$options"), mql__parse_options, true},
};

static const mql__filter_operator *find_operator(const mql__filter_operator *table, size_t n, slice name) {
    for (size_t i = 0; i < n; i++) {
        if (slice_eq(table[i].name, name)) {
            return &table[i];
        }
    }
    return NULL;
}

#define FIND(table, name) find_operator(table, sizeof(table) / sizeof *(table), name)

const mql__filter_operator *mql__filter_operator_at(size_t position) {
    size_t tops = sizeof top_operators / sizeof *top_operators;
    if (position < tops) {
        return &top_operators[position];
    }
    return position - tops < sizeof field_operators / sizeof *field_operators ? &field_operators[position - tops] : NULL;
}

bool mql__is_top_operator(slice name) {
    return FIND(top_operators, name) != NULL;
}

bool mql__is_field_operator(slice name) {
    return FIND(field_operators, name) != NULL;
}

static err apply_operator(mql__filter_parser *p, const mql__filter_operator *o, const mql__operand *of, mql_node **node_out) {
    if (p->scope->service && !o->service) {
        return mql_fail(mql__op(p), 115, "operator %.*s is not supported", (int)o->name.n, o->name.p);
    }
    TRY(o->parse(p, of, node_out));
    return mql__room(p);
}

/* ---- documents ---- */

err mql__parse_conditions(mql__filter_parser *p, slice path, slice conditions, mql__list *into) {
    doc_walk w;
    doc_element e;
    if (++p->depth > MQL_DEPTH_MAX) {
        return mql_fail(mql__op(p), 15, "exceeded the maximum nesting depth of a filter: %d", MQL_DEPTH_MAX);
    }
    for (doc_walk_init(&w, conditions); doc_walk_next(&w, &e);) {
        const mql__filter_operator *o = FIND(field_operators, e.key);
        mql__operand of = {path, &e, conditions};
        mql_node *child = NULL;
        if (!o && slice_eq(e.key, SLICE_LIT("$where"))) {
            return mql_fail(mql__op(p), 2, "$where cannot be applied to a field");
        }
        if (!o) {
            return mql_fail(mql__op(p), 2, "unknown operator: %.*s", slice_shown(e.key), e.key.p);
        }
        TRY(apply_operator(p, o, &of, &child));
        mql__add(into, child);
    }
    p->depth--;
    return OK;
}

static err parse_top(mql__filter_parser *p, const doc_element *e, mql__list *all) {
    const mql__filter_operator *o = FIND(top_operators, e->key);
    mql__operand of = {.e = e};
    mql_node *child = NULL;
    if (!o) {
        return mql_fail(mql__op(p), 2,
                        "unknown top level operator: %.*s. If you have a field name that starts with a '$' symbol, consider using "
                        "$getField or $setField.",
                        slice_shown(e->key), e->key.p);
    }
    TRY(apply_operator(p, o, &of, &child));
    mql__add(all, child);
    return OK;
}

static err parse_field(mql__filter_parser *p, const doc_element *e, mql__list *all) {
    mql__operand of = {.path = e->key, .e = e};
    mql_node *child;
    if (mql__is_conditions(mql_of(e))) {
        return mql__parse_conditions(p, e->key, e->value, all);
    }
    TRY(e->type == BSON_TYPE_REGEX ? mql__parse_regex_value(p, e->key, mql_of(e), &child) : mql__parse_eq(p, &of, &child));
    mql__add(all, child);
    return mql__room(p);
}

err mql__parse_document(mql__filter_parser *p, slice document, mql_node **node_out) {
    doc_walk w;
    doc_element e;
    if (++p->depth > MQL_DEPTH_MAX) {
        return mql_fail(mql__op(p), 15, "exceeded the maximum nesting depth of a filter: %d", MQL_DEPTH_MAX);
    }
    mql__list all = mql__list_of(p, MQL_AND, SLICE_EMPTY, mql_missing());
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        TRY(e.key.n && e.key.p[0] == '$' ? parse_top(p, &e, &all) : parse_field(p, &e, &all));
    }
    *node_out = all.last && all.parent->first == all.last ? all.last : all.parent; /* one condition needs no $and */
    p->depth--;
    return OK;
}

static err keep_match(mql__filter_parser *p, const mql_node *root, const mql_match **match_out) {
    mql_match *m = arena_new(mql__arena(p), mql_match);
    *m = (mql_match){root, p->scope->collation};
    *match_out = m;
    return mql__room(p);
}

err mql_match_parse(mql_scope *s, slice filter, const mql_match **match_out) {
    mql__filter_parser p = {.scope = s};
    mql_node *root = NULL;
    *match_out = NULL;
    TRY(mql__parse_document(&p, filter, &root));
    return keep_match(&p, root, match_out);
}

err mql_match_parse_value(mql_scope *s, mql_value condition, const mql_match **match_out) {
    mql__filter_parser p = {.scope = s};
    mql__list all = mql__list_of(&p, MQL_AND, SLICE_EMPTY, mql_missing());
    doc_element e = {.key = SLICE_EMPTY, .value = condition.bytes, .type = condition.type};
    *match_out = NULL;
    TRY(parse_field(&p, &e, &all));
    return keep_match(&p, all.parent, match_out);
}
