/* Frames of direct mode as requests of the SQL API, and its answers as frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/direct/carry.h"

static arena memory;

static int setup(void **state) {
    (void)state;
    memory = arena_init();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

static void expect(slice s, const char *text) {
    assert_int_equal(s.n, strlen(text));
    assert_memory_equal(s.p, text, s.n);
}

static http_request carried(const direct_request *q, err expected) {
    http_request http = {.arena = &memory};
    assert_int_equal(direct_carry(q, &http), expected);
    return http;
}

static direct_request request(uint16_t resource, uint16_t operation) {
    direct_request q = {.resource = resource, .operation = operation};
    q.name[DIRECT_DATABASE] = SLICE_LIT("d");
    q.name[DIRECT_CONTAINER] = SLICE_LIT("c");
    q.name[DIRECT_ITEM] = SLICE_LIT("x y/%");
    q.name[DIRECT_PROCEDURE] = SLICE_LIT("p");
    q.name[DIRECT_USER] = SLICE_LIT("u");
    q.name[DIRECT_PERMISSION] = SLICE_LIT("m");
    return q;
}

static void operations_have_a_verb_and_a_path(void **state) {
    (void)state;
    static const struct {
        uint16_t resource, operation;
        const char *verb, *path;
        sql_field flag;
    } all[] = {
        {3, 0x01, "POST", "/dbs/d/colls/c/docs", FIELD_COUNT},
        {3, 0x02, "PATCH", "/dbs/d/colls/c/docs/x%20y%2F%25", FIELD_COUNT},
        {3, 0x03, "GET", "/dbs/d/colls/c/docs/x%20y%2F%25", FIELD_COUNT},
        {3, 0x04, "GET", "/dbs/d/colls/c/docs", FIELD_COUNT},
        {3, 0x05, "DELETE", "/dbs/d/colls/c/docs/x%20y%2F%25", FIELD_COUNT},
        {3, 0x06, "PUT", "/dbs/d/colls/c/docs/x%20y%2F%25", FIELD_COUNT},
        {3, 0x0F, "POST", "/dbs/d/colls/c/docs", FIELD_IS_QUERY},
        {3, 0x13, "POST", "/dbs/d/colls/c/docs", FIELD_IS_UPSERT},
        {3, 0x25, "POST", "/dbs/d/colls/c/docs", FIELD_IS_BATCH},
        {7, 0x08, "POST", "/dbs/d/colls/c/sprocs/p", FIELD_COUNT},
        {1, 0x12, "HEAD", "/dbs", FIELD_COUNT},
        {2, 0x11, "HEAD", "/dbs/d/colls/c", FIELD_COUNT},
        {2, 0x0F, "POST", "/dbs/d/colls", FIELD_IS_QUERY},
        {6, 0x03, "GET", "/dbs/d/users/u/permissions/m", FIELD_COUNT},
        {8, 0x04, "GET", "/dbs/d/colls/c/conflicts", FIELD_COUNT},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        direct_request q = request(all[i].resource, all[i].operation);
        http_request http = carried(&q, OK);
        expect(http.verb, all[i].verb);
        expect(http.path, all[i].path);
        for (unsigned f = FIELD_IS_UPSERT; f <= FIELD_IS_BATCH; f++) {
            bool flag = f == FIELD_IS_UPSERT || f == FIELD_IS_QUERY || f == FIELD_IS_QUERY_PLAN || f == FIELD_IS_BATCH;
            assert_true(!flag || (http.field[f].p != NULL) == (f == (unsigned)all[i].flag));
        }
    }
}

static void resource_ids_lead_to_the_same(void **state) {
    (void)state;
    direct_request q = {.resource = 3, .operation = 3};
    q.rid = slice_of("\1\0\0\0\x81\0\0\0\5\0\0\0\0\0\0\0", 16);
    expect(carried(&q, OK).path, "/dbs/AQAAAA==/colls/AQAAAIEAAAA=/docs/AQAAAIEAAAAFAAAAAAAAAA==");
    q = (direct_request){.resource = 3, .operation = 0x0F, .rid = slice_of("\1\0\0\0\x81\0\0\0", 8)};
    expect(carried(&q, OK).path, "/dbs/AQAAAA==/colls/AQAAAIEAAAA=/docs");
    q = (direct_request){.resource = 1, .operation = 4};
    expect(carried(&q, OK).path, "/dbs");
    q = (direct_request){.resource = 1, .operation = 3, .rid = slice_of("\1\0\0\0", 4)};
    expect(carried(&q, OK).path, "/dbs/AQAAAA==");
}

/* Names win over the id beside them, which says which container the client has in mind. */
static void names_come_before_ids(void **state) {
    (void)state;
    direct_request q = request(3, 3);
    q.rid = slice_of("\1\0\0\0\x81\0\0\0", 8);
    http_request http = carried(&q, OK);
    expect(http.path, "/dbs/d/colls/c/docs/x%20y%2F%25");
    expect(http.field[FIELD_CACHED_RID], "AQAAAIEAAAA=");
    q.field[FIELD_CACHED_RID] = SLICE_LIT("other");
    expect(carried(&q, OK).field[FIELD_CACHED_RID], "other");
}

