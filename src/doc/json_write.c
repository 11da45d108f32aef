/* json_write.c — BSON to JSON text, straight into the buffer.
 *
 * The bytes may be corrupt: an object or array is closed where its bytes stop being valid, so that the text is always well-formed. */
#include <math.h>

#include "doc/json_int.h"
#include "doc/number.h"
#include "doc/scan.h"

/* ---- strings ---- */

/* Escapes one byte as JSON.stringify does. */
static void add_escaped(buf *out, unsigned char c) {
    static const char letters[32] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    static const char hex[] = "0123456789abcdef";
    if (c >= 0x20) {
        buf_add(out, (char[]){'\\', (char)c}, 2);
    } else if (letters[c]) {
        buf_add(out, (char[]){'\\', letters[c]}, 2);
    } else {
        buf_add(out, (char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
    }
}

/* `p` is at the first byte that needs escaping. */
static __attribute__((noinline)) void add_rest(buf *out, const char *p, const char *end) {
    while (p < end) {
        add_escaped(out, (unsigned char)*p++);
        const char *run = p;
        p = scan_escape(p, end);
        buf_add(out, run, (size_t)(p - run));
    }
}

static __attribute__((noinline)) void add_string_escaped(buf *out, slice text) {
    const char *end = text.p + text.n;
    const char *p = scan_escape(text.p, end);
    buf_add_byte(out, '"');
    buf_add(out, text.p, (size_t)(p - text.p));
    add_rest(out, p, end);
    buf_add_byte(out, '"');
}

void json_add_string(buf *out, slice text) {
    if (!buf_reserve(out, text.n + 2)) {
        return;
    }
    char *p = out->p + out->n;
    if (!scan_copy_plain(p + 1, text.p, text.n, false)) {
        add_string_escaped(out, text);
        return;
    }
    p[0] = '"';
    p[1 + text.n] = '"';
    out->n += text.n + 2;
}

/* In BSON keys a NUL is stored as C0 80. */
static __attribute__((noinline)) void add_key_escaped(buf *out, slice key) {
    buf_add_byte(out, '"');
    for (const char *nul; (nul = memmem(key.p, key.n, "\xC0\x80", 2)); key = slice_skip(key, (size_t)(nul + 2 - key.p))) {
        const char *p = scan_escape(key.p, nul);
        buf_add(out, key.p, (size_t)(p - key.p));
        add_rest(out, p, nul);
        buf_add_lit(out, "\\u0000");
    }
    const char *p = scan_escape(key.p, key.p + key.n);
    buf_add(out, key.p, (size_t)(p - key.p));
    add_rest(out, p, key.p + key.n);
    buf_add_lit(out, "\":");
}

static void add_key(buf *out, slice key) {
    if (!buf_reserve(out, key.n + 3)) {
        return;
    }
    char *p = out->p + out->n;
    if (!scan_copy_plain(p + 1, key.p, key.n, true)) {
        add_key_escaped(out, key);
        return;
    }
    p[0] = '"';
    memcpy(p + 1 + key.n, "\":", 2);
    out->n += key.n + 3;
}

/* ---- values ---- */

void json_add_double(buf *out, double value) {
    if (!isfinite(value)) {
        buf_add_lit(out, "null"); /* as JSON.stringify does */
        return;
    }
    char text[NUMBER_TEXT_MAX];
    buf_add(out, text, number_write_double(text, value));
}

static void add_integer(buf *out, int64_t value) {
    char text[NUMBER_TEXT_MAX];
    buf_add(out, text, number_write_integer(text, value));
}

static void add_value(buf *out, const doc_element *e, unsigned depth) {
    switch (e->type) {
    case BSON_TYPE_UTF8:
        json_add_string(out, doc_element_text(e));
        break;
    case BSON_TYPE_INT32:
        add_integer(out, doc_load_i32(e->value.p));
        break;
    case BSON_TYPE_INT64:
        add_integer(out, doc_load_i64(e->value.p));
        break;
    case BSON_TYPE_BOOL:
        buf_add_slice(out, *e->value.p ? SLICE_LIT("true") : SLICE_LIT("false"));
        break;
    case BSON_TYPE_NULL:
        buf_add_lit(out, "null");
        break;
    case BSON_TYPE_DOCUMENT:
    case BSON_TYPE_ARRAY:
        json__add_document(out, e->value, e->type == BSON_TYPE_ARRAY, depth);
        break;
    case BSON_TYPE_DOUBLE:
        if (isfinite(doc_load_double(e->value.p))) {
            json_add_double(out, doc_load_double(e->value.p));
            break;
        }
        __attribute__((fallthrough));
    default:
        json__add_extended(out, e, depth);
    }
}

/* ---- documents ---- */

/* Appends the members without braces; true if there are any. */
static bool add_members(buf *out, slice bson, bool is_array, unsigned depth) {
    doc_walk w;
    doc_element e;
    bool any = false;
    if (depth >= JSON_WRITE_DEPTH || !doc_walk_init(&w, bson)) {
        return false;
    }
    while (doc_walk_next(&w, &e)) {
        if (any) {
            buf_add_byte(out, ',');
        }
        any = true;
        if (!is_array) {
            add_key(out, e.key);
        }
        add_value(out, &e, depth + 1);
    }
    return any;
}

void json__add_document(buf *out, slice bson, bool is_array, unsigned depth) {
    buf_add_byte(out, is_array ? '[' : '{');
    add_members(out, bson, is_array, depth);
    buf_add_byte(out, is_array ? ']' : '}');
}

/* Reserves the likely size of the text, so that the buffer rarely has to grow. */
static void make_room(buf *out, size_t bson_n) {
    size_t likely = bson_n + bson_n / 4 + 64;
    if (!out->overflow && likely <= out->max - out->n) {
        buf_reserve(out, likely);
    }
}

void json_from_bson(buf *out, slice bson) {
    make_room(out, bson.n);
    json__add_document(out, bson, false, 0);
}

void json_from_bson_array(buf *out, slice bson) {
    make_room(out, bson.n);
    json__add_document(out, bson, true, 0);
}

bool json_from_bson_open(buf *out, slice bson) {
    make_room(out, bson.n);
    buf_add_byte(out, '{');
    return add_members(out, bson, false, 0);
}
