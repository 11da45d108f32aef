/* Batches as HybridRow records: bytes in, BSON out, and results as bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api/sql/batch_rows.h"
#include "base/crc32.h"

#define SEGMENT "\x81\xF0\xD8\xFF\x7F\x01\x0A\x00\x00\x00"
#define RECORD "\x81\xF1\xD8\xFF\x7F"
#define OPERATION "\x81\x70\x54\xE1\x7F"
#define ROW_MAX 200

static void add_record(buf *body, slice row) {
    uint32_t crc = crc32_of(row);
    buf_add_lit(body, RECORD);
    for (unsigned i = 0; i < 4; i++) {
        buf_add_byte(body, (char)(row.n >> 8 * i));
    }
    for (unsigned i = 0; i < 4; i++) {
        buf_add_byte(body, (char)(crc >> 8 * i));
    }
    buf_add_slice(body, row);
}

static err read_rows(slice body, size_t max, char *text, json_error *why) {
    buf bson = buf_init(max), json = buf_init(BUF_NO_LIMIT);
    err code = sql_rows_read(body, &bson, why);
    assert_true(code == OK || (bson.n == 0 && buf_ok(&bson)));
    if (code == OK) {
        json_from_bson_array(&json, buf_view(&bson));
        assert_true(json.n < ROW_MAX * 2);
        memcpy(text, json.p, json.n);
    }
    text[json.n] = 0;
    buf_free(&json);
    buf_free(&bson);
    return code;
}

static void checksum(void **state) {
    (void)state;
    assert_int_equal(crc32_of(SLICE_LIT("123456789")), 0xCBF43926);
    assert_int_equal(crc32_of(SLICE_EMPTY), 0);
}

static buf body_of_two(void) {
    buf body = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&body, SEGMENT);
    /* Create, key and body present; then Replace with an id, a condition and no wish for a body */
    add_record(&body, SLICE_LIT(OPERATION "\x47\x00\x00\x00\x00\x02\x00\x00\x00\x05[\"a\"]\x0A{\"id\":\"x\"}"));
    add_record(&body, SLICE_LIT(OPERATION "\x53\x05\x00\x00\x00\x02\x00\x00\x00\x01y\x02{}\x14\x09\x02\"e\x03\x0C"));
    return body;
}

static void operations_become_bson(void **state) {
    (void)state;
    char text[ROW_MAX * 2];
    json_error why;
    buf body = body_of_two();
    assert_int_equal(read_rows(buf_view(&body), BUF_NO_LIMIT, text, &why), OK);
    assert_string_equal(text, "[{\"operationType\":\"Create\",\"partitionKey\":\"[\\\"a\\\"]\",\"resourceBody\":{\"id\":\"x\"}},"
                              "{\"operationType\":\"Replace\",\"id\":\"y\",\"ifMatch\":\"\\\"e\",\"minimalReturnPreference\":true,"
                              "\"resourceBody\":{}}]");
    buf_free(&body);
}

/* Every prefix but that of whole records is refused, and so is every other byte where bytes matter. */
static void damage_is_refused(void **state) {
    (void)state;
    char text[ROW_MAX * 2];
    buf body = body_of_two();
    size_t first = sizeof SEGMENT - 1, second = first + 13 + 31;
    for (size_t n = 0; n < body.n; n++) {
        json_error why = {0};
        err code = read_rows(slice_of(body.p, n), BUF_NO_LIMIT, text, &why);
        assert_int_equal(code, n == first || n == second ? OK : E_BAD_JSON);
        assert_true(code == OK || (why.reason && why.offset <= n));
    }
    for (size_t i = first; i < body.n; i++) {
        body.p[i] ^= 0x10;
        assert_int_equal(read_rows(buf_view(&body), BUF_NO_LIMIT, text, NULL), E_BAD_JSON);
        body.p[i] ^= 0x10;
    }
    buf_free(&body);
}

static void limits_hold(void **state) {
    (void)state;
    char text[ROW_MAX * 2];
    buf body = body_of_two();
    for (size_t max = 0; max < 100; max++) {
        assert_int_equal(read_rows(buf_view(&body), max, text, NULL), E_TOO_LARGE);
    }
    buf_free(&body);
}

static void results_become_rows(void **state) {
    (void)state;
    buf out = buf_init(BUF_NO_LIMIT), wanted = buf_init(BUF_NO_LIMIT);
    sql_rows_start(&out);
    sql_rows_add(&out, &(sql_row_result){.status = 201, .charge_ru = 6.5, .etag = SLICE_LIT("\"e\""), .body = SLICE_LIT("{}")});
    sql_rows_add(&out, &(sql_row_result){.status = 429, .substatus = 3200, .throttled = true, .retry_after_ms = 258});
    buf_add_lit(&wanted, SEGMENT);
    add_record(
        &wanted,
        SLICE_LIT("\x81\x71\x54\xE1\x7F\x0F\xC9\x00\x00\x00\x00\x00\x00\x00\x03\"e\"\x02{}\x10\x06\x00\x00\x00\x00\x00\x00\x1A\x40"));
    add_record(&wanted, SLICE_LIT("\x81\x71\x54\xE1\x7F\x03\xAD\x01\x00\x00\x80\x0C\x00\x00\x0B\x05\x02\x01\x00\x00\x10\x06"
                                  "\x00\x00\x00\x00\x00\x00\x00\x00"));
    assert_int_equal(out.n, wanted.n);
    assert_memory_equal(out.p, wanted.p, out.n);
    buf_free(&out);
    buf_free(&wanted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksum),    cmocka_unit_test(operations_become_bson), cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(limits_hold), cmocka_unit_test(results_become_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
