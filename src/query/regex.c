#include "query/regex.h"

#include "query/function_int.h"

typedef struct prepared_regex {
    slice pattern, modifiers; /* as passed */
    const text_regex *regex;  /* NULL: invalid */
} prepared_regex;

static prepared_regex *compile(arena *a, slice pattern, slice modifiers) {
    prepared_regex *r = arena_new(a, prepared_regex);
    slice reason;
    r->pattern = arena_copy(a, pattern);
    r->modifiers = arena_copy(a, modifiers);
    if (!text_regex_compile(a, r->pattern, r->modifiers, &r->regex, &reason)) {
        r->regex = NULL;
    }
    return r;
}

/* The first pattern of a call is cached for the query, since it usually is the only one; others live as long as their row. */
const text_regex *query_regex_get(query_context *c, slice pattern, slice modifiers) {
    prepared_regex *r = c->prepared ? (prepared_regex *)(uintptr_t)*c->prepared : NULL;
    if (!r || !slice_eq(r->pattern, pattern) || !slice_eq(r->modifiers, modifiers)) {
        bool keep = c->prepared && c->keep && !r;
        if (!function_spend(c, 1000 + pattern.n * 8)) {
            return NULL;
        }
        r = compile(keep ? c->keep : c->arena, pattern, modifiers);
        if (keep) {
            *c->prepared = r;
        }
    }
    return r->regex;
}
