/* The work of pages with GROUP BY, DISTINCT and OFFSET, counted in items and index entries. If an index has the order, a page's work
 * depends on its rows, not on the size of the container. If none has it, a query that would read everything for each of many pages is
 * rejected early. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/sql/query_position.h"
#include "item_harness.h"
#include "query/exec.h"
#include "rounds.h"

/* FEW are still enough for the partition to have its own index. TOO_MANY without an index exceed LIMIT_QUERY_READS with small pages. */
enum { FEW = SANITIZED ? 600 : 1500, MANY = SANITIZED ? 3000 : 15000, TOO_MANY = 10000, PAGE = 100, PAGES_MAX = 20000 };

/* A text that lives as long as the items. */
#define TEXT(...) arena_text(&h.arena, arena_printf(&h.arena, __VA_ARGS__))

#define KEY "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"
#define POLICY ",\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[{\"path\":\"/u/?\"}]}"

static harness h;
static container *c;

/* x and u are unique numbers, in another order than the items; every tenth item lacks z, the others have it in pairs. */
static unsigned x_of(unsigned i, unsigned n) {
    return (unsigned)((uint64_t)i * 7919 % n);
}

static void open_items(const char *settings, unsigned n) {
    log_set_level(LOG_WARN);
    harness_open(&h);
    clock_manual_advance(&h.clock, 1000);
    c = harness_container(&h, settings, 400);
    for (unsigned i = 0; i < n; i++) {
        char body[256], z[32] = "";
        unsigned x = x_of(i, n);
        if (i % 10) {
            snprintf(z, sizeof z, ",\"z\":\"%05u\"", x / 2);
        }
        snprintf(body, sizeof body, "{\"id\":\"%05u\",\"pk\":\"a\",\"x\":%u,\"u\":%u,\"y\":%u,\"few\":%u%s}", i, x, x, i % 7, i % 3, z);
        assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
    }
}

static void close_items(void) {
    container_give(c);
    harness_close(&h);
}

/* ---- all pages of a query ---- */

typedef struct answer {
    buf rows;
    unsigned pages, empty;
    uint64_t read, most_read;       /* items in all pages; the most in one page */
    uint64_t entries, most_entries; /* likewise */
    double most_ru;
    err code;
    char detail[400];
} answer;

typedef struct asked {
    const char *text;
    const char *partition; /* NULL: all ranges */
    size_t rows_max;
    bool scans;
    bool hurries;  /* the deadline of every page has passed */
    size_t memory; /* limit for a page; 0: none */
} asked;

static void add_page(answer *a, const query_page *p, const buf *out) {
    if (a->rows.n && out->n) {
        buf_add_byte(&a->rows, ',');
    }
    buf_add_slice(&a->rows, buf_view(out));
    a->pages++;
    a->empty += p->outcome.rows == 0;
    a->read += p->outcome.metrics.read;
    a->entries += p->outcome.metrics.entries;
    a->most_read = p->outcome.metrics.read > a->most_read ? p->outcome.metrics.read : a->most_read;
    a->most_entries = p->outcome.metrics.entries > a->most_entries ? p->outcome.metrics.entries : a->most_entries;
    a->most_ru = p->ask.op->charge_ru > a->most_ru ? p->ask.op->charge_ru : a->most_ru;
}

/* Writes the position as a continuation and reads it back, as a client would. */
static query_position through_continuation(const query *q, op *o, const query_position *at) {
    buf text = buf_init(BUF_NO_LIMIT);
    slice rest;
    query_position back;
    sql_position_write(&text, &h.arena, q, at);
    assert_int_equal(sql_position_read(o->arena, arena_copy(&h.arena, buf_view(&text)), q, &back, &rest), OK);
    buf_free(&text);
    return back;
}

