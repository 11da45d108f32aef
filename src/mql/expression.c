/* expression.c — parses expressions, and folds those whose arguments are constant. Paths and variables: expression_path.c. */
#include <stdio.h>

#include "mql/expression_path.h"

enum {
    FOLD_STEPS = 100000,        /* evaluation while parsing: at most about a millisecond */
    FOLD_BYTES_MAX = 16 * 1024, /* larger results are computed when they are needed */
};

mql_scope mql_scope_of(op *o, bool service) {
    return (mql_scope){.op = o, .service = service};
}

static mql_expression *node_of(mql_scope *s, mql__kind kind) {
    mql_expression *node = arena_new(s->op->arena, mql_expression);
    node->kind = kind;
    return node;
}

/* ---- folding ---- */

static bool all_constant(const mql_expression *node) {
    for (size_t i = 0; i < node->n; i++) {
        if (node->args[i] && node->args[i]->kind != MQL__CONSTANT) {
            return false;
        }
    }
    return true;
}

static bool foldable(const mql_expression *node) {
    return all_constant(node) && (node->kind != MQL__OPERATOR || !(node->operator->flags & MQL__VOLATILE));
}

static void become_constant(mql_expression *node, mql_value v) {
    node->kind = MQL__CONSTANT;
    node->constant = v;
    node->args = NULL;
    node->n = 0;
}

/* An evaluation that fails is left for later: the expression may never be evaluated. */
static void fold(mql_scope *s, mql_expression *node) {
    if (!foldable(node)) {
        return;
    }
    arena *a = s->op->arena;
    arena_mark before = arena_marked(a);
    op attempt;
    op_init(&attempt, a, s->op->now_s);
    mql_run r = {.op = &attempt, .arena = a, .steps = FOLD_STEPS, .collation = s->collation};
    mql_value v;
    if (mql_evaluate(&r, node, &v) != OK || v.bytes.n > FOLD_BYTES_MAX) {
        arena_release(a, before);
        return;
    }
    become_constant(node, v);
}

/* ---- arguments ---- */

static void have_args(mql_scope *s, mql_expression *node, size_t n) {
    node->n = n;
    node->args = arena_array(s->op->arena, const mql_expression *, n ? n : 1);
}

err mql__parse_list(mql_scope *s, mql_expression *node, mql_value argument) {
    if (argument.type != BSON_TYPE_ARRAY) {
        have_args(s, node, 1);
        return mql_expression_parse(s, argument, &node->args[0]);
    }
    doc_walk w;
    doc_element e;
    have_args(s, node, mql_length(argument));
    doc_walk_init(&w, argument.bytes);
    for (size_t i = 0; i < node->n && doc_walk_next(&w, &e); i++) {
        TRY(mql_expression_parse(s, mql_of(&e), &node->args[i]));
    }
    return OK;
}

static err check_arity(op *o, const mql__operator *row, size_t n) {
    if (row->least <= n && (n <= row->most || row->most == MQL__ANY)) {
        return OK;
    }
    if (row->least == row->most) {
        return mql_fail(o, 16020, "Expression %s takes exactly %d arguments. %zu were passed in.", row->name, row->least, n);
    }
    if (row->most == MQL__ANY) {
        return mql_fail(o, 28667, "Expression %s takes at least %d arguments, but %zu were passed in.", row->name, row->least, n);
    }
    return mql_fail(o, 28667, "Expression %s takes at least %d arguments, and at most %d, but %zu were passed in.", row->name, row->least,
                    row->most, n);
}

/* MongoDB's phrasings of an error, in pieces around the names of operator and argument. */
typedef struct phrases {
    const char *no_object;  /* after the name; the type follows if it ends with a blank */
    const char *unknown[2]; /* before the name, and between it and the argument */
    const char *missing[3]; /* the text before, between and after two names: operator and argument, or argument and operator */
    bool argument_first;
} phrases;

#define UNKNOWN_FOUND                                                                                                                      \
    { "", " found an unknown argument: " }
#define MISSING_PARAMETER                                                                                                                  \
    { "Missing '", "' parameter to ", "" }

static const phrases phrasings[] = {
    [MQL__SUPPORTS] = {" only supports an object as its argument", {"Unrecognized argument to ", ": "}, MISSING_PARAMETER, true},
    [MQL__PARAMETER] = {" only supports an object as its argument", {"Unrecognized parameter to ", ": "}, MISSING_PARAMETER, true},
    [MQL__REQUIRES] = {" requires an object as an argument, found: ", UNKNOWN_FOUND, {"", " requires '", "' to be specified"}, false},
    [MQL__SETS] = {" only supports an object as its argument", UNKNOWN_FOUND, {"", " requires '", "' to be specified"}, false},
    [MQL__FOUND] = {" only supports an object as an argument, found ", UNKNOWN_FOUND, {"", " requires an '", "' field"}, false},
    [MQL__EXPECTS] = {" expects an object of named arguments but found: ", UNKNOWN_FOUND, {"", " requires '", "' parameter"}, false},
    [MQL__CONVERTS] = {" expects an object of named arguments but found: ", UNKNOWN_FOUND, MISSING_PARAMETER, true},
};

