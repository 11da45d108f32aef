/* Keys: byte order is MongoDB's order, for random values of all types; the first and the last key of a document are its places in the two
 * sorts, as mql/sort.h computes them. A failure prints its seed; SEEDS=from-to runs others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "mql/collation.h"
#include "mql/key.h"
#include "mql_harness.h"
#include "rounds.h"

enum { SEEDS = 20, VALUES = 60, DOCUMENTS = 60 };

static random_source dice;
static arena memory;

static uint64_t roll(uint64_t n) {
    return random_below(&dice, n);
}

/* ---- random values ---- */

static mql_value raw(bson_type_t type, const void *p, size_t n) {
    return (mql_value){type, arena_copy(&memory, slice_of(p, n))};
}

static mql_value random_text(bson_type_t type) {
    static const char *const texts[] = {"", "a", "ab", "A", "b", "a\xC3\xA9", "\xC3\xA4", "z", "aa", "10", "9"};
    slice text = roll(12) ? slice_str(texts[roll(11)]) : slice_of("a\0b", 3);
    mql_value v = mql_text(&memory, text);
    v.type = type;
    return v;
}

static mql_value random_decimal(void) {
    static const char *const texts[] = {"0", "-0", "1", "1.00", "1.5", "-3E+10", "9007199254740993", "Infinity", "-Infinity", "NaN", "0.1"};
    bson_decimal128_t d;
    bson_decimal128_from_string(texts[roll(11)], &d);
    return mql_decimal(&memory, &d);
}

static mql_value random_double(void) {
    static const double numbers[] = {0, -0.0, 1, 1.5, -1, 0.1, 1e300, -1e300, 9007199254740992.0, 5e-324};
    uint64_t i = roll(13);
    return mql_double(&memory, i < 10 ? numbers[i] : i == 10 ? 0.0 / 0.0 : i == 11 ? 1.0 / 0.0 : -1.0 / 0.0);
}

static mql_value random_value(unsigned depth);

static mql_value random_container(bson_type_t type, unsigned depth) {
    static const char *const names[] = {"a", "b", "", "ab"};
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    for (uint64_t n = roll(4); n; n--) {
        mql_value v = random_value(depth + 1);
        type == BSON_TYPE_ARRAY ? mql_add_next(&b, v) : mql_add(&b, slice_str(names[roll(4)]), v);
    }
    slice made = arena_copy(&memory, mql_built(&b));
    buf_free(&out);
    return (mql_value){type, made};
}

static mql_value random_value(unsigned depth) {
    char bytes[32];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (char)roll(3);
    }
    switch (roll(depth < 3 ? 20 : 17)) {
    case 0:
        return mql_null();
    case 1:
        return raw(BSON_TYPE_UNDEFINED, "", 0);
    case 2:
        return raw(BSON_TYPE_MINKEY, "", 0);
    case 3:
        return raw(BSON_TYPE_MAXKEY, "", 0);
    case 4:
        return mql_bool(roll(2));
    case 5:
        return mql_int32(&memory, (int32_t)roll(5) - 2);
    case 6:
        return mql_int64(&memory, roll(2) ? (int64_t)roll(5) - 2 : INT64_C(9007199254740992) + (int64_t)roll(3));
    case 7:
        return random_double();
    case 8:
        return random_decimal();
    case 9:
    case 10:
        return random_text(BSON_TYPE_UTF8);
    case 11:
        return random_text(BSON_TYPE_SYMBOL);
    case 12:
        return mql_date(&memory, (int64_t)roll(5) - 2);
    case 13:
        return mql_timestamp(&memory, (uint32_t)roll(3), (uint32_t)roll(3));
    case 14:
        return mql_object_id(&memory, (const uint8_t *)bytes);
    case 15: {
        int32_t n = (int32_t)roll(4);
        memcpy(bytes, &n, 4);
        return raw(BSON_TYPE_BINARY, bytes, 5 + (size_t)n);
    }
    case 16:
        return raw(BSON_TYPE_REGEX, roll(2) ? "a\0i" : "ab\0", 4);
    case 17:
        return random_container(BSON_TYPE_ARRAY, depth);
    default:
        return random_container(BSON_TYPE_DOCUMENT, depth);
    }
}

/* ---- values ---- */

static int sign(int n) {
    return (n > 0) - (n < 0);
}

static slice key_of(const mql_collation *c, mql_value v, bool descending) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_key_add(&out, c, v, descending);
    slice key = arena_copy(&memory, buf_view(&out));
    buf_free(&out);
    return key;
}

static void compare_all(const mql_collation *c, uint64_t seed) {
    mql_value values[VALUES];
    for (size_t i = 0; i < VALUES; i++) {
        values[i] = random_value(0);
    }
    for (size_t i = 0; i < VALUES; i++) {
        for (size_t j = 0; j < VALUES; j++) {
            int expected = sign(mql_compare_by(c, values[i], values[j]));
            int up = sign(slice_cmp(key_of(c, values[i], false), key_of(c, values[j], false)));
            int down = sign(slice_cmp(key_of(c, values[i], true), key_of(c, values[j], true)));
            char x[4096], y[4096];
            if (up != expected || down != -expected) {
                fail_msg("seed %llu: %s and %s: %d, but keys %d and %d", (unsigned long long)seed, written(values[i], x),
                         written(values[j], y), expected, up, down);
            }
        }
    }
}

static void keys_sort_as_values_compare(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS(SEEDS); seed++) {
        random_seed(&dice, seed);
        compare_all(NULL, seed);
        arena_reset(&memory);
    }
}

