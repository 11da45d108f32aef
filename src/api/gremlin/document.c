#include "api/gremlin/document.h"

#include <math.h>

static const char *const own_members[] = {
    "id",    "label", "_isEdge",      "_vertexId", "_vertexLabel",     "_sink", "_sinkLabel", "_sinkPartition", "_rid",
    "_self", "_etag", "_attachments", "_ts",       "_isPkEdgeProperty"};

static bool is_own(slice key) {
    if (key.n && key.p[0] != '_' && key.p[0] != 'i' && key.p[0] != 'l') {
        return false;
    }
    for (size_t i = 0; i < sizeof own_members / sizeof *own_members; i++) {
        if (slice_eq(key, slice_str(own_members[i]))) {
            return true;
        }
    }
    return false;
}

/* ---- containers ---- */

slice document_key_name(const container *c) {
    return c->key.n ? c->key.paths[0].steps[0] : SLICE_EMPTY;
}

err document_check_container(op *o, const container *c) {
    slice name = document_key_name(c);
    if (!slice_eq(c->api, SLICE_LIT("sql"))) {
        return op_fail(o, E_FORBIDDEN, "The container belongs to the %.*s API; a graph is a container that the SQL API has made.",
                       slice_shown(c->api), c->api.p);
    }
    if (c->key.n > 1 || (c->key.n && c->key.paths[0].steps_n != 1) || slice_eq(name, SLICE_LIT("id")) ||
        slice_eq(name, SLICE_LIT("label"))) {
        return op_fail(o, E_BAD_REQUEST,
                       "A graph needs a container whose partition key is one property, such as /pk, other than /id and /label.");
    }
    return OK;
}

/* ---- places ---- */

static slice place_of(arena *a, const container *c, const pkey_value *value) {
    pkey key = {.n = 1, .values = {*value}};
    return c->key.n ? pkey_encoded(a, &key) : SLICE_EMPTY;
}

slice document_place(arena *a, const container *c, const document_parts *parts) {
    return place_of(a, c, &parts->key);
}

slice document_sink_place(arena *a, const container *c, const document_parts *parts) {
    return place_of(a, c, &parts->sink_key);
}

bool document_place_of(arena *a, const container *c, gremlin_value v, slice *place_out) {
    pkey key = {.n = 1};
    *place_out = SLICE_EMPTY;
    if (!c->key.n) {
        return true;
    }
    if (v.type == GREMLIN_STRING) {
        key.values[0] = (pkey_value){.type = PKEY_STRING, .text = gremlin_text(v)};
    } else if (v.type == GREMLIN_BOOLEAN) {
        key.values[0] = (pkey_value){.type = v.b ? PKEY_TRUE : PKEY_FALSE};
    } else if (gremlin_is_number(v) && member_fits(v)) {
        key.values[0] = (pkey_value){.type = PKEY_NUMBER, .number = gremlin_as_double(v)};
    } else {
        return false;
    }
    if (key.values[0].text.n > LIMIT_KEY_BYTES) {
        return false;
    }
    *place_out = pkey_encoded(a, &key);
    return true;
}

bool document_place_value(arena *a, const container *c, slice place, gremlin_value *key_out) {
    pkey key;
    size_t used;
    if (!c->key.n || !pkey_decode(a, place, 1, &key, &used)) {
        return false;
    }
    const pkey_value *v = &key.values[0];
    switch (v->type) {
    case PKEY_STRING:
        *key_out = gremlin_string(v->text);
        return true;
    case PKEY_NUMBER:
        *key_out = fabs(v->number) < 0x1p63 && v->number == trunc(v->number) ? gremlin_long((int64_t)v->number) : gremlin_double(v->number);
        return true;
    case PKEY_TRUE:
    case PKEY_FALSE:
        *key_out = gremlin_boolean(v->type == PKEY_TRUE);
        return true;
    case PKEY_NULL:
        *key_out = gremlin_null();
        return true;
    default:
        return false;
    }
}