static answer ask(asked how) {
    answer a = {.rows = buf_init(BUF_NO_LIMIT)};
    op *o = harness_op(&h);
    query q;
    item_key key;
    item_cursor cursor = {.n = 1, .stretches = {{.min = epk_min(), .max = epk_max()}}};
    query_position position = {0};
    buf out = buf_init(BUF_NO_LIMIT);
    if (how.partition) {
        pkey *header = arena_new(&h.arena, pkey);
        assert_int_equal(pkey_parse(o, slice_str(how.partition), header), OK);
        assert_int_equal(item_check_key(o, c, header, SLICE_EMPTY, &key), OK);
        cursor.partition = &key;
    }
    assert_int_equal(query_prepare(o, &h.arena, slice_str(how.text), NULL, 0, NULL, &q), OK);
    for (bool more = true; more && a.code == OK;) {
        assert_true(a.pages < PAGES_MAX);
        o = harness_op(&h);
        budget memory = budget_init(NULL, how.memory);
        o->budget = how.memory ? &memory : NULL;
        out.n = 0;
        query_page p;
        query_page_init(&p, harness_items(&h), o, c, &q, &cursor, &out);
        p.position = position;
        p.ask.rows_max = how.rows_max;
        p.ask.until_us = how.hurries;
        p.ask.scans = how.scans;
        a.code = query_position_restore(&p);
        a.code = a.code == OK ? query_run_page(&p) : a.code;
        more = p.outcome.more;
        add_page(&a, &p, &out);
        o->budget = NULL;
        assert_int_equal(memory.used, 0);
        snprintf(a.detail, sizeof a.detail, "%.*s", (int)o->detail_n, o->detail);
        if (a.code == OK && more) {
            position = through_continuation(&q, o, &p.position);
        }
    }
    buf_free(&out);
    return a;
}

static void assert_same(const char *text, const answer *a, const answer *b) {
    if (a->code != OK || b->code != OK) {
        fail_msg("%s: %s, %s", text, err_lookup(a->code)->name, err_lookup(b->code)->name);
    }
    if (!slice_eq(buf_view(&a->rows), buf_view(&b->rows))) {
        fail_msg("%s\n%.*s\nnot as\n%.*s", text, (int)(a->rows.n < 2000 ? a->rows.n : 2000), a->rows.p,
                 (int)(b->rows.n < 2000 ? b->rows.n : 2000), b->rows.p);
    }
}

static uint64_t count_of(const buf *rows, char mark) {
    uint64_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        n += rows->p[i] == mark;
    }
    return n;
}

/* ---- in the order of an index ---- */

static const struct {
    const char *text;
    uint64_t loads, entries; /* limits for a page of PAGE rows */
} in_order[] = {
    {"SELECT DISTINCT VALUE c.x FROM c", 0, 2 * PAGE},
    {"SELECT DISTINCT c.x FROM c", 0, 2 * PAGE},
    {"SELECT DISTINCT VALUE c.z FROM c", 0, 3 * PAGE},
    {"SELECT DISTINCT VALUE c.x FROM c WHERE c.x > 50", 0, 2 * PAGE},
    {"SELECT DISTINCT VALUE c.x FROM c WHERE c.y != 3", 2 * PAGE, 4 * PAGE},
    {"SELECT DISTINCT c.x, c.y FROM c", 2 * PAGE, 4 * PAGE},
    {"SELECT DISTINCT c.x AS a, UPPER(c.id) AS b FROM c WHERE c.few != 0", 2 * PAGE, 5 * PAGE},
    {"SELECT c.x, COUNT(1) AS n FROM c GROUP BY c.x", 0, 2 * PAGE},
    {"SELECT c.x, SUM(c.y) AS n FROM c GROUP BY c.x", 2 * PAGE, 4 * PAGE},
    {"SELECT c.x, c.y, MAX(c.id) AS n FROM c GROUP BY c.x, c.y", 2 * PAGE, 4 * PAGE},
    {"SELECT c.x, COUNT(1) AS n, COUNT(t) AS m FROM c JOIN t IN (SELECT VALUE [c.id, c.y]) GROUP BY c.x", 2 * PAGE, 4 * PAGE},
    {"SELECT [{\"item\": c.x}] AS groupByItems, {\"n\": {\"item\": SUM(c.y)}} AS payload FROM c GROUP BY c.x", 2 * PAGE, 4 * PAGE},
    {"SELECT VALUE c.id FROM c ORDER BY c.x", 2 * PAGE, 2 * PAGE},
};

