/* expression_path.c — field paths and variables.
 *
 * "$a.b" is "$$CURRENT.a.b", and CURRENT is ROOT unless $let binds it. A path goes through arrays: on {a: [{b: 1}, {b: 2}, 3]} "$a.b" is
 * [1, 2]. Arrays in arrays are not entered, and numbers in paths are names, not positions. */
#include "mql/expression_path.h"

/* ---- names ---- */

static bool is_letter(char c, bool upper_too) {
    return (c >= 'a' && c <= 'z') || (upper_too && c >= 'A' && c <= 'Z') || (c & 0x80);
}

static err check_letters(op *o, slice name, bool upper_first) {
    if (name.n == 0) {
        return mql_fail(o, 9, "empty variable names are not allowed");
    }
    if (!is_letter(name.p[0], upper_first)) {
        return mql_fail(o, 9, "'%.*s' starts with an invalid character for a user variable name", slice_shown(name), name.p);
    }
    for (size_t i = 1; i < name.n; i++) {
        if (!is_letter(name.p[i], true) && name.p[i] != '_' && !(name.p[i] >= '0' && name.p[i] <= '9')) {
            return mql_fail(o, 9, "'%.*s' contains an invalid character for a variable name: '%c'", slice_shown(name), name.p, name.p[i]);
        }
    }
    return OK;
}

err mql__check_variable_name(op *o, slice name) {
    return slice_eq(name, SLICE_LIT("CURRENT")) ? OK : check_letters(o, name, false);
}

