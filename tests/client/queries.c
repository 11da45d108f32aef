/* Queries across ranges: the same rows in the same order whatever the parallelism, also after splits; pages and continuations. */
#include "harness.h"

static tesela_container *k;

static void expect(const char *query, const char *rows) {
    char *serial = query_rows(k, query, NULL, NULL, NULL);
    char *parallel = query_rows(k, query, NULL, &(tesela_query_options){.parallelism = -1, .page_items = 10}, NULL);
    char *some = query_rows(k, query, NULL, &(tesela_query_options){.parallelism = 3, .page_items = 50, .buffered_items = 20}, NULL);
    if (rows) {
        assert_string_equal(serial, rows);
    }
    assert_string_equal(serial, parallel);
    assert_string_equal(serial, some);
    free(serial);
    free(parallel);
    free(some);
}

static void merged(void **state) {
    (void)state;
    expect("SELECT VALUE COUNT(1) FROM c", "1402\n");
    expect("SELECT VALUE SUM(c.n) FROM c WHERE IS_DEFINED(c.n)", "979300\n");
    expect("SELECT VALUE AVG(c.n) FROM c WHERE IS_DEFINED(c.n)", "699.5\n");
    expect("SELECT VALUE MIN(c.n) FROM c", "0\n");
    expect("SELECT VALUE MAX(c.n) FROM c", "1399\n");
    expect("SELECT MAX(c.n) AS most, COUNT(1) AS n FROM c", "{\"most\":1399,\"n\":1402}\n");
    expect("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 3 LIMIT 4", "3\n4\n5\n6\n");
    expect("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC", "1399\n1398\n1397\n");
    expect("SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g", "0\n1\n2\n3\n4\n5\n6\n");
    expect("SELECT VALUE c.n FROM c WHERE c.n IN (3, 1) ORDER BY c.n", "1\n3\n");
    expect("SELECT VALUE c.id FROM c WHERE false", "");
    expect("SELECT * FROM c", NULL);
    expect("SELECT c.id, c.n FROM c ORDER BY c.g", NULL); /* ties */
    expect("SELECT c.g, COUNT(1) AS n, AVG(c.n) AS mean FROM c GROUP BY c.g", NULL);
    expect("SELECT DISTINCT c.g, c.pk FROM c", NULL);
    expect("SELECT VALUE c.n FROM c OFFSET 100 LIMIT 30", NULL);
    expect("SELECT TOP 40 * FROM c", NULL);
    expect("SELECT c.mixed FROM c ORDER BY c.mixed", NULL);
}

/* Every n from 0 to 1399 once, in order. */
static void check_sequence(const char *rows) {
    char *end;
    for (long i = 0; i < 1400; i++, rows = end + 1) {
        assert_int_equal(strtol(rows, &end, 10), i);
    }
    assert_string_equal(rows, "");
}

static void order_of_all(void **state) {
    (void)state;
    char *rows =
        query_rows(k, "SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.n) ORDER BY c.n", NULL, &(tesela_query_options){.parallelism = 8}, NULL);
    check_sequence(rows);
    free(rows);
}

static void groups(void **state) {
    (void)state;
    size_t n;
    char *rows = query_rows(k, "SELECT c.g, COUNT(1) AS n FROM c WHERE IS_DEFINED(c.g) GROUP BY c.g", NULL, NULL, &n), *at = rows;
    assert_int_equal(n, 7);
    for (int i = 0; i < 7; i++, at = strchr(at, '\n') + 1) {
        int g, count;
        assert_int_equal(sscanf(at, "{\"g\":%d,\"n\":%d}", &g, &count), 2);
        assert_int_equal(count, 200);
    }
    free(rows);
}

static void parameters(void **state) {
    (void)state;
    char *rows = query_rows(k, "SELECT VALUE c.n FROM c WHERE c.n = @n", "{\"@n\":17}", NULL, NULL);
    assert_string_equal(rows, "17\n");
    free(rows);
    rows = query_rows(k, "SELECT VALUE c.n FROM c WHERE c.n = @n", "[{\"name\":\"@n\",\"value\":18}]", NULL, NULL);
    assert_string_equal(rows, "18\n");
    free(rows);
    tesela_cursor *cursor;
    fails(tesela_query(k, "SELECT 1", "nonsense", NULL, &cursor, &error), TESELA_BAD_ARGUMENT);
    assert_null(cursor);
}

static void one_partition(void **state) {
    (void)state;
    tesela_key key = tesela_key_string("p3");
    tesela_query_options options = {.key = &key, .page_items = 7};
    size_t n;
    free(query_rows(k, "SELECT * FROM c ORDER BY c.n", NULL, &options, &n));
    assert_int_equal(n, 35);
    char *rows = query_rows(k, "SELECT VALUE COUNT(1) FROM c", NULL, &options, NULL);
    assert_string_equal(rows, "35\n");
    free(rows);
}