static void answer_in_order(unsigned n, double *ru) {
    for (size_t i = 0; i < sizeof in_order / sizeof *in_order; i++) {
        const char *text = in_order[i].text;
        for (int scoped = 0; scoped < 2; scoped++) {
            const char *partition = scoped ? "[\"a\"]" : NULL;
            answer all = ask((asked){text, partition, MANY + 1, true, false, 0}), a = ask((asked){text, partition, PAGE, false, false, 0});
            assert_same(text, &a, &all);
            assert_true(a.pages >= n / 2 / PAGE);
            if (a.most_read > in_order[i].loads || a.most_entries > in_order[i].entries) {
                fail_msg("%s: %lu items and %lu entries for a page of %u items", text, (unsigned long)a.most_read,
                         (unsigned long)a.most_entries, n);
            }
            ru[i] = a.most_ru;
            buf_free(&a.rows);
            buf_free(&all.rows);
        }
    }
}

static double few[sizeof in_order / sizeof *in_order]; /* RU of a page with FEW items; that test runs first */

static void pages_of_few_items(void **state) {
    (void)state;
    answer_in_order(FEW, few);
}

static void pages_cost_what_they_show(void **state) {
    (void)state;
    double many[sizeof in_order / sizeof *in_order];
    answer_in_order(MANY, many);
    for (size_t i = 0; i < sizeof in_order / sizeof *in_order; i++) {
        if (fabs(many[i] - few[i]) > (SANITIZED ? 0.01 : 0) * few[i]) { /* among few pages the most expensive one is slightly cheaper */
            fail_msg("%s: %.3f RU of few items, %.3f of many", in_order[i].text, few[i], many[i]);
        }
    }
}

/* Items without the lead have a group too. If there are few groups, items are read by number, not one by one in key order. */
static void groups_of_few_values_are_read_in_turn(void **state) {
    (void)state;
    answer a = ask((asked){"SELECT VALUE [c.few, SUM(c.y)] FROM c GROUP BY c.few", NULL, PAGE, false, false, 0});
    assert_int_equal(a.code, OK);
    assert_int_equal(a.pages, 1);
    assert_int_equal(a.read, FEW);
    assert_int_equal(count_of(&a.rows, '['), 3);
    buf_free(&a.rows);
    answer z = ask((asked){"SELECT c.z, COUNT(1) AS n FROM c GROUP BY c.z", NULL, 1, false, false, 0});
    answer all = ask((asked){"SELECT c.z, COUNT(1) AS n FROM c GROUP BY c.z", NULL, MANY, true, false, 0});
    assert_same("by z", &z, &all);
    assert_int_equal(z.empty, 0);
    const char *first = TEXT("{\"n\":%d},{\"z\":\"00000\",", FEW / 10);
    assert_memory_equal(z.rows.p, first, strlen(first));
    buf_free(&z.rows);
    buf_free(&all.rows);
}

/* Many keys begin with one of few values: once a page has enough keys, it reads no more than the items of that value. */
static void many_keys_of_few_values(void **state) {
    (void)state;
    static const char *const texts[] = {"SELECT DISTINCT c.few, c.x FROM c",
                                        "SELECT c.few AS a, c.x AS b, COUNT(1) AS n FROM c GROUP BY c.few, c.x"};
    for (size_t i = 0; i < 2; i++) { /* a third of all items is too many to load in key order: they are read by number */
        answer all = ask((asked){texts[i], NULL, MANY + 1, true, false, 0}), a = ask((asked){texts[i], NULL, MANY / 6, false, false, 0});
        assert_same(texts[i], &a, &all);
        buf_free(&a.rows);
        buf_free(&all.rows);
    }
    answer by_y = ask((asked){"SELECT DISTINCT c.y AS a, c.x AS b FROM c", NULL, MANY / 30, false, false, 0});
    answer all = ask((asked){"SELECT DISTINCT c.y AS a, c.x AS b FROM c", NULL, MANY + 1, true, false, 0});
    assert_same("by y", &by_y, &all);
    assert_true(
        by_y.most_read <
        MANY / 2); /* a page has items of at most two of the seven values of y, and some that were read before it switched to that order */
    buf_free(&by_y.rows);
    buf_free(&all.rows);
}