static void what_is_no_request_is_refused(void **state) {
    (void)state;
    direct_request q = request(3, 0x77);
    carried(&q, E_METHOD);
    q = request(0x99, 3);
    carried(&q, E_METHOD);
    q = request(3, 3);
    q.name[DIRECT_ITEM] = SLICE_EMPTY;
    carried(&q, E_BAD_REQUEST);
    q = request(3, 1);
    q.name[DIRECT_CONTAINER] = SLICE_EMPTY;
    carried(&q, E_BAD_REQUEST);
    q = (direct_request){.resource = 3, .operation = 3};
    carried(&q, E_BAD_REQUEST);
    q.rid = slice_of("\1\0\0\0\x81", 5);
    carried(&q, E_BAD_REQUEST);
    q.rid = slice_of("\1\0\0\0", 4);
    carried(&q, E_BAD_REQUEST);
    static const char long_rid[300];
    q.rid = slice_of(long_rid, sizeof long_rid);
    carried(&q, E_BAD_REQUEST);
    q = request(3, 3);
    static char long_name[60000];
    memset(long_name, 'a', sizeof long_name);
    q.name[DIRECT_ITEM] = slice_of(long_name, sizeof long_name);
    carried(&q, E_BAD_REQUEST);
}

static void fields_depend_on_the_operation(void **state) {
    (void)state;
    direct_request q = request(3, 3);
    q.match = SLICE_LIT("\"1\"");
    q.field[FIELD_CONSISTENCY] = SLICE_LIT("Strong");
    http_request read = carried(&q, OK);
    expect(read.field[FIELD_IF_NONE_MATCH], "\"1\"");
    assert_null(read.field[FIELD_IF_MATCH].p);
    expect(read.field[FIELD_CONSISTENCY], "Strong");
    q.operation = 6;
    http_request replace = carried(&q, OK);
    expect(replace.field[FIELD_IF_MATCH], "\"1\"");
    assert_null(replace.field[FIELD_IF_NONE_MATCH].p);
    q.resource = 2;
    q.operation = 3;
    assert_int_equal(carried(&q, OK).field[FIELD_CONSISTENCY].n, 0);
}

static void bounds_of_feeds(void **state) {
    (void)state;
    direct_request q = request(3, 4);
    q.start_epk = SLICE_LIT("1F");
    assert_null(carried(&q, OK).field[FIELD_START_EPK].p); /* its form is unknown */
    q.feed_key = 3;
    expect(carried(&q, OK).field[FIELD_START_EPK], "1F");
    expect(carried(&q, OK).field[FIELD_END_EPK], "FF");
    q.feed_key = 2;
    q.end_epk = slice_of("\x2a\xff", 2);
    expect(carried(&q, OK).field[FIELD_START_EPK], "3146");
    expect(carried(&q, OK).field[FIELD_END_EPK], "2AFF");
    q.start_epk = SLICE_EMPTY;
    http_request http = carried(&q, OK);
    assert_non_null(http.field[FIELD_START_EPK].p);
    assert_int_equal(http.field[FIELD_START_EPK].n, 0);
}

/* ---- answers ---- */

typedef struct frame {
    uint32_t length, status;
    direct_token tokens[64];
    size_t n;
    slice payload;
} frame;

static frame parse(const buf *out) {
    frame f = {.length = (uint32_t)direct_load(out->p, 4), .status = (uint32_t)direct_load(out->p + 4, 4)};
    slice rest = slice_of(out->p + 24, f.length - 24);
    while (rest.n) {
        assert_true(f.n < 64 && direct_token_take(&rest, &f.tokens[f.n]));
        f.n++;
    }
    f.payload = slice_skip(buf_view(out), f.length);
    return f;
}

static bool has(const frame *f, uint16_t id, direct_token *token_out) {
    for (size_t i = 0; i < f->n; i++) {
        *token_out = f->tokens[i];
        if (f->tokens[i].id == id) {
            return true;
        }
    }
    return false;
}

static void expect_number(const frame *f, uint16_t id, direct_type type, uint64_t value) {
    direct_token t;
    assert_true(has(f, id, &t));
    assert_int_equal(t.type, type);
    assert_int_equal(t.number, value);
}

static void expect_text(const frame *f, uint16_t id, direct_type type, const char *text) {
    direct_token t;
    assert_true(has(f, id, &t));
    assert_int_equal(t.type, type);
    expect(t.value, text);
}