/* Reads a query in pieces, each by a cursor of its own. */
static char *in_pieces(const char *query, const tesela_key *key, int parallelism, unsigned *pieces_out) {
    char *all = calloc(1, 1), *continuation = NULL;
    *pieces_out = 0;
    do {
        tesela_cursor *cursor;
        tesela_query_options options = {.key = key, .page_items = 90, .parallelism = parallelism, .continuation = continuation};
        size_t count;
        ok(tesela_query(k, query, NULL, &options, &cursor, &error));
        tesela_status status = tesela_cursor_page(cursor, &count, &error);
        assert_true(status == TESELA_OK || status == TESELA_DONE);
        for (size_t i = 0; i < count; i++) {
            size_t n, before = strlen(all);
            const char *row = tesela_cursor_row(cursor, i, &n);
            all = realloc(all, before + n + 2);
            sprintf(all + before, "%s\n", row);
        }
        assert_null(tesela_cursor_row(cursor, count, NULL));
        free(continuation);
        const char *next = tesela_cursor_continuation(cursor);
        continuation = next ? strdup(next) : NULL;
        assert_true(tesela_cursor_charge(cursor) > 0 && tesela_cursor_requests(cursor) > 0 && *tesela_cursor_activity_id(cursor));
        tesela_cursor_close(cursor);
        ++*pieces_out;
    } while (continuation);
    return all;
}

static void continuations(void **state) {
    (void)state;
    unsigned pieces;
    const char *ordered = "SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.n) ORDER BY c.n";
    char *rows = in_pieces(ordered, NULL, 4, &pieces);
    check_sequence(rows);
    assert_true(pieces >= 1400 / 90);
    free(rows);
    const char *queries[] = {"SELECT * FROM c", "SELECT VALUE c.n FROM c OFFSET 120 LIMIT 300",
                             "SELECT TOP 200 VALUE c.id FROM c ORDER BY c.n"};
    for (size_t i = 0; i < 3; i++) {
        char *whole = query_rows(k, queries[i], NULL, NULL, NULL), *parts = in_pieces(queries[i], NULL, 0, &pieces);
        assert_string_equal(whole, parts);
        free(whole);
        free(parts);
    }
    tesela_cursor *cursor;
    const char *row;
    ok(tesela_query(k, ordered, NULL, &(tesela_query_options){.continuation = "{\"version\":2}"}, &cursor, &error));
    fails(tesela_cursor_next(cursor, &row, NULL, &error), TESELA_BAD_ARGUMENT);
    tesela_cursor_close(cursor);
}

/* What these have seen so far is not bounded, so it is not put into a continuation. */
static void not_continued(void **state) {
    (void)state;
    static const char *const queries[] = {"SELECT DISTINCT VALUE c.n FROM c", "SELECT c.n, COUNT(1) AS times FROM c GROUP BY c.n",
                                          "SELECT VALUE COUNT(1) FROM c"};
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        tesela_cursor *cursor;
        const char *row;
        ok(tesela_query(k, queries[i], NULL, &(tesela_query_options){.page_items = 5}, &cursor, &error));
        ok(tesela_cursor_next(cursor, &row, NULL, &error));
        assert_null(tesela_cursor_continuation(cursor));
        tesela_cursor_close(cursor);
        const char *given = "{\"version\":1,\"ranges\":[{\"min\":\"\",\"max\":\"FF\",\"skip\":0}],\"offset\":0,\"left\":-1}";
        ok(tesela_query(k, queries[i], NULL, &(tesela_query_options){.continuation = given}, &cursor, &error));
        fails(tesela_cursor_next(cursor, &row, NULL, &error), TESELA_BAD_ARGUMENT);
        assert_non_null(strstr(error.message, "cannot be continued"));
        tesela_cursor_close(cursor);
    }
}

static void mark_seen(const char *row, bool *seen) {
    int n = atoi(row);
    assert_true(n >= 0 && n < 1400 && !seen[n]);
    seen[n] = true;
}