static err refuse_no_object(op *o, const char *name, const mql__named *named, bson_type_t found) {
    const char *text = phrasings[named->phrasing].no_object;
    bool tells_type = text[strlen(text) - 1] == ' ';
    return mql_fail(o, named->no_object, "%s%s%s", name, text, tells_type ? mql_type_name(found) : "");
}

static err refuse_unknown(op *o, const char *name, const mql__named *named, slice key) {
    const phrases *p = &phrasings[named->phrasing];
    return mql_fail(o, named->unknown, "%s%s%s%.*s", p->unknown[0], name, p->unknown[1], slice_shown(key), key.p);
}

static err refuse_left_out(op *o, const char *name, const mql__named *named, size_t i) {
    const phrases *p = &phrasings[named->phrasing];
    const char *argument = named->arguments[i].name;
    return mql_fail(o, named->arguments[i].missing, "%s%s%s%s%s", p->missing[0], p->argument_first ? argument : name, p->missing[1],
                    p->argument_first ? name : argument, p->missing[2]);
}

static int position_of(const mql__named *named, slice key) {
    for (int i = 0; i < MQL__NAMED_MAX && named->arguments[i].name; i++) {
        if (slice_eq(key, slice_str(named->arguments[i].name))) {
            return i;
        }
    }
    return -1;
}

err mql__take_named(mql_scope *s, const char *name, const mql__named *named, mql_value argument, mql_value values[MQL__NAMED_MAX]) {
    doc_walk w;
    doc_element e;
    for (size_t i = 0; i < MQL__NAMED_MAX; i++) {
        values[i] = mql_missing();
    }
    if (argument.type != BSON_TYPE_DOCUMENT) {
        return refuse_no_object(s->op, name, named, argument.type);
    }
    doc_walk_init(&w, argument.bytes);
    while (doc_walk_next(&w, &e)) {
        int at = position_of(named, e.key);
        if (at < 0) {
            return refuse_unknown(s->op, name, named, e.key);
        }
        values[at] = mql_of(&e);
    }
    for (size_t i = 0; i < MQL__NAMED_MAX && named->arguments[i].name; i++) {
        if (named->arguments[i].missing && mql_is_missing(values[i])) {
            return refuse_left_out(s->op, name, named, i);
        }
    }
    return OK;
}

static size_t count_named(const mql__named *named) {
    size_t n = 0;
    while (n < MQL__NAMED_MAX && named->arguments[n].name) {
        n++;
    }
    return n;
}

err mql__parse_named(mql_scope *s, mql_expression *node, const mql__named *named, mql_value argument) {
    mql_value values[MQL__NAMED_MAX];
    TRY(mql__take_named(s, node->operator->name, named, argument, values));
    have_args(s, node, count_named(named));
    for (size_t i = 0; i < node->n; i++) {
        if (!mql_is_missing(values[i])) {
            TRY(mql_expression_parse(s, values[i], &node->args[i]));
        }
    }
    return OK;
}

/* ---- operators, arrays, objects ---- */

static err parse_arguments(mql_scope *s, mql_expression *node, mql_value argument) {
    const mql__operator *row = node->operator;
    if (row->parse) {
        return row->parse(s, node, argument);
    }
    if (row->named) {
        return mql__parse_named(s, node, row->named, argument);
    }
    TRY(mql__parse_list(s, node, argument));
    return check_arity(s->op, row, node->n);
}

static err parse_operator(mql_scope *s, slice document, const doc_element *first, const mql_expression **expression_out) {
    if (mql_length(mql_document(document)) != 1) {
        return mql_fail(s->op, 15983, "An object representing an expression must have exactly one field: %s",
                        mql__show(s->op->arena, mql_document(document)));
    }
    const mql__operator *row = mql__operator_find(first->key);
    if (!row) {
        return mql_fail(s->op, 168, "Unrecognized expression '%.*s'", slice_shown(first->key), first->key.p);
    }
    if (s->service && !(row->flags & MQL__SERVICE)) {
        return mql_fail(s->op, 168, "The expression '%s' is not supported.", row->name);
    }
    mql_expression *node = node_of(s, MQL__OPERATOR);
    node->operator= row;
    TRY(parse_arguments(s, node, mql_of(first)));
    if (node->kind == MQL__OPERATOR) {
        fold(s, node);
    }
    *expression_out = node;
    return OK;
}