err document_key(op *o, const container *c, slice place, slice id, item_key *key_out) {
    pkey key = {.n = 0};
    size_t used;
    if (c->key.n && !pkey_decode(o->arena, place, 1, &key, &used)) {
        return E_NOT_FOUND;
    }
    return item_check_key(o, c, &key, id, key_out);
}

bool document_id(arena *a, gremlin_value id, slice *text_out) {
    if (id.type == GREMLIN_STRING) {
        *text_out = gremlin_text(id);
        return true;
    }
    if (!gremlin_is_number(id) && id.type != GREMLIN_UUID) {
        return false;
    }
    buf text = buf_init(256);
    gremlin_show(&text, id);
    *text_out = arena_copy(a, buf_view(&text));
    buf_free(&text);
    return true;
}

/* ---- keys of properties ---- */

err document_check_key(op *o, slice key) {
    if (!key.n || memchr(key.p, '\0', key.n)) {
        return op_fail(o, E_BAD_REQUEST, "The name of a property must not be empty, and has no zero bytes.");
    }
    if (is_own(key)) {
        return op_fail(o, E_BAD_REQUEST, "A property cannot have the name '%.*s', which items use themselves.", slice_shown(key), key.p);
    }
    return OK;
}

bool document_is_flat(const container *c, slice key) {
    return slice_eq(key, SLICE_LIT("ttl")) || (c->key.n && slice_eq(key, document_key_name(c)));
}

/* ---- reading ---- */

slice document_member(slice body, const char *name) {
    doc_element e;
    return doc_find_member(body, slice_str(name), &e) && e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
}

bool document_is_edge(slice body) {
    doc_element e;
    return doc_find_member(body, SLICE_LIT("_isEdge"), &e) && e.type == BSON_TYPE_BOOL && e.value.p[0];
}

static slice text_of(const doc_element *e) {
    return e->type == BSON_TYPE_UTF8 ? doc_element_text(e) : SLICE_EMPTY;
}

static pkey_value key_of(const doc_element *e) {
    pkey_value value;
    return pkey_plain_value(e, &value) ? value : (pkey_value){.type = PKEY_UNDEFINED};
}

/* Members whose names begin with an underscore are of edges, but for the system's. */
static void take_hidden(const doc_element *e, document_parts *parts) {
    if (slice_eq(e->key, SLICE_LIT("_isEdge"))) {
        parts->is_edge = e->type == BSON_TYPE_BOOL && e->value.p[0];
    } else if (slice_eq(e->key, SLICE_LIT("_vertexId"))) {
        parts->vertex_id = text_of(e);
    } else if (slice_eq(e->key, SLICE_LIT("_vertexLabel"))) {
        parts->vertex_label = text_of(e);
    } else if (slice_eq(e->key, SLICE_LIT("_sink"))) {
        parts->sink = text_of(e);
    } else if (slice_eq(e->key, SLICE_LIT("_sinkLabel"))) {
        parts->sink_label = text_of(e);
    } else if (slice_eq(e->key, SLICE_LIT("_sinkPartition"))) {
        parts->sink_key = key_of(e);
        parts->has_sink_key = true;
    } else if (slice_eq(e->key, SLICE_LIT("_isPkEdgeProperty"))) {
        parts->shows_key = true;
    }
}

void document_take_apart(const container *c, slice body, document_parts *parts_out) {
    doc_walk w;
    doc_element e;
    slice key = document_key_name(c);
    *parts_out = (document_parts){.key.type = PKEY_UNDEFINED, .sink_key.type = PKEY_UNDEFINED};
    for (doc_walk_init(&w, body); doc_walk_next(&w, &e);) {
        if (e.key.n && e.key.p[0] == '_') {
            take_hidden(&e, parts_out);
        } else if (slice_eq(e.key, SLICE_LIT("id"))) {
            parts_out->id = text_of(&e);
        } else if (slice_eq(e.key, SLICE_LIT("label"))) {
            parts_out->label = text_of(&e);
        }
        if (key.n && slice_eq(e.key, key)) {
            parts_out->key = key_of(&e);
        }
    }
}

