/* query_pages.h — for tests of queries: a query runs page by page, each with a continuation as a client would send it back, by the index or
 * by a scan, with time or past its deadline, while ranges change. */
#pragma once

#include "api/sql/query_position.h"
#include "item_harness.h"
#include "query/plan.h"

#define KEY "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"

static harness h;
static container *c;
static random_source dice;
static uint64_t seed;
static bool hurries; /* the deadline of every page has passed */

static inline uint64_t roll(uint64_t n) {
    return random_below(&dice, n);
}

/* One of the two runs of a query: with the index or by a scan. */
typedef struct run {
    query query;
    item_cursor cursor;
    query_position position;
    buf out;
    uint64_t read, rows;
    bool more;
    err code;
} run;

typedef struct scope {
    char partition[16]; /* or empty */
    item_key key;
    epk min, max;
} scope;

static inline void start_run(run *r, scope *s, const char *text) {
    op *o = harness_op(&h);
    query_schema schema = query_schema_of(c->settings);
    *r = (run){.cursor = {.n = 1, .stretches = {{.min = s->min, .max = s->max}}}, .out = buf_init(BUF_NO_LIMIT), .more = true};
    if (s->partition[0]) {
        pkey *header = arena_new(&h.arena, pkey);
        slice key = arena_printf(&h.arena, "[\"%s\"]", s->partition);
        assert_int_equal(pkey_parse(o, key, header), OK);
        assert_int_equal(item_check_key(o, c, header, SLICE_EMPTY, &s->key), OK);
        r->cursor.partition = &s->key;
    }
    if (query_prepare(o, &h.arena, arena_copy(&h.arena, slice_str(text)), NULL, 0, &schema, &r->query) != OK) {
        fail_msg("seed %lu, no query: %s: %.*s", (unsigned long)seed, text, (int)o->detail_n, o->detail);
    }
}

/* Writes the position as a continuation and reads it back, as a client would. */
static inline void through_continuation(run *r, op *o) {
    buf text = buf_init(BUF_NO_LIMIT);
    slice rest;
    query_position back = {0};
    sql_position_write(&text, &h.arena, &r->query, &r->position);
    assert_int_equal(sql_position_read(o->arena, arena_copy(&h.arena, buf_view(&text)), &r->query, &back, &rest), OK);
    r->position = back;
    buf_free(&text);
}

static inline void run_page_until(run *r, size_t rows_max, bool scans, int64_t until_us) {
    op *o = harness_op(&h);
    query_page p;
    query_page_init(&p, harness_items(&h), o, c, &r->query, &r->cursor, &r->out);
    p.position = r->position;
    p.ask.rows_max = rows_max;
    p.ask.scans = scans;
    p.ask.until_us = until_us;
    r->out.n = 0;
    r->code = query_position_restore(&p);
    r->code = r->code == OK ? query_run_page(&p) : r->code;
    r->more = r->code == OK && p.outcome.more;
    r->read += p.outcome.metrics.read;
    r->position = p.position;
    r->rows += p.outcome.rows;
    if (r->more) {
        through_continuation(r, o);
    }
}

static inline void run_page(run *r, size_t rows_max, bool scans) {
    run_page_until(r, rows_max, scans, hurries); /* 1 µs if true: long past, so the page ends when the clock is first read */
}

static inline void change_tiles(void) {
    size_t n = c->space->newest->map->n, i = roll(n);
    const container_tiles *tiles = c->space->newest;
    switch (roll(4)) {
    case 0:
        if (n < 8) {
            err code = account_split(h.account, harness_op(&h), c, tiles->ranges[i]->id, 2);
            assert_true(code == OK || code == E_BAD_REQUEST);
        }
        break;
    case 1:
        if (i + 1 < n && tiles->ranges[i]->home == tiles->ranges[i + 1]->home) {
            assert_int_equal(account_merge(h.account, harness_op(&h), c, tiles->ranges[i]->id, tiles->ranges[i + 1]->id), OK);
        }
        break;
    default:
        harness_move(&h, c, roll(3) ? 20 : 1000);
    }
    container_give(c);
    c = harness_found(&h, "d", "c");
}

/* Returns the number of pages. `sometimes`: most pages have passed deadlines, and ranges change between pages. */
static inline unsigned run_to_the_end(run *r, size_t rows_max, bool scans, bool sometimes, buf *rows) {
    unsigned pages = 0;
    for (; r->more; pages++) {
        assert_true(pages < 5000);
        hurries = sometimes && roll(4);
        run_page(r, rows_max, scans);
        if (rows->n && r->out.n) {
            buf_add_byte(rows, ',');
        }
        buf_add_slice(rows, buf_view(&r->out));
        assert_true(r->out.n || !r->more || !query_is_rewritten(&r->query));
        if (sometimes && roll(4) == 0) { /* ranges change, items do not */
            change_tiles();
        }
    }
    hurries = false;
    return pages;
}
