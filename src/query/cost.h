/* cost.h — what a page of a query costs, and what it did: prices are throughput/charge.h's.
 *
 * The same query on the same data costs the same, however its items are found. One that WHERE lets through, or that only the item itself
 * could exclude, is *loaded*, and costs by its size; one that a condition excludes which the index knows is *passed*, and costs next to
 * nothing, within one logical partition nothing at all. So a scan that was quicker than the index costs no more than the index would have.
 * Of counts, groups and distinct values that index entries can *tell* (cover.h), entries are paid, items never. In an order that an index
 * has, items cost when their rows are shown, as if they had been found in that order; so they do in the order of distances that a diskANN
 * index has, where the search has a price of its own, by how many vectors there are. Entries and items of other ranges, which are met
 * while a split is under way, cost nothing. */
#pragma once

#include "item/item.h"
#include "query/cover.h"
#include "query/nearest.h"

/* What was done in one range. */
typedef struct query_done {
    uint64_t loaded, loaded_bytes;
    uint64_t passed;
    uint64_t covered; /* by index entries alone */
    uint64_t matched; /* of those loaded or covered: WHERE let them through */
} query_done;

typedef struct query_cost {
    op *op;
    query_runner *runner;
    const query_select *select;
    container_index *index; /* whose policy the demands are by */
    find_demands demands;
    bool indexed; /* demands are known */
    bool ordered; /* items cost when they are shown */
    find_nearest nearest;
    bool searched;              /* the range was, and paid for: those that are looked at cost nothing, those that are shown do */
    bool partition;             /* of one alone */
    bool covered, multiplicity; /* entries could tell all; how many matters */
    double factor, weight;
    uint64_t entries_free; /* that many more */
    uint64_t shown;        /* the last item that was */
    uint64_t items, rows;
    query_done *done; /* of the range being read */
    query_done unasked;
} query_cost;

/* The runner is ready. `partition`: the page is of one logical partition. */
void query_cost_begin(query_cost *c, query_runner *r, const container *container, bool partition);
void query_cost_end(query_cost *c);

double query_cost_base(const query_cost *c); /* of each range */

/* An item that was looked at; the runner's slots are as its last row left them. */
void query_cost_item(query_cost *c, const query_value *item, size_t bytes, bool matched);
void query_cost_told(query_cost *c, const query_value *item, uint64_t times, bool matched); /* as many as its entry stands for */
void query_cost_search(query_cost *c, uint64_t vectors, double rows);                       /* for so many rows, among so many vectors */
void query_cost_passed(query_cost *c, uint64_t n);
void query_cost_shown(query_cost *c, uint64_t number, size_t bytes); /* of an ordered query: a row of this item is */
void query_cost_skipped(query_cost *c, uint64_t n);                  /* rows that OFFSET passed over, by their index entries */
void query_cost_key(query_cost *c);                                  /* a distinct value that is not shown, or not yet */
void query_cost_row(query_cost *c, size_t bytes);
void query_cost_calls(query_cost *c, uint64_t n); /* of user-defined functions, whose values were used */
void query_cost_steps(query_cost *c, uint64_t n); /* of evaluation, by a page that ends in an error */
void query_cost_rows(query_cost *c);              /* all were written: those beyond the items */
