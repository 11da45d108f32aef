/* Queries that call user-defined functions, with C functions instead of scripts: all calls are made, each gets its own value, and rows,
 * pages and charges are those of the same query without UDFs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/sql/query_position.h"
#include "item_harness.h"
#include "query/udf.h"
#include "rounds.h"
#include "throughput/charge.h"

enum { ITEMS = 800 }; /* more than 512 of them in one partition, which therefore has its own index */

static harness h;
static container *c;

/* ---- functions ---- */

typedef struct fake {
    query_udfs base;
    const query *query;
    uint64_t calls, batches, most; /* most: largest batch */
    size_t slice;                  /* calls made before the deadline passes; 0: all */
    double fails_at;               /* the call of `id` with this argument fails */
    err code;
    uint64_t serial;
} fake;

static query_value number_of(fake *f, const query_udf_call *call, double (*make)(const query_value *args, size_t n)) {
    (void)f;
    for (size_t i = 0; i < call->n; i++) {
        if (call->args[i].type != TYPE_NUMBER) {
            return value_undefined();
        }
    }
    return value_number(make(call->args, call->n));
}

static double twice(const query_value *args, size_t n) {
    return n ? 2 * args[0].number : 0;
}

static double sum(const query_value *args, size_t n) {
    double all = 0;
    for (size_t i = 0; i < n; i++) {
        all += args[i].number;
    }
    return all;
}

static void make_one(fake *f, query_udf_call *call, arena *a) {
    slice name = f->query->udfs[call->function];
    const query_value none = value_undefined(), *first = call->n ? call->args : &none;
    call->threw = SLICE_EMPTY;
    if (slice_eq(name, SLICE_LIT("id"))) {
        call->value = value_keep(a, first);
    } else if (slice_eq(name, SLICE_LIT("twice"))) {
        call->value = number_of(f, call, twice);
    } else if (slice_eq(name, SLICE_LIT("sum"))) {
        call->value = number_of(f, call, sum);
    } else if (slice_eq(name, SLICE_LIT("big"))) {
        call->value = value_bool(first->type == TYPE_NUMBER && first->number > 3);
    } else if (slice_eq(name, SLICE_LIT("serial"))) { /* a new value for each call */
        call->value = value_number((double)f->serial++);
    } else if (slice_eq(name, SLICE_LIT("picky"))) {
        call->value = value_bool(true);
        call->threw = first->type == TYPE_NUMBER && first->number == 5 ? SLICE_LIT("Error: not five") : SLICE_EMPTY;
    } else {
        fail_msg("no function %.*s", (int)name.n, name.p);
    }
}

static err make_calls(query_udfs *udfs, op *o, query_udf_call *calls, size_t n, arena *a, int64_t until_us, size_t *done_out) {
    fake *f = (fake *)udfs;
    (void)until_us;
    size_t most = f->slice && f->slice < n ? f->slice : n;
    assert_true(n > 0);
    f->batches++;
    f->most = n > f->most ? n : f->most;
    for (*done_out = 0; *done_out < most; ++*done_out, f->calls++) {
        query_udf_call *call = &calls[*done_out];
        if (f->code != OK && call->n && call->args[0].type == TYPE_NUMBER && call->args[0].number == f->fails_at) {
            return op_fail(o, f->code, "it did not end");
        }
        make_one(f, call, a);
    }
    return OK;
}

/* ---- running ---- */

typedef struct result {
    err code;
    buf rows;
    size_t n, pages;
    double charge;
    char detail[256];
    fake fake;
    query_metrics metrics; /* the last page's metrics */
} result;

typedef struct how {
    const char *partition; /* NULL: all partitions */
    size_t rows_max;
    bool scans;
    fake fake;
    bool hurries;
} how;

