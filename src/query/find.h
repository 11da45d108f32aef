/* find.h — items by conditions instead of a text: conditions, an order and a part of the container in, items out as BSON.
 *
 * For front ends that have no SQL text: a MongoDB filter, an OData $filter, CQL's WHERE, Gremlin's has(). What is asked is data. A page of
 * it runs as a page of a query does (exec.h): the same choice of index, the same charges, metrics, index notes and explain. Pages are made
 * on a worker; a `quick` one may be tried on a loop.
 *
 * A condition is a BSON document with one of these forms:
 *
 *   {"and": [condition, …]}  {"or": [condition, …]}
 *   {"at": path, "eq": value}                  equal; a number of any type equals the same number
 *   {"at": path, "in": [value, …]}             equal to one of them
 *   {"at": path, "ge": value, "lt": value}     one bound or two, of one type: ge or gt, le or lt. Values of other types are not between
 *   {"at": path, "begins": text}               a string that begins so
 *   {"at": path, "is": type}                   "null", "bool", "number", "string", "array", "object" or "primitive"
 *   {"at": path, "exists": true}               there is a value; false: there is none
 *   {"filter": kind, "with": document}         a registered kind's own test (filter.h); "with" may be left out
 *
 * A path is an array of steps: a string names a member, null means any element of an array. {"at": ["tags", null], "eq": "red"} lets items
 * through that have an element "red" in tags. Without the null, arrays are compared whole. An order is an array of
 * {"at": path, "down": true}, with "down" left out for ascending; its paths have no null. Where items have equal values, those come first
 * that were created first, or last if the first path goes down. Several paths use a composite index if there is one; an order that no index
 * has is sorted, within the bounds of ORDER BY (exec_order.c).
 *
 * Over several ranges the answer is one: with an order the ranges are merged, without one they follow each other. A continuation is about
 * values and numbers, not about ranges: it stays right whatever is split or merged between two pages. All conditions may be hostile:
 * LIMIT_FIND_* bounds them. */
#pragma once

#include "query/exec.h"

/* Which part of the container. */
typedef struct query_scope {
    const item_key *partition; /* one logical partition, or NULL; its id is not looked at */
    const pkey *prefix;        /* only keys that start so; min and max are then its part of the hash space (epk_prefix_range) */
    epk min, max;              /* [min, max) of the hash space; not looked at with a partition */
} query_scope;

query_scope query_scope_all(void);
query_scope query_scope_partition(const item_key *partition);

/* What is asked. */
typedef struct query_find {
    slice where; /* a condition; empty: all items */
    slice order; /* a BSON array of orders; empty: none */
    uint64_t skip;
    uint64_t limit; /* items, of all pages together; UINT64_MAX: no limit */
    query_scope scope;
} query_find;

/* A page of it. */
typedef struct query_find_page {
    const query_find *find; /* in */
    slice from;             /* in: the continuation of the page before; empty: from the beginning */
    query_page page;        /* in: page.ask, see query_find_init; out: page.outcome */
    slice next;             /* out: where the next page begins, in the op's arena; empty: all was given */

    /* its own */
    query query;
    item_cursor cursor;
} query_find_page;

/* A page as large as an answer may be, by the index, without a time limit. The caller may set rows_max, bytes_max, until_us, quick, scans
 * and what is to be told in page.ask. Bytes are those of items as BSON. */
void query_find_init(query_find_page *p, const items *items, op *o, container *c, const query_find *find, slice from, query_sink sink,
                     void *context);

/* Gives items to the sink until it stops, the page is full or all were given. E_BAD_REQUEST: a condition or an order is malformed, and the
 * sentence says what. E_BAD_CONTINUATION: not of this find. E_THROTTLED, E_QUERY_TOO_LONG and others as queries have them. */
MUST_CHECK err query_find_run(query_find_page *p);

/* The query that conditions and order are, bound and ready; for those who only plan. */
MUST_CHECK err query_find_prepare(op *o, arena *a, const container *c, const query_find *find, query *query_out);