err mql__check_field_name(op *o, slice name) {
    if (name.n == 0) {
        return mql_fail(o, 15998, "FieldPath field names may not be empty strings.");
    }
    if (name.p[0] == '$' && !slice_eq(name, SLICE_LIT("$id")) && !slice_eq(name, SLICE_LIT("$ref")) && !slice_eq(name, SLICE_LIT("$db"))) {
        return mql_fail(o, 16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
    }
    if (memchr(name.p, 0, name.n)) {
        return mql_fail(o, 16411, "FieldPath field names may not contain '\\0'.");
    }
    if (memchr(name.p, '.', name.n)) {
        return mql_fail(o, 16412, "FieldPath field names may not contain '.'. Consider using $getField or $setField.");
    }
    return OK;
}

err mql__bind(mql_scope *s, slice name, size_t *slot_out) {
    TRY(mql__check_variable_name(s->op, name));
    size_t visible = s->names ? s->names->visible + 1 : 1;
    if (visible > MQL__VISIBLE_MAX) {
        return mql_fail(s->op, 15, "At most %d variables may be in scope", MQL__VISIBLE_MAX);
    }
    mql_name *n = arena_new(s->op->arena, mql_name);
    *n = (mql_name){arena_copy(s->op->arena, name), s->slots++, visible, s->names};
    s->names = n;
    *slot_out = n->slot;
    return OK;
}

err mql_scope_declare(mql_scope *s, slice name, size_t *slot_out) {
    *slot_out = 0;
    return mql__bind(s, name, slot_out);
}

static const mql_name *find_name(const mql_scope *s, slice name) {
    const mql_name *n = s->names;
    while (n && !slice_eq(n->name, name)) {
        n = n->next;
    }
    return n;
}

/* ---- variables ---- */

typedef struct system_variable {
    slice name;
    mql__source source;
    const char *constant; /* a constant string; NULL: none */
} system_variable;

static const system_variable system_variables[] = {
    {{"ROOT", 4}, MQL__ROOT, NULL},
    {{"CURRENT", 7}, MQL__ROOT, NULL},
    {{"NOW", 3}, MQL__NOW, NULL},
    {{"CLUSTER_TIME", 12}, MQL__CLUSTER_TIME, NULL},
    {{"USER_ROLES", 10}, MQL__USER_ROLES, NULL},
    {{"DESCEND", 7}, MQL__ROOT, "descend"},
    {{"PRUNE", 5}, MQL__ROOT, "prune"},
    {{"KEEP", 4}, MQL__ROOT, "keep"},
    {{"REMOVE", 6}, MQL__ROOT, ""},
};

static const system_variable *find_system(slice name) {
    for (size_t i = 0; i < sizeof system_variables / sizeof *system_variables; i++) {
        if (slice_eq(system_variables[i].name, name)) {
            return &system_variables[i];
        }
    }
    return NULL;
}

static void become_constant(mql_scope *s, mql_expression *node, const char *text) {
    node->kind = MQL__CONSTANT;
    node->constant = *text && node->steps_n == 0 ? mql_text(s->op->arena, slice_str(text)) : mql_missing();
}

static err resolve(mql_scope *s, mql_expression *node, slice name) {
    const mql_name *own = find_name(s, name);
    const system_variable *system = find_system(name);
    if (own) {
        node->source = MQL__SLOT;
        node->slot = own->slot;
    } else if (system && system->constant) {
        become_constant(s, node, system->constant);
    } else if (system) {
        node->source = system->source;
    } else {
        return mql_fail(s->op, 17276, "Use of undefined variable: %.*s", slice_shown(name), name.p);
    }
    return OK;
}

/* ---- parsing ---- */

static size_t count_steps(slice path) {
    size_t n = path.n ? 1 : 0;
    for (size_t i = 0; i < path.n; i++) {
        n += path.p[i] == '.';
    }
    return n;
}

static slice step_of(slice path) {
    const char *dot = memchr(path.p, '.', path.n);
    return dot ? slice_of(path.p, (size_t)(dot - path.p)) : path;
}

static err parse_steps(mql_scope *s, mql_expression *node, slice path) {
    node->steps_n = count_steps(path);
    if (node->steps_n > MQL_DEPTH_MAX) {
        return mql_fail(s->op, 15, "FieldPath is too long");
    }
    if (path.n && path.p[path.n - 1] == '.') {
        return mql_fail(s->op, 40353, "FieldPath must not end with a '.'.");
    }
    path = node->path = arena_copy(s->op->arena, path);
    slice *steps = arena_array(s->op->arena, slice, node->steps_n + 1);
    for (size_t i = 0; i < node->steps_n; i++) {
        steps[i] = step_of(path);
        TRY(mql__check_field_name(s->op, steps[i]));
        path = slice_skip(path, steps[i].n + 1);
    }
    node->steps = steps;
    return OK;
}

err mql__parse_path(mql_scope *s, mql_expression *node, slice text) {
    if (text.n < 2) {
        return mql_fail(s->op, 16872, "'$' by itself is not a valid FieldPath");
    }
    if (memchr(text.p, 0, text.n)) {
        return mql_fail(s->op, 16411, "FieldPath field names may not contain '\\0'.");
    }
    if (text.p[1] != '$') {
        TRY(parse_steps(s, node, slice_skip(text, 1)));
        return resolve(s, node, SLICE_LIT("CURRENT"));
    }
    slice name = step_of(slice_skip(text, 2));
    TRY(check_letters(s->op, name, true));
    slice rest = slice_skip(text, 2 + name.n);
    if (rest.n == 1) {
        return mql_fail(s->op, 40353, "FieldPath must not end with a '.'.");
    }
    TRY(parse_steps(s, node, slice_skip(rest, 1)));
    return resolve(s, node, name);
}

/* ---- evaluation ---- */

static err step_into(mql_run *r, const mql_expression *e, size_t at, mql_value v, mql_value *value_out);

static err through_array(mql_run *r, const mql_expression *e, size_t at, mql_value array, mql_value *value_out) {
    mql__maker m = mql__make(r);
    doc_walk w;
    doc_element element;
    err bad = OK;
    doc_walk_init(&w, array.bytes);
    while (bad == OK && doc_walk_next(&w, &element)) {
        mql_value v = mql_missing();
        if (element.type == BSON_TYPE_DOCUMENT) {
            bad = step_into(r, e, at, mql_of(&element), &v);
        }
        mql__make_next(&m, v);
    }
    return mql__made(r, &m, BSON_TYPE_ARRAY, bad, value_out);
}

static err step_into(mql_run *r, const mql_expression *e, size_t at, mql_value v, mql_value *value_out) {
    *value_out = mql_missing();
    while (at < e->steps_n && v.type == BSON_TYPE_DOCUMENT) {
        TRY(mql_pay(r, mql__reading(v)));
        v = mql_member(v, e->steps[at++]);
    }
    if (at == e->steps_n) {
        *value_out = v;
        return OK;
    }
    return v.type == BSON_TYPE_ARRAY ? through_array(r, e, at, v, value_out) : OK;
}

static err source_of(mql_run *r, const mql_expression *e, mql_value *value_out) {
    switch (e->source) {
    case MQL__SLOT:
        *value_out = r->variables[e->slot];
        return OK;
    case MQL__NOW:
        *value_out = mql_date(r->arena, r->now_ms);
        return OK;
    case MQL__CLUSTER_TIME:
        *value_out = r->cluster_time;
        return mql_is_missing(*value_out) ? mql_fail(r->op, 51144, "Builtin variable '$$CLUSTER_TIME' is not available") : OK;
    case MQL__USER_ROLES:
        *value_out = r->user_roles;
        return mql_is_missing(*value_out) ? mql_fail(r->op, 51144, "Builtin variable '$$USER_ROLES' is not available") : OK;
    default:
        *value_out = r->root;
        return OK;
    }
}

err mql__evaluate_path(mql_run *r, const mql_expression *e, mql_value *value_out) {
    mql_value v;
    TRY(source_of(r, e, &v));
    return step_into(r, e, 0, v, value_out);
}