static void one_page(const how *w, const query *q, item_cursor *cursor, query_position *position, result *r, bool *more_out) {
    op *o = harness_op(&h);
    query_page p;
    query_page_init(&p, harness_items(&h), o, c, q, cursor, NULL);
    p.position = *position;
    p.ask.rows_max = w->rows_max ? w->rows_max : 100;
    p.ask.scans = w->scans;
    p.ask.until_us = w->hurries;
    p.ask.udfs = &r->fake.base;
    buf out = buf_init(BUF_NO_LIMIT), text = buf_init(BUF_NO_LIMIT);
    p.ask.out = &out;
    r->code = query_position_restore(&p);
    r->code = r->code == OK ? query_run_page(&p) : r->code;
    *more_out = r->code == OK && p.outcome.more;
    r->n += p.outcome.rows;
    r->pages++;
    r->charge += o->charge_ru;
    r->metrics = p.outcome.metrics;
    snprintf(r->detail, sizeof r->detail, "%.*s", (int)o->detail_n, o->detail);
    buf_add(&r->rows, ",", r->rows.n && out.n);
    buf_add_slice(&r->rows, buf_view(&out));
    if (*more_out) { /* as a client sends it back */
        slice rest;
        sql_position_write(&text, &h.arena, q, &p.position);
        *position = (query_position){0};
        assert_int_equal(sql_position_read(&h.arena, arena_copy(&h.arena, buf_view(&text)), q, position, &rest), OK);
    }
    buf_free(&out);
    buf_free(&text);
}

static result run(const how *w, const char *text) {
    op *o = harness_op(&h);
    query *q = arena_new(&h.arena, query);
    item_cursor cursor = harness_cursor();
    query_position position = {0};
    item_key key;
    pkey header;
    result r = {.rows = buf_init(BUF_NO_LIMIT), .fake = w->fake};
    bool more = true;
    if (query_prepare(o, &h.arena, arena_copy(&h.arena, slice_str(text)), NULL, 0, NULL, q) != OK) {
        fail_msg("no query: %s: %.*s", text, (int)o->detail_n, o->detail);
    }
    if (w->partition) {
        slice json = arena_printf(&h.arena, "[\"%s\"]", w->partition);
        assert_int_equal(pkey_parse(o, json, &header), OK);
        assert_int_equal(item_check_key(o, c, &header, SLICE_EMPTY, &key), OK);
        cursor.partition = &key;
    }
    r.fake.base.call = make_calls;
    r.fake.query = q;
    while (more && r.pages < 2000) {
        one_page(w, q, &cursor, &position, &r, &more);
    }
    return r;
}

static void free_result(result *r) {
    buf_free(&r->rows);
}

/* A query with UDFs and its equivalent without give the same rows, for any page size. Under a sanitizer each query has two of the ways. */
static void assert_same(size_t number, const char *with, const char *without) {
    static const how ways[] = {
        {.rows_max = 13},
        {.rows_max = 100, .scans = true},
        {.rows_max = 1000},
        {.rows_max = 100, .partition = "large"},
        {.rows_max = 13, .partition = "large", .scans = true},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        how w = ways[i];
        if (SANITIZED && i != number % 5 && i != (number + 1) % 5) {
            continue;
        }
        result a = run(&w, with), b = run(&w, without);
        if (a.code != b.code || a.n != b.n || !slice_eq(buf_view(&a.rows), buf_view(&b.rows))) {
            fail_msg("%s (pages of %zu%s%s): %d, %zu rows: %.600s\n%s: %d, %zu rows: %.600s", with, w.rows_max, w.scans ? ", scanned" : "",
                     w.partition ? ", of one partition" : "", a.code, a.n, a.rows.n ? a.rows.p : "", without, b.code, b.n,
                     b.rows.n ? b.rows.p : "");
        }
        assert_int_equal(a.pages, b.pages);
        assert_true(a.fake.calls > 0);
        free_result(&a);
        free_result(&b);
    }
}

/* ---- tests ---- */