static bool scalar(const doc_element *e, gremlin_value *value_out) {
    int64_t number;
    switch ((int)e->type) {
    case BSON_TYPE_UTF8:
        *value_out = gremlin_string(doc_element_text(e));
        return true;
    case BSON_TYPE_INT32:
        *value_out = gremlin_int(doc_load_i32(e->value.p));
        return true;
    case BSON_TYPE_INT64:
        number = doc_load_i64(e->value.p);
        *value_out = number >= INT32_MIN && number <= INT32_MAX ? gremlin_int((int32_t)number) : gremlin_long(number);
        return true;
    case BSON_TYPE_DOUBLE:
        *value_out = gremlin_double(doc_load_double(e->value.p));
        return true;
    case BSON_TYPE_BOOL:
        *value_out = gremlin_boolean(e->value.p[0]);
        return true;
    default:
        return false;
    }
}

static void read_metas(arena *a, gremlin_property *p, slice bag) {
    doc_element metas, e;
    doc_walk w;
    gremlin_value v;
    if (!doc_find_member(bag, SLICE_LIT("_meta"), &metas) || metas.type != BSON_TYPE_DOCUMENT || !doc_walk_init(&w, metas.value)) {
        return;
    }
    while (doc_walk_next(&w, &e)) {
        if (scalar(&e, &v)) {
            gremlin_make_meta(a, p, e.key, v);
        }
    }
}

static void read_bags(arena *a, gremlin_element *v, const doc_element *member) {
    doc_walk w;
    doc_element bag, value;
    gremlin_value read;
    for (doc_walk_init(&w, member->value); doc_walk_next(&w, &bag);) {
        if (bag.type == BSON_TYPE_DOCUMENT && doc_find_member(bag.value, SLICE_LIT("_value"), &value) && scalar(&value, &read)) {
            gremlin_value id = gremlin_string(document_member(bag.value, "id"));
            read_metas(a, gremlin_make_property(a, v, id, member->key, read), bag.value);
        }
    }
}

/* The service calls a flat property of a vertex by the vertex and its name. */
void document_add_flat(arena *a, gremlin_element *e, slice key, gremlin_value v) {
    gremlin_value id = gremlin_null();
    if (!e->is_edge) {
        size_t n = e->id.n + 1 + key.n;
        char *text = arena_alloc(a, n);
        memcpy(text, e->id.p, e->id.n);
        text[e->id.n] = '|';
        memcpy(text + e->id.n + 1, key.p, key.n);
        id = gremlin_string(slice_of(text, n));
    }
    gremlin_make_property(a, e, id, key, v);
}

/* Which properties are to be read. */
typedef struct wanted_keys {
    size_t n; /* 0: all */
    const slice *keys;
} wanted_keys;

static bool is_wanted(const wanted_keys *w, slice key) {
    bool wanted = w->n == 0;
    for (size_t i = 0; i < w->n && !wanted; i++) {
        wanted = slice_eq(w->keys[i], key);
    }
    return wanted;
}

static void read_vertex(arena *a, const container *c, slice body, const wanted_keys *wanted, gremlin_element *v) {
    doc_walk w;
    doc_element e;
    gremlin_value read;
    for (doc_walk_init(&w, body); doc_walk_next(&w, &e);) {
        if (!is_wanted(wanted, e.key)) {
            continue;
        }
        if (document_is_flat(c, e.key)) {
            if (scalar(&e, &read)) {
                document_add_flat(a, v, e.key, read);
            }
        } else if (e.type == BSON_TYPE_ARRAY && !is_own(e.key)) {
            read_bags(a, v, &e);
        }
    }
}

