/* Feeds: creation order within a range, pages without gaps or overlaps, bounded steps, scopes; and feeds while items are written and
 * deleted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item_harness.h"

#define KEY "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}"
#define DEEP "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/a\",\"/b\"],\"kind\":\"MultiHash\",\"version\":2}}"

static harness h;
static container *c;

static void start(const char *properties, uint32_t throughput) {
    harness_open(&h);
    c = harness_container(&h, properties, throughput);
}

static void stop(void) {
    harness_check(&h, c);
    container_give(c);
    harness_close(&h);
}

static void put(int i, int key) {
    char body[100];
    snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"p%d\"}", i, key);
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, body), OK);
}

static void take_away(int i, int key) {
    char id[20], text[20];
    snprintf(id, sizeof id, "%d", i);
    snprintf(text, sizeof text, "[\"p%d\"]", key);
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, text, id, NULL), OK);
}

static void creation_order_whatever_the_page(void **state) {
    (void)state;
    start(KEY, 400);
    buf expected = buf_init(BUF_NO_LIMIT);
    for (int i = 0; i < 120; i++) { /* ids descend, keys go round */
        put(1000 - i, i % 7);
    }
    for (int i = 0; i < 120; i += 3) {
        take_away(1000 - i, i % 7);
    }
    for (int i = 1; i < 120; i += 3) {
        put(1000 - i, i % 7); /* keeps its number */
    }
    put(1000, 0); /* created again: now the last */
    for (int i = 0; i < 120; i++) {
        if (i % 3) {
            buf_addf(&expected, "%d ", 1000 - i);
        }
    }
    buf_add_lit(&expected, "1000 ");
    buf_add_byte(&expected, 0);
    static const size_t pages[] = {1, 2, 7, 80, 81, 82, 1000};
    for (size_t p = 0; p < sizeof pages / sizeof *pages; p++) {
        assert_string_equal(harness_feed(&h, c, NULL, pages[p], 100000), expected.p);
        assert_string_equal(harness_feed(&h, c, NULL, pages[p], 3), expected.p); /* three entries per call */
    }
    buf_free(&expected);
    stop();
}

static void one_partition_in_its_order(void **state) {
    (void)state;
    start(KEY, 5000);
    buf expected = buf_init(BUF_NO_LIMIT);
    for (int i = 0; i < 200; i++) {
        put(999 - i, i % 4);
        if (i % 4 == 2) {
            buf_addf(&expected, "%d ", 999 - i);
        }
    }
    buf_add_byte(&expected, 0);
    static const size_t pages[] = {1, 3, 50, 51};
    for (size_t p = 0; p < sizeof pages / sizeof *pages; p++) {
        assert_string_equal(harness_feed(&h, c, "[\"p2\"]", pages[p], 100000), expected.p);
        assert_string_equal(harness_feed(&h, c, "[\"p2\"]", pages[p], 1), expected.p);
    }
    assert_string_equal(harness_feed(&h, c, "[\"nobody\"]", 10, 100), "");
    buf_free(&expected);
    stop();
}

/* Two V1 keys with the same first 100 characters share an EPK; their feeds must stay separate. */
static void keys_that_hash_alike_stay_apart(void **state) {
    (void)state;
    start("{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":1}}", 400);
    char keys[2][160], body[400], header[2][400];
    epk e[2];
    for (int k = 0; k < 2; k++) {
        memset(keys[k], 'x', 150);
        keys[k][149] = (char)('a' + k);
        keys[k][150] = 0;
        snprintf(header[k], sizeof header[k], "[\"%s\"]", keys[k]);
        pkey key = {.n = 1, .values = {{.type = PKEY_STRING, .text = slice_str(keys[k])}}};
        epk_of(&c->key, &key, &e[k]);
    }
    assert_int_equal(epk_cmp(&e[0], &e[1]), 0);
    for (int i = 0; i < 10; i++) {
        snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"%s\"}", i / 2, keys[i % 2]);
        assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
    }
    for (int k = 0; k < 2; k++) {
        assert_string_equal(harness_feed(&h, c, header[k], 2, 100), "0 1 2 3 4 ");
        assert_string_equal(harness_feed(&h, c, header[k], 2, 1), "0 1 2 3 4 ");
    }
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, header[0], "3", NULL), OK);
    assert_string_equal(harness_feed(&h, c, header[0], 10, 100), "0 1 2 4 ");
    assert_string_equal(harness_feed(&h, c, header[1], 10, 100), "0 1 2 3 4 ");
    stop();
}

/* ---- scopes ---- */