static int set_up(void **state) {
    (void)state;
    harness_open(&h);
    clock_manual_advance(&h.clock, 1000);
    c = harness_container(&h, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}", 4000);
    for (int i = 0; i < ITEMS; i++) {
        char *text = arena_text(&h.arena, arena_printf(&h.arena,
                                                       "{\"id\":\"%d\",\"pk\":\"%s%d\",\"n\":%d,\"s\":\"s%d\",\"t\":[%d,%d,\"x\"],"
                                                       "\"o\":{\"a\":%d}%s}",
                                                       i, i % 3 ? "large" : "p", i % 3 ? 0 : i % 20, i % 11, i % 7, i % 5, i % 13, i % 17,
                                                       i % 4 ? ",\"m\":1" : ""));
        char *zero = strstr(text, "large0");
        if (zero) { /* one partition has most of the items */
            memmove(zero + 5, zero + 6, strlen(zero + 6) + 1);
        }
        assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, text), OK);
    }
    container_give(c);
    c = harness_found(&h, "d", "c");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    container_give(c);
    harness_close(&h);
    return 0;
}

static void a_function_may_stand_wherever_an_expression_may(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"SELECT VALUE udf.twice(c.n) FROM c", "SELECT VALUE c.n * 2 FROM c"},
        {"SELECT c.id, udf.id(c.o) AS o, udf.id(c.m) AS m FROM c", "SELECT c.id, c.o, c.m FROM c"},
        {"SELECT VALUE c.id FROM c WHERE udf.big(c.n)", "SELECT VALUE c.id FROM c WHERE c.n > 3"},
        {"SELECT VALUE c.id FROM c WHERE NOT udf.big(c.n) AND c.s = 's3'", "SELECT VALUE c.id FROM c WHERE c.n <= 3 AND c.s = 's3'"},
        {"SELECT VALUE c.id FROM c WHERE c.m = 1 AND (udf.big(c.n) OR udf.big(c.o.a))",
         "SELECT VALUE c.id FROM c WHERE c.m = 1 AND (c.n > 3 OR c.o.a > 3)"},
        {"SELECT VALUE udf.twice(udf.twice(udf.sum(c.n, c.o.a))) FROM c", "SELECT VALUE (c.n + c.o.a) * 4 FROM c"},
        {"SELECT VALUE udf.id(c) FROM c", "SELECT VALUE c FROM c"},
        {"SELECT * FROM c WHERE udf.id(c.n) = 4", "SELECT * FROM c WHERE c.n = 4"},
        {"SELECT udf.twice(t) AS x, t FROM c JOIN t IN c.t", "SELECT t * 2 AS x, t FROM c JOIN t IN c.t"},
        {"SELECT VALUE t FROM c JOIN t IN c.t WHERE udf.big(t)", "SELECT VALUE t FROM c JOIN t IN c.t WHERE t > 3"},
        {"SELECT VALUE x FROM c JOIN (SELECT VALUE udf.twice(c.n)) AS x WHERE x > 6", "SELECT VALUE c.n * 2 FROM c WHERE c.n > 3"},
        {"SELECT VALUE t FROM c JOIN t IN (SELECT VALUE udf.id(c.t))", "SELECT VALUE t FROM c JOIN t IN c.t"},
        {"SELECT VALUE ARRAY(SELECT VALUE udf.twice(t) FROM t IN c.t WHERE udf.big(t)) FROM c",
         "SELECT VALUE ARRAY(SELECT VALUE t * 2 FROM t IN c.t WHERE t > 3) FROM c"},
        {"SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.t WHERE udf.big(t))",
         "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.t WHERE t > 3)"},
        {"SELECT VALUE (SELECT VALUE SUM(udf.twice(t)) FROM t IN c.t WHERE IS_NUMBER(t)) FROM c",
         "SELECT VALUE (SELECT VALUE SUM(t * 2) FROM t IN c.t WHERE IS_NUMBER(t)) FROM c"},
        {"SELECT VALUE udf.big(c.n) ? udf.twice(c.n) : udf.id(c.s) FROM c", "SELECT VALUE c.n > 3 ? c.n * 2 : c.s FROM c"},
        {"SELECT VALUE udf.id(c.m) ?? udf.id(c.s) FROM c", "SELECT VALUE c.m ?? c.s FROM c"},
        {"SELECT VALUE c.id FROM c WHERE c.n IN (udf.id(2), udf.id(3), 7)", "SELECT VALUE c.id FROM c WHERE c.n IN (2, 3, 7)"},
        {"SELECT VALUE c.id FROM c WHERE udf.twice(c.n) BETWEEN 2 AND udf.id(6)", "SELECT VALUE c.id FROM c WHERE c.n BETWEEN 1 AND 3"},
        {"SELECT VALUE c.id FROM c WHERE udf.id(c.s) LIKE 's%' AND CONTAINS(udf.id(c.s), '3')",
         "SELECT VALUE c.id FROM c WHERE c.s LIKE 's%' AND CONTAINS(c.s, '3')"},
        {"SELECT VALUE [udf.id(c.n), {\"x\": udf.id(c.s)}] FROM c", "SELECT VALUE [c.n, {\"x\": c.s}] FROM c"},
        {"SELECT VALUE COUNT(1) FROM c WHERE udf.big(c.n)", "SELECT VALUE COUNT(1) FROM c WHERE c.n > 3"},
        {"SELECT VALUE AVG(udf.twice(c.n)) FROM c", "SELECT VALUE AVG(c.n * 2) FROM c"},
        {"SELECT udf.twice(c.n) AS g, COUNT(1) AS k, MAX(udf.id(c.o.a)) AS m FROM c GROUP BY udf.twice(c.n)",
         "SELECT c.n * 2 AS g, COUNT(1) AS k, MAX(c.o.a) AS m FROM c GROUP BY c.n * 2"},
        {"SELECT udf.twice(COUNT(1)) AS k, c.s FROM c GROUP BY c.s", "SELECT COUNT(1) * 2 AS k, c.s FROM c GROUP BY c.s"},
        {"SELECT DISTINCT VALUE udf.twice(c.n) FROM c", "SELECT DISTINCT VALUE c.n * 2 FROM c"},
        {"SELECT VALUE udf.twice(c.n) FROM c ORDER BY c.o.a", "SELECT VALUE c.n * 2 FROM c ORDER BY c.o.a"},
        {"SELECT VALUE [c.id, udf.id(c.s)] FROM c WHERE udf.big(c.n) ORDER BY c.o.a DESC",
         "SELECT VALUE [c.id, c.s] FROM c WHERE c.n > 3 ORDER BY c.o.a DESC"},
        {"SELECT VALUE udf.id(t) FROM c JOIN t IN c.t ORDER BY c.n", "SELECT VALUE t FROM c JOIN t IN c.t ORDER BY c.n"},
        {"SELECT DISTINCT VALUE udf.id(c.s) FROM c ORDER BY c.s", "SELECT DISTINCT VALUE c.s || '' FROM c ORDER BY c.s"},
        {"SELECT TOP 9 VALUE c.id FROM c WHERE udf.big(c.n)", "SELECT TOP 9 VALUE c.id FROM c WHERE c.n > 3"},
        {"SELECT VALUE c.id FROM c WHERE udf.big(c.n) OFFSET 31 LIMIT 40", "SELECT VALUE c.id FROM c WHERE c.n > 3 OFFSET 31 LIMIT 40"},
        {"SELECT TOP 5 VALUE udf.id(c.id) FROM c ORDER BY c.n DESC", "SELECT TOP 5 VALUE c.id FROM c ORDER BY c.n DESC"},
        {"SELECT VALUE x FROM (SELECT DISTINCT VALUE udf.twice(c.n) FROM c) AS x WHERE udf.big(x)",
         "SELECT VALUE x FROM (SELECT DISTINCT VALUE c.n * 2 FROM c) AS x WHERE x > 3"},
        {"SELECT VALUE udf.twice(x.k) FROM (SELECT c.s, COUNT(1) AS k FROM c GROUP BY c.s) AS x",
         "SELECT VALUE x.k * 2 FROM (SELECT c.s, COUNT(1) AS k FROM c GROUP BY c.s) AS x"},
        {"SELECT VALUE ALL(SELECT VALUE t FROM t IN c.t WHERE udf.big(t)) FROM c",
         "SELECT VALUE ALL(SELECT VALUE t FROM t IN c.t WHERE IS_NUMBER(t) AND t > 3) FROM c"},
        {"SELECT VALUE FIRST(SELECT VALUE udf.id(t) FROM t IN c.t WHERE udf.big(t)) FROM c",
         "SELECT VALUE FIRST(SELECT VALUE t FROM t IN c.t WHERE t > 3) FROM c"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_same(i, pairs[i][0], pairs[i][1]);
    }
}