static void read_edge(arena *a, const container *c, slice body, const wanted_keys *wanted, bool shows_key, gremlin_element *edge) {
    doc_walk w;
    doc_element e;
    gremlin_value read;
    for (doc_walk_init(&w, body); doc_walk_next(&w, &e);) {
        bool is_key = c->key.n && slice_eq(e.key, document_key_name(c));
        if (is_wanted(wanted, e.key) && !is_own(e.key) && (!is_key || shows_key) && scalar(&e, &read)) {
            document_add_flat(a, edge, e.key, read);
        }
    }
}

static gremlin_element *reference(arena *a, slice id, slice label, slice place) {
    gremlin_element *v = gremlin_make_vertex(a, gremlin_string(id), label);
    v->place = place;
    v->loaded = false;
    return v;
}

static gremlin_element *read_parts(arena *a, const container *c, slice body, const document_parts *parts, const wanted_keys *wanted) {
    if (!parts->id.n || !parts->label.n || (parts->is_edge && (!parts->vertex_id.n || !parts->sink.n))) {
        return NULL;
    }
    slice place = document_place(a, c, parts);
    if (!parts->is_edge) {
        gremlin_element *v = gremlin_make_vertex(a, gremlin_string(parts->id), parts->label);
        v->place = place;
        read_vertex(a, c, body, wanted, v);
        return v;
    }
    gremlin_element *out = reference(a, parts->vertex_id, parts->vertex_label, place);
    gremlin_element *in = reference(a, parts->sink, parts->sink_label, document_sink_place(a, c, parts));
    gremlin_element *e = gremlin_make_edge(a, gremlin_string(parts->id), parts->label, out, in);
    e->place = place;
    read_edge(a, c, body, wanted, parts->shows_key, e);
    return e;
}

/* ---- values alone ---- */

static void read_bag_values(arena *a, gremlin_element *v, const doc_element *member) {
    doc_walk w;
    doc_element bag, value;
    gremlin_value read;
    for (doc_walk_init(&w, member->value); doc_walk_next(&w, &bag);) {
        if (bag.type == BSON_TYPE_DOCUMENT && doc_find_member(bag.value, SLICE_LIT("_value"), &value) && scalar(&value, &read)) {
            (void)gremlin_make_property(a, v, gremlin_null(), member->key, read);
        }
    }
}

static void read_wanted_values(arena *a, const container *c, const doc_element *e, gremlin_element *v) {
    gremlin_value read;
    if (document_is_flat(c, e->key)) {
        if (scalar(e, &read)) {
            (void)gremlin_make_property(a, v, gremlin_null(), e->key, read);
        }
    } else if (e->type == BSON_TYPE_ARRAY && !is_own(e->key)) {
        read_bag_values(a, v, e);
    }
}

gremlin_element *document_read_values(arena *a, const container *c, slice body, const slice *keys, size_t n) {
    doc_walk w;
    doc_element e;
    bool labelled = false;
    gremlin_element *v = gremlin_make_vertex(a, gremlin_null(), SLICE_EMPTY);
    for (doc_walk_init(&w, body); doc_walk_next(&w, &e);) {
        if (e.key.n && e.key.p[0] == '_' && slice_eq(e.key, SLICE_LIT("_isEdge")) && e.type == BSON_TYPE_BOOL && e.value.p[0]) {
            return document_read_keys(a, c, body, keys, n);
        }
        labelled |= slice_eq(e.key, SLICE_LIT("label")) && text_of(&e).n;
        if (is_wanted(&(wanted_keys){n, keys}, e.key)) {
            read_wanted_values(a, c, &e, v);
        }
    }
    return labelled ? v : NULL;
}

gremlin_element *document_read_parts(arena *a, const container *c, slice body, const document_parts *parts) {
    return read_parts(a, c, body, parts, &(wanted_keys){0});
}

gremlin_element *document_read_keys(arena *a, const container *c, slice body, const slice *keys, size_t n) {
    document_parts parts;
    document_take_apart(c, body, &parts);
    return read_parts(a, c, body, &parts, &(wanted_keys){n, keys});
}

gremlin_element *document_read(arena *a, const container *c, slice body) {
    return document_read_keys(a, c, body, NULL, 0);
}
