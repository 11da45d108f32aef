/* estimate.h — what a query would cost, before it is run: from the number of items in each range, the entries of its conditions in the
 * index and the price list. No item is read, and nothing is charged.
 *
 * The conditions that the index answers are counted entry by entry, up to a limit for each range. Several of them are taken as independent
 * of each other. Conditions that the index does not answer are not known: `matches` then counts the items that must be loaded for them. */
#pragma once

#include "query/exec.h"

typedef struct query_estimate_ask {
    const items *items;
    op *op;
    container *container;
    const query *query;
    item_cursor *cursor; /* which part of the container; used up */
    uint64_t page_rows;
} query_estimate_ask;

/* The price of one page, or of all pages, and what it is made of. */
typedef struct query_estimate_price {
    uint64_t pages, ranges; /* ranges entered: each page enters those that it reads */
    uint64_t loaded;        /* items */
    uint64_t entries;       /* index entries that cost something, and those that are free */
    double ranges_ru, loaded_ru, entries_ru, rows_ru, search_ru, calls_ru;
} query_estimate_price;

typedef struct query_estimate {
    uint64_t ranges, items;
    size_t item_bytes; /* the average item */
    uint64_t matches;  /* items that meet the conditions that the index answers */
    uint64_t counted;  /* index entries looked at for the estimate */
    bool exact;        /* `matches` is a count, and there is no other condition */
    bool capped;       /* a condition has more entries than are counted: there are at least this many matches */
    bool rest;         /* there are conditions that the index does not answer */
    bool covered;      /* index entries answer the query: no item is loaded */
    bool whole;        /* the first page needs all matches: groups, aggregates, or an order that no index has */
    bool joined;       /* rows beyond one for each item are not estimated */
    query_estimate_price first, all;
} query_estimate;

double query_estimate_ru(const query_estimate_price *p);

/* E_BAD_REQUEST: an ORDER BY that is refused. The estimate lives on its own. */
MUST_CHECK err query_estimate_make(const query_estimate_ask *ask, query_estimate *estimate_out);