static void calls_are_made_many_at_a_time(void **state) {
    (void)state;
    result r = run(&(how){.rows_max = 1000}, "SELECT VALUE udf.twice(c.n) FROM c WHERE udf.big(c.n)");
    assert_int_equal(r.code, OK);
    assert_true(r.fake.calls >= ITEMS && r.fake.calls <= 2 * ITEMS);
    assert_true(r.fake.batches < 40);
    free_result(&r);
    r = run(&(how){.rows_max = 1000}, "SELECT VALUE udf.id(c.s) FROM c ORDER BY c.o.a");
    assert_int_equal(r.fake.calls, ITEMS);
    assert_true(r.fake.batches < 20);
    free_result(&r);
}

/* A call behind a condition that is not met is not made, not even ahead: it might throw, or never end. */
static void unreached_calls_are_not_made(void **state) {
    (void)state;
    static const char *const queries[] = {
        "SELECT VALUE udf.picky(c.n) FROM c WHERE c.n != 5",
        "SELECT VALUE c.id FROM c WHERE c.n = 5 OR udf.picky(c.n)",
        "SELECT VALUE c.id FROM c WHERE c.n != 5 AND udf.picky(c.n)",
        "SELECT VALUE c.n = 5 ? 1 : udf.picky(c.n) FROM c",
        "SELECT VALUE c.id FROM c WHERE udf.id(c.n) != 5 AND udf.picky(c.n)",
        "SELECT VALUE c.id FROM c WHERE udf.id(c.n) = 5 OR udf.picky(c.n)",
        "SELECT VALUE udf.id(c.n) = 5 ? 1 : udf.picky(c.n) FROM c",
        "SELECT VALUE c.id FROM c WHERE udf.id(c.n) IN (udf.id(5), udf.picky(c.n))",
        "SELECT VALUE udf.picky(c.n) FROM c WHERE udf.id(c.n) != 5",
    };
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        result r = run(&(how){.rows_max = 1000, .fake = {.code = OK}}, queries[i]);
        assert_int_equal(r.code, OK);
        assert_true(r.n > 0);
        free_result(&r);
    }
    /* a call that would fail is not made either */
    result r = run(&(how){.rows_max = 1000, .fake = {.code = E_TIMEOUT, .fails_at = 5}},
                   "SELECT VALUE udf.twice(c.n) FROM c WHERE udf.id(c.s) = 's1' AND c.n != 5");
    assert_int_equal(r.code, OK);
    free_result(&r);
}

