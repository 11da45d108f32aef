/* Paths and signatures. An input has the lines verb, path, authorization, x-ms-date and date; the last ones may be missing. */
#include <assert.h>

#include "api/sql/auth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static slice next_line(slice *input) {
    const char *end = input->n ? memchr(input->p, '\n', input->n) : NULL;
    slice line = slice_of(input->p, end ? (size_t)(end - input->p) : input->n);
    *input = slice_skip(*input, line.n + 1);
    return line;
}

static void check_level(slice name, bool by_rid, const rid *r) {
    assert(by_rid == (r->n != 0));
    if (by_rid) {
        rid again;
        assert(rid_parse(name, &again) != RID_NONE && rid_equal(r, &again));
    }
}

static void check_route(const sql_route *r, slice path) {
    assert(r->link.n <= path.n);
    check_level(r->database, r->database_by_rid, &r->database_rid);
    check_level(r->container, r->container_by_rid, &r->container_rid);
    check_level(r->owner, r->owner_by_rid, &r->owner_rid);
    check_level(r->child, r->child_by_rid, &r->child_rid);
    assert(!r->container_by_rid || r->database_by_rid);
    assert(!r->database_by_rid || r->link_rid.p);
}

static access_ring *ring_of_all(void) {
    static access_ring *ring;
    if (!ring) {
        ring = access_ring_new();
        bool good = access_ring_set(ring, ACCESS_KEY_PRIMARY, slice_str(access_key_emulator)) &&
                    access_ring_set(ring, ACCESS_KEY_SECONDARY_READ_ONLY, SLICE_LIT("cmVhZGVy"));
        assert(good);
    }
    return ring;
}

/* If a signature was accepted, the same signature for another link must be rejected. */
static void check_accepted(op *o, sql_auth_request *request, slice field) {
    sql_route other = *request->route;
    access_key key = ACCESS_KEY_COUNT;
    other.link = SLICE_LIT("dbs/another");
    other.link_rid = SLICE_EMPTY;
    request->route = &other;
    err code = sql_auth_check(o, ring_of_all(), request, field, &key);
    assert(code == E_UNAUTHORIZED && key == ACCESS_KEY_COUNT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    enum { NOW = 1794734625 };
    arena a = arena_init();
    op o;
    op_init(&o, &a, NOW);
    slice input = slice_of(n ? data : (const uint8_t *)"", n);
    slice verb = next_line(&input);
    slice path = next_line(&input);
    slice authorization = next_line(&input);
    slice x_ms_date = next_line(&input);
    sql_route route;
    if (sql_route_parse(&a, path, &route) == OK) {
        access_key key = ACCESS_KEY_COUNT;
        sql_auth_request request = {.verb = verb, .route = &route, .x_ms_date = x_ms_date, .date = next_line(&input)};
        check_route(&route, path);
        err code = sql_auth_check(&o, ring_of_all(), &request, authorization, &key);
        assert((code == OK) == (key < ACCESS_KEY_COUNT));
        if (code == OK && !slice_eq(route.link, SLICE_LIT("dbs/another"))) {
            check_accepted(&o, &request, authorization);
        }
    }
    arena_free(&a);
    return 0;
}
