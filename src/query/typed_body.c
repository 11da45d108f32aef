#include "query/typed_body.h"

#include "query/value.h"

enum { DEPTH_MAX = 128, TYPED_BYTES_MAX = 32 * 1024 * 1024 }; /* the depth is that of JSON (docs/json.md) */

static bool convert(arena *a, slice body, unsigned depth, buf *out);

static void add_head(buf *out, bson_type_t type, slice key) {
    buf_add_byte(out, (char)type);
    buf_add(out, key.p, key.n + 1);
}

static bool add_element(arena *a, const doc_element *e, unsigned depth, buf *out) {
    query_value plain = value_of_element(e), typed;
    if (!doc_is_container(e->type)) {
        buf_add_slice(out, doc_element_bytes(e));
        return true;
    }
    if (value_may_be_typed(&plain) && value_typed(a, &plain, &typed)) {
        add_head(out, (bson_type_t)typed.extended, e->key);
        buf_add_slice(out, typed.bytes);
        return true;
    }
    add_head(out, e->type, e->key);
    return convert(a, e->value, depth + 1, out);
}

static bool convert(arena *a, slice body, unsigned depth, buf *out) {
    doc_walk w;
    doc_element e;
    size_t start = out->n;
    bool good = depth <= DEPTH_MAX;
    buf_add(out, "\0\0\0\0", 4);
    for (doc_walk_init(&w, body); good && doc_walk_next(&w, &e);) {
        good = add_element(a, &e, depth, out);
    }
    buf_add_byte(out, '\0');
    if (buf_ok(out)) {
        doc_store_i32(out->p + start, (int32_t)(out->n - start));
    }
    return good && buf_ok(out);
}

err query_typed_body(op *o, slice body, slice *typed_out) {
    *typed_out = body;
    if (!memchr(body.p, '$', body.n)) {
        return OK;
    }
    buf made = buf_init_counted(TYPED_BYTES_MAX, o->budget);
    bool good = convert(o->arena, body, 0, &made) && arena_fits(o->arena, made.n);
    if (good) {
        *typed_out = arena_copy(o->arena, buf_view(&made));
    }
    err full = o->budget ? budget_error(o->budget) : OK;
    buf_free(&made);
    return good ? OK : full != OK ? full : E_TOO_LARGE;
}
