/* Store keys: their byte order is the order of their values, and they can be parsed back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "item/layout.h"

static const pkey_definition v2 = {.kind = PKEY_HASH, .version = 2, .n = 1};

static pkey key_of(const char *text) {
    return (pkey){.n = 1, .values = {{.type = PKEY_STRING, .text = slice_str(text)}}};
}

static int compare(const layout_key *a, const layout_key *b) {
    return slice_cmp(layout_view(a), layout_view(b));
}

static uint64_t some_number(random_source *r) {
    return random_u64(r) >> random_below(r, 64);
}

static int order_of(item_place a, item_place b) {
    if (a.segment != b.segment) {
        return a.segment < b.segment ? -1 : 1;
    }
    return a.number < b.number ? -1 : a.number > b.number;
}

static int sign(int x) {
    return (x > 0) - (x < 0);
}

static void items_lie_by_segment_and_number(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 1);
    for (int i = 0; i < 3000; i++) {
        item_place x = {(uint32_t)some_number(&r), some_number(&r)}, y = {(uint32_t)some_number(&r), some_number(&r)}, back;
        y.segment = random_below(&r, 2) ? x.segment : y.segment;
        layout_key a, b, whole;
        layout_item(&a, x);
        layout_item(&b, y);
        assert_int_equal(sign(compare(&a, &b)), order_of(x, y));
        assert_true(layout_item_read(layout_view(&a), &back));
        assert_int_equal(order_of(x, back), 0);
        layout_segment(&whole, x.segment);
        assert_true(slice_starts(layout_view(&a), layout_view(&whole)));
        layout_after(&whole);
        assert_true(whole.n == 0 || compare(&a, &whole) < 0);
    }
}

/* Within one partition: primary keys by id, creation order by number, and no keys of another partition or container in between. */
static void a_partitions_entries_lie_together(void **state) {
    (void)state;
    pkey key = key_of("a"), other = key_of("b");
    epk e, f;
    layout_key first, second, one, two, elsewhere;
    epk_of(&v2, &key, &e);
    epk_of(&v2, &other, &f);
    layout_primary(&one, 7, &e, &key, SLICE_LIT("x"));
    layout_primary(&two, 7, &e, &key, SLICE_LIT("xa"));
    assert_true(compare(&one, &two) < 0);
    layout_order(&first, 7, &e, 255);
    layout_order(&second, 7, &e, 256);
    assert_true(compare(&first, &second) < 0);
    layout_primary(&elsewhere, 7, &f, &other, SLICE_LIT("x"));
    assert_true((compare(&elsewhere, &one) < 0) == (compare(&elsewhere, &second) < 0));
    assert_int_equal(sign(compare(&elsewhere, &one)), sign(epk_cmp(&f, &e)));
    layout_primary(&elsewhere, 8, &e, &key, SLICE_LIT("x"));
    assert_true(compare(&elsewhere, &one) > 0 && compare(&elsewhere, &second) > 0);
}

/* Different things never have the same key. */
static void keys_do_not_run_into_each_other(void **state) {
    (void)state;
    pkey a = key_of("a"), ab = key_of("ab");
    epk e;
    layout_key one, two;
    epk_of(&v2, &a, &e);
    layout_primary(&one, 7, &e, &a, SLICE_LIT("bx")); /* keys that share an EPK, as V1 keys can */
    layout_primary(&two, 7, &e, &ab, SLICE_LIT("x"));
    assert_int_not_equal(compare(&one, &two), 0);
    layout_unique(&one, 7, 0, &e, &a, SLICE_LIT("v"));
    layout_unique(&two, 7, 1, &e, &a, SLICE_LIT("v"));
    assert_true(compare(&one, &two) < 0);
    layout_unique(&two, 7, 0, &e, &ab, SLICE_LIT("v"));
    assert_int_not_equal(compare(&one, &two), 0);
}

static void the_longest_keys_fit(void **state) {
    (void)state;
    static char text[LIMIT_KEY_BYTES], id[LIMIT_ID_BYTES]; /* zero bytes, which take two bytes each when encoded */
    static const pkey_definition multi = {.kind = PKEY_MULTI_HASH, .version = 2, .n = 3};
    pkey_value longest = {.type = PKEY_STRING, .text = slice_of(text, sizeof text)};
    pkey key = {.n = 3, .values = {longest, longest, longest}};
    epk e;
    static char values[300];
    static layout_key k;
    epk_of(&multi, &key, &e);
    layout_primary(&k, UINT32_MAX, &e, &key, slice_of(id, sizeof id));
    assert_true(k.n > 3 * 2 * LIMIT_KEY_BYTES + LIMIT_ID_BYTES && k.n < LAYOUT_KEY_BYTES_MAX);
    layout_unique(&k, UINT32_MAX, 9, &e, &key, slice_of(values, sizeof values));
    assert_true(k.n < LAYOUT_KEY_BYTES_MAX);
}

