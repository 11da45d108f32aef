/* value_make.c — writes values into documents and as JSON. */
#include <math.h>

#include "doc/json.h"
#include "doc/number.h"
#include "item/foreign.h"
#include "query/value_int.h"

/* ---- elements ---- */

static bson_type_t number_type(const query_value *v) {
    if (v->is_integer) {
        return v->integer >= INT32_MIN && v->integer <= INT32_MAX ? BSON_TYPE_INT32 : BSON_TYPE_INT64;
    }
    return isfinite(v->number) ? BSON_TYPE_DOUBLE : BSON_TYPE_NULL;
}

static bson_type_t bson_type_of(const query_value *v) {
    static const bson_type_t types[] = {
        [TYPE_UNDEFINED] = BSON_TYPE_UNDEFINED, [TYPE_NULL] = BSON_TYPE_NULL,   [TYPE_BOOL] = BSON_TYPE_BOOL,
        [TYPE_STRING] = BSON_TYPE_UTF8,         [TYPE_ARRAY] = BSON_TYPE_ARRAY, [TYPE_OBJECT] = BSON_TYPE_DOCUMENT};
    return v->extended ? (bson_type_t)v->extended : v->type == TYPE_NUMBER ? number_type(v) : types[v->type];
}

/* State for putting whole items into a document: their system properties, made once for each item. */
typedef struct embedding {
    arena *arena;
    const query_item *item;
    query_value system[VALUE_SYSTEM_PROPERTIES];
    size_t system_bytes; /* size as BSON elements */
} embedding;

static size_t element_size(embedding *in, size_t key_n, const query_value *v);

static void embed(embedding *in, const query_item *item) {
    if (in->item == item) {
        return;
    }
    in->item = item;
    in->system_bytes = 0;
    for (size_t i = 0; i < VALUE_SYSTEM_PROPERTIES; i++) {
        in->system[i] = value__system[i].make(in->arena, item);
        in->system_bytes += element_size(in, value__system[i].name.n, &in->system[i]);
    }
}

static size_t item_size(embedding *in, const query_item *item) {
    embed(in, item);
    return item->body.n + in->system_bytes;
}

static size_t element_size(embedding *in, size_t key_n, const query_value *v) {
    size_t payload = 0;
    switch (bson_type_of(v)) {
    case BSON_TYPE_NULL:
    case BSON_TYPE_UNDEFINED:
        break;
    case BSON_TYPE_BOOL:
        payload = 1;
        break;
    case BSON_TYPE_INT32:
        payload = 4;
        break;
    case BSON_TYPE_INT64:
    case BSON_TYPE_DOUBLE:
        payload = 8;
        break;
    case BSON_TYPE_UTF8:
        payload = 4 + v->bytes.n + 1;
        break;
    default:
        payload = v->item ? item_size(in, v->item) : v->bytes.n;
    }
    return 1 + key_n + 1 + payload;
}

static char *put(char *p, slice bytes) {
    if (bytes.n) {
        memcpy(p, bytes.p, bytes.n);
    }
    return p + bytes.n;
}

static char *put_double(char *p, double number) {
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    doc_store_i64(p, bits);
    return p + 8;
}

static char *put_element(char *p, embedding *in, slice key, const query_value *v);

/* The body, then the system properties. */
static char *put_item(char *p, embedding *in, const query_item *item) {
    size_t whole = item_size(in, item);
    doc_walk w;
    doc_store_i32(p, (int32_t)whole);
    char *at = p + 4;
    if (doc_walk_init(&w, item->body)) {
        at = put(at, slice_of(w.at, (size_t)(w.end - w.at)));
    }
    for (size_t i = 0; i < VALUE_SYSTEM_PROPERTIES; i++) {
        at = put_element(at, in, value__system[i].name, &in->system[i]);
    }
    *at = 0;
    return p + whole;
}

