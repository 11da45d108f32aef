/* Entities of the Table API: values of EDM types, JSON to BSON and back, limits, etags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/table/entity.h"

static arena memory;
static op o;

static int set_up(void **state) {
    (void)state;
    memory = arena_init();
    op_init(&o, &memory, 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

/* ---- times ---- */

static void time_comes_back_as(const char *text, const char *expected) {
    int64_t ticks;
    buf out = buf_init(BUF_NO_LIMIT);
    assert_true(edm_time_parse(slice_str(text), &ticks));
    edm_time_write(&out, ticks);
    assert_int_equal(out.n, EDM_TIME_BYTES);
    assert_memory_equal(out.p, expected, EDM_TIME_BYTES);
    buf_free(&out);
}

static void times_keep_seven_digits(void **state) {
    (void)state;
    time_comes_back_as("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.0000000Z");
    time_comes_back_as("1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.9999999Z");
    time_comes_back_as("1601-01-01", "1601-01-01T00:00:00.0000000Z");
    time_comes_back_as("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z");
    time_comes_back_as("2000-02-29T12:30", "2000-02-29T12:30:00.0000000Z");
    time_comes_back_as("2024-03-01T01:00:00.5+02:00", "2024-02-29T23:00:00.5000000Z");
    time_comes_back_as("2024-01-01T00:00:00.1-00:30", "2024-01-01T00:30:00.1000000Z");
}

static void times_that_are_none_are_refused(void **state) {
    static const char *const bad[] = {"",
                                      "2024",
                                      "2024-13-01",
                                      "2023-02-29",
                                      "1600-12-31T23:59:59Z",
                                      "10000-01-01",
                                      "2024-01-01T24:00:00Z",
                                      "2024-01-01T00:60:00Z",
                                      "2024-01-01T00:00:60Z",
                                      "2024-01-01T00:00:00.Z",
                                      "2024-01-01T00:00:00.12345678Z",
                                      "2024-01-01T00:00:00ZZ",
                                      "2024-01-01 00:00:00",
                                      "1601-01-01T00:00:00+01:00",
                                      "9999-12-31T23:59:59-01:00",
                                      "2024-01-01T00:00:00+99:00"};
    int64_t ticks;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(edm_time_parse(slice_str(bad[i]), &ticks));
    }
}

/* ---- doubles and order ---- */

static void double_is_written_as(double value, const char *expected) {
    buf out = buf_init(BUF_NO_LIMIT);
    edm_double_write(&out, value);
    buf_add_byte(&out, '\0');
    assert_string_equal(out.p, expected);
    buf_free(&out);
}

static void doubles_are_told_from_integers(void **state) {
    (void)state;
    double_is_written_as(3, "3.0");
    double_is_written_as(-0.0, "-0.0");
    double_is_written_as(1.5, "1.5");
    double_is_written_as(1e21, "1e+21");
    double_is_written_as(1.0 / 0.0, "\"Infinity\"");
    double_is_written_as(-1.0 / 0.0, "\"-Infinity\"");
}

static void numbers_compare_by_value(void **state) {
    edm_value small = {.type = EDM_INT32, .number = 1}, large = {.type = EDM_INT64, .number = 9007199254740993};
    edm_value real = {.type = EDM_DOUBLE, .real = 9007199254740992.0}, half = {.type = EDM_DOUBLE, .real = 0.5};
    edm_value minus = {.type = EDM_DOUBLE, .real = -0.5}, zero = {.type = EDM_INT32, .number = 0};
    edm_value nothing = {.type = EDM_DOUBLE, .real = 0.0 / 0.0}, text = {.type = EDM_STRING, .text = SLICE_LIT("1")};
    int order;
    (void)state;
    assert_true(edm_compare(&large, &real, &order) && order > 0); /* although both are the same double */
    assert_true(edm_compare(&real, &large, &order) && order < 0);
    assert_true(edm_compare(&small, &half, &order) && order > 0);
    assert_true(edm_compare(&zero, &minus, &order) && order > 0);
    assert_true(edm_compare(&zero, &half, &order) && order < 0);
    assert_false(edm_compare(&small, &text, &order));
    assert_false(edm_compare(&nothing, &nothing, &order));
}

/* ---- entities ---- */

