#include "api/sql/query_position.h"

#include "api/sql/continuation.h"
#include "base/base64.h"

#define WRAPPED "{\"token\":\""

/* The rest of a feed's text after the position was taken out. */
static slice feed_of(arena *a, slice rest, bool wrapped) {
    return wrapped ? arena_printf(a, WRAPPED "%.*s", (int)rest.n, rest.p) : rest;
}

err sql_position_read(arena *a, slice text, const query *q, query_position *position_out, slice *rest_out) {
    bool wrapped = slice_starts(text, SLICE_LIT(WRAPPED "QPS:"));
    *position_out = (query_position){0};
    *rest_out = text;
    text = wrapped ? slice_skip(text, sizeof WRAPPED - 1) : text;
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
    *rest_out = feed_of(a, slice_skip(text, (size_t)(end - text.p) + 1), wrapped);
    return good && query_position_parse(a, bson, query_position_values(q), position_out) ? OK : E_BAD_CONTINUATION;
}

void sql_position_write(buf *out, arena *a, const query *q, const query_position *at) {
    if (!query_position_is_begun(at)) {
        return;
    }
    bson_t document = BSON_INITIALIZER;
    query_position_append(&document, a, query_position_values(q), at);
    buf_add_lit(out, "QPS:");
    base64_encode(out, slice_of(bson_get_data(&document), document.len));
    buf_add_byte(out, ';');
    bson_destroy(&document);
}

void sql_position_join(buf *out, slice position, slice feed) {
    bool wrapped = slice_starts(feed, SLICE_LIT(WRAPPED));
    buf_add_slice(out, wrapped ? SLICE_LIT(WRAPPED) : SLICE_EMPTY);
    buf_add_slice(out, position);
    buf_add_slice(out, wrapped ? slice_skip(feed, sizeof WRAPPED - 1) : feed);
}

err sql_position_claim(query_position *at, const epk *from) {
    int order = slice_cmp(epk_view(from), at->carried_from);
    if (order < 0 && at->carried.n) { /* the state covers only a part of the range */
        return E_BAD_CONTINUATION;
    }
    at->carried = order == 0 ? at->carried : SLICE_EMPTY;
    at->carried_from = epk_view(from);
    return OK;
}