/* Copies an array, with null for undefined. Both have no payload, so only the type byte changes. */
static char *put_without_holes(char *p, slice array) {
    doc_walk w;
    doc_element e;
    memcpy(p, array.p, array.n);
    for (doc_walk_init(&w, slice_of(p, array.n)); doc_walk_next(&w, &e);) {
        if (e.type == BSON_TYPE_UNDEFINED) {
            p[e.key.p - 1 - p] = (char)BSON_TYPE_NULL;
        }
    }
    return p + array.n;
}

static char *put_payload(char *p, embedding *in, const query_value *v, bson_type_t type) {
    switch (type) {
    case BSON_TYPE_NULL:
    case BSON_TYPE_UNDEFINED:
        return p;
    case BSON_TYPE_BOOL:
        *p = v->truth;
        return p + 1;
    case BSON_TYPE_INT32:
        doc_store_i32(p, (int32_t)v->integer);
        return p + 4;
    case BSON_TYPE_INT64:
        doc_store_i64(p, v->integer);
        return p + 8;
    case BSON_TYPE_DOUBLE:
        return put_double(p, v->number);
    case BSON_TYPE_UTF8:
        doc_store_i32(p, (int32_t)(v->bytes.n + 1));
        p = put(p + 4, v->bytes);
        *p = 0;
        return p + 1;
    default:
        return v->item ? put_item(p, in, v->item) : v->holes ? put_without_holes(p, v->bytes) : put(p, v->bytes);
    }
}

static char *put_element(char *p, embedding *in, slice key, const query_value *v) {
    bson_type_t type = bson_type_of(v);
    *p++ = (char)type;
    p = put(p, key);
    *p++ = 0;
    return put_payload(p, in, v, type);
}

/* ---- documents ---- */

/* Allocates a document whose elements take `n` bytes; NULL: it would be too large. */
static char *open_document(arena *a, size_t n, slice *document_out) {
    size_t whole = 4 + n + 1;
    if (n > VALUE_BYTES_MAX || !arena_fits(a, whole)) {
        return NULL;
    }
    char *p = arena_alloc_aligned(a, whole, 1);
    doc_store_i32(p, (int32_t)whole);
    p[whole - 1] = 0;
    *document_out = slice_of(p, whole);
    return p + 4;
}

/* The length of an array key, which is its index in decimal. */
static size_t index_size(size_t index) {
    size_t n = 1;
    for (; index >= 10; index /= 10) {
        n++;
    }
    return n;
}

query_value value_array(arena *a, const query_value *items, size_t n) {
    query_value made = {.type = TYPE_ARRAY};
    embedding in = {.arena = a};
    size_t bytes = 0;
    for (size_t i = 0; i < n && bytes <= VALUE_BYTES_MAX; i++) {
        bytes += element_size(&in, index_size(i), &items[i]);
        made.holes |= items[i].type == TYPE_UNDEFINED;
    }
    char *p = open_document(a, bytes, &made.bytes);
    if (!p) {
        return value_undefined();
    }
    for (size_t i = 0; i < n; i++) {
        char key[NUMBER_TEXT_MAX];
        p = put_element(p, &in, slice_of(key, number_write_integer(key, (int64_t)i)), &items[i]);
    }
    return made;
}

query_value value_object(arena *a, const slice *names, const query_value *items, size_t n) {
    query_value made = {.type = TYPE_OBJECT};
    embedding in = {.arena = a};
    size_t bytes = 0;
    for (size_t i = 0; i < n && bytes <= VALUE_BYTES_MAX; i++) {
        bytes += items[i].type == TYPE_UNDEFINED ? 0 : element_size(&in, value__key(a, names[i]).n, &items[i]);
    }
    char *p = open_document(a, bytes, &made.bytes);
    if (!p) {
        return value_undefined();
    }
    for (size_t i = 0; i < n; i++) {
        p = items[i].type == TYPE_UNDEFINED ? p : put_element(p, &in, value__key(a, names[i]), &items[i]);
    }
    return made;
}

/* ---- plain documents ---- */