/* A group of many items precedes many small groups: a page after it reads the items of its own groups only. */
static void one_large_group_before_many_small_ones(void **state) {
    (void)state;
    static const char text[] = "SELECT c.g, SUM(c.y) AS s FROM c GROUP BY c.g";
    harness_open(&h);
    clock_manual_advance(&h.clock, 1000);
    c = harness_container(&h, KEY "}", 400);
    for (unsigned i = 0; i < MANY; i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"id\":\"%u\",\"pk\":\"a\",\"y\":1,\"g\":%u}", i, i % 5 ? i : 0);
        assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
    }
    answer all = ask((asked){text, NULL, MANY + 1, true, false, 0}), a = ask((asked){text, NULL, 2, false, false, 0});
    assert_same(text, &a, &all);
    assert_true(a.most_read < MANY / 4); /* a fifth of them, and some items before the switch */
    assert_true(a.read < 4 * MANY);
    buf_free(&a.rows);
    buf_free(&all.rows);
    close_items();
}

/* ---- several ranges ---- */

static void put_group(const char *pk, unsigned a, unsigned b, bool shown) {
    static unsigned id;
    char body[128];
    snprintf(body, sizeof body, "{\"id\":\"%u\",\"pk\":\"%s\",\"a\":%u,\"b\":%u%s}", id++, pk, a, b, shown ? ",\"m\":1" : "");
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
}

/* One partition has small keys, the first of which have no row; another has many larger keys that share their first value. A page that
 * skips keys without rows must not go beyond the keys that all ranges were read to. */
static void expect_all_groups(const char *small, const char *large) {
    static const char text[] = "SELECT VALUE MAX(c.m) + c.a FROM c GROUP BY c.a, c.b";
    harness_open(&h);
    clock_manual_advance(&h.clock, 1000);
    c = harness_container(&h, KEY "}", 30000);
    for (unsigned a = 0; a < 10; a++) {
        put_group(small, a, a, a > 6);
    }
    for (unsigned b = 0; b < 6; b++) {
        put_group(large, 9, 10 + b, true);
    }
    put_group(large, 10, 0, true);
    answer all = ask((asked){text, NULL, MANY, true, false, 0}), a = ask((asked){text, NULL, 2, false, false, 0});
    assert_int_equal(count_of(&all.rows, ','), 9);
    assert_same(text, &a, &all);
    buf_free(&a.rows);
    buf_free(&all.rows);
    close_items();
}

static void ranges_are_read_to_one_key(void **state) {
    (void)state;
    static const char *const pks[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < 4; j++) {
            expect_all_groups(pks[i], pks[j]);
        }
    }
}

/* ---- OFFSET ---- */

static void expect_rows(const char *text, bool hurries, uint64_t loads, const char *expected) {
    answer a = ask((asked){text, "[\"a\"]", PAGE, false, hurries, 0});
    assert_int_equal(a.code, OK);
    buf_add_byte(&a.rows, 0);
    assert_string_equal(a.rows.p, expected);
    if (a.read > loads) {
        fail_msg("%s: %lu items were loaded", text, (unsigned long)a.read);
    }
    assert_true(!hurries || a.empty > 0);
    buf_free(&a.rows);
}

