/* functions.h — runs the user-defined functions of one query in a worker; implements query/udf.h. On a script thread.
 *
 * The first call takes a worker from the pool and defines the functions in a fresh global; the worker goes back to the pool at the end.
 * Exceptions are reported per call. A function that exceeds the page's deadline or needs too much memory is killed with its worker, and the
 * query fails. */
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
    script_process *process; /* NULL before the first call and after a failure */
    buf text, bson;
} script_functions;

/* `list` must outlive `f`. */
void script_functions_init(script_functions *f, script_pool *pool, budget *budget, const script_function *list, size_t n);
void script_functions_end(script_functions *f);
