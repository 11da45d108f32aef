/* Queries whose pages run out of time: walks in an order, groups and distinct values go on with what they have, in the continuation or in
 * parts, and give the rows of one page with enough time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "query_pages.h"
#include "rounds.h"

enum { PAIRED_ITEMS = 400 };

/* Rows are few and far apart in the order: some pages return none, and the next ones continue where they stopped. */
static void walk_in_a_hurry(const char *text, const char *expected) {
    run r;
    scope s = {.max = c->tiles->map->ranges[0].max};
    buf rows = buf_init(BUF_NO_LIMIT);
    unsigned pages = 0;
    start_run(&r, &s, text);
    for (hurries = true; r.more && pages < 100; pages++) {
        run_page(&r, 100, false);
        assert_int_equal(r.code, OK);
        if (rows.n && r.out.n) {
            buf_add_byte(&rows, ',');
        }
        buf_add_slice(&rows, buf_view(&r.out));
    }
    hurries = false;
    assert_true(pages >= 4 && pages < 100);
    assert_int_equal(rows.n, strlen(expected));
    assert_memory_equal(rows.p, expected, rows.n);
    buf_free(&rows);
    buf_free(&r.out);
}

static void make_items(unsigned n) {
    harness_open(&h);
    clock_manual_advance(&h.clock, 1000);
    c = harness_container(&h, KEY "}", 400);
    for (unsigned i = 0; i < n; i++) {
        char body[200];
        snprintf(body, sizeof body, "{\"id\":\"%u\",\"pk\":\"%u\",\"n\":%u%s}", i, i, i / 2, i % 40 ? ",\"s\":\"x\"" : "");
        assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
    }
}

static void make_pairs(void) {
    make_items(PAIRED_ITEMS);
}

static void a_walk_out_of_time_goes_on(void **state) {
    (void)state;
    make_pairs();
    walk_in_a_hurry("SELECT VALUE c.id FROM c WHERE ENDSWITH(c.id, '77') ORDER BY c.n", "\"77\",\"177\",\"277\",\"377\"");
    walk_in_a_hurry("SELECT VALUE c.id FROM c WHERE ENDSWITH(c.id, '77') ORDER BY c.n DESC", "\"377\",\"277\",\"177\",\"77\"");
    walk_in_a_hurry("SELECT VALUE c.id FROM c WHERE ENDSWITH(c.id, '60') ORDER BY c.s", "\"160\",\"360\",\"60\",\"260\"");
    walk_in_a_hurry("SELECT VALUE c.id FROM c WHERE ENDSWITH(c.id, '60') ORDER BY c.s DESC", "\"260\",\"60\",\"360\",\"160\"");
    container_give(c);
    harness_close(&h);
}

#define COUNTS "{\"n\": {\"item\": COUNT(1)}, \"s\": {\"item\": SUM(c.n)}} AS payload FROM c"

/* Reads all rows, and returns the stages that its pages reached. Pages of a rewritten query must have rows, since some clients take an
 * empty page for the end. */
static unsigned read_in_a_hurry(const char *text, size_t rows_max, buf *rows, err *code_out) {
    run r;
    scope s = {.max = c->tiles->map->ranges[0].max};
    unsigned stages = 0;
    start_run(&r, &s, text);
    for (unsigned pages = 0; r.more; pages++) {
        assert_true(pages < 1000);
        hurries = true;
        run_page(&r, rows_max, false);
        hurries = false;
        buf_add(rows, ",", rows->n && r.out.n);
        buf_add_slice(rows, buf_view(&r.out));
        stages |= r.more ? 1u << r.position.stage : 0;
        assert_true(r.out.n || !r.more || !query_is_rewritten(&r.query));
    }
    *code_out = r.code;
    buf_free(&r.out);
    return stages;
}

static void expect_in_a_hurry(const char *text, size_t rows_max, unsigned stages, const char *expected) {
    buf rows = buf_init(BUF_NO_LIMIT);
    err code;
    unsigned seen = read_in_a_hurry(text, rows_max, &rows, &code);
    assert_int_equal(code, OK);
    assert_string_equal(arena_text(&h.arena, buf_view(&rows)), expected);
    assert_int_equal(seen, stages);
    buf_free(&rows);
}