static void offset_is_passed_by_entries(void **state) {
    (void)state;
    const char *last = TEXT("%d,%d,%d", MANY - 10, MANY - 9, MANY - 8), *inner = TEXT("{\"x\":%d},{\"x\":%d}", MANY - 900, MANY - 899);
    for (int hurries = 0; hurries < 2; hurries++) { /* after a passed deadline, the next page continues to count where this one stopped */
        uint64_t loads = hurries ? MANY / 15 : 20;
        expect_rows(TEXT("SELECT VALUE c.x FROM c ORDER BY c.x OFFSET %d LIMIT 3", MANY - 10), hurries, loads, last);
        expect_rows(TEXT("SELECT VALUE {a: c.x} FROM c ORDER BY c.x DESC OFFSET %d LIMIT 3", MANY - 10), hurries, loads,
                    "{\"a\":9},{\"a\":8},{\"a\":7}");
        expect_rows(TEXT("SELECT c.x FROM c WHERE c.x >= 100 AND c.x < %d ORDER BY c.x OFFSET %d LIMIT 2", MANY - 500, MANY - 1000),
                    hurries, loads, inner);
        expect_rows(TEXT("SELECT c.z FROM c ORDER BY c.z OFFSET %d LIMIT 1", MANY / 10 - 100), hurries, loads,
                    "{}"); /* items without z come first */
        expect_rows(TEXT("SELECT VALUE c.z FROM c ORDER BY c.z DESC OFFSET %d LIMIT 5", MANY / 10 * 9 - 1), hurries, MANY / 15 * 2,
                    "\"00000\"");
        expect_rows(TEXT("SELECT VALUE c.x FROM c WHERE c.u != 5 ORDER BY c.x OFFSET %d LIMIT 2", MANY - 10), hurries, 2 * MANY,
                    TEXT("%d,%d", MANY - 9, MANY - 8));
    }
}

static void offset_of_keys(void **state) {
    (void)state;
    enum { LATE = MANY / 5 * 4 };
    expect_rows(TEXT("SELECT DISTINCT VALUE c.x FROM c OFFSET %d LIMIT 3", LATE), false, 0, TEXT("%d,%d,%d", LATE, LATE + 1, LATE + 2));
    expect_rows(TEXT("SELECT VALUE [c.x, COUNT(1)] FROM c GROUP BY c.x OFFSET %d LIMIT 2", LATE), false, 0,
                TEXT("[%d,1],[%d,1]", LATE, LATE + 1));
    expect_rows(TEXT("SELECT VALUE [c.x, SUM(c.x)] FROM c GROUP BY c.x OFFSET %d LIMIT 2", LATE), false, MANY,
                TEXT("[%d,%d],[%d,%d]", LATE, LATE, LATE + 1, LATE + 1));
    expect_rows(TEXT("SELECT DISTINCT VALUE c.u FROM c OFFSET %d LIMIT 2", LATE), false, MANY, TEXT("%d,%d", LATE, LATE + 1));
    expect_rows(TEXT("SELECT DISTINCT VALUE c.x FROM c OFFSET %d LIMIT 30", MANY - 2), true, 0, TEXT("%d,%d", MANY - 2, MANY - 1));
}

/* Skipped rows are charged. */
static void offset_costs_in_proportion(void **state) {
    (void)state;
    enum { EARLY = 1000, LATE = MANY / 15 * 13 };
    static const char *const texts[] = {
        "SELECT VALUE c.x FROM c ORDER BY c.x",
        "SELECT DISTINCT VALUE c.x FROM c",
        "SELECT VALUE COUNT(1) FROM c GROUP BY c.x",
    };
    for (size_t i = 0; i < 3; i++) {
        answer early = ask((asked){TEXT("%s OFFSET %d LIMIT 3", texts[i], EARLY), "[\"a\"]", PAGE, false, false, 0}),
               late = ask((asked){TEXT("%s OFFSET %d LIMIT 3", texts[i], LATE), "[\"a\"]", PAGE, false, false, 0});
        assert_true(fabs(late.most_ru - early.most_ru - 0.001 * (LATE - EARLY)) < 0.02); /* 0.001 RU for each */
        buf_free(&early.rows);
        buf_free(&late.rows);
    }
}