/* In any order: pages of the server, in pieces by a continuation, with a split of every range in the middle; each row once. */
static void unordered(void **state) {
    (void)state;
    enum { PAGE = 20 };
    for (int parallelism = 0; parallelism <= 16; parallelism += 8) {
        bool seen[1400] = {0};
        char *continuation = NULL;
        size_t rows = 0, turns = 0;
        tesela_container *own;
        ok(tesela_container_open(client, "d", "queries", &own, &error)); /* does not know of the splits of others */
        for (tesela_status status = TESELA_OK; status == TESELA_OK;) {
            tesela_cursor *cursor;
            tesela_query_options options = {
                .unordered = true, .page_items = PAGE, .parallelism = parallelism, .continuation = continuation};
            ok(tesela_query(own, "SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.n)", NULL, &options, &cursor, &error));
            size_t count = 0;
            for (size_t page = 0; page < 11 && (status = tesela_cursor_page(cursor, &count, &error)) == TESELA_OK; page++) {
                assert_true(count > 0 && count <= PAGE);
                for (size_t i = 0; i < count; i++, rows++) {
                    mark_seen(tesela_cursor_row(cursor, i, NULL), seen);
                }
                if (turns == 1 && page == 5) {
                    split("queries");
                }
            }
            const char *next = tesela_cursor_continuation(cursor);
            free(continuation);
            continuation = next ? strdup(next) : NULL;
            tesela_cursor_close(cursor);
            turns++;
            if (!continuation) {
                break;
            }
            assert_null(strstr(continuation, "\"skip\":1")); /* whole pages only */
        }
        assert_int_equal(rows, 1400);
        assert_true(turns > 2);
        tesela_container_close(own);
    }
    char *rows = query_rows(k, "SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.n) ORDER BY c.n", NULL,
                            &(tesela_query_options){.unordered = true, .parallelism = 4, .page_items = PAGE}, NULL);
    check_sequence(rows); /* an ORDER BY holds */
    free(rows);
    size_t n;
    free(query_rows(k, "SELECT * FROM c OFFSET 100 LIMIT 30", NULL, &(tesela_query_options){.unordered = true, .parallelism = 4}, &n));
    assert_int_equal(n, 30);
}

static void errors(void **state) {
    (void)state;
    tesela_cursor *cursor;
    const char *row;
    ok(tesela_query(k, "SELEC x", NULL, NULL, &cursor, &error));
    fails(tesela_cursor_next(cursor, &row, NULL, &error), TESELA_BAD_REQUEST);
    assert_non_null(strstr(error.message, "SC1001"));
    tesela_cursor_close(cursor);
    ok(tesela_query(k, "SELECT DISTINCT VALUE c.id FROM c", NULL, &(tesela_query_options){.memory = 2000}, &cursor, &error));
    tesela_status status;
    while ((status = tesela_cursor_next(cursor, &row, NULL, &error)) == TESELA_OK) {
    }
    fails(status, TESELA_LIMIT);
    tesela_cursor_close(cursor);
    tesela_response *r;
    ok(tesela_query_plan(k, "SELECT TOP 3 * FROM c", NULL, &r, &error));
    assert_non_null(strstr(tesela_response_body(r, NULL), "\"top\":3"));
    tesela_response_free(r);
}

/* Ranges split between the pages of queries that are half read. */
static void splits(void **state) {
    (void)state;
    tesela_cursor *serial, *ordered;
    const char *row;
    size_t n = 0;
    ok(tesela_query(k, "SELECT VALUE c.id FROM c", NULL, &(tesela_query_options){.page_items = 20}, &serial, &error));
    ok(tesela_query(k, "SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.n) ORDER BY c.n", NULL,
                    &(tesela_query_options){.page_items = 20, .parallelism = 4}, &ordered, &error));
    for (int i = 0; i < 30; i++) {
        ok(tesela_cursor_next(serial, &row, NULL, &error));
        ok(tesela_cursor_next(ordered, &row, NULL, &error));
        assert_int_equal(atoi(row), i);
    }
    split("queries");
    free(rows_of(serial, &n));
    assert_int_equal(n, 1402 - 30);
    char *rest = rows_of(ordered, &n);
    assert_int_equal(n, 1400 - 30);
    assert_int_equal(atoi(rest), 30);
    free(rest);
    merged(state);
    order_of_all(state);
    tesela_ranges *ranges;
    ok(tesela_container_ranges(k, &ranges, &error));
    assert_true(tesela_ranges_count(ranges) >= 8);
    assert_null(tesela_ranges_get(ranges, 1000));
    tesela_ranges_free(ranges);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merged),        cmocka_unit_test(order_of_all),  cmocka_unit_test(groups), cmocka_unit_test(parameters),
        cmocka_unit_test(one_partition), cmocka_unit_test(continuations), cmocka_unit_test(errors), cmocka_unit_test(splits),
        cmocka_unit_test(not_continued), cmocka_unit_test(unordered),
    };
    server_start("--throttling", "off", NULL);
    k = container_new("queries", 24000);
    fill(k, 1400, 40);
    if (tesela_item_create(k, "{\"id\":\"a\",\"pk\":\"x\",\"mixed\":\"text\"}", NULL, NULL, NULL, &error) != TESELA_OK ||
        tesela_item_create(k, "{\"id\":\"b\",\"pk\":\"y\",\"mixed\":[1,{\"a\":null}]}", NULL, NULL, NULL, &error) != TESELA_OK) {
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tesela_container_close(k);
    server_stop();
    return failed;
}
