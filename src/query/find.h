/* find.h — finds items by conditions given as data, without a query text. Returns items as BSON.
 *
 * For front ends that have no SQL text: a MongoDB filter, an OData $filter, CQL's WHERE, Gremlin's has(). A page runs like a page of a
 * query (exec.h), with the same choice of index, charges, metrics, index notes and explain. On a worker thread; a `quick` page may be tried
 * on a loop.
 *
 * A condition is a BSON document with one of these forms:
 *
 *   {"and": [condition, …]}  {"or": [condition, …]}
 *   {"at": path, "eq": value}                  equal; a number of any type equals the same number
 *   {"at": path, "in": [value, …]}             equal to one of them
 *   {"at": path, "ge": value, "lt": value}     one bound or two, of one type: ge or gt, le or lt. Values of other types do not match
 *   {"at": path, "begins": text}               a string with this prefix
 *   {"at": path, "is": type}                   "null", "bool", "number", "string", "array", "object" or "primitive"
 *   {"at": path, "exists": true}               there is a value; false: there is none
 *   {"key": index, "of": index, "within": [[from, to], [key], …]}   a key of the item is in [from, to), or equal. With
 *                                              "alone", a list like "within", an item that has one key must have it there instead
 *   {"filter": kind, "with": document}         a registered custom filter (filter.h); "with" may be left out. With "implied": true,
 *                                              each item that meets the key conditions beside it in an "and" passes it
 *
 * A path is an array of steps: a string names a member, null means any element of an array. {"at": ["tags", null], "eq": "red"} matches
 * items that have an element "red" in tags. Without the null, the array as a whole is compared. An order is an array of {"at": path,
 * "down": true}, with "down" left out for ascending; its paths have no null. Items with equal values come in creation order, reversed if
 * the first path is descending. {"key": index, "of": index, "prefix": binary, "down": true} orders by the item's first key by the
 * specification of a key index (index/policy.h), or with "down" by its last; "of" names the index whose entries have that order, if its
 * specification is another one: with more fields in front, of which "prefix" has the values. Several paths use a composite index if there
 * is one; if no index has the order, items are sorted, within the limits of ORDER BY (exec_order.c).
 *
 * Several ranges give one result: with an order they are merged, without one they follow each other. A continuation refers to values and
 * item numbers, not to ranges, so it survives splits and merges between two pages. Conditions are untrusted input, limited by
 * LIMIT_FIND_*. */
#pragma once

#include "query/exec.h"

/* The part of the container to search. */
typedef struct query_scope {
    const item_key *partition; /* one logical partition (the key's id is ignored), or NULL */
    const pkey *prefix;        /* only keys with this prefix, or NULL; min and max must be its part of the hash space (epk_prefix_range) */
    epk min, max;              /* [min, max) of the hash space; ignored with a partition */
} query_scope;

query_scope query_scope_all(void);
query_scope query_scope_partition(const item_key *partition);

/* What to find. */
typedef struct query_find {
    slice where; /* a condition; empty: all items */
    slice order; /* a BSON array of orders; empty: none */
    bool counts; /* only the number of items is wanted: if index entries tell it, there are no rows, but outcome.counted */
    slice each;  /* {"key": index}: one item of each key of this index is enough, if the keys tell the values at their paths; the row has
                    the number of the others. With "any": true also of items with arrays, at each of their keys. With "separate", a binary:
                    every item of keys that begin with it. Empty: all items */
    uint64_t skip;
    uint64_t limit; /* items in all pages together; UINT64_MAX: no limit */
    query_scope scope;
    const item_moment *moment; /* for one partition: as a transaction sees it (item_cursor.moment). NULL: as it is now */
    bool narrow; /* for one partition in the order of its row key: fails with E_QUERY_TOO_LONG unless an index condition leaves so few items
                    that finding them takes less time than reading the rows in order (item/rows.h) until the page is full */
    bool verified; /* with an order by a key index: items whose entry is not that of their key are left out, so that damage shows */
} query_find;

typedef struct query_find_page {
    const query_find *find; /* in */
    slice from;             /* in: continuation of the page before; empty: first page */
    query_page page;        /* in: page.ask, see query_find_init; out: page.outcome */
    slice next;             /* out: continuation, in the op's arena; empty: this was the last page */

    /* internal */
    query query;
    item_cursor cursor;
} query_find_page;

/* Sets up a page with default settings: as large as an answer may be, using the index, without a deadline. The caller may set rows_max,
 * bytes_max, until_us, quick, scans, timed, notes_indexes and trace in page.ask. bytes_max counts items as BSON. */
void query_find_init(query_find_page *p, const items *items, op *o, container *c, const query_find *find, slice from, query_sink sink,
                     void *context);

/* Passes items to the sink until it stops, the page is full or there are no more. E_BAD_REQUEST: a condition or an order is malformed; the
 * message says what. E_BAD_CONTINUATION: not a continuation of this find. E_THROTTLED, E_QUERY_TOO_LONG and others as for queries. */
MUST_CHECK err query_find_run(query_find_page *p);

/* The bound query for these conditions and this order; for callers that only plan. */
MUST_CHECK err query_find_prepare(op *o, arena *a, const container *c, const query_find *find, query *query_out);