/* Groups so far go into the continuation: many pages give the same rows as one. */
static void groups_out_of_time_go_on(void **state) {
    (void)state;
    enum { WHOLE = 1 << STAGE_WHOLE, CARRIED = 1 << STAGE_CARRIED, FOUND = 1 << STAGE_FOUND };
    make_pairs();
    expect_in_a_hurry("SELECT VALUE COUNT(1) FROM c WHERE ENDSWITH(c.id, '7')", 100, CARRIED, "40");
    expect_in_a_hurry("SELECT VALUE [COUNT(1), SUM(c.n), AVG(c.n), MIN(c.id), MAX(c.id), COUNTIF(c.n < 5)] FROM c", 100, CARRIED,
                      "[400,39800,99.5,\"0\",\"99\",10]");
    expect_in_a_hurry("SELECT VALUE [MAKESET(c.n % 3), MIN(c.none), SUM(c.id)] FROM c", 100, CARRIED, "[[0,1,2],null,null]");
    expect_in_a_hurry("SELECT VALUE MAKELIST(c.n) FROM c WHERE c.n % 50 = 1", 100, CARRIED, "[1,1,51,51,101,101,151,151]");
    expect_in_a_hurry("SELECT c.n % 4 AS r, COUNT(1) AS n FROM c GROUP BY c.n % 4", 3, CARRIED | FOUND,
                      "{\"r\":0,\"n\":100},{\"r\":1,\"n\":100},{\"r\":2,\"n\":100},{\"r\":3,\"n\":100}");
    expect_in_a_hurry("SELECT VALUE SUM(c.n) FROM c", 1, CARRIED, "39800"); /* begins with index entries, continues with items */
    expect_in_a_hurry("SELECT c.s, COUNT(1) AS n FROM c GROUP BY c.s", 1, WHOLE, "{\"n\":10},{\"s\":\"x\",\"n\":390}");
    expect_in_a_hurry("SELECT DISTINCT VALUE c.n % 3 FROM c", 2, CARRIED | FOUND, "0,1,2");
    expect_in_a_hurry("SELECT DISTINCT TOP 2 VALUE c.n % 3 FROM c", 1, CARRIED | FOUND, "0,1");
    expect_in_a_hurry("SELECT VALUE MAX(c.n = 1 ? EXP(1000) : c.n) FROM c", 9, CARRIED, "null"); /* infinity becomes null in JSON only */
    expect_in_a_hurry("SELECT DISTINCT VALUE c.n % 3 = 0 ? EXP(1000) : c.n % 3 = 1 ? LOG(0) : null FROM c", 1, CARRIED | FOUND,
                      "null,null,null");
    expect_in_a_hurry("SELECT VALUE COUNT(1) FROM (SELECT VALUE c.n FROM c) AS n WHERE n > 100", 9, CARRIED, "198");
    expect_in_a_hurry("SELECT DISTINCT VALUE [c.n % 3, c.none] FROM c WHERE c.n < 1", 2, 0, "[0,null]");
    container_give(c);
    harness_close(&h);
}

/* The sum of the numbers that follow a word. */
static double sum_of(buf *rows, const char *word) {
    double sum = 0;
    buf_add_byte(rows, 0);
    for (const char *at = strstr(rows->p, word); at; at = strstr(at + 1, word)) {
        sum += strtod(at + strlen(word), NULL);
    }
    rows->n--;
    return sum;
}

static uint64_t count_of(const buf *rows, const char *word) {
    uint64_t n = 0;
    for (const char *at = rows->n ? memmem(rows->p, rows->n, word, strlen(word)) : NULL; at; n++) {
        at++;
        at = memmem(at, rows->n - (size_t)(at - rows->p), word, strlen(word));
    }
    return n;
}

/* There are more groups than are returned between two reads of the clock. */
static void returning_groups_makes_progress(void **state) {
    (void)state;
    buf rows = buf_init(BUF_NO_LIMIT);
    err code;
    make_pairs();
    unsigned stages = read_in_a_hurry("SELECT VALUE c.n % 150 FROM c GROUP BY c.n % 150", 1000, &rows, &code);
    assert_int_equal(code, OK);
    assert_true(stages & 1 << STAGE_FOUND);
    assert_int_equal(count_of(&rows, ","), 150 - 1);

    rows.n = 0; /* the number that docs/query.md promises */
    read_in_a_hurry("SELECT c.n % 100 AS k, COUNT(1) AS n FROM c GROUP BY c.n % 100", 1000, &rows, &code);
    assert_int_equal(code, OK);
    assert_int_equal(sum_of(&rows, "\"n\":"), PAIRED_ITEMS);
    buf_free(&rows);
    container_give(c);
    harness_close(&h);
}

