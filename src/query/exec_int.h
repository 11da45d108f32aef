/* exec_int.h — shared by the files that run a page: exec.c (items, plain rows, the page), exec_keyed.c (groups and distinct values),
 * exec_order.c (ORDER BY and RANK), exec_ahead.c (items held back until their user-defined functions were called). Private to query/. */
#pragma once

#include "query/distinct.h"
#include "query/exec.h"
#include "query/gather.h"
#include "query/group.h"
#include "query/rank.h"
#include "query/udf.h"

typedef struct exec exec;

/* A row that ORDER BY holds: its order values and where its item is, without the projected row. */
typedef struct ordered_row {
    query_value *values;
    item_place place;
    uint64_t row; /* index among its item's rows */
    slice body;   /* copy of a small item that came in order, so that it need not be loaded again; empty: load it */
    item_head head;
} ordered_row;

/* An item held back until the UDFs that it needs were called (exec_ahead.c). */
typedef struct held_item {
    item_found found; /* its body is a copy in calls.memory; empty if the item is gone */
    query_item item;
    uint64_t passed;               /* access.report.passed when the item came */
    uint64_t random;               /* runner.random before it, so that RAND gives the same values in the evaluation ahead and in the real
                                      one */
    bool in_order, only_undefined; /* from access.turn */
    bool known;                    /* all UDF values that it needs are there */
} held_item;

struct exec {
    query_page *page;
    const query_select *select;
    query_runner runner;
    arena row_arena;     /* reset for each item */
    arena keep;          /* lives as long as the page, or as one window of it */
    arena ordered;       /* order values of the rows held; hashes of counted keys */
    size_t ordered_live; /* bytes of `ordered` in use after it was last compacted */
    query_item item;
    query_value item_value;
    uint64_t row;       /* index of the row among its item's, from 0 */
    bool full;          /* the page is full */
    query_begun inside; /* streaming: the item that the page ended in; `rows` 0: between two items */
    item_stretch end;   /* streaming: the place after the last row, if that filled the page */
    bool finished;      /* TOP or LIMIT is reached */
    bool late;          /* the deadline has passed */
    uint64_t items;     /* items visited */
    uint64_t scanned;   /* estimated number of items in ranges that are read whole */
    uint64_t steps;     /* evaluation steps used by the items before this one */
    int64_t begun_us;
    int64_t lap_us; /* time of the last lap, if the page is timed */
    uint64_t times; /* how many items the current one stands for */
    bool (*on_row)(void *exec);
    bool matched; /* the current item had a row */
    const item_found *found;

    find_access access;
    query_lead lead;        /* path that keys begin with, if they are read in key order */
    const query_value *key; /* in key order: where to begin, by this key's first value; NULL: at the first key */
    size_t keys_wanted;
    bool key_cut; /* `key` was shortened in the continuation */
    size_t (*keys_held)(void *exec);
    bool keys_walked;    /* there are known to be more keys than the page needs */
    struct keyed *keyed; /* state of exec_keyed.c */
    query_cost cost;
    bool entered;         /* the base price of ranges was charged already */
    double settled_ru;    /* part of the charge already taken from a range's share */
    query_part *part;     /* the trace's entry for the range being read */
    query_gather *gather; /* collects rows of subqueries in FROM; NULL: the query needs none */
    query_groups *groups;
    uint64_t grouped; /* number of the last item that has a row in `groups` */
    query_rank *rank;
    ordered_row *rows; /* max-heap: the root comes last in the order */
    size_t rows_n, rows_cap, rows_wanted;
    query_value *stopped_values; /* order values of the item before which an ordered walk ran out of time */
    uint64_t stopped_number;
    size_t rows_total; /* rows for OFFSET and the page, and one more; rows_wanted of them are held at a time */
    bool several;      /* the page reads several ranges */
    bool windowed;     /* rows_wanted is less than OFFSET and the page need: further windows follow */
    bool skips;        /* a row skipped by OFFSET is charged as an index entry */
    bool by_count;     /* DISTINCT and ORDER BY of different values: each page first finds the rows of earlier pages again */
    bool recalling;    /* rows of earlier pages are being found: they are added to `distinct` and not returned */
    query_distinct distinct;
    uint64_t seen_before; /* gathered rows that earlier pages returned or skipped */

    query_calls calls; /* the calls of UDFs, if the query has any */
    held_item *held;
    size_t held_n, held_max, held_bytes;
    uint64_t held_after; /* where the cursor stood before the held items */
    item_reader reader;
    item_cursor *cursor;    /* the cursor that is being read */
    item_view *view;        /* the view that is being read, if the index finds the items */
    bool unknown;           /* the current item still lacks UDF values */
    uint64_t wanted_row;    /* evaluating ahead a row to be returned: its index among its item's rows */
    const item_found *kept; /* the item of the row to be returned, if it was evaluated ahead */
};

/* ---- exec.c ---- */

void query__set_item(exec *x, const item_found *found);
void query__lap(exec *x, uint64_t *to); /* adds the time since the last lap to *to, if not NULL */
bool query__time_is_up(const query_page *p);
bool query__may_keep(exec *x);
bool query__may_continue(exec *x);
bool query__fills_page(const exec *x);                       /* its rows are as many as the page may have, and query_ask.full_goes_on */
bool query__visit_item(void *exec, const item_found *found); /* an item_visit: evaluates the item */
double query__rows_left(const exec *x);
uint64_t query__offset_left(const exec *x); /* rows that OFFSET has still to skip */
bool query__give_row(exec *x, const query_value *v);
err query__read_items(exec *x, item_cursor *cursor, size_t wanted, bool may_stop);
err query__read_all(exec *x);
void query__keep_position(exec *x); /* copies its values to the operation's arena, which outlives the page */

/* ---- exec_ahead.c ---- */

static inline bool query__calls_functions(const exec *x) {
    return x->page->ask.query->udfs_n > 0;
}
bool query__hold_item(void *exec, const item_found *found); /* an item_visit: holds the item back, to be evaluated with others */
bool query__evaluate_held(void *exec);                      /* evaluates the held items. False: stopped at one, and the cursor is moved back
                                                         there */
void query__drop_held(exec *x);                             /* drops the held items */
void query__charge_calls(exec *x, uint64_t before);         /* charges calls taken since `before` */

/* Loads the items of the first rows and calls their UDFs, as one block. *n_out: how many rows the block has. */
MUST_CHECK err query__load_ahead(exec *x, const ordered_row *rows, size_t n, size_t *n_out);
void query__enter_loaded(exec *x, size_t i); /* row i of the block is returned next */

/* ---- exec_keyed.c ---- */

bool query__add_distinct(exec *x, const query_value *v);
err query__run_groups(exec *x);
err query__run_distinct(exec *x);

/* ---- exec_order.c ---- */

void query__free_rows(exec *x);
err query__run_ranked(exec *x);
err query__run_ordered(exec *x);
void query__enter_walk(void *exec); /* rows come in order: hold one window at a time */
