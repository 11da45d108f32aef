/* builder.c — builds BSON documents in a buffer. Lengths are filled in when a document is closed. */
#include "mql/value.h"

static void begin(mql_builder *b) {
    b->opened[b->depth] = b->out->n;
    b->elements[b->depth] = 0;
    buf_add(b->out, "\0\0\0\0", 4);
}

static void end(mql_builder *b) {
    buf_add_byte(b->out, 0);
    size_t start = b->opened[b->depth];
    if (buf_ok(b->out) && b->out->n - start > INT32_MAX) {
        b->out->overflow = true;
    }
    if (buf_ok(b->out)) {
        doc_store_i32(b->out->p + start, (int32_t)(b->out->n - start));
    }
}

static void add_key(mql_builder *b, bson_type_t type, slice key) {
    buf_add_byte(b->out, (char)type);
    buf_add_slice(b->out, key);
    buf_add_byte(b->out, 0);
}

/* The next position in an array, as its key. */
static void add_next_key(mql_builder *b, bson_type_t type) {
    buf_add_byte(b->out, (char)type);
    buf_add_u64(b->out, b->elements[b->depth]++);
    buf_add_byte(b->out, 0);
}

void mql_begin(mql_builder *b, buf *out) {
    b->out = out;
    b->start = out->n;
    b->depth = 0;
    begin(b);
}

mql_builder mql_build(buf *out) {
    mql_builder b;
    mql_begin(&b, out);
    return b;
}

void mql_add(mql_builder *b, slice key, mql_value v) {
    if (!mql_is_missing(v)) {
        add_key(b, v.type, key);
        buf_add_slice(b->out, v.bytes);
    }
}

void mql_add_next(mql_builder *b, mql_value v) {
    if (!mql_is_missing(v)) {
        add_next_key(b, v.type);
        buf_add_slice(b->out, v.bytes);
    }
}

void mql_add_element(mql_builder *b, const doc_element *e) {
    mql_add(b, e->key, mql_of(e));
}

static void nest(mql_builder *b) {
    if (b->depth == MQL_DEPTH_MAX) {
        b->out->overflow = true;
    } else {
        b->depth++;
        begin(b);
    }
}

void mql_open(mql_builder *b, slice key, bson_type_t type) {
    add_key(b, type, key);
    nest(b);
}

void mql_open_next(mql_builder *b, bson_type_t type) {
    add_next_key(b, type);
    nest(b);
}

void mql_close(mql_builder *b) {
    end(b);
    if (b->depth) {
        b->depth--;
    }
}

slice mql_built(mql_builder *b) {
    end(b);
    return buf_ok(b->out) ? slice_of(b->out->p + b->start, b->out->n - b->start) : SLICE_EMPTY;
}

bool mql_keep(arena *a, mql_builder *b, slice *document_out) {
    slice built = mql_built(b);
    *document_out = SLICE_EMPTY;
    if (!buf_ok(b->out) || !arena_fits(a, built.n)) {
        return false;
    }
    *document_out = arena_copy(a, built);
    return true;
}