static err parse_array(mql_scope *s, mql_value text, const mql_expression **expression_out) {
    mql_expression *node = node_of(s, MQL__ARRAY);
    TRY(mql__parse_list(s, node, text));
    fold(s, node);
    *expression_out = node;
    return OK;
}

static err check_new_name(mql_scope *s, mql_value text, const mql_expression *node, size_t n, slice name) {
    TRY(mql__check_field_name(s->op, name));
    for (size_t i = 0; i < n; i++) {
        if (slice_eq(node->steps[i], name)) {
            return mql_fail(s->op, 16406, "duplicate field name specified in object literal: %s", mql__show(s->op->arena, text));
        }
    }
    return OK;
}

enum { OBJECT_MEMBERS_MAX = 4096 }; /* names are compared pairwise */

static err parse_object(mql_scope *s, mql_value text, const mql_expression **expression_out) {
    mql_expression *node = node_of(s, MQL__OBJECT);
    doc_walk w;
    doc_element e;
    have_args(s, node, mql_length(text));
    if (node->n > OBJECT_MEMBERS_MAX) {
        return mql_fail(s->op, 15, "An object literal may have at most %d fields", OBJECT_MEMBERS_MAX);
    }
    slice *names = arena_array(s->op->arena, slice, node->n + 1);
    node->steps = names;
    doc_walk_init(&w, text.bytes);
    for (size_t i = 0; i < node->n && doc_walk_next(&w, &e); i++) {
        TRY(check_new_name(s, text, node, i, e.key));
        names[i] = arena_copy(s->op->arena, e.key);
        TRY(mql_expression_parse(s, mql_of(&e), &node->args[i]));
    }
    node->steps_n = node->n;
    fold(s, node);
    *expression_out = node;
    return OK;
}

static err parse_document(mql_scope *s, mql_value text, const mql_expression **expression_out) {
    doc_walk w;
    doc_element first;
    doc_walk_init(&w, text.bytes);
    if (doc_walk_next(&w, &first) && first.key.n && first.key.p[0] == '$') {
        return parse_operator(s, text.bytes, &first, expression_out);
    }
    return parse_object(s, text, expression_out);
}

static err parse_constant(mql_scope *s, mql_value text, const mql_expression **expression_out) {
    mql_expression *node = node_of(s, MQL__CONSTANT);
    if (!arena_fits(s->op->arena, text.bytes.n)) {
        return budget_error(s->op->budget);
    }
    node->constant = (mql_value){text.type, arena_copy(s->op->arena, text.bytes)};
    *expression_out = node;
    return OK;
}

static err parse_any(mql_scope *s, mql_value text, const mql_expression **expression_out) {
    slice letters = mql_is_text(text) ? mql_as_text(text) : SLICE_EMPTY;
    if (letters.n && letters.p[0] == '$') {
        mql_expression *node = node_of(s, MQL__PATH);
        *expression_out = node;
        return mql__parse_path(s, node, letters);
    }
    switch (text.type) {
    case BSON_TYPE_DOCUMENT:
        return parse_document(s, text, expression_out);
    case BSON_TYPE_ARRAY:
        return parse_array(s, text, expression_out);
    default:
        return parse_constant(s, text, expression_out);
    }
}

err mql_expression_parse(mql_scope *s, mql_value text, const mql_expression **expression_out) {
    *expression_out = NULL;
    if (s->depth == MQL_DEPTH_MAX) {
        return mql_fail(s->op, 15, "Expressions may be nested at most %d levels deep", MQL_DEPTH_MAX);
    }
    if (s->op->budget && s->op->budget->exceeded) {
        return budget_error(s->op->budget);
    }
    s->depth++;
    err e = parse_any(s, text, expression_out);
    s->depth--;
    return e;
}

/* ---- about expressions ---- */

bool mql_expression_constant(const mql_expression *e, mql_value *value_out) {
    *value_out = e->kind == MQL__CONSTANT ? e->constant : mql_missing();
    return e->kind == MQL__CONSTANT;
}

slice mql_expression_path(const mql_expression *e) {
    return e->kind == MQL__PATH && e->source == MQL__ROOT ? e->path : SLICE_EMPTY;
}

void mql_expression_paths(const mql_expression *e, void (*visit)(void *context, slice path), void *context) {
    if (e->kind == MQL__PATH && e->source == MQL__ROOT) {
        visit(context, e->path);
    }
    for (size_t i = 0; i < e->n; i++) {
        if (e->args[i]) {
            mql_expression_paths(e->args[i], visit, context);
        }
    }
}