/* Groups that were returned before the deadline passed are not returned again in parts. */
static void parts_go_on_behind_what_was_given(void **state) {
    (void)state;
    buf rows = buf_init(BUF_NO_LIMIT);
    run r;
    scope s = {.max = epk_max()};
    make_pairs();
    start_run(
        &r, &s,
        "SELECT [{\"item\": c.n * 77 % 200}] AS groupByItems, {\"n\": {\"item\": COUNT(1)}} AS payload FROM c GROUP BY c.n * 77 % 200");
    for (; r.more; hurries = true) {
        run_page(&r, hurries ? 2 : 150, false); /* so small that all groups of a part may have been returned before */
        assert_int_equal(r.code, OK);
        buf_add_slice(&rows, buf_view(&r.out));
    }
    hurries = false;
    assert_int_equal(sum_of(&rows, "\"n\":{\"item\":"), PAIRED_ITEMS);
    buf_free(&rows);
    buf_free(&r.out);
    container_give(c);
    harness_close(&h);
}

/* The deadline passes after everything was read and before anything was returned: the rows are returned nevertheless. */
static void groups_read_in_time_are_returned(void **state) {
    (void)state;
    buf rows = buf_init(BUF_NO_LIMIT);
    err code;
    make_items(63); /* the clock is read at the 64th */
    assert_int_equal(
        read_in_a_hurry("SELECT [{\"item\": LENGTH(c.id)}] AS groupByItems, " COUNTS " GROUP BY LENGTH(c.id)", 100, &rows, &code), 0);
    assert_int_equal(sum_of(&rows, "\"n\":{\"item\":"), 63);
    rows.n = 0;
    assert_int_equal(read_in_a_hurry("SELECT VALUE [{\"item\": SUM(c.n + 0 * LENGTH(c.id))}] FROM c", 100, &rows, &code), 0);
    assert_int_equal(sum_of(&rows, "{\"item\":"), 961);
    buf_free(&rows);
    container_give(c);
    harness_close(&h);
}

static int64_t asked; /* the clock's time: the number of times it was read */

static int64_t count_asked(const clock_source *clock) {
    (void)clock;
    return ++asked;
}

/* The first items have no row, and the others more groups than fit a page. Items are read again as a part, with enough time to reach some
 * rows. */
static void a_part_has_time(void **state) {
    (void)state;
    run r;
    scope s = {.max = epk_max()};
    uint64_t rows = 0;
    make_pairs();
    clock_source kept = h.clock.source;
    h.clock.source.monotonic_us = count_asked;
    start_run(&r, &s, "SELECT [{\"item\": c.id}] AS groupByItems, " COUNTS " WHERE c.n * 1 > 50 GROUP BY c.id");
    while (r.more) {
        run_page_until(&r, 10, true, asked + 6);
        assert_int_equal(r.code, OK);
        rows += count_of(&r.out, "groupByItems");
    }
    h.clock.source = kept;
    assert_int_equal(rows, PAIRED_ITEMS - 2 * 51);
    buf_free(&r.out);
    container_give(c);
    harness_close(&h);
}