static void what_a_function_throws_is_the_querys_error(void **state) {
    (void)state;
    result r = run(&(how){.rows_max = 1000}, "SELECT VALUE udf.picky(c.n) FROM c");
    assert_int_equal(r.code, E_SCRIPT_FAILED);
    assert_string_equal(r.detail, "Error: not five");
    free_result(&r);
    /* an error only if its page reaches it */
    r = run(&(how){.rows_max = 3}, "SELECT TOP 5 VALUE udf.picky(c.n) FROM c WHERE c.pk = 'large'");
    size_t before = r.n;
    assert_true(r.code == E_SCRIPT_FAILED || before == 5);
    free_result(&r);
    r = run(&(how){.rows_max = 1000}, "SELECT TOP 1 VALUE udf.picky(c.n) FROM c WHERE c.n != 5 OR c.id = '5'");
    assert_int_equal(r.code, OK);
    assert_int_equal(r.n, 1);
    free_result(&r);
}

/* The rows before the call are returned; the page that reaches the call fails. */
static void a_hanging_call_fails_its_page(void **state) {
    (void)state;
    how w = {.rows_max = 4, .scans = true, .fake = {.code = E_TIMEOUT, .fails_at = 600}};
    result r = run(&w, "SELECT TOP 8 VALUE udf.id(StringToNumber(c.id)) FROM c");
    assert_int_equal(r.code, OK);
    assert_int_equal(r.n, 8);
    free_result(&r);
    r = run(&w, "SELECT VALUE udf.id(StringToNumber(c.id)) FROM c");
    assert_int_equal(r.code, E_TIMEOUT);
    assert_string_equal(r.detail, "it did not end");
    free_result(&r);
}

