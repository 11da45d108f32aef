/* function.h — the system functions: one table, one line each, grouped by category in functions_*.c.
 *
 * A function gets its arguments evaluated. Unless `sees_undefined`, the caller answers undefined when any argument is undefined, and the
 * function is not called. Argument types are the function's own to check: a wrong type gives undefined, as on the service. Nothing may be
 * kept beyond the call but in ctx's arenas. */
#pragma once

#include "base/clock.h"
#include "query/value.h"
#include "text/search.h"

/* What functions may use. */
typedef struct query_context {
    arena *arena;          /* of the row: reset between rows */
    arena *keep;           /* as long-lived as `prepared`; NULL: nothing is prepared, patterns are compiled for each row */
    int64_t now_ms;        /* of the query: GetCurrentDateTime… are the same in all its rows */
    uint64_t *random;      /* RAND: a xorshift state, not 0 */
    uint64_t *steps;       /* counted down; 0: the item took too long, and the value is undefined; NULL: no bound */
    bool too_large;        /* set: the value would have more than VALUE_BYTES_MAX, and the query must not go on without it */
    const void **prepared; /* a place of this call's own, NULL at first, kept through the query: compiled patterns; or NULL */
    uint8_t setting;       /* from the container's policy: search_language of full-text functions; search_distance of VectorDistance */
} query_context;

typedef struct query_function {
    const char *name;    /* as documented; found case-insensitively */
    uint8_t least, most; /* arguments; most QUERY_ANY_NUMBER: no bound */
    bool sees_undefined;
    bool deterministic; /* the same arguments give the same value: may be computed once */
    query_value (*call)(query_context *c, const query_value *args, size_t n);
} query_function;

enum { QUERY_ANY_NUMBER = 255 };

/* NULL: there is none of this name (aggregates are not here: query/aggregate.h). Names that the service knows in two spellings
 * (StringEquals, STRING_EQUALS) are found in both. */
const query_function *query_function_find(slice name);

/* What is called for functions that may stand in ORDER BY RANK only: undefined. Whoever ranks computes their values with text/search.h. */
query_value query_function_rank_only(query_context *c, const query_value *args, size_t n);

bool query_function_is_pattern(const query_function *f); /* of regular expressions */

static inline bool query_function_is_rank_only(const query_function *f) {
    return f->call == query_function_rank_only;
}

/* What of the container's policies about its first argument a function wants to know (query_expr.setting). */
typedef enum query_function_setting { SETTING_NONE, SETTING_LANGUAGE, SETTING_DISTANCE } query_function_setting;
query_function_setting query_function_setting_of(const query_function *f);

/* What full-text functions look for: a string, or {"term": string, "distance": number of letters that may differ}. False: neither, or too
 * long. */
bool query_phrase_of(arena *a, search_language language, const query_value *v, search_phrase *phrase_out);

/* All tables, for documentation and tests: the last entry of each has no name, the last pointer is NULL. */
extern const query_function *const query_function_tables[];

/* The tables, one for each category; the last entry has no name. */
extern const query_function query_functions_string[], query_functions_pattern[] /* regular expressions */, query_functions_math[],
    query_functions_array[], query_functions_type[] /* and conversions */, query_functions_date[], query_functions_spatial[],
    query_functions_search[] /* full text and vector */, query_functions_other[];