/* Random pages of parts, with ranges changing in between, give the same counts and sums. */
static void parts_add_up(void **state) {
    (void)state;
    static const char *const texts[] = {
        "SELECT [{\"item\": c.n}] AS groupByItems, " COUNTS " GROUP BY c.n",
        "SELECT [{\"item\": c.n % 7}] AS groupByItems, " COUNTS " GROUP BY c.n % 7",
        "SELECT [{\"item\": x}] AS groupByItems, " COUNTS " JOIN x IN (SELECT VALUE [c.id, c.n, 'all']) GROUP BY x",
        "SELECT [{\"item\": c.s}, {\"item\": c.n}] AS groupByItems, " COUNTS " WHERE c.n > 20 GROUP BY c.s, c.n",
        "SELECT " COUNTS " WHERE c.n > 20",
        "SELECT VALUE [{\"item\": 0, \"n\": {\"item\": COUNT(1)}, \"s\": {\"item\": SUM(c.n)}}] FROM c",
    };
    unsigned gave_up = 0;
    buf parts = buf_init(BUF_NO_LIMIT), whole = buf_init(BUF_NO_LIMIT);
    log_set_level(LOG_WARN);
    random_seed(&dice, 77);
    make_pairs();
    for (seed = 1; seed <= ROUNDS(200); seed++) {
        run r, all;
        scope s = {.max = epk_max()};
        const char *text = texts[roll(sizeof texts / sizeof *texts)];
        parts.n = whole.n = 0;
        start_run(&all, &s, text);
        run_to_the_end(&all, 3000, true, false, &whole);
        start_run(&r, &s, text);
        run_to_the_end(&r, roll(2) ? 3000 : 1 + roll(60), roll(2), true, &parts);
        gave_up += r.code != OK;
        if (r.code == OK && (sum_of(&parts, "\"n\":{\"item\":") != sum_of(&whole, "\"n\":{\"item\":") ||
                             sum_of(&parts, "\"s\":{\"item\":") != sum_of(&whole, "\"s\":{\"item\":"))) {
            fail_msg("seed %lu: %s\n%.*s\nwith time\n%.*s", (unsigned long)seed, text, (int)parts.n, parts.p, (int)whole.n, whole.p);
        }
        buf_free(&r.out);
        buf_free(&all.out);
    }
    assert_true(gave_up * 5 < ROUNDS(200)); /* those where a whole page met no row */
    buf_free(&parts);
    buf_free(&whole);
    container_give(c);
    harness_close(&h);
}

/* After a split, both ranges get the continuation of the original one: what it carries must count once. */
static void carried_groups_count_once_after_a_split(void **state) {
    (void)state;
    run r, part;
    scope s = {.max = epk_max()};
    uint64_t sum = 0;
    epk cut;
    make_pairs();
    assert_true(epk_middle(&c->key, &s.min, &s.max, &cut));
    start_run(&r, &s, "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0 OR c.none");
    hurries = true;
    for (int i = 0; i < 3; i++) {
        run_page(&r, 10, true);
    }
    hurries = false;
    assert_int_equal(r.position.stage, STAGE_CARRIED);
    for (int i = 0; i < 2; i++) {
        part = r;
        part.out = buf_init(BUF_NO_LIMIT);
        part.cursor.stretches[0].min = i ? cut : s.min;
        part.cursor.stretches[0].max = i ? s.max : cut;
        assert_int_equal(sql_position_claim(&part.position, &part.cursor.stretches[0].min), OK);
        run_page(&part, 10, true);
        assert_int_equal(part.code, OK);
        assert_false(part.more);
        sum += strtoul(arena_text(&h.arena, buf_view(&part.out)), NULL, 10);
        buf_free(&part.out);
    }
    assert_int_equal(sum, PAIRED_ITEMS);
    part = r; /* carried by the second range only, but used for both: the first would be missing */
    part.position.carried_from = epk_view(&cut);
    assert_int_equal(sql_position_claim(&part.position, &s.min), E_BAD_CONTINUATION);
    buf_free(&r.out);
    container_give(c);
    harness_close(&h);
}

/* Entries tell how many items there are in all, not how many come after an item. */
static void a_stretch_that_was_begun_is_counted_by_items(void **state) {
    (void)state;
    run r;
    scope s = {.max = epk_max()};
    make_pairs();
    for (int scans = 0; scans < 2; scans++) {
        start_run(&r, &s, "SELECT VALUE COUNT(1) FROM c");
        r.cursor.stretches[0].after = PAIRED_ITEMS - 100;
        run_page(&r, 10, scans);
        assert_int_equal(r.code, OK);
        assert_string_equal(arena_text(&h.arena, buf_view(&r.out)), "100");
        buf_free(&r.out);
    }
    container_give(c);
    harness_close(&h);
}

