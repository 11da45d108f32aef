/* Queries over items with values of non-JSON types, written through the core as another API would: equality reads the entries of one value;
 * ranges and orders within a type are read from the index; results are Extended JSON. Over a store in memory and over RocksDB.
 * query_access.c checks that the index and a scan agree on random typed values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item_harness.h"
#include "query/exec.h"

enum { ITEMS = 600, PER_DAY = 10 };

static harness h;
static container *c;

/* Item i has its own ObjectId, UUID, timestamp and regular expression, a day that it shares with others (the first ones are before 1970),
 * and a Decimal128 that differs from its neighbours' only beyond the precision of a double. */
static void put(unsigned i) {
    static const char *const edges[] = {"{\"$minKey\":1}", "{\"$maxKey\":1}", "null"};
    char body[700];
    snprintf(body, sizeof body,
             "{\"id\":\"%u\",\"pk\":\"%u\",\"oid\":{\"$oid\":\"%024x\"},\"uuid\":{\"$binary\":{\"base64\":\"AAECAwQFBgcICQoLDA%02uDw==\","
             "\"subType\":\"04\"}},\"day\":{\"$date\":{\"$numberLong\":\"%lld\"}},\"ts\":{\"$timestamp\":{\"t\":%u,\"i\":1}},"
             "\"decimal\":{\"$numberDecimal\":\"9007199254740992.%06u\"},\"long\":{\"$numberLong\":\"%lld\"},"
             "\"regex\":{\"$regularExpression\":{\"pattern\":\"%03u\",\"options\":\"i\"}},\"edge\":%s}",
             i, i, i, i % 100, ((long long)(i / PER_DAY) - 30) * 86400000, i, i, (1LL << 53) + i, i, edges[i % 3]);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
}

static void fill(void) {
    log_set_level(LOG_WARN);
    c = harness_container(&h, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}", 400);
    h.extended = true;
    clock_manual_advance(&h.clock, 1000);
    for (unsigned i = 0; i < ITEMS; i++) { /* in pseudo-random order */
        put(i * 7 % ITEMS);
    }
}

static char *folder;

static int set_up_memory(void **state) {
    (void)state;
    harness_open(&h);
    fill();
    return 0;
}

static int set_up_rocks(void **state) {
    (void)state;
    folder = make_folder();
    harness_open_on(&h, open_rocks(folder));
    fill();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    container_give(c);
    harness_close(&h);
    if (folder) {
        remove_folder(folder);
        free(folder);
        folder = NULL;
    }
    return 0;
}

/* ---- running a query ---- */

/* Returns the rows and the metrics of the first page. */
static err try_run(const char *text, size_t rows_max, bool scans, query_metrics *metrics_out, slice *rows_out) {
    op *o = harness_op(&h);
    query q;
    query_schema schema = query_schema_of(c->settings);
    item_cursor cursor = {.n = 1, .stretches = {{.min = epk_min(), .max = epk_max()}}};
    buf out = buf_init(BUF_NO_LIMIT);
    if (query_prepare(o, &h.arena, slice_str(text), NULL, 0, &schema, &q) != OK) {
        fail_msg("no query: %s: %.*s", text, (int)o->detail_n, o->detail);
    }
    query_page p;
    query_page_init(&p, harness_items(&h), o, c, &q, &cursor, &out);
    p.ask.rows_max = rows_max;
    p.ask.scans = scans;
    err code = query_run_page(&p);
    *metrics_out = p.outcome.metrics;
    *rows_out = arena_copy(&h.arena, buf_view(&out));
    buf_free(&out);
    return code;
}

static slice run(const char *text, size_t rows_max, bool scans, query_metrics *metrics_out) {
    slice rows;
    assert_int_equal(try_run(text, rows_max, scans, metrics_out, &rows), OK);
    return rows;
}

static query_metrics expect(const char *text, size_t rows_max, const char *rows) {
    query_metrics found, scanned;
    slice by_index = run(text, rows_max, false, &found), without = run(text, rows_max, true, &scanned);
    if (!slice_eq(by_index, slice_str(rows)) || !slice_eq(without, slice_str(rows))) {
        fail_msg("%s\nexpected %s\nby the index %.*s\nwithout it %.*s", text, rows, (int)by_index.n, by_index.p, (int)without.n, without.p);
    }
    return found;
}

/* ---- conditions ---- */

