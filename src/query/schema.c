#include "query/schema.h"

#include "doc/path.h"
#include "query/bind.h"

/* ---- looking up ---- */

static slice nested(slice bson, slice key, bson_type_t type) {
    doc_element e;
    return bson.n && doc_find_member(bson, key, &e) && e.type == type ? e.value : SLICE_EMPTY;
}

static slice text_of(slice bson, slice key) {
    doc_element e;
    return bson.n && doc_find_member(bson, key, &e) && e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
}

static bool is_list(const doc_element *e, slice key) {
    return e->type == BSON_TYPE_ARRAY && slice_eq(e->key, key);
}

static bool is_object(const doc_element *e, slice key) {
    return e->type == BSON_TYPE_DOCUMENT && slice_eq(e->key, key);
}

/* One walk over the settings: every query calls this, and most settings have none of these members. */
query_schema query_schema_of(slice settings) {
    doc_walk w;
    doc_element e;
    slice policy = SLICE_EMPTY;
    query_schema s = {0};
    for (doc_walk_init(&w, settings); doc_walk_next(&w, &e);) {
        if (is_list(&e, SLICE_LIT("computedProperties"))) {
            s.computed = e.value;
        } else if (is_object(&e, SLICE_LIT("vectorEmbeddingPolicy"))) {
            s.vectors = nested(e.value, SLICE_LIT("vectorEmbeddings"), BSON_TYPE_ARRAY);
        } else if (is_object(&e, SLICE_LIT("fullTextPolicy"))) {
            policy = e.value;
        }
    }
    s.texts = nested(policy, SLICE_LIT("fullTextPaths"), BSON_TYPE_ARRAY);
    search_language_of(text_of(policy, SLICE_LIT("defaultLanguage")), &s.language);
    return s;
}

bool query_schema_computed(const query_schema *s, slice name, slice *query_out) {
    doc_walk w;
    doc_element e;
    if (!s->computed.n || !doc_walk_init(&w, s->computed)) {
        return false;
    }
    while (doc_walk_next(&w, &e)) {
        if (e.type == BSON_TYPE_DOCUMENT && slice_eq(text_of(e.value, SLICE_LIT("name")), name)) {
            *query_out = text_of(e.value, SLICE_LIT("query"));
            return query_out->n > 0;
        }
    }
    return false;
}

/* ---- settings of a path ---- */

static bool is_path(slice text, const slice *steps, size_t n) {
    char first[512];
    arena a = {.at = first, .end = first + sizeof first};
    doc_path path;
    bool same = doc_path_parse(&a, text, &path) == OK && path.steps_n == n;
    for (size_t i = 0; same && i < n; i++) {
        same = slice_eq(path.steps[i], steps[i]);
    }
    arena_free(&a);
    return same;
}

static slice found_of_path(slice list, const slice *steps, size_t n, slice key) {
    doc_walk w;
    doc_element e;
    if (!list.n || !doc_walk_init(&w, list)) {
        return SLICE_EMPTY;
    }
    while (doc_walk_next(&w, &e)) {
        if (e.type == BSON_TYPE_DOCUMENT && is_path(text_of(e.value, SLICE_LIT("path")), steps, n)) {
            return text_of(e.value, key);
        }
    }
    return SLICE_EMPTY;
}

search_distance query_schema_distance(const query_schema *s, const slice *steps, size_t n) {
    search_distance distance = SEARCH_COSINE;
    search_distance_named(found_of_path(s->vectors, steps, n, SLICE_LIT("distanceFunction")), &distance);
    return distance;
}

search_language query_schema_language(const query_schema *s, const slice *steps, size_t n) {
    search_language language = s->language;
    search_language_of(found_of_path(s->texts, steps, n, SLICE_LIT("language")), &language);
    return language;
}

/* ---- checking computed properties ---- */

/* What is wrong with an expression, or NULL. */
static const char *wrong_in(const query_expr *e) {
    switch (e->kind) {
    case EXPR_SUBQUERY:
    case EXPR_EXISTS:
    case EXPR_ALL:
    case EXPR_FIRST:
    case EXPR_LAST:
        return "it has a scalar subquery, EXISTS, ALL, FIRST or LAST";
    case EXPR_PARAMETER:
        return "it has a parameter";
    case EXPR_CALL:
        if (e->udf || !e->function || !e->function->deterministic || slice_starts(slice_str(e->function->name), SLICE_LIT("ST_"))) {
            return "it calls an aggregate, a spatial function, a user-defined function, or one whose value is not always the same";
        }
        break;
    default:
        break;
    }
    for (size_t i = 0; i < e->items_n; i++) {
        const char *wrong = wrong_in(e->items[i]);
        if (wrong) {
            return wrong;
        }
    }
    return NULL;
}