/* The groups are too large to be carried: a client that merges gets parts, another client gets an error. */
static void groups_too_many_come_in_parts(void **state) {
    (void)state;
    buf rows = buf_init(BUF_NO_LIMIT);
    err code;
    make_pairs();
    unsigned stages = read_in_a_hurry("SELECT [{\"item\": LOWER(c.id)}] AS groupByItems, {\"n\": {\"item\": COUNT(1)}} AS payload FROM c "
                                      "GROUP BY LOWER(c.id)",
                                      10, &rows, &code);
    assert_int_equal(code, OK);
    assert_true(stages & 1 << STAGE_PARTS);
    assert_int_equal(count_of(&rows, "\"payload\":{\"n\":{\"item\":1}}"), PAIRED_ITEMS);
    assert_int_equal(count_of(&rows, "{\"item\":\"399\"}"), 1);

    rows.n = 0; /* a page may end between the two items of a pair: then its group comes twice */
    read_in_a_hurry("SELECT [{\"item\": c.n}] AS groupByItems, {\"n\": {\"item\": COUNT(1)}} AS payload FROM c GROUP BY c.n", 7, &rows,
                    &code);
    assert_int_equal(code, OK);
    assert_int_equal(sum_of(&rows, "\"n\":{\"item\":"), PAIRED_ITEMS);

    rows.n = 0; /* all rows of an item are in one part */
    read_in_a_hurry("SELECT [{\"item\": x}] AS groupByItems, {\"n\": {\"item\": COUNT(1)}} AS payload FROM c JOIN x IN (SELECT VALUE "
                    "[c.id, c.n, 'all']) GROUP BY x",
                    8, &rows, &code);
    assert_int_equal(code, OK);
    assert_int_equal(sum_of(&rows, "\"n\":{\"item\":"), 3 * PAIRED_ITEMS);

    rows.n = 0; /* begins with index entries, which make no part */
    stages = read_in_a_hurry("SELECT VALUE [{\"item\": SUM(c.n)}] FROM c", 1, &rows, &code);
    assert_int_equal(code, OK);
    assert_int_equal(stages, 1 << STAGE_PARTS);
    assert_int_equal(sum_of(&rows, "{\"item\":"), 39800);

    rows.n = 0; /* no item has this property: all are read, and each part returns one sum */
    stages = read_in_a_hurry("SELECT VALUE [{\"item\": SUM(c.n * c.none)}] FROM c", 1, &rows, &code);
    assert_int_equal(code, OK);
    assert_int_equal(stages, 1 << STAGE_PARTS);
    assert_int_equal(count_of(&rows, "[{\"item\":0}]"), PAIRED_ITEMS / 63 + 1);

    rows.n = 0; /* not a number: the first part gives the final result */
    read_in_a_hurry("SELECT VALUE [{\"item\": SUM(c.id)}] FROM c", 1, &rows, &code);
    assert_int_equal(code, OK);
    assert_string_equal(arena_text(&h.arena, buf_view(&rows)), "[{}]");

    rows.n = 0;
    read_in_a_hurry("SELECT {\"n\": {\"item\": COUNT(1)}, \"m\": {\"item\": MAX(c.n)}} AS payload FROM c WHERE c.n < 0", 1, &rows, &code);
    assert_int_equal(code, OK);
    assert_true(count_of(&rows, "{\"payload\":{\"n\":{\"item\":0},\"m\":{}}}") >= 1);

    rows.n = 0; /* no group within the time of a page: an error, since a page must have rows */
    read_in_a_hurry(
        "SELECT [{\"item\": c.n}] AS groupByItems, {\"n\": {\"item\": COUNT(1)}} AS payload FROM c WHERE ENDSWITH(c.id, 'x') GROUP BY c.n",
        7, &rows, &code);
    assert_int_equal(code, E_QUERY_TOO_LONG);

    rows.n = 0; /* the lists take megabytes: parts of few items */
    stages = read_in_a_hurry(
        "SELECT VALUE [{\"item\": MAKELIST([REPLICATE('x', 10000), REPLICATE('y', 10000), REPLICATE('z', 10000), c.n * c.n])}] FROM c", 1,
        &rows, &code);
    assert_int_equal(code, OK);
    assert_int_equal(stages, 1 << STAGE_PARTS);
    assert_true(count_of(&rows, "item") > PAIRED_ITEMS / 63 + 2); /* more parts than time alone would give */

    rows.n = 0;
    read_in_a_hurry("SELECT VALUE [{\"item\": MAKELIST(c.n * 1000000000000 + 1)}] FROM c", 7, &rows, &code);
    assert_int_equal(code, OK);
    assert_int_equal(count_of(&rows, "000000000001"), PAIRED_ITEMS - 2);

    rows.n = 0;
    read_in_a_hurry("SELECT DISTINCT VALUE CONCAT(c.id, 'abcdefghijklmnopqrstuvwxyz') FROM c", 7, &rows, &code);
    assert_int_equal(code, E_QUERY_TOO_LONG); /* a client of DISTINCT may not merge, so it gets no parts */
    read_in_a_hurry("SELECT LOWER(c.id) AS id, COUNT(1) AS n FROM c GROUP BY LOWER(c.id)", 10, &rows, &code);
    assert_int_equal(code, E_QUERY_TOO_LONG);
    read_in_a_hurry("SELECT x AS n, COUNT(1) AS many FROM (SELECT DISTINCT VALUE c.n FROM c) AS x GROUP BY x", 10, &rows, &code);
    assert_int_equal(code, E_QUERY_TOO_LONG); /* gathered rows of a subquery cannot be carried */
    buf_free(&rows);
    container_give(c);
    harness_close(&h);
}

