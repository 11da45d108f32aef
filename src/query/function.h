/* function.h — the system functions: a table with one line each, grouped by category in functions_*.c.
 *
 * A function gets evaluated arguments. Unless `sees_undefined`, the caller returns undefined if any argument is undefined, without calling
 * the function. Each function checks its argument types itself: a wrong type gives undefined, as on the service. A function may keep memory
 * beyond the call only in ctx's arenas. */
#pragma once

#include "base/clock.h"
#include "query/value.h"
#include "text/search.h"

/* What a function gets from its caller. */
typedef struct query_context {
    arena *arena;          /* reset between rows */
    arena *keep;           /* lives as long as `prepared`; NULL: nothing is prepared, patterns are compiled for each row */
    int64_t now_ms;        /* time of the query: GetCurrentDateTime… are the same in all its rows */
    uint64_t *random;      /* RAND: a xorshift state, not 0 */
    uint64_t *steps;       /* budget, counted down; at 0 the item took too long, and the value is undefined; NULL: no limit */
    bool too_large;        /* out: the value would be larger than VALUE_BYTES_MAX, so the query must fail */
    const void **prepared; /* this call's cache of a compiled pattern, NULL at first, kept through the query; may be NULL */
    uint8_t setting;       /* from the container's policy: search_language of full-text functions; search_distance of VectorDistance */
} query_context;

typedef struct query_function {
    const char *name;    /* as documented; found case-insensitively */
    uint8_t least, most; /* number of arguments; most = QUERY_ANY_NUMBER: no limit */
    bool sees_undefined;
    bool deterministic; /* equal arguments give equal values, so calls with constants may be computed once */
    query_value (*call)(query_context *c, const query_value *args, size_t n);
} query_function;

enum { QUERY_ANY_NUMBER = 255 };

/* NULL: no such function. Aggregates are not here (query/aggregate.h). Both spellings of a name are found if the service knows two
 * (StringEquals, STRING_EQUALS). */
const query_function *query_function_find(slice name);

/* The implementation of functions that may stand in ORDER BY RANK only: returns undefined. The ranking code computes their values with
 * text/search.h. */
query_value query_function_rank_only(query_context *c, const query_value *args, size_t n);

bool query_function_is_pattern(const query_function *f); /* a regular-expression function */

static inline bool query_function_is_rank_only(const query_function *f) {
    return f->call == query_function_rank_only;
}

/* Which policy setting for its first argument a function needs (query_expr.setting). */
typedef enum query_function_setting { SETTING_NONE, SETTING_LANGUAGE, SETTING_DISTANCE } query_function_setting;
query_function_setting query_function_setting_of(const query_function *f);

/* Reads a search phrase: a string, or {"term": string, "distance": number of letters that may differ}. False: neither of these, or too
 * long. */
bool query_phrase_of(arena *a, search_language language, const query_value *v, search_phrase *phrase_out);

/* All tables, for documentation and tests. Each table ends with an entry without a name, the list with NULL. */
extern const query_function *const query_function_tables[];

/* The tables, one for each category; each ends with an entry without a name. */
extern const query_function query_functions_string[], query_functions_pattern[] /* regular expressions */, query_functions_math[],
    query_functions_array[], query_functions_type[] /* and conversions */, query_functions_date[], query_functions_spatial[],
    query_functions_search[] /* full text and vector */, query_functions_other[];
