/* function.h — the system functions: one table, one line each, grouped by category in functions_*.c.
 *
 * A function gets its arguments evaluated. Unless `sees_undefined`, the caller answers undefined when any argument is undefined, and the
 * function is not called. Argument types are the function's own to check: a wrong type gives undefined, as on the service. Nothing may be
 * kept beyond the call but in ctx's arena, which is the row's. */
#pragma once

#include "base/clock.h"
#include "query/value.h"

/* What functions may use. */
typedef struct query_context {
    arena *arena;          /* of the row: reset between rows */
    int64_t now_ms;        /* of the query: GetCurrentDateTime… are the same in all its rows */
    uint64_t *random;      /* RAND: a xorshift state */
    uint64_t *steps;       /* counted down; 0: the page's time is up (bounds regular expressions and the like) */
    const void **prepared; /* a place of this call's own, kept through the query: compiled patterns */
} query_context;

typedef struct query_function {
    const char *name;    /* as documented; found case-insensitively */
    uint8_t least, most; /* arguments; most 255: any number */
    bool sees_undefined;
    bool deterministic; /* the same arguments give the same value: may be computed once */
    query_value (*call)(query_context *c, const query_value *args, size_t n);
} query_function;

/* NULL: there is none of this name (aggregates are not here: query/aggregate.h). */
const query_function *query_function_find(slice name);

/* The tables, one for each category; the last entry has no name. */
extern const query_function query_functions_string[], query_functions_math[], query_functions_array[], query_functions_type[],
    query_functions_date[], query_functions_spatial[], query_functions_search[] /* full text and vector */, query_functions_other[];
