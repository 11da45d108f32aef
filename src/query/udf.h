/* udf.h — calls of user-defined functions: noted ahead, made many at a time, found again where they stand.
 *
 * Functions run far away, in another process (src/script): a call by itself costs ten times what it costs among a hundred others. So a
 * query looks at a block of items *ahead* of the evaluation that counts: calls whose values are not there are noted, and their value is
 * taken for undefined, but nothing is decided by it (query_runner.waits): what stands behind AND, OR, ?, ?? or IN is not come to before the
 * value is there. Then all calls that were noted are made at once, and so on until none is missing. *In earnest* each call finds its own
 * value: of those of the same item, in the same place of the query, the first with these arguments that was not taken yet. One that nobody
 * foresaw is made by itself, so looking ahead changes how long things take and nothing else. What a function threw is a query's error only
 * if its value is asked for in earnest. */
#pragma once

#include "base/clock.h"
#include "query/eval.h"

typedef struct query_udf_call {
    unsigned function; /* its place in query.udfs */
    unsigned n;
    const query_value *args;
    query_value value; /* afterwards; in the arena given */
    slice threw;       /* it threw: a sentence that says so, and what; p NULL: it did not */
} query_udf_call;

/* Who runs the functions of one query. */
typedef struct query_udfs query_udfs;
struct query_udfs {
    /* Fills in as many of the calls as there is time for, in their order. Fewer than n: the time is up (`until_us`, monotonic; 0: never).
     * An error, with its sentence in the operation, is for all: a call that did not end, a process that died. */
    err (*call)(query_udfs *udfs, op *o, query_udf_call *calls, size_t n, arena *a, int64_t until_us, size_t *done_out);
};

/* The calls of a block of items. */
typedef struct query_call_link {
    uint32_t next; /* of the same item and place, one more than its number; 0: none */
    uint32_t pass; /* that took its value */
} query_call_link;

typedef struct query_call_chain {
    uint32_t first, last, hint; /* one more than the number; hint: after the one taken last */
} query_call_chain;

typedef struct query_calls {
    query_udfs *udfs;
    const clock_source *clock;
    int64_t until_us;
    arena memory; /* of the block: items, arguments, values */
    query_udf_call *list;
    query_call_link *links;
    size_t n, cap;
    size_t made; /* the first so many have their values */
    query_call_chain *chains;
    size_t chains_cap;
    unsigned sites;       /* places of the query where calls are written */
    query_call_chain *at; /* of the item being looked at, one for each place of a call; NULL: no item of the block */
    slice body;           /* of that item: what lies in it need not be copied */
    bool ahead;
    uint32_t pass;
    size_t before;    /* so many were noted when the pass began */
    err code;         /* of a call that could not be made: no more is tried */
    uint64_t taken;   /* values, in earnest */
    uint64_t took_us; /* by functions */
} query_calls;

void query_calls_init(query_calls *c, query_udfs *udfs, const clock_source *clock, int64_t until_us, budget *budget);
void query_calls_free(query_calls *c);

/* Forgets all; the block that begins has at most so many items. */
void query_calls_begin(query_calls *c, const query *q, size_t items_max);

/* An item of the block is looked at: its place among them, and its body, which lives as long as the block. */
void query_calls_enter(query_calls *c, size_t item, slice body, bool ahead);
void query_calls_leave(query_calls *c); /* what follows is in earnest, and of no item */

/* Makes the calls that were noted. False: not all of them were, for want of time or because of an error. */
bool query_calls_make(query_calls *c, op *o);

/* The value of a call whose arguments are known. */
query_value query_calls_value(query_runner *r, const query_expr *e, const query_value *args);

/* E_BAD_QUERY: there is no such function; `function` is its place in query.udfs. */
err query_udf_unknown(op *o, const query *q, unsigned function);