static const char *feed_between(const epk *min, const epk *max) {
    collected got = {.ids = buf_init(BUF_NO_LIMIT), .most = SIZE_MAX};
    item_cursor cursor = {.n = 1, .stretches = {{.min = *min, .max = *max}}};
    item_mark mark;
    assert_int_equal(item_feed(harness_items(&h), harness_op(&h), c, &cursor, 1000, collect, &got, &mark), OK);
    assert_int_equal(cursor.n, 0);
    const char *text = arena_text(&h.arena, buf_view(&got.ids));
    buf_free(&got.ids);
    return text;
}

static void a_prefix_of_a_hierarchical_key(void **state) {
    (void)state;
    start(DEEP, 400);
    for (int i = 0; i < 60; i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"id\":\"%d\",\"a\":\"t%d\",\"b\":%d}", i, i % 4, i % 3);
        assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
    }
    pkey prefix = {.n = 1, .values = {{.type = PKEY_STRING, .text = SLICE_LIT("t1")}}};
    epk min, max;
    epk_prefix_range(&c->key, &prefix, &min, &max);
    assert_string_equal(feed_between(&min, &max), "1 5 9 13 17 21 25 29 33 37 41 45 49 53 57 ");
    min = epk_min();
    epk middle;
    assert_true(epk_parse(SLICE_LIT("20"), &middle));
    max = epk_max();
    const char *left = feed_between(&min, &middle), *right = feed_between(&middle, &max);
    assert_int_equal(strlen(left) + strlen(right), strlen(harness_feed(&h, c, NULL, 100, 1000)));
    assert_true(*left && *right);
    assert_string_equal(harness_feed(&h, c, "[\"t1\",1]", 10, 100), "1 13 25 37 49 ");
    stop();
}

/* ---- concurrent writes ---- */

typedef struct meddling {
    uint64_t last;
    unsigned seen, eights;
} meddling;

/* Within a page: deletes an item ahead and creates it again at once, and creates another one. */
static bool meddle(void *context, const item_found *found) {
    meddling *m = context;
    bson_iter_t it;
    assert_true(found->head.number > m->last);
    m->last = found->head.number;
    m->seen++;
    m->eights += doc_find_key(found->body, SLICE_LIT("id"), &it) && slice_eq(doc_text(&it), SLICE_LIT("8"));
    if (m->seen == 3) {
        item_op ops[3];
        assert_int_equal(harness_prepare(&h, c, &ops[0], ITEM_DELETE, "[\"p1\"]", "8", NULL), OK);
        assert_int_equal(harness_prepare(&h, c, &ops[1], ITEM_CREATE, NULL, NULL, "{\"id\":\"8\",\"pk\":\"p1\"}"), OK);
        assert_int_equal(harness_prepare(&h, c, &ops[2], ITEM_UPSERT, NULL, NULL, "{\"id\":\"new\",\"pk\":\"p1\"}"), OK);
        assert_int_equal(harness_commit(&h, c, ops, 3, true), OK);
    }
    return true;
}

/* A page reads one snapshot: an item that exists before and after appears once. */
static void a_page_is_of_one_moment(void **state) {
    (void)state;
    for (int partition = 0; partition < 2; partition++) {
        start(KEY, 400);
        for (int i = 0; i < 10; i++) {
            put(i, 1);
        }
        item_op o;
        assert_int_equal(harness_prepare(&h, c, &o, ITEM_READ, "[\"p1\"]", "1", NULL), OK);
        item_cursor cursor = harness_cursor();
        cursor.partition = partition ? &o.key : NULL;
        meddling m = {0};
        item_mark mark;
        assert_int_equal(item_feed(harness_items(&h), harness_op(&h), c, &cursor, 1000, meddle, &m, &mark), OK);
        assert_int_equal(cursor.n, 0);
        assert_int_equal(m.seen, 10);
        assert_int_equal(m.eights, 1);
        assert_string_equal(harness_feed(&h, c, partition ? "[\"p1\"]" : NULL, 4, 1000), "0 1 2 3 4 5 6 7 9 8 new ");
        stop();
    }
}

