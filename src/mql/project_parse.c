/* project_parse.c — parses projections into trees.
 *
 * A projection includes or excludes; only _id may differ. The first field that is plainly one of the two decides which; a projection of
 * _id, $slice, $elemMatch and $meta alone follows find's older rules (kind_of_rest). */
#include "base/keyed_hash.h"
#include "mql/expression_int.h"
#include "mql/match_tree.h"
#include "mql/project_int.h"

typedef enum direction { UNKNOWN, INCLUDES, EXCLUDES } direction;

typedef struct parser {
    mql_scope *scope;
    mql_project *project;
    bool find;
    direction direction;
    bool slices, elem_matches, metas;
    bool mentions_id, id_included, id_excluded; /* the field itself, or a field below it */
} parser;

static op *op_of(const parser *p) {
    return p->scope->op;
}

/* ---- the tree ---- */

/* The link in the search tree to the child of this name, or the place for it. */
static mql__field **place_of(mql__field *const *root, slice name, uint64_t hash) {
    mql__field **place = (mql__field **)(uintptr_t)root;
    while (*place) {
        int order = hash == (*place)->hash ? slice_cmp(name, (*place)->name) : hash < (*place)->hash ? -1 : 1;
        if (order == 0) {
            break;
        }
        place = order < 0 ? &(*place)->less : &(*place)->more;
    }
    return place;
}

mql__field *mql__find_field(const mql__field *parent, slice name) {
    return parent->by_name ? *place_of(&parent->by_name, name, keyed_hash_bytes(name, 0)) : NULL;
}

static mql__field *add_child(parser *p, mql__field *parent, slice name) {
    mql__field *child = arena_new(op_of(p)->arena, mql__field);
    child->name = name;
    child->hash = keyed_hash_bytes(name, 0);
    *place_of(&parent->by_name, name, child->hash) = child;
    if (parent->last) {
        parent->last->next = child;
    } else {
        parent->first = child;
    }
    parent->last = child;
    return child;
}

/* The new field at a path below `parent`. */
static err add_path(parser *p, mql__field *parent, slice path, mql__field_kind kind, mql__field **field_out) {
    slice rest = path;
    bool computes = kind == MQL__COMPUTED || kind == MQL__FIRST_MATCH;
    for (unsigned depth = 0;; depth++) {
        const char *dot = memchr(rest.p, '.', rest.n);
        slice name = slice_of(rest.p, dot ? (size_t)(dot - rest.p) : rest.n);
        TRY(mql__check_field_name(op_of(p), name));
        if (depth == MQL_DEPTH_MAX) {
            return mql_fail(op_of(p), 5984700, "FieldPath is too long");
        }
        mql__field *child = mql__find_field(parent, name);
        rest = slice_skip(rest, name.n + 1);
        if (child && (!dot || child->kind != MQL__BRANCH)) {
            return !dot ? mql_fail(op_of(p), 31250, "Path collision at %.*s", slice_shown(path), path.p)
                        : mql_fail(op_of(p), 31249, "Path collision at %.*s remaining portion %.*s", slice_shown(path), path.p,
                                   slice_shown(rest), rest.p);
        }
        child = child ? child : add_child(p, parent, name);
        child->computes |= computes;
        parent = child;
        if (!dot) {
            child->kind = kind;
            *field_out = child;
            return OK;
        }
    }
}

/* ---- fields ---- */

static err set_direction(parser *p, direction wanted, slice path) {
    if (p->direction != UNKNOWN && p->direction != wanted) {
        return wanted == INCLUDES
                   ? mql_fail(op_of(p), 31253, "Cannot do inclusion on field %.*s in exclusion projection", slice_shown(path), path.p)
                   : mql_fail(op_of(p), 31254, "Cannot do exclusion on field %.*s in inclusion projection", slice_shown(path), path.p);
    }
    p->direction = wanted;
    return OK;
}

static err parse_truth(parser *p, mql__field *parent, slice path, bool included) {
    mql__field *unused;
    bool is_id = parent == &p->project->root && slice_eq(path, SLICE_LIT("_id"));
    if (is_id) {
        p->id_included = included;
        p->id_excluded = !included;
    } else {
        TRY(set_direction(p, included ? INCLUDES : EXCLUDES, path));
    }
    return add_path(p, parent, path, included ? MQL__INCLUDE : MQL__EXCLUDE, &unused);
}

static err unknown_expression(parser *p, slice name, err e) {
    return op_of(p)->protocol_code == 168 ? mql_fail(op_of(p), 31325, "Unknown expression %.*s", slice_shown(name), name.p) : e;
}

static err parse_computed(parser *p, mql__field *parent, slice path, const doc_element *operator, mql_value value) {
    mql__field *field = NULL;
    bool meta = operator&& slice_eq(operator->key, SLICE_LIT("$meta"));
    if (p->direction == EXCLUDES && !meta) {
        return mql_fail(op_of(p), 31252, "Cannot use expression other than $meta in exclusion projection");
    }
    p->direction = meta ? p->direction : INCLUDES;
    p->metas |= meta;
    TRY(add_path(p, parent, path, MQL__COMPUTED, &field));
    err e = mql_expression_parse(p->scope, value, &field->expression);
    return e != OK && operator? unknown_expression(p, operator->key, e) : e;
}