static void equality_reads_one_entry(void **state) {
    (void)state;
    static const struct {
        const char *condition, *rows;
    } cases[] = {
        {"c.oid = {\"$oid\":\"000000000000000000000123\"}", "\"291\""},
        {"{\"$oid\":\"000000000000000000000123\"} = c.oid", "\"291\""},
        {"c.oid IN ({\"$oid\":\"000000000000000000000123\"})", "\"291\""},
        {"c.ts = {\"$timestamp\":{\"t\":17,\"i\":1}}", "\"17\""},
        {"c.decimal = {\"$numberDecimal\":\"9007199254740992.000017\"}", "\"17\""},
        {"c.regex = {\"$regularExpression\":{\"pattern\":\"017\",\"options\":\"i\"}}", "\"17\""},
        {"c.oid BETWEEN {\"$oid\":\"000000000000000000000123\"} AND {\"$oid\":\"000000000000000000000123\"}", "\"291\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[300];
        snprintf(text, sizeof text, "SELECT VALUE c.id FROM c WHERE %s", cases[i].condition);
        query_metrics m = expect(text, 100, cases[i].rows);
        assert_int_equal(m.entries, 1);
        assert_int_equal(m.read, 1);
    }
}

static void equality_of_another_type_reads_none(void **state) {
    (void)state;
    query_metrics m = expect("SELECT VALUE c.id FROM c WHERE c.oid = {\"$date\":\"1970-01-01T00:00:00Z\"}", 100, "");
    assert_int_equal(m.entries, 0);
    assert_int_equal(m.read, 0);
    m = expect("SELECT VALUE c.id FROM c WHERE c.oid = \"000000000000000000000123\"", 100, "");
    assert_int_equal(m.entries, 0);
}

static void each_edge_is_its_own(void **state) {
    (void)state;
    expect("SELECT VALUE COUNT(1) FROM c WHERE c.edge = {\"$minKey\":1}", 100, "200");
    expect("SELECT VALUE COUNT(1) FROM c WHERE c.edge = {\"$maxKey\":1}", 100, "200");
    expect("SELECT VALUE COUNT(1) FROM c WHERE c.edge = null", 100, "200");
    expect("SELECT DISTINCT VALUE c.edge FROM c", 100, "null,{\"$minKey\":1},{\"$maxKey\":1}");
}

/* Also for dates before 1970, which are written as numbers. */
static void ranges_read_what_they_find(void **state) {
    (void)state;
    query_metrics m = expect("SELECT VALUE COUNT(1) FROM c WHERE c.day < {\"$date\":{\"$numberLong\":\"-2419200000\"}}", 100, "20");
    assert_int_equal(m.entries, 20);
    assert_int_equal(m.read, 0); /* the entries suffice */
    m = expect("SELECT VALUE COUNT(1) FROM c WHERE c.day >= {\"$date\":\"1970-01-29T00:00:00Z\"}", 100, "20");
    assert_int_equal(m.entries, 20);
    m = expect("SELECT VALUE COUNT(1) FROM c WHERE c.day BETWEEN {\"$date\":{\"$numberLong\":\"-86400000\"}} AND "
               "{\"$date\":\"1970-01-01T00:00:00Z\"}",
               100, "20");
    assert_int_equal(m.entries, 20);
    m = expect("SELECT VALUE COUNT(1) FROM c WHERE c.oid > {\"$oid\":\"000000000000000000000253\"}", 100, "4");
    assert_int_equal(m.entries, 4);
    m = expect("SELECT VALUE COUNT(1) FROM c WHERE c.decimal <= {\"$numberDecimal\":\"9007199254740992.0000045\"}", 100, "5");
    assert_int_equal(m.entries, 5);
}

/* ---- orders ---- */

static void orders_are_walked(void **state) {
    (void)state;
    static const char *const paths[] = {"oid", "ts", "decimal", "regex"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char text[200];
        snprintf(text, sizeof text, "SELECT VALUE c.id FROM c ORDER BY c.%s", paths[i]);
        query_metrics m = expect(text, 4, "\"0\",\"1\",\"2\",\"3\"");
        assert_true(m.entries <= 16 && m.read <= 8);
        snprintf(text, sizeof text, "SELECT VALUE c.id FROM c ORDER BY c.%s DESC", paths[i]);
        m = expect(text, 4, "\"599\",\"598\",\"597\",\"596\"");
        assert_true(m.entries <= 16 && m.read <= 8);
    }
    query_metrics m = expect("SELECT DISTINCT VALUE c.day FROM c", 2,
                             "{\"$date\":{\"$numberLong\":\"-2592000000\"}},{\"$date\":{\"$numberLong\":\"-2505600000\"}}");
    assert_int_equal(m.read, 0);
}

static void groups_are_told_by_entries(void **state) {
    (void)state;
    query_metrics m =
        expect("SELECT c.day, COUNT(1) AS n FROM c WHERE c.day > {\"$date\":\"1970-01-28T00:00:00Z\"} GROUP BY c.day", 100,
               "{\"day\":{\"$date\":\"1970-01-29T00:00:00Z\"},\"n\":10},{\"day\":{\"$date\":\"1970-01-30T00:00:00Z\"},\"n\":10}");
    assert_int_equal(m.read, 0);
}

/* Pages whose deadline passed end among the rows that OFFSET skips, and the next page continues there. */
static void skipping_goes_on_behind_a_value(void **state) {
    (void)state;
    static const char *const paths[] = {"decimal", "oid"};
    for (size_t i = 0; i < 2; i++) {
        op *o = harness_op(&h);
        query q;
        query_position position = {0};
        query_schema schema = query_schema_of(c->settings);
        item_cursor cursor = {.n = 1, .stretches = {{.min = epk_min(), .max = epk_max()}}};
        buf out = buf_init(BUF_NO_LIMIT), rows = buf_init(BUF_NO_LIMIT);
        slice text = arena_printf(&h.arena, "SELECT VALUE c.id FROM c ORDER BY c.%s OFFSET 500 LIMIT 3", paths[i]);
        bool more = true;
        unsigned pages = 0;
        assert_int_equal(query_prepare(o, &h.arena, text, NULL, 0, &schema, &q), OK);
        for (; more && pages < 100; pages++) {
            query_page p;
            query_page_init(&p, harness_items(&h), harness_op(&h), c, &q, &cursor, &out);
            p.position = position;
            p.ask.until_us = 1;
            out.n = 0;
            assert_int_equal(query_run_page(&p), OK);
            buf_add(&rows, ",", rows.n && out.n);
            buf_add_slice(&rows, buf_view(&out));
            position = p.position;
            more = p.outcome.more;
        }
        assert_true(pages >= 2);
        assert_true(slice_eq(buf_view(&rows), SLICE_LIT("\"500\",\"501\",\"502\"")));
        buf_free(&out);
        buf_free(&rows);
    }
}

/* 64-bit integers are returned exactly, but compared as doubles, as on the service. */
static void integers_are_shown_exactly(void **state) {
    (void)state;
    expect("SELECT VALUE c.long FROM c WHERE c.id = \"1\"", 100, "9007199254740993");
    expect("SELECT VALUE COUNT(1) FROM c WHERE c.long = 9007199254740993", 100, "2");
}

/* Each call to the store fails in turn: the query then fails, or returns all its rows. */
static void a_store_that_fails_is_told(void **state) {
    (void)state;
    static const char *const texts[] = {
        "SELECT VALUE c.id FROM c WHERE c.oid = {\"$oid\":\"000000000000000000000007\"}",
        "SELECT VALUE c.id FROM c WHERE c.oid > {\"$oid\":\"000000000000000000000007\"} ORDER BY c.oid",
        "SELECT VALUE c.id FROM c WHERE c.decimal < {\"$numberDecimal\":\"9007199254740992.000009\"}",
    };
    query_metrics unused;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        slice wanted = run(texts[i], 10, false, &unused), rows;
        for (int scans = 0; scans < 2; scans++) {
            err code = E_STORE_IO;
            for (unsigned in = 1; code != OK; in++) {
                h.plan.fired = 0;
                *(scans ? &h.plan.scan_in : &h.plan.get_in) = in;
                code = try_run(texts[i], 10, false, &unused, &rows);
                h.plan.scan_in = h.plan.get_in = 0;
                assert_true(code == OK ? slice_eq(rows, wanted) : code == E_STORE_IO && h.plan.fired);
            }
        }
    }
}

int main(void) {
#define ON_BOTH(f) cmocka_unit_test_setup_teardown(f, set_up_memory, tear_down), cmocka_unit_test_setup_teardown(f, set_up_rocks, tear_down)
    const struct CMUnitTest tests[] = {
        ON_BOTH(equality_reads_one_entry),
        ON_BOTH(equality_of_another_type_reads_none),
        ON_BOTH(each_edge_is_its_own),
        ON_BOTH(ranges_read_what_they_find),
        ON_BOTH(orders_are_walked),
        ON_BOTH(groups_are_told_by_entries),
        ON_BOTH(skipping_goes_on_behind_a_value),
        ON_BOTH(integers_are_shown_exactly),
        ON_BOTH(a_store_that_fails_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