static void the_end_of_a_feed(void **state) {
    (void)state;
    start(KEY, 400);
    collected got = {.ids = buf_init(BUF_NO_LIMIT), .most = 2};
    item_cursor cursor = harness_cursor();
    item_mark mark;
    assert_int_equal(item_feed(harness_items(&h), harness_op(&h), c, &cursor, 10, collect, &got, &mark), OK);
    assert_int_equal(cursor.n, 0);
    put(1, 1);
    put(2, 1);
    op *o = harness_op(&h);
    cursor = harness_cursor();
    assert_int_equal(item_feed(harness_items(&h), o, c, &cursor, 10, collect, &got, &mark), OK);
    assert_int_equal(cursor.n, 0); /* a page that ends exactly at the last item is complete */
    assert_int_equal(mark.lsn, 2);
    assert_true(o->charge_ru >= 2 && o->charge_ru < 2.1);
    cursor = harness_cursor();
    cursor.stretches[0].after = got.last;
    assert_int_equal(item_feed(harness_items(&h), harness_op(&h), c, &cursor, 10, collect, &got, &mark), OK);
    assert_true(cursor.n == 0 && got.n == 2);
    cursor = harness_cursor();
    cursor.stretches[0].after = UINT64_MAX; /* a client may send this */
    assert_int_equal(item_feed(harness_items(&h), harness_op(&h), c, &cursor, 10, collect, &got, &mark), OK);
    assert_true(cursor.n == 0 && got.n == 2);
    buf_free(&got.ids);
    stop();
}

/* ---- cursors as bytes ---- */

/* Reads a page from the position in `at`, and writes the new position there. */
static void read_page(buf *at, size_t page, collected *got) {
    item_cursor cursor = harness_cursor();
    item_mark mark;
    assert_true(at->n == 0 || item_cursor_read(buf_view(at), &cursor));
    got->most = got->n + page;
    if (cursor.n) {
        assert_int_equal(item_feed(harness_items(&h), harness_op(&h), c, &cursor, 1000, collect, got, &mark), OK);
    }
    buf_clear(at);
    item_cursor_write(at, &cursor);
}

static void a_cursor_travels_as_bytes(void **state) {
    (void)state;
    start(KEY, 3000); /* three ranges */
    for (int i = 0; i < 60; i++) {
        put(i, i % 13);
    }
    const char *expected = harness_feed(&h, c, NULL, 1000, 1000);
    collected got = {.ids = buf_init(BUF_NO_LIMIT)};
    buf at = buf_init(BUF_NO_LIMIT);
    for (int i = 0; i < 12; i++) {
        read_page(&at, 7, &got);
    }
    assert_int_equal(got.n, 60);
    assert_true(slice_eq(buf_view(&got.ids), slice_str(expected)));
    buf_free(&at);
    buf_free(&got.ids);
    stop();
}

/* Whatever bytes a client sends, the cursor stays within the requested part. */
static void cursors_from_outside_are_not_trusted(void **state) {
    (void)state;
    item_cursor wide = harness_cursor(), narrow = harness_cursor(), read;
    buf bytes = buf_init(BUF_NO_LIMIT), short_bytes = buf_init(BUF_NO_LIMIT);
    narrow.stretches[0].min = (epk){.n = 1, .bytes = {0x10}};
    narrow.stretches[0].max = (epk){.n = 1, .bytes = {0x20}};
    item_cursor_write(&bytes, &wide);
    read = narrow;
    assert_false(item_cursor_read(buf_view(&bytes), &read)); /* wider than requested */
    item_cursor_write(&short_bytes, &narrow);
    for (size_t n = 0; n < short_bytes.n; n++) {
        read = narrow;
        assert_false(item_cursor_read(slice_of(short_bytes.p, n), &read));
    }
    for (size_t i = 0; i < short_bytes.n * 256; i++) {
        char was = short_bytes.p[i / 256];
        short_bytes.p[i / 256] = (char)i;
        read = narrow;
        if (item_cursor_read(buf_view(&short_bytes), &read) && read.n) {
            assert_true(read.n == 1 && epk_cmp(&narrow.stretches[0].min, &read.stretches[0].min) <= 0);
            assert_true(epk_cmp(&read.stretches[0].min, &read.stretches[0].max) < 0);
            assert_true(epk_cmp(&read.stretches[0].max, &narrow.stretches[0].max) <= 0);
        }
        short_bytes.p[i / 256] = was;
    }
    buf_free(&bytes);
    buf_free(&short_bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creation_order_whatever_the_page), cmocka_unit_test(one_partition_in_its_order),
        cmocka_unit_test(keys_that_hash_alike_stay_apart),  cmocka_unit_test(a_prefix_of_a_hierarchical_key),
        cmocka_unit_test(a_cursor_travels_as_bytes),        cmocka_unit_test(cursors_from_outside_are_not_trusted),
        cmocka_unit_test(a_page_is_of_one_moment),          cmocka_unit_test(the_end_of_a_feed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