/* ---- without an index ---- */

static void keys_without_an_index(void **state) {
    (void)state;
    static const char *const texts[] = {
        "SELECT DISTINCT VALUE c.u FROM c",
        "SELECT c.u, SUM(c.y) AS s, MAX(c.id) AS m, MAKELIST(c.id) AS l, MAKESET(c.few) AS f FROM c GROUP BY c.u",
        "SELECT DISTINCT VALUE c.x * 2 FROM c",
        "SELECT VALUE c.u < 2000 ? undefined : c.u FROM c GROUP BY c.u", /* more keys without a row than fit a page */
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        answer all = ask((asked){texts[i], NULL, MANY, true, false, 0}), a = ask((asked){texts[i], NULL, 7, false, false, 0});
        assert_same(texts[i], &a, &all);
        buf_free(&a.rows);
        buf_free(&all.rows);
    }
}

/* A page holds about twice the keys that it returns, however many keys there are. */
static void memory_is_that_of_a_page(void **state) {
    (void)state;
    enum { ROWS = MANY / 30, BYTES = MANY * 400 };
    const char *const texts[] = {
        "SELECT DISTINCT VALUE c.u FROM c",
        "SELECT c.u, SUM(c.y) AS s, MAX(c.id) AS m, MAKELIST(c.id) AS l FROM c GROUP BY c.u",
        "SELECT DISTINCT c.x, c.y FROM c",
        TEXT("SELECT DISTINCT VALUE c.x FROM c OFFSET %d LIMIT 50", MANY - 1000),
        TEXT("SELECT VALUE c.id FROM c WHERE c.y != 3 ORDER BY c.x OFFSET %d LIMIT 50", MANY / 5 * 4),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        answer all = ask((asked){texts[i], "[\"a\"]", MANY + 1, true, false, 0});
        answer a = ask((asked){texts[i], "[\"a\"]", ROWS, false, false, BYTES});
        assert_same(texts[i], &a, &all);
        buf_free(&a.rows);
        buf_free(&all.rows);
    }
    answer all = ask((asked){texts[1], NULL, MANY + 1, true, false, BYTES}); /* all keys at once need more memory */
    assert_int_equal(all.code, E_MEMORY);
    buf_free(&all.rows);
}

static void too_many_pages_are_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"SELECT DISTINCT VALUE c.u FROM c", "SELECT c.u, COUNT(1) AS n FROM c GROUP BY c.u",
                                        "SELECT DISTINCT VALUE c FROM c"};
    for (size_t i = 0; i < 3; i++) {
        answer a = ask((asked){texts[i], NULL, 1, false, false, 0});
        assert_int_equal(a.code, E_BAD_REQUEST);
        assert_non_null(strstr(a.detail, "10000 items for each of more than"));
        assert_non_null(strstr(a.detail, "indexed property"));
        assert_int_equal(a.pages, 1);
        assert_true(a.read < TOO_MANY / 2);
        assert_true(a.most_ru > 35); /* the work done is charged */
        buf_free(&a.rows);
        a = ask((asked){texts[i], NULL, 2500, false, false, 0});
        assert_int_equal(a.code, OK);
        assert_int_equal(a.pages, TOO_MANY / 2500);
        buf_free(&a.rows);
    }
    answer top = ask((asked){"SELECT DISTINCT TOP 20 VALUE c.u FROM c", NULL, 2, false, false, 0}); /* ten pages are allowed */
    assert_int_equal(top.code, OK);
    buf_free(&top.rows);
}

/* A client that merges gets the groups of each page's own items: all items are read once. */
static void too_many_pages_come_in_parts(void **state) {
    (void)state;
    answer a = ask((asked){"SELECT [{\"item\": c.u}] AS groupByItems, {\"n\": {\"item\": COUNT(1)}} AS payload FROM c GROUP BY c.u", NULL,
                           2, false, false, 0});
    assert_int_equal(a.code, OK);
    assert_int_equal(a.empty, 0);
    assert_int_equal(count_of(&a.rows, '['), TOO_MANY);
    assert_true(a.read < 3 * TOO_MANY);
    buf_free(&a.rows);
}

