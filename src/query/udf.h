/* udf.h — batched calls of user-defined functions (UDFs).
 *
 * UDFs run in another process (src/script): a call by itself costs ten times as much as a call in a batch of a hundred. So a query first
 * evaluates a block of items *ahead*, only to find out which calls it needs. A call whose value is not known yet is recorded, and gives
 * undefined; nothing is decided by that value (query_runner.waits): operands of AND, OR, ?, ?? and IN whose evaluation depends on it are
 * not evaluated yet. Then all recorded calls are made at once. This is repeated until no value is missing. The *real* evaluation follows:
 * each call takes the first unused value that was recorded for the same item, the same call site and the same arguments. A call that was
 * not foreseen is made by itself, so evaluating ahead affects time only. An exception that a UDF threw becomes the query's error only if
 * the real evaluation takes its value. */
#pragma once

#include "base/clock.h"
#include "query/eval.h"

typedef struct query_udf_call {
    unsigned function; /* index in query.udfs */
    unsigned n;
    const query_value *args;
    query_value value; /* set by the callee; lives in the arena passed */
    slice threw;       /* message of the exception that it threw; p NULL: none */
} query_udf_call;

/* Runs the UDFs of one query. */
typedef struct query_udfs query_udfs;
struct query_udfs {
    /* Makes the calls in their order, and sets *done_out to how many it made: fewer than n if the deadline `until_us` (monotonic; 0: none)
     * passed. An error, with its message in the operation, is about all of them: a call that did not end, a process that died. */
    err (*call)(query_udfs *udfs, op *o, query_udf_call *calls, size_t n, arena *a, int64_t until_us, size_t *done_out);
};

/* The recorded calls of a block, as linked lists: one for each item and call site. Links are call numbers plus one. */
typedef struct query_call_link {
    uint32_t next; /* next call of the same item and site; 0: none */
    uint32_t pass; /* the pass that recorded it, or last used its value */
} query_call_link;

typedef struct query_call_chain {
    uint32_t first, last, hint; /* 0: none; hint: where the next search begins, after the call last used */
} query_call_chain;

typedef struct query_calls {
    query_udfs *udfs;
    const clock_source *clock;
    int64_t until_us;
    arena memory; /* items, arguments and values of the block */
    query_udf_call *list;
    query_call_link *links;
    size_t n, cap;
    size_t made; /* the first `made` calls have their values */
    query_call_chain *chains;
    size_t chains_cap;
    unsigned sites;       /* call sites in the query */
    query_call_chain *at; /* chains of the current item, one for each site; NULL: no item of the block */
    slice body;           /* body of that item: values inside it need not be copied */
    bool ahead;
    uint32_t pass;
    size_t before;    /* calls recorded before the current pass */
    err code;         /* error of the last batch: no further calls are made */
    uint64_t taken;   /* values used in real evaluations */
    uint64_t took_us; /* time spent in UDFs */
} query_calls;

void query_calls_init(query_calls *c, query_udfs *udfs, const clock_source *clock, int64_t until_us, budget *budget);
void query_calls_free(query_calls *c);

/* Begins a new block of at most items_max items, and forgets the block before. */
void query_calls_begin(query_calls *c, const query *q, size_t items_max);

/* Begins a pass over one item of the block: its index, and its body, which must live as long as the block. */
void query_calls_enter(query_calls *c, size_t item, slice body, bool ahead);
void query_calls_leave(query_calls *c); /* later calls are real, and of no item in the block */

/* Makes the recorded calls. False: some were not made, because the deadline passed or an error occurred. */
bool query_calls_make(query_calls *c, op *o);

/* The value of a call with these arguments. */
query_value query_calls_value(query_runner *r, const query_expr *e, const query_value *args);

/* E_BAD_QUERY: the query calls a UDF that does not exist; `function` is its index in query.udfs. */
err query_udf_unknown(op *o, const query *q, unsigned function);
