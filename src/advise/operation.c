/* A line of a log as an operation: what it costs, and which paths it names with an equality. */
#include "advise/advise_int.h"

#include "base/date.h"
#include "query/parse.h"

static slice text_in(slice bson, const char *name) {
    doc_element e;
    return doc_find_member(bson, slice_str(name), &e) && e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
}

static double number_in(slice bson, const char *name, double otherwise) {
    doc_element e;
    bson_iter_t it;
    bool good = doc_find_member(bson, slice_str(name), &e) && doc_is_number(e.type) && doc_find_key(bson, slice_str(name), &it);
    double n = good ? bson_iter_as_double(&it) : otherwise;
    return n >= 0 && n < 1e15 ? n : otherwise;
}

static pkey_value value_of(const query_value *v) {
    switch (v->type) {
    case TYPE_STRING:
        return (pkey_value){.type = PKEY_STRING, .text = v->bytes};
    case TYPE_NUMBER:
        return (pkey_value){.type = PKEY_NUMBER, .number = v->number};
    case TYPE_BOOL:
        return (pkey_value){.type = v->truth ? PKEY_TRUE : PKEY_FALSE};
    case TYPE_NULL:
        return (pkey_value){.type = PKEY_NULL};
    default:
        return (pkey_value){.type = PKEY_UNDEFINED};
    }
}

static void add_term(advise_operation *o, slice path, pkey_value value, bool several) {
    if (o->terms_n < ADVISE_TERMS) {
        o->terms[o->terms_n++] = (advise_term){.path = path, .index = SIZE_MAX, .value = value, .several = several};
    }
}

/* ---- keys ---- */

/* {"/deviceId": "d-1"} or, if the server recorded digests, {"/deviceId": {"digest": "9F3A…"}}. */
static void read_key(advise_operation *o, slice key) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, key); doc_walk_next(&w, &e);) {
        query_value v = value_of_element(&e);
        if (e.type == BSON_TYPE_DOCUMENT) {
            v = value_string(text_in(e.value, "digest"));
        }
        add_term(o, e.key, value_of(&v), false);
    }
}

/* ---- conditions ---- */

typedef struct reading {
    arena *arena;
    advise_operation *o;
    slice alias, parameters; /* parameters: BSON, or empty */
} reading;

static bool add_steps(const reading *r, const query_expr *e, buf *path) {
    if (e->kind == EXPR_NAME) {
        return slice_eq(e->name, r->alias);
    }
    if (e->kind != EXPR_MEMBER || !add_steps(r, e->items[0], path)) {
        return false;
    }
    advise__add_path_name(path, e->name);
    return true;
}

/* c.a.b as /a/b; empty if it is something else. */
static slice path_of(const reading *r, const query_expr *e) {
    buf path = buf_init(BUF_NO_LIMIT);
    bool good = add_steps(r, e, &path) && path.n;
    char *copy = arena_alloc(r->arena, path.n + 1);
    if (good) {
        memcpy(copy, path.p, path.n);
    }
    slice text = slice_of(copy, good ? path.n : 0);
    buf_free(&path);
    return text;
}

static bool constant_of(const reading *r, const query_expr *e, pkey_value *value_out) {
    doc_walk w;
    doc_element each, value;
    if (e->kind == EXPR_LITERAL) {
        *value_out = value_of(&e->value);
        return true;
    }
    if (e->kind != EXPR_PARAMETER) {
        return false;
    }
    *value_out = (pkey_value){.type = PKEY_UNDEFINED};
    for (doc_walk_init(&w, r->parameters); r->parameters.n && doc_walk_next(&w, &each);) {
        if (each.type == BSON_TYPE_DOCUMENT && slice_eq(text_in(each.value, "name"), e->name) &&
            doc_find_member(each.value, SLICE_LIT("value"), &value)) {
            query_value v = value_of_element(&value);
            *value_out = value_of(&v);
        }
    }
    return true;
}