/* ---- $slice ---- */

static int64_t to_int(mql_value v) {
    double number = mql_as_double(v);
    return number != number ? 0 : number > INT32_MAX ? INT32_MAX : number < -INT32_MAX ? -INT32_MAX : (int64_t)number;
}

static err parse_skip_limit(parser *p, mql_value pair, int64_t *skip, int64_t *limit) {
    mql_value first = mql_element_at(pair, 0), second = mql_element_at(pair, 1);
    if (mql_length(pair) != 2) {
        return mql_fail(op_of(p), 31272, "$slice array argument should be of form [skip, limit]");
    }
    if (!mql_is_number(first)) {
        return mql_fail(op_of(p), 31257, "$slice expects the skip argument to be a number, got %s", mql_type_name(first.type));
    }
    if (!mql_is_number(second)) {
        return mql_fail(op_of(p), 31258, "$slice expects the limit argument to be a number, got %s", mql_type_name(second.type));
    }
    *skip = to_int(first);
    *limit = to_int(second);
    return *limit > 0 ? OK : mql_fail(op_of(p), 31259, "$slice limit must be positive, got %lld", (long long)*limit);
}

/* {$slice: n} and {$slice: [skip, limit]}; other forms are the expression's. */
static err parse_slice(parser *p, mql__field *parent, slice path, const doc_element *operator, mql_value value) {
    mql_value argument = mql_of(operator);
    mql__field *field;
    int64_t skip = 0, limit = 0;
    bool is_pair = argument.type == BSON_TYPE_ARRAY && parse_skip_limit(p, argument, &skip, &limit) == OK;
    if (!is_pair && !mql_is_number(argument)) {
        return parse_computed(p, parent, path, operator, value);
    }
    if (!is_pair) {
        int64_t n = to_int(argument);
        skip = n < 0 ? n : 0;
        limit = n < 0 ? -n : n;
    }
    p->slices = true;
    TRY(add_path(p, parent, path, MQL__SLICE, &field));
    field->skip = skip;
    field->limit = limit;
    return OK;
}

/* ---- $elemMatch and positional ---- */

static err parse_elem_match(parser *p, mql__field *parent, slice path, const doc_element *operator, mql_value value) {
    mql__field *field = NULL;
    if (operator->type != BSON_TYPE_DOCUMENT) {
        return mql_fail(op_of(p), 31274, "elemMatch: Invalid argument, object required, but got %s", mql_type_name(operator->type));
    }
    if (p->project->positional) {
        return mql_fail(op_of(p), 31255, "Cannot specify positional operator and $elemMatch.");
    }
    if (parent != &p->project->root || memchr(path.p, '.', path.n)) {
        return mql_fail(op_of(p), 31275, "Cannot use $elemMatch projection on a nested field.");
    }
    p->elem_matches = true;
    TRY(add_path(p, parent, path, MQL__FIRST_MATCH, &field));
    return mql_match_parse_value(p->scope, value, &field->match);
}

static bool filter_mentions(const mql_node *n, slice name) {
    if (n->parts_n) {
        return slice_eq(n->parts[0], name);
    }
    for (const mql_node *child = n->first; child; child = child->next) {
        if (filter_mentions(child, name)) {
            return true;
        }
    }
    return false;
}

static err check_positional(parser *p, mql__field *parent, slice path) {
    const char *dot = memchr(path.p, '.', path.n);
    slice first = slice_of(path.p, (size_t)(dot - path.p));
    const mql_match *match = p->project->match;
    if (!p->find) {
        return mql_fail(op_of(p), 31324, "Cannot use positional projection in aggregation projection");
    }
    if (p->project->positional) {
        return mql_fail(op_of(p), 31276, "Cannot specify more than one positional projection per query.");
    }
    if (p->elem_matches) {
        return mql_fail(op_of(p), 31256, "Cannot specify positional operator and $elemMatch.");
    }
    if (parent != &p->project->root) {
        return mql_fail(op_of(p), 31394, "Cannot use positional projection inside a sub-document.");
    }
    if (!match || !filter_mentions(mql_match_root(match), first)) {
        return mql_fail(op_of(p), 31277, "Positional projection '%.*s' does not match the query document.", slice_shown(path), path.p);
    }
    return OK;
}

static void mark_positional(mql__field *at, slice path) {
    while (path.n) {
        const char *dot = memchr(path.p, '.', path.n);
        slice name = slice_of(path.p, dot ? (size_t)(dot - path.p) : path.n);
        at = mql__find_field(at, name);
        at->positional = true;
        path = slice_skip(path, name.n + 1);
    }
}