static table_error read_json(const char *json, entity *e) {
    entity_ask ask = {.json = slice_str(json), .now_ms = 1700000000123};
    return entity_read(&o, &ask, e);
}

static void write_is(const entity *e, entity_metadata metadata, const char *expected) {
    buf out = buf_init(BUF_NO_LIMIT);
    entity_view view = {.metadata = metadata, .base = SLICE_LIT("http://h"), .account = SLICE_LIT("a"), .table = SLICE_LIT("t")};
    entity_write(&out, &view, e->body, 20042, 1);
    buf_add_byte(&out, '\0');
    assert_string_equal(out.p, expected);
    buf_free(&out);
}

static void entities_come_back(void **state) {
    entity e;
    (void)state;
    assert_int_equal(
        read_json(
            "{\"x@odata.type\":\"Edm.DateTime\",\"x\":\"2024-01-01T00:00:00.1234567Z\",\"RowKey\":\"r\",\"n\":null,\"PartitionKey\":\"p\","
            "\"odata.etag\":\"ignored\",\"Timestamp\":\"ignored\",\"y\":\"5\",\"y@odata.type\":\"Edm.Int64\"}",
            &e),
        TABLE_FINE);
    write_is(&e, ENTITY_NO_METADATA,
             "{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"Timestamp\":\"2023-11-14T22:13:20.1230042Z\",\"x\":\"2024-01-01T00:00:00."
             "1234567Z\",\"y\":\"5\"}");
    write_is(&e, ENTITY_MINIMAL_METADATA,
             "{\"odata.etag\":\"W/\\\"datetime'2023-11-14T22%3A13%3A20.1230042Z'\\\"\",\"PartitionKey\":\"p\",\"RowKey\":\"r\","
             "\"Timestamp\":\"2023-11-14T22:13:20.1230042Z\",\"x@odata.type\":\"Edm.DateTime\",\"x\":\"2024-01-01T00:00:00.1234567Z\","
             "\"y@odata.type\":\"Edm.Int64\",\"y\":\"5\"}");
}

static void entities_without_keys_are_refused(void **state) {
    entity e;
    (void)state;
    assert_int_equal(read_json("{}", &e), TABLE_NO_VALUES);
    assert_int_equal(read_json("{\"PartitionKey\":\"p\",\"RowKey\":null}", &e), TABLE_NO_VALUES);
    assert_int_equal(read_json("{\"PartitionKey\":\"p\",\"RowKey\":1}", &e), TABLE_INVALID_INPUT);
    assert_int_equal(read_json("{\"PartitionKey\":\"p\",\"RowKey\":\"a/b\"}", &e), TABLE_OUT_OF_RANGE);
    assert_int_equal(read_json("[]", &e), TABLE_INVALID_INPUT);
    assert_int_equal(read_json("{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"a\":[]}", &e), TABLE_INVALID_INPUT);
    assert_int_equal(read_json("{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"a b\":1}", &e), TABLE_NAME_INVALID);
}

static void sizes_are_those_of_storage(void **state) {
    entity e;
    size_t properties;
    (void)state;
    assert_int_equal(read_json("{\"PartitionKey\":\"pp\",\"RowKey\":\"r\",\"a\":1,\"text\":\"ü💡\"}", &e), TABLE_FINE);
    /* 4; keys 3 × 2; Timestamp 8 + 18 + 8; a 8 + 2 + 4; text 8 + 8 + 3 × 2 + 4 */
    assert_int_equal(entity_size(e.body, &properties), 4 + 6 + 34 + 14 + 26);
    assert_int_equal(properties, 2);
}

static slice body_of(const bson_t *b) {
    return slice_of(bson_get_data(b), b->len);
}

/* What counts most for its bytes: short names, short values. */
static void sizes_are_bounded_by_the_bytes(void **state) {
    (void)state;
    static const char *const names[] = {"", "a", "PartitionKey", "\xC3\xA9", "\xF0\x9F\x98\x80"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (unsigned kind = 0; kind < 6; kind++) {
            bson_t b = BSON_INITIALIZER;
            size_t properties;
            for (unsigned k = 0; k < 100; k++) {
                bool good = kind == 0   ? bson_append_null(&b, names[i], -1)
                            : kind == 1 ? bson_append_bool(&b, names[i], -1, true)
                            : kind == 2 ? bson_append_int32(&b, names[i], -1, 1)
                            : kind == 3 ? bson_append_utf8(&b, names[i], -1, "", 0)
                            : kind == 4 ? bson_append_utf8(&b, names[i], -1, "\xF0\x9F\x98\x80", 4)
                                        : bson_append_binary(&b, names[i], -1, BSON_SUBTYPE_BINARY, (const uint8_t *)"x", 1);
                assert_true(good);
            }
            bool text = kind == 3 || kind == 4, key = i == 2; /* keys are texts */
            assert_true((key && !text) || entity_size(body_of(&b), &properties) <= ENTITY_SIZE_PER_BYTE * b.len);
            bson_destroy(&b);
        }
    }
}

