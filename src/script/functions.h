/* functions.h — the user-defined functions of one query, run by a worker (what query/udf.h asks for). On a script thread.
 *
 * A worker is taken with the first call, defines the functions in a fresh global and is given back at the end. What a function threw is
 * told call by call. A function that does not end by the page's time is ended with its worker, and so is one that needs too much memory:
 * then the query fails. */
#pragma once

#include "query/udf.h"
#include "script/pool.h"

typedef struct script_function {
    slice id, body;
} script_function;

typedef struct script_functions {
    query_udfs base;
    script_pool *pool;
    const script_function *list; /* in the order of query.udfs */
    size_t n;
    script_process *process; /* NULL: not yet, or no more */
    buf text, bson;
} script_functions;

/* The list must outlive it. */
void script_functions_init(script_functions *f, script_pool *pool, budget *budget, const script_function *list, size_t n);
void script_functions_end(script_functions *f);