static query_value plain_item(arena *a, const query_item *item) {
    embedding in = {.arena = a};
    size_t whole = item_size(&in, item);
    if (!arena_fits(a, whole)) {
        return value_undefined();
    }
    char *p = arena_alloc_aligned(a, whole, 1);
    put_item(p, &in, item);
    return value_document(TYPE_OBJECT, slice_of(p, whole));
}

static query_value without_holes(arena *a, const query_value *v) {
    if (!arena_fits(a, v->bytes.n)) {
        return value_undefined();
    }
    char *copy = arena_alloc_aligned(a, v->bytes.n, 1);
    put_without_holes(copy, v->bytes);
    return value_document(TYPE_ARRAY, slice_of(copy, v->bytes.n));
}

/* A document with one element. */
static slice single(arena *a, slice key, const query_value *v) {
    embedding in = {.arena = a};
    slice document = SLICE_EMPTY;
    char *p = open_document(a, element_size(&in, key.n, v), &document);
    if (p) {
        put_element(p, &in, key, v);
    }
    return document;
}

/* Writes the JSON of an array with this one element, and removes the brackets. */
static void write_extended(buf *out, const query_value *v) {
    arena a = arena_init_small();
    slice document = single(&a, SLICE_LIT("0"), v);
    size_t from = out->n;
    json_from_bson_array(out, document);
    arena_free(&a);
    if (buf_ok(out)) {
        memmove(out->p + from, out->p + from + 1, out->n - from - 2);
        out->n -= 2;
    }
}