static void entities_up_to_the_limit_are_accepted(void **state) {
    (void)state;
    enum { VALUE = ENTITY_VALUE_MAX / 2, VALUES = 15 };
    static char text[VALUE + 1];
    memset(text, 'x', VALUE);
    size_t properties;
    bson_t b = BSON_INITIALIZER;
    for (unsigned i = 0; i < VALUES; i++) {
        bson_append_utf8(&b, "value", -1, text, VALUE);
    }
    size_t left = (ENTITY_BYTES_MAX - entity_size(body_of(&b), &properties) - 8 - 2 - 4) / 2;
    assert_int_equal(properties, VALUES);
    assert_int_equal(entity_check_limits(body_of(&b), false), TABLE_FINE);
    bson_t more = BSON_INITIALIZER;
    bson_copy_to(&b, &more);
    bson_append_utf8(&b, "z", -1, text, (int)left);
    assert_int_equal(entity_size(body_of(&b), &properties), ENTITY_BYTES_MAX);
    assert_int_equal(entity_check_limits(body_of(&b), false), TABLE_FINE);
    bson_append_utf8(&more, "z", -1, text, (int)left + 1);
    assert_int_equal(entity_check_limits(body_of(&more), false), TABLE_ENTITY_TOO_LARGE);
    assert_int_equal(entity_check_limits(body_of(&more), true), TABLE_FINE);
    bson_destroy(&more);
    bson_reinit(&b);
    bson_append_utf8(&b, "value", -1, text, VALUE);
    assert_int_equal(entity_check_limits(body_of(&b), false), TABLE_FINE);
    text[VALUE] = 'x';
    bson_append_utf8(&b, "more", -1, text, VALUE + 1);
    assert_int_equal(entity_check_limits(body_of(&b), false), TABLE_VALUE_TOO_LARGE);
    bson_reinit(&b);
    for (unsigned i = 0; i <= ENTITY_PROPERTIES_MAX; i++) {
        assert_int_equal(entity_check_limits(body_of(&b), false), TABLE_FINE);
        bson_append_int32(&b, "n", -1, 1);
    }
    assert_int_equal(entity_check_limits(body_of(&b), false), TABLE_TOO_MANY_PROPERTIES);
    bson_destroy(&b);
}

/* Wherever a character of several bytes stands among ASCII. */
static void texts_are_counted_in_utf16_units(void **state) {
    (void)state;
    enum { PLAIN = 150 }; /* more than two strides of 64 */
    static const struct {
        const char *character;
        size_t units;
    } others[] = {{"\xC3\xA9", 1}, {"\xE2\x82\xAC", 1}, {"\xF0\x9F\x98\x80", 2}};
    assert_int_equal(entity_units(SLICE_EMPTY), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        for (size_t before = 0; before <= PLAIN; before++) {
            char text[PLAIN + 4];
            size_t n = strlen(others[i].character);
            memset(text, 'a', sizeof text);
            memcpy(text + before, others[i].character, n);
            assert_int_equal(entity_units(slice_of(text, PLAIN + n)), PLAIN + others[i].units);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_counted_in_utf16_units),
        cmocka_unit_test(sizes_are_bounded_by_the_bytes),
        cmocka_unit_test(entities_up_to_the_limit_are_accepted),
        cmocka_unit_test(times_keep_seven_digits),
        cmocka_unit_test(times_that_are_none_are_refused),
        cmocka_unit_test(doubles_are_told_from_integers),
        cmocka_unit_test(numbers_compare_by_value),
        cmocka_unit_test(entities_come_back),
        cmocka_unit_test(entities_without_keys_are_refused),
        cmocka_unit_test(sizes_are_those_of_storage),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
