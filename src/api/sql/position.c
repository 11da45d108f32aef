#include "api/sql/position.h"

#include "api/sql/continuation.h"
#include "base/base64.h"
#include "base/limits.h"

/* ---- reading ---- */

/* A document whose parts are documents, too, and not too deep to be compared. */
static bool is_sound(slice bson, unsigned depth) {
    doc_walk w;
    doc_element e;
    bool good = depth <= LIMIT_JSON_DEPTH && doc_walk_init(&w, bson) && (size_t)doc_load_i32(bson.p) == bson.n;
    while (good && doc_walk_next(&w, &e)) {
        good = !doc_is_container(e.type) || is_sound(e.value, depth + 1);
    }
    return good && !w.corrupt;
}

static uint64_t number_of(slice bson, const char *name) {
    bson_iter_t it;
    return doc_find_key(bson, slice_str(name), &it) ? (uint64_t)bson_iter_as_int64(&it) : 0;
}

/* Counts are never negative, nor so large that they wrap around when rows are added. */
static bool read_count(slice bson, const char *name, uint64_t *count_out) {
    *count_out = number_of(bson, name);
    return *count_out < INT64_MAX / 2;
}

static bool read_values(arena *a, slice bson, size_t wanted, query_position *at) {
    bson_iter_t it, each;
    size_t n = 0;
    if (!doc_find_key(bson, SLICE_LIT("o"), &it)) {
        return true;
    }
    if (!BSON_ITER_HOLDS_ARRAY(&it) || !bson_iter_recurse(&it, &each)) {
        return false;
    }
    at->ordered = true;
    at->values = arena_array(a, query_value, wanted + 1);
    while (n < wanted && bson_iter_next(&each)) {
        at->values[n++] = value_of_exact(&each);
    }
    at->cut = (uint32_t)number_of(bson, "c");
    at->check = number_of(bson, "h");
    return n == wanted && wanted > 0;
}

/* What groups have come to is looked at where it is used. */
static bool read_carried(slice bson, query_position *at) {
    bson_iter_t it;
    const uint8_t *from;
    uint32_t n;
    uint64_t stage = number_of(bson, "t");
    if (stage > STAGE_PARTS) {
        return false;
    }
    at->stage = (query_stage)stage;
    if (stage && doc_find_key(bson, SLICE_LIT("m"), &it) && BSON_ITER_HOLDS_BINARY(&it)) {
        bson_iter_binary(&it, NULL, &n, &from);
        at->carried_from = slice_of(from, n);
    }
    if (stage && doc_find_key(bson, SLICE_LIT("a"), &it)) {
        query_value list = value_of_iter(&it);
        at->carried = list.type == TYPE_ARRAY ? list.bytes : SLICE_EMPTY;
        return list.type == TYPE_ARRAY;
    }
    return true;
}

static bool read_position(arena *a, slice bson, const query *q, query_position *at) {
    at->number = number_of(bson, "n");
    return read_count(bson, "i", &at->rows_of_item) && read_count(bson, "s", &at->skipped) && read_count(bson, "g", &at->given) &&
           read_count(bson, "p", &at->passed) && read_count(bson, "r", &at->row) && read_values(a, bson, query_position_values(q), at) &&
           read_carried(bson, at);
}

err sql_position_read(arena *a, slice text, const query *q, query_position *position_out, slice *rest_out) {
    *position_out = (query_position){0};
    *rest_out = text;
    if (!slice_starts(text, SLICE_LIT("QPS:"))) {
        return OK;
    }
    const char *end = memchr(text.p, ';', text.n);
    if (!end || text.n > CONTINUATION_BYTES_MAX) {
        return E_BAD_CONTINUATION;
    }
    buf bytes = buf_init(CONTINUATION_BYTES_MAX);
    bool good = base64_decode(&bytes, slice_of(text.p + 4, (size_t)(end - text.p) - 4));
    slice bson = arena_copy(a, buf_view(&bytes));
    buf_free(&bytes);
    *rest_out = slice_skip(text, (size_t)(end - text.p) + 1);
    return good && is_sound(bson, 0) && read_position(a, bson, q, position_out) ? OK : E_BAD_CONTINUATION;
}

/* ---- writing ---- */

static void write_values(bson_t *document, arena *a, size_t n, query_position at) {
    bson_t list;
    query_position_cut(a, n, &at);
    bson_append_int64(document, "r", 1, (int64_t)at.row);
    if (at.cut) {
        bson_append_int64(document, "c", 1, at.cut);
        bson_append_int64(document, "h", 1, (int64_t)at.check);
    }
    bson_append_array_begin(document, "o", 1, &list);
    for (size_t i = 0; i < n; i++) {
        value_append_exact(&list, i, &at.values[i]);
    }
    bson_append_array_end(document, &list);
}

static void write_carried(bson_t *document, const query_position *at) {
    bson_t list;
    bson_append_int32(document, "t", 1, (int32_t)at->stage);
    bson_append_binary(document, "m", 1, BSON_SUBTYPE_BINARY, (const uint8_t *)(at->carried_from.n ? at->carried_from.p : ""),
                       (uint32_t)at->carried_from.n);
    if (at->carried.n && bson_init_static(&list, (const uint8_t *)at->carried.p, at->carried.n)) {
        bson_append_array(document, "a", 1, &list);
    }
}

void sql_position_write(buf *out, arena *a, const query *q, const query_position *at) {
    if (!at->rows_of_item && !at->skipped && !at->given && !at->ordered && !at->stage) {
        return;
    }
    bson_t document = BSON_INITIALIZER;
    bson_append_int64(&document, "i", 1, (int64_t)at->rows_of_item);
    bson_append_int64(&document, "s", 1, (int64_t)at->skipped);
    bson_append_int64(&document, "g", 1, (int64_t)at->given);
    bson_append_int64(&document, "p", 1, (int64_t)at->passed);
    if (at->ordered || at->rows_of_item) {
        bson_append_int64(&document, "n", 1, (int64_t)at->number);
    }
    if (at->ordered) {
        write_values(&document, a, query_position_values(q), *at);
    }
    if (at->stage) {
        write_carried(&document, at);
    }
    buf_add_lit(out, "QPS:");
    base64_encode(out, slice_of(bson_get_data(&document), document.len));
    buf_add_byte(out, ';');
    bson_destroy(&document);
}

err sql_position_claim(query_position *at, const epk *from) {
    int order = slice_cmp(epk_view(from), at->carried_from);
    if (order < 0 && at->carried.n) { /* it is of a part of the range: and what of the rest? */
        return E_BAD_CONTINUATION;
    }
    at->carried = order == 0 ? at->carried : SLICE_EMPTY;
    at->carried_from = epk_view(from);
    return OK;
}