/* Each call has its own value, even if others have the same arguments, and no value is used twice. */
static void each_call_has_its_own_value(void **state) {
    (void)state;
    result r = run(&(how){.rows_max = 50}, "SELECT VALUE [udf.serial(), udf.serial(1), udf.serial(1)] FROM c");
    assert_int_equal(r.code, OK);
    assert_int_equal(r.n, ITEMS);
    bool *seen = arena_array(&h.arena, bool, r.fake.serial + 1);
    size_t n = 0;
    for (const char *p = r.rows.p, *end = p + r.rows.n; p < end; p++) {
        if (*p >= '0' && *p <= '9') {
            char *behind;
            unsigned long value = strtoul(p, &behind, 10);
            p = behind;
            assert_true(value < r.fake.serial && !seen[value]);
            seen[value] = true;
            n++;
        }
    }
    assert_int_equal(n, 3 * ITEMS);
    free_result(&r);
}

/* Calls made ahead and not used are free; a page's charge does not depend on block sizes. */
static void calls_that_are_used_are_paid(void **state) {
    (void)state;
    for (int scans = 0; scans < 2; scans++) {
        how w = {.rows_max = 10, .scans = scans};
        result a = run(&w, "SELECT TOP 30 VALUE udf.twice(c.n) FROM c WHERE c.m = 1"),
               b = run(&w, "SELECT TOP 30 VALUE c.n * 2 FROM c WHERE c.m = 1");
        assert_true(a.fake.calls > 30);
        assert_true(fabs(a.charge - b.charge - 30 * CHARGE_UDF_CALL) < 1e-6);
        free_result(&a);
        free_result(&b);
        a = run(&w, "SELECT VALUE udf.id(c.s) FROM c WHERE udf.big(c.n) ORDER BY c.o.a");
        b = run(&w, "SELECT VALUE udf.id(c.s) FROM c WHERE udf.big(c.n) ORDER BY c.o.a");
        assert_true(a.charge == b.charge);
        free_result(&a);
        free_result(&b);
    }
}

/* The index answers the other conditions. */
static void conditions_beside_a_function_use_the_index(void **state) {
    (void)state;
    result r = run(&(how){.rows_max = 1000}, "SELECT VALUE c.id FROM c WHERE c.id = '77' AND udf.big(1 + c.n)");
    assert_int_equal(r.code, OK);
    assert_true(r.metrics.read <= 1 && r.fake.calls <= 1);
    free_result(&r);
}

/* A page whose deadline passed ends after the calls it could make, and the next page continues there. */
static void pages_end_when_time_is_up(void **state) {
    (void)state;
    how w = {.rows_max = 1000, .hurries = true, .fake = {.slice = 3}};
    result r = run(&w, "SELECT VALUE udf.twice(c.n) FROM c WHERE udf.big(c.n)");
    result all = run(&(how){.rows_max = 1000}, "SELECT VALUE c.n * 2 FROM c WHERE c.n > 3");
    assert_int_equal(r.code, OK);
    assert_true(r.pages > 100);
    assert_int_equal(r.n, all.n);
    assert_true(slice_eq(buf_view(&r.rows), buf_view(&all.rows)));
    free_result(&r);
    free_result(&all);
}