static void expect_lsn(const frame *f, uint64_t lsn) {
    static const uint16_t ids[] = {0x13, 0x1A, 0x29, 0x3A, 0x3B};
    for (size_t i = 0; i < 5; i++) {
        expect_number(f, ids[i], DIRECT_I64, lsn);
    }
}

static void answers_become_frames(void **state) {
    (void)state;
    buf out = buf_init(BUF_NO_LIMIT);
    direct_request q = {.id = 10, .activity = "0123456789abcde"};
    http_answer answer = {
        .status = 200,
        .fields = SLICE_LIT("Content-Type: application/json\r\nx-ms-request-charge: 2.75\r\netag: \"1\"\r\nx-ms-schemaversion: 1.19\r\n"
                            "x-ms-documentdb-partitionkeyrangeid: 2\r\nlsn: 7\r\nx-ms-session-token: 2:-1#7\r\nx-ms-item-lsn: 5\r\n"
                            "x-ms-alt-content-path: dbs/%C3%BC/colls/c\r\nX-MS-Continuation: a;b%c\r\n"),
        .body = SLICE_LIT("{\"id\":\"x\"}"),
    };
    direct_answer(&out, &q, &answer);
    frame f = parse(&out);
    direct_token token = {0};
    double charge = 2.75;
    assert_int_equal(f.status, 200);
    assert_memory_equal(out.p + 8, q.activity, 16);
    expect_number(&f, 0x00, DIRECT_BYTE, 1);
    assert_true(has(&f, 0x15, &token) && token.type == DIRECT_DOUBLE);
    assert_true(slice_eq(token.value, slice_of(&charge, sizeof charge)));
    expect_text(&f, 0x04, DIRECT_TEXT16, "\"1\"");
    expect_text(&f, 0x10, DIRECT_TEXT8, "1.19");
    expect_text(&f, 0x21, DIRECT_TEXT16, "2");
    expect_text(&f, 0x3E, DIRECT_TEXT16, "-1#7"); /* SDKs put the range's id before it */
    expect_text(&f, 0x17, DIRECT_TEXT16, "dbs/\xc3\xbc/colls/c");
    expect_text(&f, 0x03, DIRECT_TEXT16, "a%3Bb%25c");
    expect_number(&f, 0x32, DIRECT_I64, 5);
    expect_lsn(&f, 7);
    expect_number(&f, 0x1E, DIRECT_U32, 3);
    expect_number(&f, 0x1F, DIRECT_U32, 4);
    expect_number(&f, 0x30, DIRECT_U32, 0);
    expect_number(&f, 0x26, DIRECT_U32, 1);
    expect_number(&f, 0x35, DIRECT_U32, 10);
    assert_true(slice_eq(f.payload, slice_of("\x0a\0\0\0{\"id\":\"x\"}", 14)));
    buf_free(&out);
}

static void errors_have_an_lsn_too(void **state) {
    (void)state;
    buf out = buf_init(BUF_NO_LIMIT);
    direct_request q = {.id = 1};
    direct_token token = {0};
    direct_answer(&out, &q, &(http_answer){.status = 404, .fields = SLICE_LIT("x-ms-session-token: 0:-1#12\r\nx-ms-substatus: 1003\r\n")});
    frame f = parse(&out);
    expect_lsn(&f, 12);
    expect_number(&f, 0x1C, DIRECT_U32, 1003);
    expect_text(&f, 0x21, DIRECT_TEXT16, "0");
    expect_number(&f, 0x00, DIRECT_BYTE, 0);
    assert_int_equal(f.payload.n, 0);
    buf_clear(&out);
    direct_answer(&out, &q, &(http_answer){.status = 401, .fields = SLICE_EMPTY});
    f = parse(&out);
    expect_lsn(&f, 1); /* 0 would be none */
    assert_false(has(&f, 0x3E, &token));
    buf_clear(&out);
    direct_answer(&out, &q, &(http_answer){.status = 200, .fields = SLICE_LIT("x-ms-session-token: 0:-1#0\r\n")});
    f = parse(&out);
    expect_lsn(&f, 1);
    expect_text(&f, 0x3E, DIRECT_TEXT16, "-1#0");
    buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(operations_have_a_verb_and_a_path, setup, teardown),
        cmocka_unit_test_setup_teardown(resource_ids_lead_to_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(names_come_before_ids, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_request_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(fields_depend_on_the_operation, setup, teardown),
        cmocka_unit_test_setup_teardown(bounds_of_feeds, setup, teardown),
        cmocka_unit_test(answers_become_frames),
        cmocka_unit_test(errors_have_an_lsn_too),
    };
    return cmocka_run_group_tests_name("api/direct/carry", tests, NULL, NULL);
}