static void read_equality(const reading *r, const query_expr *left, const query_expr *right) {
    pkey_value value;
    slice path = path_of(r, left);
    if (path.n && constant_of(r, right, &value)) {
        add_term(r->o, path, value, false);
    }
}

static void read_list(const reading *r, const query_expr *e) {
    pkey_value value = {.type = PKEY_UNDEFINED}, unused;
    slice path = path_of(r, e->items[0]);
    for (size_t i = 1; i < e->items_n; i++) {
        if (!constant_of(r, e->items[i], i == 1 ? &value : &unused)) {
            return;
        }
    }
    if (path.n && e->items_n > 1) {
        add_term(r->o, path, value, e->items_n > 2);
    }
}

/* The depth is bounded by the parser. */
static void read_condition(const reading *r, const query_expr *e) {
    if (e->kind == EXPR_BINARY && e->op == OP_AND) {
        read_condition(r, e->items[0]);
        read_condition(r, e->items[1]);
    } else if (e->kind == EXPR_BINARY && e->op == OP_EQUAL) {
        read_equality(r, e->items[0], e->items[1]);
        read_equality(r, e->items[1], e->items[0]);
    } else if (e->kind == EXPR_IN && !e->negated) {
        read_list(r, e);
    }
}

static bool read_query(arena *a, slice bson, slice text, advise_operation *o) {
    op parsing;
    query_ast *ast;
    doc_element list;
    op_init(&parsing, a, 0);
    if (query_parse(&parsing, a, text, &ast) != OK) {
        return false;
    }
    const query_select *s = ast->select;
    reading r = {.arena = a, .o = o};
    if (doc_find_member(bson, SLICE_LIT("parameters"), &list) && list.type == BSON_TYPE_ARRAY) {
        r.parameters = list.value;
    }
    if (s->sources_n && s->where && s->sources[0].kind == SOURCE_ROOT) {
        r.alias = s->sources[0].alias;
        read_condition(&r, s->where);
    }
    return true;
}

/* ---- a line ---- */

static bool is_write(slice operation) {
    static const char *const writes[] = {"create", "upsert", "replace", "patch", "delete", "batch"};
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        if (slice_eq(operation, slice_str(writes[i]))) {
            return true;
        }
    }
    return false;
}

static double time_in(slice bson) {
    doc_element e;
    double seconds = 0;
    if (doc_find_member(bson, SLICE_LIT("time"), &e)) {
        query_value v = value_of_element(&e);
        pkey_value plain = value_of(&v);
        seconds = advise__time_of(&plain, &seconds) ? seconds : 0;
    }
    return seconds;
}

bool advise__operation_read(arena *a, slice bson, advise_operation *o, const char **why) {
    slice operation = text_in(bson, "operation"), query = text_in(bson, "query");
    doc_element key;
    *o = (advise_operation){.charge = number_in(bson, "charge", 0), .count = number_in(bson, "count", 1), .time = time_in(bson)};
    o->write = is_write(operation);
    o->point = slice_eq(operation, SLICE_LIT("read"));
    if (!operation.n && !query.n) {
        *why = "neither an \"operation\" nor a \"query\"";
        return false;
    }
    if (!o->write && !o->point && operation.n && !slice_eq(operation, SLICE_LIT("query")) && !slice_eq(operation, SLICE_LIT("feed"))) {
        *why = "\"operation\" is none of create, upsert, replace, patch, delete, batch, read, query, feed";
        return false;
    }
    if (doc_find_member(bson, SLICE_LIT("key"), &key) && key.type == BSON_TYPE_DOCUMENT) {
        read_key(o, key.value);
    }
    slice id = text_in(bson, "id");
    if (o->point && id.n) {
        add_term(o, SLICE_LIT("/id"), (pkey_value){.type = PKEY_STRING, .text = id}, false);
    }
    if (query.n && !read_query(a, bson, query, o)) {
        *why = "\"query\" is not a query";
        return false;
    }
    return true;
}
