/* Paths and signatures: an input is lines, "verb, path, authorization, x-ms-date, date", each as far as it is there. */
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

static sql_key_ring *ring_of_all(void) {
    static sql_key_ring *ring;
    if (!ring) {
        ring = sql_key_ring_new();
        bool good = sql_key_ring_set(ring, SQL_KEY_PRIMARY, slice_str(sql_key_emulator)) &&
                    sql_key_ring_set(ring, SQL_KEY_SECONDARY_READ_ONLY, SLICE_LIT("cmVhZGVy"));
        assert(good);
    }
    return ring;
}

/* A signature that was accepted is that of the text, and no longer is when the link changes. */
static void check_accepted(op *o, sql_auth_request *request) {
    sql_route other = *request->route;
    sql_key key = SQL_KEY_COUNT;
    other.link = SLICE_LIT("dbs/another");
    other.link_rid = SLICE_EMPTY;
    request->route = &other;
    err code = sql_auth_check(o, ring_of_all(), request, &key);
    assert(code == E_UNAUTHORIZED && key == SQL_KEY_COUNT);
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
        sql_key key = SQL_KEY_COUNT;
        sql_auth_request request = {
            .verb = verb, .route = &route, .authorization = authorization, .x_ms_date = x_ms_date, .date = next_line(&input)};
        check_route(&route, path);
        err code = sql_auth_check(&o, ring_of_all(), &request, &key);
        assert((code == OK) == (key < SQL_KEY_COUNT));
        if (code == OK && !slice_eq(route.link, SLICE_LIT("dbs/another"))) {
            check_accepted(&o, &request);
        }
    }
    arena_free(&a);
    return 0;
}
