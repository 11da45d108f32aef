/* Frames of direct mode. An input is what a client sends; each frame of it that is whole is decoded, carried, and answered. Whatever comes
 * of it: no path but those of the SQL API, no line break in a field, an answer that is a frame. */
#include <stdio.h>
#include <stdlib.h>

#include "api/direct/carry.h"
#include "api/sql/route.h"
#include "base/limits.h"

static void check(bool good, const char *what) {
    if (!good) {
        fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

static void check_fields(const http_request *http) {
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        for (size_t k = 0; k < http->field[i].n && i != FIELD_START_EPK && i != FIELD_END_EPK; k++) {
            char c = http->field[i].p[k];
            check(c != '\n' && c != '\r' && c != '\0', "a line break");
        }
    }
}

/* A path that was made is one; the route is told by the frame's own type. */
static void check_path(arena *a, slice path) {
    sql_route route;
    check(path.n > 1 && path.n <= LIMIT_URL_BYTES && path.p[0] == '/', "a path");
    if (sql_route_parse(a, path, &route) == OK) { /* names need not be UTF-8 */
        check(route.kind != SQL_ACCOUNT && route.kind != SQL_ADDRESSES, "a path of the resource");
    }
}

static void answer(const direct_request *q, slice body) {
    buf out = buf_init(BUF_NO_LIMIT);
    direct_answer(&out, q, &(http_answer){.status = 200, .fields = SLICE_LIT("x-ms-session-token: 0:-1#1\r\n"), .body = body});
    slice tokens = slice_of(out.p + DIRECT_HEADER_BYTES, (size_t)direct_load(out.p, 4) - DIRECT_HEADER_BYTES);
    direct_token t;
    while (tokens.n) {
        check(direct_token_take(&tokens, &t), "an answer's token");
    }
    buf_free(&out);
}

static void decode(arena *a, slice frame) {
    direct_request q;
    http_request http = {.arena = a};
    uint32_t id;
    err code = direct_request_read(a, frame, &q);
    check(code != OK || (q.identified && direct_request_find_id(frame, &id) && id == q.id), "an id");
    check(code != OK || q.payload.n <= frame.n, "a payload");
    if (code == OK && direct_carry(&q, &http) == OK) {
        check_fields(&http);
        check_path(a, http.path);
    }
    answer(&q, q.payload);
}

/* As net/frames.c finds the end of a frame. */
static bool take_frame(slice *input, slice *frame_out) {
    uint64_t n = input->n >= DIRECT_HEADER_BYTES ? direct_load(input->p, 4) : 0, before;
    if (n < DIRECT_HEADER_BYTES || n > DIRECT_HEAD_BYTES_MAX) {
        return false;
    }
    do {
        before = n;
        if (n > input->n || !direct_request_extend(slice_of(input->p, n), &n)) {
            return false;
        }
        check(n >= before, "a frame shrinks");
    } while (n > before);
    *frame_out = slice_of(input->p, n);
    *input = slice_skip(*input, n);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    arena a = arena_init();
    slice input = slice_of(n ? data : (const uint8_t *)"", n), frame;
    while (take_frame(&input, &frame)) {
        decode(&a, frame);
    }
    if (input.n) { /* what is no frame may still be asked for its id */
        uint32_t id;
        direct_request q;
        direct_request_find_id(input, &id);
        check(direct_request_read(&a, input, &q) != OK || q.identified, "an id");
    }
    arena_free(&a);
    return 0;
}