static void order_entries_lead_to_places(void **state) {
    (void)state;
    pkey key = key_of("a");
    epk e;
    layout_key k;
    item_place place = {5, 0x0102030405060708}, back;
    char value[12];
    epk_of(&v2, &key, &e);
    layout_order(&k, 7, &e, place.number);
    layout_place_write(value, place);
    assert_true(layout_order_read(layout_view(&k), slice_of(value, 4), &back));
    assert_int_equal(order_of(place, back), 0);
    assert_false(layout_order_read(layout_view(&k), slice_of(value, 5), &back));
    assert_false(layout_order_read(slice_of(k.bytes, 12), slice_of(value, 4), &back));
    assert_true(layout_place_read(slice_of(value, 12), &back));
    assert_int_equal(order_of(place, back), 0);
    assert_false(layout_place_read(slice_of(value, 11), &back));
}

static void expiry_entries_lie_by_time(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 2);
    for (int i = 0; i < 1000; i++) {
        uint32_t x = (uint32_t)some_number(&r), y = (uint32_t)some_number(&r), time_s;
        item_place place = {(uint32_t)some_number(&r), some_number(&r)}, back;
        layout_key a, b;
        layout_expiry(&a, 3, LAYOUT_TTL_OWN, x, place);
        layout_expiry(&b, 3, LAYOUT_TTL_OWN, y, (item_place){0});
        assert_true(x == y || (x < y) == (compare(&a, &b) < 0));
        assert_true(layout_expiry_read(layout_view(&a), &time_s, &back));
        assert_int_equal(time_s, x);
        assert_int_equal(order_of(place, back), 0);
        assert_false(layout_expiry_read(slice_of(a.bytes, a.n - 1), &time_s, &back));
    }
}

static void after_is_the_first_key_beyond(void **state) {
    (void)state;
    static const char *const pairs[][2] = {{"a", "b"}, {"a\xFF", "b"}, {"\xFF\xFF", ""}, {"a\xFE", "a\xFF"}, {"", ""}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        layout_key k = {.n = strlen(pairs[i][0])};
        memcpy(k.bytes, pairs[i][0], k.n);
        layout_after(&k);
        assert_true(slice_eq(layout_view(&k), slice_str(pairs[i][1])));
    }
}

static void heads_come_back(void **state) {
    (void)state;
    char bytes[LAYOUT_HEAD_BYTES + 5] = {0};
    item_head head = {ITEM_NOT_INDEXED, 0xFEDCBA98, 0x1122334455667788, -1, 0x00FF00FF00FF00FF, 0xA1B2C3D4}, back;
    slice body;
    layout_head_write(bytes, &head);
    assert_true(layout_head_read(slice_of(bytes, sizeof bytes), &back, &body));
    assert_int_equal(back.flags, head.flags);
    assert_int_equal(back.ts, head.ts);
    assert_true(back.lsn == head.lsn && back.number == head.number);
    assert_int_equal(back.ttl, -1);
    assert_int_equal(back.etag, head.etag);
    assert_int_equal(body.n, 5);
    assert_false(layout_head_read(slice_of(bytes, sizeof bytes - 1), &back, &body)); /* too short for a document */
    assert_false(layout_head_read(SLICE_EMPTY, &back, &body));
    bytes[0] = 2;
    assert_false(layout_head_read(slice_of(bytes, sizeof bytes), &back, &body));
}

static void counts_come_back(void **state) {
    (void)state;
    char bytes[LAYOUT_COUNTS_BYTES];
    range_counts counts = {1, UINT64_MAX, 3, 0x0102030405060708, 5, 6}, back;
    layout_counts_write(bytes, &counts);
    assert_true(layout_counts_read(slice_of(bytes, sizeof bytes), &back));
    assert_memory_equal(&counts, &back, sizeof counts);
    assert_false(layout_counts_read(slice_of(bytes, sizeof bytes - 1), &back));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_lie_by_segment_and_number),
        cmocka_unit_test(a_partitions_entries_lie_together),
        cmocka_unit_test(keys_do_not_run_into_each_other),
        cmocka_unit_test(the_longest_keys_fit),
        cmocka_unit_test(order_entries_lead_to_places),
        cmocka_unit_test(expiry_entries_lie_by_time),
        cmocka_unit_test(after_is_the_first_key_beyond),
        cmocka_unit_test(heads_come_back),
        cmocka_unit_test(counts_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
