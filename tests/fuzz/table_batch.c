/* A batch of the Table API: the first line is its Content-Type, the rest its body. Refused; or each request that comes out lies within the
 * body, and its URL can be parsed. */
#include <assert.h>

#include "api/table/multipart.h"
#include "api/table/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { REQUESTS = 4 };

static void check_within(slice part, slice body) {
    assert(!part.p || (part.p >= body.p && part.p + part.n <= body.p + body.n));
}

static void check(arena *memory, const multipart_request *r, slice body) {
    table_route route;
    const slice parts[] = {r->verb, r->url, r->if_match, r->prefer, r->accept, r->method, r->content_id, r->body};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        check_within(parts[i], body);
    }
    if (table_route_parse(memory, table_path_of_url(r->url), false, &route) == TABLE_FINE && route.kind == TABLE_ENTITY) {
        assert(route.partition.p && route.row.p);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    arena memory = arena_init();
    op o;
    multipart_request requests[REQUESTS];
    size_t count = 0;
    bool changes;
    slice input = slice_of(data, n);
    const char *end = n ? memchr(data, '\n', n) : NULL;
    slice type = slice_of(input.p, end ? (size_t)(end - input.p) : n), boundary = multipart_boundary(type);
    slice body = slice_skip(input, type.n + 1);
    op_init(&o, &memory, 0);
    if (boundary.n && multipart_read(&o, body, boundary, requests, REQUESTS, &count, &changes) == TABLE_FINE) {
        assert(count > 0 && count <= REQUESTS);
        for (size_t i = 0; i < count; i++) {
            check(&memory, &requests[i], body);
        }
    }
    arena_free(&memory);
    return 0;
}
