#include "api/gremlin/members.h"

#include <math.h>
#include <stdio.h>

#include "gremlin/wire.h"

enum { LENGTH_BYTES = 4 };

static void head(buf *out, bson_type_t type, slice key) {
    buf_add_byte(out, (char)type);
    buf_add_slice(out, key);
    buf_add_byte(out, '\0');
}

static void add_i32(buf *out, int32_t number) {
    char bytes[4];
    doc_store_i32(bytes, number);
    buf_add(out, bytes, sizeof bytes);
}

static void add_i64(buf *out, int64_t number) {
    char bytes[8];
    doc_store_i64(bytes, number);
    buf_add(out, bytes, sizeof bytes);
}

/* ---- documents ---- */

size_t member_begin(buf *out) {
    size_t at = out->n;
    add_i32(out, 0);
    return at;
}

size_t member_open(buf *out, bson_type_t type, slice key) {
    head(out, type, key);
    return member_begin(out);
}

size_t member_open_at(buf *out, bson_type_t type, unsigned i) {
    char digits[16];
    int n = snprintf(digits, sizeof digits, "%u", i);
    return member_open(out, type, slice_of(digits, (size_t)n));
}

void member_close(buf *out, size_t at) {
    buf_add_byte(out, '\0');
    if (buf_ok(out) && out->n >= at + LENGTH_BYTES) {
        doc_store_i32(out->p + at, (int32_t)(out->n - at));
    }
}

/* ---- values ---- */

void member_text(buf *out, slice key, slice text) {
    head(out, BSON_TYPE_UTF8, key);
    add_i32(out, (int32_t)text.n + 1);
    buf_add_slice(out, text);
    buf_add_byte(out, '\0');
}

void member_bool(buf *out, slice key, bool truth) {
    head(out, BSON_TYPE_BOOL, key);
    buf_add_byte(out, truth);
}

void member_null(buf *out, slice key) {
    head(out, BSON_TYPE_NULL, key);
}

static void member_whole(buf *out, slice key, int64_t number) {
    if (number >= INT32_MIN && number <= INT32_MAX) {
        head(out, BSON_TYPE_INT32, key);
        add_i32(out, (int32_t)number);
    } else {
        head(out, BSON_TYPE_INT64, key);
        add_i64(out, number);
    }
}

static void member_real(buf *out, slice key, double number) {
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    head(out, BSON_TYPE_DOUBLE, key);
    add_i64(out, bits);
}

static void member_shown(buf *out, slice key, gremlin_value v) {
    buf text = buf_init(256);
    gremlin_show(&text, v);
    member_text(out, key, buf_view(&text));
    buf_free(&text);
}

bool member_fits(gremlin_value v) {
    if (gremlin_is_number(v) && !gremlin_is_whole(v)) {
        return isfinite(gremlin_as_double(v));
    }
    return gremlin_is_whole(v) || v.type == GREMLIN_BOOLEAN || v.type == GREMLIN_STRING || v.type == GREMLIN_CHAR || v.type == GREMLIN_UUID;
}

bool member_value(buf *out, slice key, gremlin_value v) {
    if (!member_fits(v)) {
        return false;
    }
    if (v.type == GREMLIN_STRING) {
        member_text(out, key, gremlin_text(v));
    } else if (v.type == GREMLIN_BOOLEAN) {
        member_bool(out, key, v.b);
    } else if (gremlin_is_whole(v)) {
        member_whole(out, key, v.i);
    } else if (gremlin_is_number(v)) {
        member_real(out, key, gremlin_as_double(v));
    } else {
        member_shown(out, key, v);
    }
    return true;
}

void member_copy(buf *out, slice key, const doc_element *e) {
    head(out, e->type, key);
    buf_add_slice(out, e->value);
}
