#include "query/value.h"

#include "base/base64.h"
#include "doc/path.h"
#include "item/foreign.h"
#include "query/value_int.h"

/* ---- from documents ---- */

query_value value_of_element(const doc_element *e) {
    switch (e->type) {
    case BSON_TYPE_UTF8:
        return value_string(doc_element_text(e));
    case BSON_TYPE_INT32:
        return value_integer(doc_load_i32(e->value.p));
    case BSON_TYPE_INT64:
        return value_integer(doc_load_i64(e->value.p));
    case BSON_TYPE_DOUBLE:
        return value_number(doc_load_double(e->value.p));
    case BSON_TYPE_BOOL:
        return value_bool(*e->value.p != 0);
    case BSON_TYPE_NULL:
        return value_null();
    case BSON_TYPE_UNDEFINED:
        return value_undefined();
    case BSON_TYPE_DOCUMENT:
        return value_document(TYPE_OBJECT, e->value);
    case BSON_TYPE_ARRAY:
        return value_document(TYPE_ARRAY, e->value);
    default:
        return (query_value){.type = TYPE_OBJECT, .extended = (uint8_t)e->type, .bytes = e->value};
    }
}

query_value value_of_iter(const bson_iter_t *it) {
    doc_element e = {.type = bson_iter_type(it)};
    if (it->d1 < it->next_off) { /* otherwise it has no bytes, like null */
        e.value = slice_of(it->raw + it->d1, it->next_off - it->d1);
    }
    return value_of_element(&e);
}

query_value value_of_item(const query_item *item) {
    return (query_value){.type = TYPE_OBJECT, .bytes = item->body, .item = item};
}

/* ---- system properties of an item ---- */

void value__rid(char text[VALUE_RID_BYTES], const query_item *item) {
    rid container = {.n = sizeof item->container_rid};
    memcpy(container.bytes, item->container_rid, sizeof item->container_rid);
    rid child = rid_child(container, RID_DOCUMENT, item->number);
    buf out = {.p = text, .cap = VALUE_RID_BYTES, .max = VALUE_RID_BYTES};
    rid_write(&out, &child);
}

void value__self(char text[VALUE_SELF_BYTES], const query_item *item) {
    buf out = {.p = text, .cap = VALUE_SELF_BYTES, .max = VALUE_SELF_BYTES};
    char child[VALUE_RID_BYTES];
    value__rid(child, item);
    buf_add_lit(&out, "dbs/");
    base64_encode_rid(&out, slice_of(item->container_rid, 4));
    buf_add_lit(&out, "/colls/");
    base64_encode_rid(&out, slice_of(item->container_rid, 8));
    buf_add_lit(&out, "/docs/");
    buf_add(&out, child, sizeof child);
    buf_add_byte(&out, '/');
}

static query_value system_rid(arena *a, const query_item *item) {
    char text[VALUE_RID_BYTES];
    value__rid(text, item);
    return value_string(arena_copy(a, slice_of(text, sizeof text)));
}

static query_value system_self(arena *a, const query_item *item) {
    char text[VALUE_SELF_BYTES];
    value__self(text, item);
    return value_string(arena_copy(a, slice_of(text, sizeof text)));
}

static query_value system_etag(arena *a, const query_item *item) {
    char text[ITEM_ETAG_BYTES + 1];
    item_etag(text, item->version, item->ts);
    return value_string(arena_copy(a, slice_of(text, ITEM_ETAG_BYTES)));
}

static query_value system_attachments(arena *a, const query_item *item) {
    (void)a;
    (void)item;
    return value_string(SLICE_LIT("attachments/"));
}

static query_value system_ts(arena *a, const query_item *item) {
    (void)a;
    return value_integer(item->ts);
}

const value__property value__system[VALUE_SYSTEM_PROPERTIES] = {
    {{"_rid", 4}, system_rid}, {{"_self", 5}, system_self}, {{"_etag", 5}, system_etag}, {{"_attachments", 12}, system_attachments},
    {{"_ts", 3}, system_ts},
};

static query_value shown_id(arena *a, const query_item *item) {
    buf text = buf_init(BUF_NO_LIMIT);
    item->shows_id->show_id(item->body, &text);
    query_value id = text.n && arena_fits(a, text.n) ? value_string(arena_copy(a, buf_view(&text))) : value_undefined();
    buf_free(&text);
    return id;
}

static bool system_member(arena *a, const query_item *item, slice name, query_value *value_out) {
    for (size_t i = 0; i < VALUE_SYSTEM_PROPERTIES; i++) {
        if (slice_eq(value__system[i].name, name)) {
            *value_out = value__system[i].make(a, item);
            return true;
        }
    }
    return false;
}

/* ---- members ---- */

slice value__key(arena *a, slice name) {
    if (name.n == 0 || !memchr(name.p, 0, name.n)) {
        return name;
    }
    char *key = arena_alloc_aligned(a, 2 * name.n, 1);
    size_t n = 0;
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == 0) {
            key[n++] = '\xC0';
            key[n++] = '\x80';
        } else {
            key[n++] = name.p[i];
        }
    }
    return slice_of(key, n);
}

query_value value_member_counted(arena *a, const query_value *v, slice name, uint64_t *looked) {
    query_value found;
    if (v->type != TYPE_OBJECT) {
        return value_undefined();
    }
    if (v->item && name.n && name.p[0] == '_' && system_member(a, v->item, name, &found)) {
        return found;
    }
    query_value in = v->extended ? value_plain(a, v) : *v;
    doc_element e;
    if (doc_find_member_counted(in.bytes, value__key(a, name), &e, looked)) {
        return value_of_element(&e);
    }
    return v->item && v->item->shows_id && slice_eq(name, SLICE_LIT("id")) ? shown_id(a, v->item) : value_undefined();
}

query_value value_member(arena *a, const query_value *v, slice name) {
    uint64_t looked = 0;
    return value_member_counted(a, v, name, &looked);
}

query_value value_element_counted(const query_value *v, int64_t index, uint64_t *looked) {
    doc_walk w;
    doc_element e;
    if (v->type != TYPE_ARRAY || index < 0 || !doc_walk_init(&w, v->bytes)) {
        return value_undefined();
    }
    for (; doc_walk_next(&w, &e); ++*looked) {
        if (index-- == 0) {
            return value_of_element(&e);
        }
    }
    return value_undefined();
}

query_value value_element(const query_value *v, int64_t index) {
    uint64_t looked = 0;
    return value_element_counted(v, index, &looked);
}

size_t value_length(const query_value *array) {
    doc_walk w;
    doc_element e;
    size_t n = 0;
    if (array->type == TYPE_ARRAY && doc_walk_init(&w, array->bytes)) {
        while (doc_walk_next(&w, &e)) {
            n++;
        }
    }
    return n;
}