static void an_order_without_an_index_says_what_helps(void **state) {
    (void)state;
    answer a = ask((asked){"SELECT VALUE c.id FROM c ORDER BY c._etag OFFSET 250000 LIMIT 10", NULL, PAGE, false, false, 0});
    assert_int_equal(a.code, E_QUERY_TOO_LONG);
    assert_non_null(strstr(a.detail, "add an index"));
    assert_true(a.read <= 1);
    buf_free(&a.rows);
    a = ask((asked){"SELECT VALUE c.id FROM c ORDER BY c._etag", NULL, PAGE, false, false, 0});
    assert_int_equal(a.code, OK);
    assert_true(a.most_ru > FEW / 100); /* each page reads all items */
    buf_free(&a.rows);
}

/* ---- values that neither the index nor a continuation holds in full ---- */

static void put_long(unsigned i) {
    char body[1500], text[1000];
    memset(text, 'k', sizeof text);
    snprintf(text + 590, sizeof text - 590, "%03u", (i * 7) % 150);
    static const char *const around[][2] = {{"", ""}, {"[", "]"}, {"{\"k\":", "}"}};
    const char *const *as = around[i % 3];
    snprintf(body, sizeof body, "{\"id\":\"%u\",\"pk\":\"a\",\"y\":%u,\"s\":%s\"%s\"%s}", i, i % 2, as[0], text, as[1]);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
}

static void long_values(void **state) {
    (void)state;
    static const char *const texts[] = {
        "SELECT DISTINCT VALUE c.s FROM c",
        "SELECT DISTINCT c.s FROM c",
        "SELECT DISTINCT c.s, c.y FROM c",
        "SELECT DISTINCT c.y, c.s FROM c",
        "SELECT COUNT(1) AS n, c.s FROM c GROUP BY c.s",
        "SELECT SUM(c.y) AS n, c.s FROM c GROUP BY c.s, c.y",
    };
    harness_open(&h);
    clock_manual_advance(&h.clock, 1000);
    c = harness_container(&h, KEY "}", 400);
    for (unsigned i = 0; i < (SANITIZED ? 200 : 500); i++) {
        put_long(i);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        answer all = ask((asked){texts[i], NULL, MANY, true, false, 0});
        for (size_t rows = 1; rows < 40; rows += 6) {
            answer a = ask((asked){texts[i], NULL, rows, false, false, 0});
            assert_same(texts[i], &a, &all);
            buf_free(&a.rows);
        }
        buf_free(&all.rows);
    }
    close_items();
}

/* Expired items still have index entries, so items must be loaded. */
static void expired_items_are_in_no_group(void **state) {
    (void)state;
    open_items(KEY POLICY ",\"defaultTtl\":-1}", 300);
    for (unsigned i = 0; i < 300; i += 2) {
        char body[100];
        snprintf(body, sizeof body, "{\"id\":\"e%u\",\"pk\":\"a\",\"x\":%u,\"ttl\":5}", i, i + 1000);
        assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body), OK);
    }
    clock_manual_advance(&h.clock, 10 * 1000 * 1000);
    answer a = ask((asked){"SELECT c.x, COUNT(1) AS n FROM c GROUP BY c.x", "[\"a\"]", 20, false, false, 0});
    assert_int_equal(a.code, OK);
    assert_int_equal(count_of(&a.rows, '{'), 300);
    buf_free(&a.rows);
    a = ask((asked){"SELECT VALUE c.x FROM c ORDER BY c.x DESC OFFSET 298 LIMIT 9", "[\"a\"]", 20, false, false, 0});
    assert_memory_equal(a.rows.p, "1,0", a.rows.n);
    buf_free(&a.rows);
    close_items();
}