static query_value plain_extended(arena *a, const query_value *v) {
    static const char empty[5] = {5};
    buf text = buf_init(BUF_NO_LIMIT), bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    slice bytes = slice_of(empty, sizeof empty);
    write_extended(&text, v);
    if (json_to_bson(buf_view(&text), NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT) {
        bytes = arena_copy(a, buf_view(&bson));
    }
    buf_free(&text);
    buf_free(&bson);
    return value_document(TYPE_OBJECT, bytes);
}

query_value value_plain(arena *a, const query_value *v) {
    return v->item ? plain_item(a, v->item) : v->extended ? plain_extended(a, v) : v->holes ? without_holes(a, v) : *v;
}

/* ---- appending to documents ---- */

static void append_plain(bson_t *to, slice key, const query_value *v) {
    bson_t document;
    int n = (int)key.n;
    bson_type_t type = bson_type_of(v);
    if (type == BSON_TYPE_BOOL) {
        bson_append_bool(to, key.p, n, v->truth);
    } else if (type == BSON_TYPE_INT32) {
        bson_append_int32(to, key.p, n, (int32_t)v->integer);
    } else if (type == BSON_TYPE_INT64) {
        bson_append_int64(to, key.p, n, v->integer);
    } else if (type == BSON_TYPE_DOUBLE) {
        bson_append_double(to, key.p, n, v->number);
    } else if (type == BSON_TYPE_UTF8) {
        bson_append_utf8(to, key.p, n, v->bytes.n ? v->bytes.p : "", (int)v->bytes.n);
    } else if (type == BSON_TYPE_NULL || type == BSON_TYPE_UNDEFINED) {
        bson_append_null(to, key.p, n);
    } else if (bson_init_static(&document, (const uint8_t *)v->bytes.p, v->bytes.n)) {
        (type == BSON_TYPE_ARRAY ? bson_append_array : bson_append_document)(to, key.p, n, &document);
    }
}

void value_append(bson_t *to, const char *key, int key_n, const query_value *v, bool in_array) {
    slice name = slice_of(key, key_n < 0 ? strlen(key) : (size_t)key_n);
    if (v->type == TYPE_UNDEFINED && !in_array) {
        return;
    }
    if (!v->item && !v->holes && !v->extended && (name.n == 0 || !memchr(name.p, 0, name.n))) {
        append_plain(to, name, v);
        return;
    }
    arena a = arena_init_small();
    name = value__key(&a, name);
    if (v->extended) {
        bson_t one;
        slice document = single(&a, name, v);
        if (bson_init_static(&one, (const uint8_t *)document.p, document.n)) {
            bson_concat(to, &one);
        }
    } else {
        query_value plain = value_plain(&a, v);
        append_plain(to, name, &plain);
    }
    arena_free(&a);
}

bool value_append_exact(bson_t *list, size_t index, const query_value *v) {
    char number[16];
    const char *key;
    size_t n = bson_uint32_to_string((uint32_t)index, &key, number, sizeof number);
    if (v->type == TYPE_UNDEFINED) {
        bson_append_undefined(list, key, (int)n);
    } else if (v->type == TYPE_NUMBER && !v->is_integer) { /* also if it is not finite, which would become null */
        bson_append_double(list, key, (int)n, v->number);
    } else {
        value_append(list, key, (int)n, v, true);
    }
    return !v->holes;
}

query_value value_of_exact(const bson_iter_t *it) {
    return BSON_ITER_HOLDS_UNDEFINED(it) ? value_undefined() : value_of_iter(it);
}

query_value value_keep(arena *a, const query_value *v) {
    query_value kept = *v;
    if (v->type >= TYPE_STRING && !arena_fits(a, v->bytes.n)) {
        return value_undefined();
    }
    if (v->item) {
        query_item *item = arena_alloc(a, sizeof *item);
        *item = *v->item;
        item->body = kept.bytes = arena_copy(a, v->bytes);
        kept.item = item;
    } else if (v->type >= TYPE_STRING) {
        kept.bytes = arena_copy(a, v->bytes);
    }
    return kept;
}

/* ---- JSON ---- */

static void write_item(buf *out, const query_item *item) {
    char rid_text[VALUE_RID_BYTES], self[VALUE_SELF_BYTES], etag[ITEM_ETAG_BYTES + 1];
    value__rid(rid_text, item);
    value__self(self, item);
    item_etag(etag, item->version, item->ts);
    bool comma = json_from_bson_open(out, item->body);
    if (item->shows_id) {
        item_add_shown_id(out, item->shows_id, item->body);
    }
    buf_add_slice(out, comma ? SLICE_LIT(",\"_rid\":\"") : SLICE_LIT("\"_rid\":\""));
    buf_add(out, rid_text, sizeof rid_text);
    buf_add_lit(out, "\",\"_self\":\"");
    buf_add(out, self, sizeof self);
    buf_add_lit(out, "\",\"_etag\":\"\\");
    buf_add(out, etag, ITEM_ETAG_BYTES - 1);
    buf_add_lit(out, "\\\"\",\"_attachments\":\"attachments/\",\"_ts\":");
    buf_add_u64(out, item->ts);
    buf_add_byte(out, '}');
}

static void write_array(buf *out, const query_value *v) {
    if (!v->holes) {
        json_from_bson_array(out, v->bytes);
        return;
    }
    arena a = arena_init_small();
    json_from_bson_array(out, without_holes(&a, v).bytes);
    arena_free(&a);
}

static void write_object(buf *out, const query_value *v) {
    if (v->item) {
        write_item(out, v->item);
    } else if (v->extended) {
        write_extended(out, v);
    } else {
        json_from_bson(out, v->bytes);
    }
}

static void write_number(buf *out, const query_value *v) {
    if (v->is_integer) {
        char text[NUMBER_TEXT_MAX];
        buf_add(out, text, number_write_integer(text, v->integer));
    } else {
        json_add_double(out, v->number);
    }
}

void value_write(buf *out, const query_value *v) {
    switch (v->type) {
    case TYPE_UNDEFINED:
        break;
    case TYPE_NULL:
        buf_add_lit(out, "null");
        break;
    case TYPE_BOOL:
        buf_add_slice(out, v->truth ? SLICE_LIT("true") : SLICE_LIT("false"));
        break;
    case TYPE_NUMBER:
        write_number(out, v);
        break;
    case TYPE_STRING:
        json_add_string(out, v->bytes);
        break;
    case TYPE_ARRAY:
        write_array(out, v);
        break;
    case TYPE_OBJECT:
        write_object(out, v);
        break;
    }
}
