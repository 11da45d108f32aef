/* cost.h — charges a page of a query, and counts what it did. Prices are in throughput/charge.h.
 *
 * The same query on the same data costs the same, however its items are found. An item is *loaded*, and charged by its size, if it passes
 * WHERE, or if only the item itself could tell that it does not. An item is *passed* if a condition that the index can answer excludes it:
 * it costs next to nothing, and nothing within one logical partition. So a scan that was quicker than the index costs no more than the
 * index would have.
 *
 * Counts, groups and distinct values that index entries can answer (cover.h) are charged by entry, never by item. If an index has the order
 * of ORDER BY, items are charged when their rows are returned, as if they had been found in that order. The same holds for the order of
 * distances with a diskANN index, whose search has its own price, by the number of vectors. Entries and items of other ranges, which are
 * met during a split, cost nothing. */
#pragma once

#include "item/item.h"
#include "query/cover.h"
#include "query/nearest.h"

/* What was done in one range, in items. */
typedef struct query_done {
    uint64_t loaded, loaded_bytes;
    uint64_t passed;
    uint64_t covered; /* answered by index entries alone */
    uint64_t matched; /* those loaded or covered that passed WHERE */
} query_done;

typedef struct query_cost {
    op *op;
    query_runner *runner;
    const query_select *select;
    container_index *index; /* has the policy that `demands` refers to */
    find_demands demands;
    bool indexed; /* `demands` is filled */
    bool ordered; /* an index has the order: items are charged when returned */
    find_nearest nearest;
    bool searched;              /* a vector search was charged, so items are charged when returned, not when loaded */
    bool partition;             /* the page reads one logical partition only */
    bool covered, multiplicity; /* index entries can answer the query; how many items have a value matters */
    double factor, weight;
    uint64_t entries_free; /* entries that are still free of charge */
    uint64_t shown;        /* number of the last item returned */
    uint64_t items, rows;
    query_done *done; /* the work done in the range being read; never NULL */
    query_done unasked;
} query_cost;

/* The runner must be ready. `partition`: the page reads one logical partition only. */
void query_cost_begin(query_cost *c, query_runner *r, const container *container, bool partition);
void query_cost_end(query_cost *c);

double query_cost_base(const query_cost *c); /* charged for each range */

/* An item was loaded; the runner's slots are as its last row left them. */
void query_cost_item(query_cost *c, const query_value *item, size_t bytes, bool matched);
void query_cost_entry(query_cost *c, const query_value *item, uint64_t times, bool matched); /* an entry that stands for `times` items */
void query_cost_search(query_cost *c, uint64_t vectors, double rows);                        /* a vector search for `rows` rows */
void query_cost_passed(query_cost *c, uint64_t n);
void query_cost_shown(query_cost *c, uint64_t number, size_t bytes); /* ordered query: returns a row of this item */
void query_cost_skipped(query_cost *c, uint64_t n);                  /* rows that OFFSET skipped by their index entries */
void query_cost_distinct(query_cost *c);                             /* a new distinct value, or a key skipped by OFFSET */
void query_cost_row(query_cost *c, size_t bytes);
void query_cost_calls(query_cost *c, uint64_t n); /* UDF calls whose values were used */
void query_cost_steps(query_cost *c, uint64_t n); /* evaluation steps of a page that ends in an error */
void query_cost_rows(query_cost *c);              /* after the last row: charges rows in excess of items */
