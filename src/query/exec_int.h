/* exec_int.h — what the parts of running a page share: exec.c (items, plain rows, the page), exec_keyed.c (groups and distinct values),
 * exec_order.c (ORDER BY and RANK), exec_ahead.c (items held back for user-defined functions). For this folder. */
#pragma once

#include "query/distinct.h"
#include "query/exec.h"
#include "query/gather.h"
#include "query/group.h"
#include "query/rank.h"
#include "query/udf.h"

typedef struct exec exec;

/* A row that ORDER BY holds: where it is, not what it shows. */
typedef struct ordered_row {
    query_value *values;
    item_place place;
    uint64_t row; /* of its item */
    slice body;   /* of a small item that came in order and so will be shown; empty: to be loaded again */
    item_head head;
} ordered_row;

/* An item that waits until the user-defined functions it needs were called (exec_ahead.c). */
typedef struct held_item {
    item_found found; /* its body is a copy in the calls' memory; none: it is not there any more */
    query_item item;
    uint64_t passed;               /* find_access's when it came */
    uint64_t random;               /* the runner's, so that RAND gives the same ahead and in earnest */
    bool in_order, only_undefined; /* find_access's */
    bool known;                    /* no value is missing */
} held_item;

struct exec {
    query_page *page;
    const query_select *select;
    query_runner runner;
    arena row_arena;     /* of the item being looked at */
    arena keep;          /* through the page */
    arena ordered;       /* order values of the rows held */
    size_t ordered_live; /* bytes of it that were in use when it was last made anew */
    query_item item;
    query_value item_value;
    uint64_t row;     /* of the item, counted from 0 */
    bool full;        /* the page is */
    bool finished;    /* TOP or LIMIT is reached */
    bool late;        /* its time is up */
    uint64_t items;   /* looked at */
    uint64_t scanned; /* items of ranges that are read whole, about */
    uint64_t steps;   /* of evaluation that the items before took */
    int64_t begun_us;
    int64_t lap_us; /* when it was last looked at the clock, if the page is timed */
    uint64_t times; /* items that the one being looked at stands for */
    bool (*on_row)(void *exec);
    bool matched; /* the item had a row */
    const item_found *found;

    find_access access;
    query_lead lead;        /* of keys, if they are read in their order */
    const query_value *key; /* … behind this one's first value; NULL: from the beginning */
    size_t keys_wanted;
    bool key_cut; /* … which is not known in full */
    size_t (*keys_held)(void *exec);
    bool keys_walked;    /* … it is known that there are more */
    struct keyed *keyed; /* exec_keyed.c's */
    query_cost cost;
    bool entered;         /* ranges were read once, and need not be paid for again */
    double settled_ru;    /* of the charge: taken from a range's share */
    query_part *part;     /* of the trace */
    query_gather *gather; /* of subqueries in FROM; NULL: items are rows at once */
    query_groups *groups;
    uint64_t grouped; /* the last item that groups have a row of */
    query_rank *rank;
    ordered_row *rows; /* a heap: the last in order is on top */
    size_t rows_n, rows_cap, rows_wanted;
    query_value *stopped_values; /* of the item that an ordered walk stopped before, for want of time */
    uint64_t stopped_number;
    size_t rows_total; /* that the page and OFFSET want, and one more; rows_wanted of them are held at a time */
    bool several;      /* ranges are read for a page */
    bool windowed;     /* rows_wanted is less than the page and OFFSET want: more follow */
    bool skips;        /* rows that OFFSET passes over cost what their entries do */
    bool by_count;     /* DISTINCT in another order: rows of earlier pages come again, so many, */
    bool recalling;    /* … and are not given, but remembered */
    query_distinct distinct;
    uint64_t seen_before; /* of gathered rows: by earlier pages */

    query_calls calls; /* of user-defined functions, if the query has any */
    held_item *held;
    size_t held_n, held_max, held_bytes;
    uint64_t held_after; /* where the cursor stood before them */
    item_reader reader;
    item_cursor *cursor;    /* that is being read by, */
    item_view *view;        /* … or, if the index finds its items, this */
    bool unknown;           /* the item being looked at still misses values */
    uint64_t wanted_row;    /* looking ahead at a row to be shown: which of its item's */
    const item_found *kept; /* of a row to be shown: its item, if it was looked at ahead */
};

/* ---- exec.c ---- */

void query__set_item(exec *x, const item_found *found);
void query__lap(exec *x, uint64_t *to); /* adds what has passed since the last lap; NULL: to nothing */
bool query__time_is_up(const query_page *p);
bool query__may_keep(exec *x);
bool query__may_go_on(exec *x);
bool query__visit_item(void *exec, const item_found *found); /* evaluates it, in earnest */
double query__rows_left(const exec *x);
uint64_t query__offset_left(const exec *x); /* rows that OFFSET still passes over */
bool query__give_row(exec *x, const query_value *v);
err query__read_items(exec *x, item_cursor *cursor, size_t wanted, bool may_stop);
err query__read_all(exec *x);
void query__keep_position(exec *x); /* its values outlive the page's own memory */

/* ---- exec_ahead.c ---- */

static inline bool query__calls_functions(const exec *x) {
    return x->page->ask.query->udfs_n > 0;
}
bool query__hold_item(void *exec, const item_found *found); /* an item_visit: it is evaluated later, with others */
bool query__release(void *exec);                    /* evaluates those held. False: it stopped at one, and the cursor stands there */
void query__forget(exec *x);                        /* an error ended it all */
void query__charge_calls(exec *x, uint64_t before); /* those since `before` were taken */

/* The rows from the first one on that are to be shown: as many as are looked at together, ahead. */
MUST_CHECK err query__show_ahead(exec *x, const ordered_row *rows, size_t n, size_t *n_out);
void query__enter_shown(exec *x, size_t i); /* the row with this number among them is shown next */

/* ---- exec_keyed.c ---- */

bool query__is_new(exec *x, const query_value *v);
err query__run_groups(exec *x);
err query__run_distinct(exec *x);

/* ---- exec_order.c ---- */

void query__free_rows(exec *x);
err query__run_ranked(exec *x);
err query__run_ordered(exec *x);
void query__enter_walk(void *exec); /* rows come in order: they are held one window at a time */