static void keys_follow_a_collation(void **state) {
    world w;
    const mql_collation *c;
    (void)state;
    world_open(&w);
    assert_int_equal(mql_collation_shared(&w.op, read_value(&w, "{'locale': 'de', 'strength': 2, 'numericOrdering': true}").bytes, &c), OK);
    for (uint64_t seed = 1; seed <= ROUNDS(SEEDS); seed++) {
        random_seed(&dice, seed);
        compare_all(c, seed);
        arena_reset(&memory);
    }
    world_close(&w);
}

/* ---- documents ---- */

static mql_value random_document(void) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    bool array = roll(3) == 0;
    if (roll(5)) {
        mql_add(&b, SLICE_LIT("a"), array ? random_container(BSON_TYPE_ARRAY, 1) : random_value(2));
    }
    mql_value second = random_value(2);
    if (roll(5) && !(array && second.type == BSON_TYPE_ARRAY)) {
        mql_add(&b, SLICE_LIT("b"), second);
    }
    slice made = arena_copy(&memory, mql_built(&b));
    buf_free(&out);
    return mql_document(made);
}

/* The document's key, and its place in the sort: equal if both come first in the same comparisons. */
static void sorts_and_keys_agree(void **state) {
    static const struct {
        const char *index, *sort, *back;
    } patterns[] = {{"{'key': {'a': 1}}", "{'a': 1}", "{'a': -1}"},
                    {"{'key': {'a': 1, 'b': -1}}", "{'a': 1, 'b': -1}", "{'a': -1, 'b': 1}"},
                    {"{'key': {'b': -1, 'a.b': 1}}", "{'b': -1, 'a.b': 1}", "{'b': 1, 'a.b': -1}"}};
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS(SEEDS); seed++) {
        world w;
        mql_sort sorts[2];
        const mql_index *index;
        size_t which = seed % 3;
        world_open(&w);
        random_seed(&dice, seed);
        assert_int_equal(mql_index_parse(&w.op, read_value(&w, patterns[which].index).bytes, &index), OK);
        assert_int_equal(mql_sort_parse(&w.op, read_value(&w, patterns[which].sort).bytes, &sorts[0]), OK);
        assert_int_equal(mql_sort_parse(&w.op, read_value(&w, patterns[which].back).bytes, &sorts[1]), OK);
        slice sorted[DOCUMENTS][2], keys[DOCUMENTS][2];
        for (size_t i = 0; i < DOCUMENTS; i++) {
            mql_value d = random_document();
            for (size_t back = 0; back < 2; back++) {
                err expected = mql_sort_key(&w.run, &sorts[back], d.bytes, &sorted[i][back]);
                assert_int_equal(mql_index_key(index, &w.op, &w.running, d.bytes, back == 1, &keys[i][back]), expected);
                assert_int_equal(expected, OK);
            }
        }
        for (size_t i = 0; i < DOCUMENTS * DOCUMENTS; i++) {
            size_t x = i % DOCUMENTS, y = i / DOCUMENTS;
            for (size_t back = 0; back < 2; back++) {
                int expected = sign(mql_sort_compare(&sorts[back], NULL, sorted[x][back], sorted[y][back]));
                int found = sign(slice_cmp(keys[x][back], keys[y][back]));
                assert_int_equal(back ? -found : found, expected);
            }
        }
        world_close(&w);
        arena_reset(&memory);
    }
}

static err count_key(void *context, slice key) {
    (void)key;
    (*(size_t *)context)++;
    return OK;
}

static size_t count_keys(const char *spec, const char *document) {
    world w;
    const mql_index *index;
    size_t n = 0;
    world_open(&w);
    assert_int_equal(mql_index_parse(&w.op, read_value(&w, spec).bytes, &index), OK);
    err code = mql_index_keys(index, &w.op, &w.running, read_value(&w, document).bytes, count_key, &n);
    world_close(&w);
    return code == OK ? n : SIZE_MAX;
}

static void documents_have_keys(void **state) {
    (void)state;
    assert_int_equal(count_keys("{'key': {'a': 1}}", "{'a': [1, 2, 3]}"), 3);
    assert_int_equal(count_keys("{'key': {'a': 1}}", "{'b': 1}"), 1);
    assert_int_equal(count_keys("{'key': {'a': 1}, 'sparse': true}", "{'b': 1}"), 0);
    assert_int_equal(count_keys("{'key': {'a': 1, 'b': 1}, 'sparse': true}", "{'b': 1}"), 1);
    assert_int_equal(count_keys("{'key': {'a': 1}, 'partialFilterExpression': {'b': {'$gt': 5}}}", "{'a': 1, 'b': 5}"), 0);
    assert_int_equal(count_keys("{'key': {'a': 1}, 'partialFilterExpression': {'b': {'$gt': 5}}}", "{'a': 1, 'b': 6}"), 1);
    assert_int_equal(count_keys("{'key': {'a': 1, 'b': 1}}", "{'a': [1], 'b': [2]}"), SIZE_MAX); /* parallel arrays */
    assert_int_equal(count_keys("{'key': {'$**': 1}}", "{'a': 1, 'b': {'c': [1, 2], 'd': {}}, 'e': []}"), 5);
    assert_int_equal(count_keys("{'key': {'b.$**': 1}}", "{'a': 1, 'b': {'c': [1, {'x': 2}]}}"), 2);
    assert_int_equal(count_keys("{'key': {'b.$**': 1}}", "{'a': 1}"), 0);
}

static int free_memory(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_sort_as_values_compare),
        cmocka_unit_test(keys_follow_a_collation),
        cmocka_unit_test(sorts_and_keys_agree),
        cmocka_unit_test(documents_have_keys),
    };
    return cmocka_run_group_tests(tests, NULL, free_memory);
}