static const char *wrong_with(const query_select *s) {
    if (s->sources_n != 1 || s->sources[0].kind != SOURCE_ROOT || s->sources[0].from->kind != EXPR_NAME) {
        return "its FROM must name the item, and nothing else";
    }
    if (!s->value) {
        return "it must have SELECT VALUE";
    }
    if (s->where || s->group_n || s->order_n || s->distinct || s->top.given || s->offset.given || s->limit.given) {
        return "it has WHERE, GROUP BY, ORDER BY, TOP, DISTINCT or OFFSET LIMIT";
    }
    return wrong_in(s->columns[0].expr);
}

static err check_query(op *o, slice name, slice text) {
    arena scratch = arena_init();
    query q;
    op inner;
    op_init(&inner, &scratch, o->now_s);
    err code = query_prepare(&inner, &scratch, text, NULL, 0, NULL, &q);
    const char *wrong = code == OK ? wrong_with(q.select) : NULL;
    if (code != OK) {
        code = op_fail(o, E_BAD_REQUEST, "The query of the computed property '%.*s' is invalid: %.*s", slice_shown(name), name.p,
                       (int)inner.detail_n, inner.detail);
    } else if (wrong) {
        code = op_fail(o, E_BAD_REQUEST, "The query of the computed property '%.*s' is invalid: %s.", slice_shown(name), name.p, wrong);
    }
    arena_free(&scratch);
    return code;
}

static bool is_reserved(slice name) {
    static const char *const names[] = {"id", "_rid", "_self", "_etag", "_ts", "_attachments", "_lsn", "_metadata"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (slice_eq(name, slice_str(names[i]))) {
            return true;
        }
    }
    return false;
}

static err check_property(op *o, const doc_element *e, const slice *before, size_t n) {
    slice name = e->type == BSON_TYPE_DOCUMENT ? text_of(e->value, SLICE_LIT("name")) : SLICE_EMPTY;
    slice text = e->type == BSON_TYPE_DOCUMENT ? text_of(e->value, SLICE_LIT("query")) : SLICE_EMPTY;
    if (name.n == 0 || text.n == 0) {
        return op_fail(o, E_BAD_REQUEST,
                       "One of the specified inputs is invalid: a computed property must be {\"name\": string, \"query\": string}.");
    }
    if (text.n > QUERY_COMPUTED_BYTES_MAX) {
        return op_fail(o, E_BAD_REQUEST, "The query of the computed property '%.*s' has more than %d bytes.", slice_shown(name), name.p,
                       QUERY_COMPUTED_BYTES_MAX);
    }
    if (is_reserved(name)) {
        return op_fail(o, E_BAD_REQUEST, "The computed property name '%.*s' is reserved for the system.", slice_shown(name), name.p);
    }
    for (size_t i = 0; i < n; i++) {
        if (slice_eq(before[i], name)) {
            return op_fail(o, E_BAD_REQUEST, "The computed property name '%.*s' is given more than once.", slice_shown(name), name.p);
        }
    }
    return check_query(o, name, text);
}

err query_schema_check(op *o, slice settings) {
    doc_element list, e;
    doc_walk w;
    slice names[QUERY_COMPUTED_MAX];
    size_t n = 0;
    if (!doc_find_member(settings, SLICE_LIT("computedProperties"), &list) || list.type == BSON_TYPE_NULL) {
        return OK;
    }
    if (list.type != BSON_TYPE_ARRAY || !doc_walk_init(&w, list.value)) {
        return op_fail(o, E_BAD_REQUEST, "One of the specified inputs is invalid: the computed properties must be an array.");
    }
    while (doc_walk_next(&w, &e)) {
        if (n == QUERY_COMPUTED_MAX) {
            return op_fail(o, E_BAD_REQUEST, "A container may have %d computed properties at most.", QUERY_COMPUTED_MAX);
        }
        TRY(check_property(o, &e, names, n));
        names[n++] = text_of(e.value, SLICE_LIT("name"));
    }
    return OK;
}