/* `path` ends with .$ */
static err parse_positional(parser *p, mql__field *parent, slice path, mql_value value) {
    slice array = slice_of(path.p, path.n - 2);
    bool is_flag = mql_is_number(value) || value.type == BSON_TYPE_BOOL;
    TRY(check_positional(p, parent, path));
    if (!is_flag || !mql_truth(value) || p->direction == EXCLUDES) {
        return mql_fail(op_of(p), 31395, "positional projection cannot be used with exclusion");
    }
    p->project->positional = true;
    TRY(parse_truth(p, parent, array, true));
    mark_positional(parent, array);
    return OK;
}

static bool is_positional(slice path) {
    return path.n > 2 && memcmp(path.p + path.n - 2, ".$", 2) == 0;
}

/* ---- documents ---- */

static err parse_fields(parser *p, mql__field *parent, slice document, unsigned depth);

static err parse_object(parser *p, mql__field *parent, slice path, mql_value value, unsigned depth) {
    doc_walk w;
    doc_element first;
    mql__field *field = NULL;
    if (!doc_walk_init(&w, value.bytes) || !doc_walk_next(&w, &first)) {
        return mql_fail(op_of(p), 51270, "An empty sub-projection is not a valid value. Found empty object at path");
    }
    if (p->find && slice_eq(first.key, SLICE_LIT("$slice"))) {
        return parse_slice(p, parent, path, &first, value);
    }
    if (slice_eq(first.key, SLICE_LIT("$elemMatch"))) {
        return p->find ? parse_elem_match(p, parent, path, &first, value)
                       : mql_fail(op_of(p), 168, "Cannot use $elemMatch in aggregation projection");
    }
    if (first.key.n && first.key.p[0] == '$') {
        return parse_computed(p, parent, path, &first, value);
    }
    mql__field *existing = memchr(path.p, '.', path.n) ? NULL : mql__find_field(parent, path);
    if (existing && existing->kind == MQL__BRANCH) {
        return parse_fields(p, existing, value.bytes, depth + 1);
    }
    TRY(add_path(p, parent, path, MQL__BRANCH, &field));
    TRY(parse_fields(p, field, value.bytes, depth + 1));
    return OK;
}

static err parse_field(parser *p, mql__field *parent, const doc_element *e, unsigned depth) {
    mql_value value = mql_of(e);
    if (e->key.n == 0) {
        return mql_fail(op_of(p), 40352, "FieldPath cannot be constructed with empty string");
    }
    if (e->key.p[e->key.n - 1] == '.') {
        return mql_fail(op_of(p), 40353, "FieldPath must not end with a '.'.");
    }
    if (is_positional(e->key)) {
        return parse_positional(p, parent, e->key, value);
    }
    if (value.type == BSON_TYPE_BOOL || mql_is_number(value)) {
        return parse_truth(p, parent, e->key, mql_truth(value));
    }
    return value.type == BSON_TYPE_DOCUMENT ? parse_object(p, parent, e->key, value, depth)
                                            : parse_computed(p, parent, e->key, NULL, value);
}

/* A branch computes if something below it does. */
static void mark_computing(mql__field *branch) {
    for (const mql__field *child = branch->first; child; child = child->next) {
        branch->computes |= child->computes;
    }
}

static err parse_fields(parser *p, mql__field *parent, slice document, unsigned depth) {
    doc_walk w;
    doc_element e;
    if (depth > MQL_DEPTH_MAX) {
        return mql_fail(op_of(p), 15, "exceeded the maximum nesting depth of a projection: %d", MQL_DEPTH_MAX);
    }
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        if (depth == 0 && (slice_eq(e.key, SLICE_LIT("_id")) || slice_starts(e.key, SLICE_LIT("_id.")))) {
            p->mentions_id = true;
        }
        TRY(parse_field(p, parent, &e, depth));
        TRY(op_of(p)->arena->budget ? budget_error(op_of(p)->arena->budget) : OK);
    }
    mark_computing(parent);
    return OK;
}

/* ---- the whole ---- */

/* Whether a projection includes or excludes if none of its fields decides it. */
static direction kind_of_rest(const parser *p) {
    if (p->slices) {
        return p->id_included ? INCLUDES : EXCLUDES;
    }
    if (p->elem_matches) {
        return INCLUDES;
    }
    if (p->metas) {
        return !p->find || p->id_included ? INCLUDES : EXCLUDES;
    }
    return p->id_included ? INCLUDES : EXCLUDES;
}

err mql_project_parse(mql_scope *s, slice projection, mql_project_kind kind, const mql_match *match, const mql_project **project_out) {
    mql_project *project = arena_new(s->op->arena, mql_project);
    parser p = {.scope = s, .project = project, .find = kind == MQL_PROJECT_FIND};
    mql__field *unused;
    *project_out = NULL;
    project->match = match;
    TRY(parse_fields(&p, &project->root, projection, 0));
    if (!project->root.first && !p.find) {
        return mql_fail(s->op, 51272, "projection specification must have at least one field");
    }
    p.direction = p.direction == UNKNOWN ? kind_of_rest(&p) : p.direction;
    project->inclusion = p.direction == INCLUDES;
    if (project->inclusion && !p.mentions_id) {
        TRY(add_path(&p, &project->root, SLICE_LIT("_id"), MQL__INCLUDE, &unused));
    }
    *project_out = project;
    return OK;
}
