/* show.c — values in error messages, shortened. */
#include <inttypes.h>
#include <stdio.h>

#include "base/hex.h"
#include "mql/show.h"

enum { SHOWN_BYTES = 160, SHOWN_DEPTH = 8 };

static void show(buf *out, mql_value v, unsigned depth);

static void show_members(buf *out, mql_value v, unsigned depth) {
    bool named = v.type == BSON_TYPE_DOCUMENT;
    doc_walk w;
    doc_element e;
    buf_add_byte(out, named ? '{' : '[');
    doc_walk_init(&w, v.bytes);
    for (bool first = true; buf_ok(out) && doc_walk_next(&w, &e); first = false) {
        buf_add_slice(out, first ? SLICE_EMPTY : SLICE_LIT(", "));
        if (named) {
            buf_addf(out, "%.*s: ", slice_shown(e.key), e.key.p);
        }
        show(out, mql_of(&e), depth + 1);
    }
    buf_add_byte(out, named ? '}' : ']');
}

static void show_number(buf *out, mql_value v) {
    int64_t integer;
    char text[BSON_DECIMAL128_STRING];
    if (v.type == BSON_TYPE_DECIMAL128) {
        bson_decimal128_t d = mql_as_decimal(v);
        bson_decimal128_to_string(&d, text);
        buf_addf(out, "%s", text);
    } else if (mql_as_integer(v, &integer)) {
        buf_add_i64(out, integer);
    } else {
        buf_addf(out, "%.6g", mql_as_double(v));
    }
}

static void show(buf *out, mql_value v, unsigned depth) {
    if (mql_is_number(v)) {
        show_number(out, v);
    } else if (mql_is_text(v)) {
        buf_addf(out, "\"%.*s\"", slice_shown(mql_as_text(v)), mql_as_text(v).p);
    } else if (doc_is_container(v.type) && depth < SHOWN_DEPTH) {
        show_members(out, v, depth);
    } else if (v.type == BSON_TYPE_BOOL) {
        buf_addf(out, "%s", mql_as_bool(v) ? "true" : "false");
    } else if (v.type == BSON_TYPE_DATE_TIME) {
        buf_addf(out, "Date(%" PRId64 ")", mql_as_date(v));
    } else if (v.type == BSON_TYPE_OID) {
        buf_addf(out, "ObjectId('");
        for (size_t i = 0; i < v.bytes.n; i++) {
            buf_addf(out, "%02x", (unsigned char)v.bytes.p[i]);
        }
        buf_addf(out, "')");
    } else {
        buf_addf(out, "%s", mql_type_name(v.type));
    }
}

const char *mql__show(arena *a, mql_value v) {
    buf out = buf_init(SHOWN_BYTES);
    show(&out, v, 0);
    slice shown = buf_ok(&out) ? buf_view(&out) : slice_of(out.p, out.n);
    slice text = arena_printf(a, "%.*s%s", slice_shown(shown), shown.p ? shown.p : "", buf_ok(&out) ? "" : "…");
    buf_free(&out);
    return arena_text(a, text);
}