static void functions_are_counted_and_named(void **state) {
    (void)state;
    op *o = harness_op(&h);
    query q;
    slice text = SLICE_LIT("SELECT VALUE udf.a(1) + udf.b(udf.a(2)) FROM c WHERE udf.B(1)");
    assert_int_equal(query_prepare(o, &h.arena, text, NULL, 0, NULL, &q), OK);
    assert_int_equal(q.udfs_n, 3);
    unsigned b = 0;
    while (b < 3 && !slice_eq(q.udfs[b], SLICE_LIT("b"))) {
        b++;
    }
    assert_true(b < 3);
    assert_int_equal(query_udf_unknown(o, &q, b), E_BAD_QUERY);
    assert_non_null(strstr(o->detail, "'b' is not a recognized user-defined function name."));
    assert_non_null(strstr(o->detail, "\"start\":28,\"end\":29"));
    buf many = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&many, "SELECT VALUE 1");
    for (int i = 0; i <= QUERY_UDFS_MAX; i++) {
        assert_int_equal(query_prepare(o, &h.arena, buf_view(&many), NULL, 0, NULL, &q), OK);
        buf_add_lit(&many, " + udf.f(1)");
    }
    assert_int_equal(query_prepare(o, &h.arena, buf_view(&many), NULL, 0, NULL, &q), E_BAD_QUERY);
    buf_free(&many);
}

static void udfs_need_a_runner(void **state) {
    (void)state;
    op *o = harness_op(&h);
    query q;
    item_cursor cursor = harness_cursor();
    buf out = buf_init(BUF_NO_LIMIT);
    assert_int_equal(query_prepare(o, &h.arena, SLICE_LIT("SELECT VALUE udf.f(c) FROM c"), NULL, 0, NULL, &q), OK);
    query_page p;
    query_page_init(&p, harness_items(&h), o, c, &q, &cursor, &out);
    p.ask.rows_max = 9;
    p.ask.bytes_max = 9;
    assert_int_equal(query_run_page(&p), E_NOT_IMPLEMENTED);
    buf_free(&out);
}

/* Aggregates with pages that run out of time: results of UDFs are carried, or returned as parts, exactly once. */
static void aggregates_go_on(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"SELECT VALUE SUM(udf.twice(c.n)) FROM c", "SELECT VALUE SUM(c.n * 2) FROM c"},
        {"SELECT VALUE COUNT(1) FROM c WHERE udf.big(c.n)", "SELECT VALUE COUNT(1) FROM c WHERE c.n > 3"},
        {"SELECT udf.twice(c.n) AS k, COUNT(1) AS n FROM c GROUP BY udf.twice(c.n)",
         "SELECT c.n * 2 AS k, COUNT(1) AS n FROM c GROUP BY c.n * 2"},
        {"SELECT c.n AS k, udf.twice(COUNT(1)) AS n FROM c GROUP BY c.n", "SELECT c.n AS k, COUNT(1) * 2 AS n FROM c GROUP BY c.n"},
        {"SELECT DISTINCT VALUE udf.twice(c.n) FROM c", "SELECT DISTINCT VALUE c.n * 2 FROM c"},
    };
    static const size_t slices[] = {0, 3, 100, 600};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (size_t k = 0; k < 8; k++) {
            how hurried = {.rows_max = k % 3 ? 1000 : 3, .hurries = true, .scans = k % 2, .partition = k < 4 ? "large" : NULL};
            how at_once = {.rows_max = hurried.rows_max, .partition = hurried.partition};
            hurried.fake.slice = slices[k % 4];
            result found = run(&hurried, texts[i][0]), expected = run(&at_once, texts[i][1]);
            assert_int_equal(found.code, OK);
            assert_true(slice_eq(buf_view(&found.rows), buf_view(&expected.rows)));
            free_result(&found);
            free_result(&expected);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_may_stand_wherever_an_expression_may),
        cmocka_unit_test(calls_are_made_many_at_a_time),
        cmocka_unit_test(unreached_calls_are_not_made),
        cmocka_unit_test(what_a_function_throws_is_the_querys_error),
        cmocka_unit_test(a_hanging_call_fails_its_page),
        cmocka_unit_test(each_call_has_its_own_value),
        cmocka_unit_test(calls_that_are_used_are_paid),
        cmocka_unit_test(conditions_beside_a_function_use_the_index),
        cmocka_unit_test(pages_end_when_time_is_up),
        cmocka_unit_test(functions_are_counted_and_named),
        cmocka_unit_test(aggregates_go_on),
        cmocka_unit_test(udfs_need_a_runner),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
