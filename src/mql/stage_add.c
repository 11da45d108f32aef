/* stage_add.c — $addFields and $set: computed fields at dotted paths.
 *
 * {"a.b": "$x", a: {c: 1}} becomes a tree whose leaves are expressions. The tree is applied to each document: a value on the path that is
 * not a document is replaced by one, and the tree is applied to each element of an array on the path. */
#include "mql/pipeline_int.h"
#include "mql/show.h"
#include "mql/stages.h"

typedef struct added added;
struct added {
    slice name;
    const mql_expression *value; /* NULL: it has children */
    added *first, *last, *next;
};

static added *child_named(added *node, slice name) {
    for (added *c = node->first; c; c = c->next) {
        if (slice_eq(c->name, name)) {
            return c;
        }
    }
    return NULL;
}

static added *add_child(arena *a, added *node, slice name) {
    added *c = arena_new(a, added);
    c->name = name;
    if (node->last) {
        node->last->next = c;
    } else {
        node->first = c;
    }
    node->last = c;
    return c;
}

static err conflict(op *o, slice path, slice at) {
    return mql_fail(
        o, 40176, "Invalid $addFields :: caused by :: specification contains two conflicting paths. Cannot specify both '%.*s' and '%.*s'",
        slice_shown(path), path.p, slice_shown(at), at.p);
}

/* A document whose first name is not an operator has fields of its own: {a: {c: 1}} is {"a.c": 1}. */
static bool has_fields(mql_value v) {
    doc_walk w;
    doc_element e;
    return v.type == BSON_TYPE_DOCUMENT && doc_walk_init(&w, v.bytes) && doc_walk_next(&w, &e) && !slice_starts(e.key, SLICE_LIT("$"));
}

static err parse_fields(mql_scope *s, added *node, slice fields, unsigned depth);

static err parse_field(mql_scope *s, added *node, slice path, mql_value v, unsigned depth) {
    slice rest = path;
    TRY(mql__check_path(s->op, path, 16410));
    while (rest.n) {
        const char *dot = memchr(rest.p, '.', rest.n);
        slice name = dot ? slice_of(rest.p, (size_t)(dot - rest.p)) : rest;
        added *child = child_named(node, name);
        rest = slice_skip(rest, name.n + 1);
        if (child && (child->value || (rest.n == 0 && !has_fields(v)))) {
            return conflict(s->op, path, child->name);
        }
        node = child ? child : add_child(s->op->arena, node, name);
        depth++;
    }
    if (depth > MQL_DEPTH_MAX) {
        return mql_fail(s->op, 15, "Fields of $addFields exceed the maximum nested object depth: %d", MQL_DEPTH_MAX);
    }
    return has_fields(v) ? parse_fields(s, node, v.bytes, depth) : mql_expression_parse(s, v, &node->value);
}

static err parse_fields(mql_scope *s, added *node, slice fields, unsigned depth) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, fields); doc_walk_next(&w, &e);) {
        TRY(parse_field(s, node, e.key, mql_of(&e), depth));
    }
    return mql__arena_error(s->op->arena);
}

enum { FIELDS_MAX = 5000 }; /* names are compared one by one */

err mql__parse_add_fields(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    added *root = arena_new(o->arena, added);
    if (argument.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(o, 40272, "%.*s specification stage must be an object, got %s", (int)kind->name.n, kind->name.p,
                        mql_type_name(argument.type));
    }
    size_t n = mql_length(argument);
    if (n == 0 || n > FIELDS_MAX) {
        return mql_fail(o, 40177, "Invalid %.*s :: caused by :: specification must have at least one field, and at most %d",
                        (int)kind->name.n, kind->name.p, FIELDS_MAX);
    }
    TRY(parse_fields(p->scope, root, argument.bytes, 0));
    return mql__add_stage(p, kind, argument, root);
}

bool mql__adds_field(const mql__stage *s, slice name) {
    const added *root = s->detail;
    for (const added *c = root->first; c; c = c->next) {
        if (slice_eq(c->name, name)) {
            return true;
        }
    }
    return false;
}

/* ---- applying ---- */

static err write_members(mql_run *r, mql_builder *b, const added *node, mql_value old);

/* The new value of a field or element. */
static err write_value(mql_run *r, mql_builder *b, const added *node, slice key, mql_value old, bool element) {
    mql_value v;
    if (node->value) {
        TRY(mql_evaluate(r, node->value, &v));
        if (element) {
            mql_add_next(b, v);
        } else {
            mql_add(b, key, v);
        }
        return OK;
    }
    bson_type_t type = old.type == BSON_TYPE_ARRAY ? BSON_TYPE_ARRAY : BSON_TYPE_DOCUMENT;
    if (element) {
        mql_open_next(b, type);
    } else {
        mql_open(b, key, type);
    }
    if (type == BSON_TYPE_DOCUMENT) {
        TRY(write_members(r, b, node, old));
    } else {
        doc_walk w;
        doc_element e;
        for (doc_walk_init(&w, old.bytes); doc_walk_next(&w, &e);) {
            TRY(write_value(r, b, node, SLICE_EMPTY, mql_of(&e), true));
        }
    }
    mql_close(b);
    return OK;
}

static bool has_member(mql_value document, slice name) {
    return document.type == BSON_TYPE_DOCUMENT && !mql_is_missing(mql_member(document, name));
}

static err write_members(mql_run *r, mql_builder *b, const added *node, mql_value old) {
    doc_walk w;
    doc_element e;
    TRY(mql_pay(r, 4 + old.bytes.n / 32));
    if (old.type == BSON_TYPE_DOCUMENT) {
        for (doc_walk_init(&w, old.bytes); doc_walk_next(&w, &e);) {
            const added *child = NULL;
            for (const added *c = node->first; c && !child; c = c->next) {
                child = slice_eq(c->name, e.key) ? c : NULL;
            }
            if (child) {
                TRY(write_value(r, b, child, e.key, mql_of(&e), false));
            } else {
                mql_add_element(b, &e);
            }
        }
    }
    for (const added *c = node->first; c; c = c->next) {
        if (!has_member(old, c->name)) {
            TRY(write_value(r, b, c, c->name, mql_missing(), false));
        }
    }
    return OK;
}

err mql__map_add_fields(mql_run *r, const mql__stage *s, slice document, slice *document_out) {
    buf out = mql__document_buf(r);
    mql_builder b = mql_build(&out);
    err e = write_members(r, &b, s->detail, mql_document(document));
    if (e != OK) {
        buf_free(&out);
        return e;
    }
    return mql__document_made(r, &b, document_out);
}