/* Positions from forged continuations give a page or an error. */
static void forged_positions_are_safe(void **state) {
    (void)state;
    static const char *const texts[] = {"SELECT DISTINCT VALUE c.x FROM c", "SELECT DISTINCT c.x FROM c", "SELECT DISTINCT c.z, c.y FROM c",
                                        "SELECT c.x, COUNT(1) AS n FROM c GROUP BY c.x", "SELECT c.z, SUM(c.y) AS n FROM c GROUP BY c.z"};
    static const char empty[5] = {5};
    static const char row[] = "\x0c\0\0\0\x10x\0\x05\0\0\0\0"; /* {"x": 5} */
    query_value values[] = {value_undefined(),
                            value_null(),
                            value_number(-1e300),
                            value_number(FEW / 2),
                            value_string(SLICE_LIT("\0\xFF")),
                            value_document(TYPE_ARRAY, slice_of(empty, sizeof empty)),
                            value_document(TYPE_OBJECT, slice_of(empty, sizeof empty)),
                            value_document(TYPE_OBJECT, slice_of(row, sizeof row - 1))};
    for (size_t i = 0; i < sizeof texts / sizeof *texts * 2 * (sizeof values / sizeof *values); i++) {
        op *o = harness_op(&h);
        query q;
        item_cursor cursor = {.n = 1, .stretches = {{.min = epk_min(), .max = epk_max()}}};
        buf out = buf_init(BUF_NO_LIMIT);
        assert_int_equal(query_prepare(o, &h.arena, slice_str(texts[i % 5]), NULL, 0, NULL, &q), OK);
        query_page p;
        query_page_init(&p, harness_items(&h), o, c, &q, &cursor, &out);
        p.position = (query_position){.ordered = true, .values = &values[i / 10], .cut = i / 5 % 2, .check = 7};
        p.ask.rows_max = 10;
        assert_int_equal(query_run_page(&p), OK);
        assert_true(p.outcome.rows <= 10);
        buf_free(&out);
    }
}

/* ---- items that several tests read ---- */

static int open_few(void **state) {
    (void)state;
    open_items(KEY POLICY "}", FEW);
    return 0;
}

static int open_many(void **state) {
    (void)state;
    open_items(KEY POLICY "}", MANY);
    return 0;
}

static int open_too_many(void **state) {
    (void)state;
    open_items(KEY POLICY "}", TOO_MANY);
    return 0;
}

static int close_shared(void **state) {
    (void)state;
    close_items();
    return 0;
}

int main(void) {
    const struct CMUnitTest of_few[] = {
        cmocka_unit_test(pages_of_few_items),        cmocka_unit_test(groups_of_few_values_are_read_in_turn),
        cmocka_unit_test(keys_without_an_index),     cmocka_unit_test(an_order_without_an_index_says_what_helps),
        cmocka_unit_test(forged_positions_are_safe),
    };
    const struct CMUnitTest of_many[] = {
        cmocka_unit_test(pages_cost_what_they_show),   cmocka_unit_test(many_keys_of_few_values),
        cmocka_unit_test(offset_is_passed_by_entries), cmocka_unit_test(offset_of_keys),
        cmocka_unit_test(offset_costs_in_proportion),  cmocka_unit_test(memory_is_that_of_a_page),
    };
    const struct CMUnitTest of_too_many[] = {
        cmocka_unit_test(too_many_pages_are_refused),
        cmocka_unit_test(too_many_pages_come_in_parts),
    };
    const struct CMUnitTest of_their_own[] = {
        cmocka_unit_test(one_large_group_before_many_small_ones),
        cmocka_unit_test(ranges_are_read_to_one_key),
        cmocka_unit_test(long_values),
        cmocka_unit_test(expired_items_are_in_no_group),
    };
    return cmocka_run_group_tests(of_few, open_few, close_shared) + cmocka_run_group_tests(of_many, open_many, close_shared) +
           cmocka_run_group_tests(of_too_many, open_too_many, close_shared) + cmocka_run_group_tests(of_their_own, NULL, NULL);
}