/* ---- rows of JOINs ---- */

enum { JOINED_ITEMS = 40, JOINED_ROWS = 7, JOINED_PAGES = 40 * JOINED_ITEMS * JOINED_ROWS };

static void make_lists(void) {
    harness_open(&h);
    clock_manual_advance(&h.clock, 1000);
    c = harness_container(&h, KEY "}", 400);
    for (unsigned i = 0; i < JOINED_ITEMS; i++) {
        char body[200];
        snprintf(body, sizeof body, "{\"id\":\"%u\",\"pk\":\"%u\",\"list\":[0,1,2,3,4,5,6]}", i, (unsigned)roll(20));
        assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
    }
}

static void count_rows(const run *r, unsigned seen[JOINED_ITEMS][JOINED_ROWS]) {
    const char *at = arena_text(&h.arena, buf_view(&r->out));
    unsigned item, row;
    while ((at = strchr(at, '[')) && sscanf(at, "[\"%u\",%u]", &item, &row) == 2) {
        assert_true(item < JOINED_ITEMS && row < JOINED_ROWS);
        seen[item][row]++;
        at++;
    }
}

/* Small pages end inside items, and ranges change between them: each row comes once. */
static void rows_of_an_item_come_once(void **state) {
    (void)state;
    for (seed = 1; seed <= ROUNDS(40); seed++) {
        random_seed(&dice, seed);
        make_lists();
        run r;
        scope s = {.max = c->tiles->map->ranges[0].max};
        unsigned seen[JOINED_ITEMS][JOINED_ROWS] = {0};
        start_run(&r, &s, "SELECT VALUE [c.id, x] FROM c JOIN x IN c.list");
        for (unsigned pages = 0; r.more; pages++) {
            assert_true(pages < JOINED_PAGES);
            run_page(&r, 1 + roll(5), roll(2));
            assert_int_equal(r.code, OK);
            count_rows(&r, seen);
            if (roll(3) == 0) {
                change_tiles();
            }
        }
        for (unsigned i = 0; i < JOINED_ITEMS * JOINED_ROWS; i++) {
            if (seen[i / JOINED_ROWS][i % JOINED_ROWS] != 1) {
                fail_msg("seed %lu: row %u of item %u came %u times", (unsigned long)seed, i % JOINED_ROWS, i / JOINED_ROWS,
                         seen[i / JOINED_ROWS][i % JOINED_ROWS]);
            }
        }
        buf_free(&r.out);
        container_give(c);
        harness_close(&h);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_walk_out_of_time_goes_on),
        cmocka_unit_test(groups_out_of_time_go_on),
        cmocka_unit_test(groups_too_many_come_in_parts),
        cmocka_unit_test(returning_groups_makes_progress),
        cmocka_unit_test(parts_go_on_behind_what_was_given),
        cmocka_unit_test(groups_read_in_time_are_returned),
        cmocka_unit_test(a_part_has_time),
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(carried_groups_count_once_after_a_split),
        cmocka_unit_test(a_stretch_that_was_begun_is_counted_by_items),
        cmocka_unit_test(rows_of_an_item_come_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
