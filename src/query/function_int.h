/* function_int.h — within query/: helpers of the functions. */
#pragma once

#include <math.h>

#include "query/function.h"

/* Pays for work of about n × 10 ns. False: the budget is used up, and the function returns undefined. */
static inline bool function_spend(query_context *c, uint64_t n) {
    if (!c->steps) {
        return true;
    }
    *c->steps = *c->steps > n ? *c->steps - n : 0;
    return *c->steps > 0;
}

/* Whether a value of n bytes would be too large; if so, the query ends with an error. */
static inline bool function_too_large(query_context *c, size_t n) {
    if (n > VALUE_BYTES_MAX) {
        c->too_large = true;
    }
    return n > VALUE_BYTES_MAX;
}

/* Pays for n bytes of working memory in the row's arena, before they are allocated. False: no memory or steps left for them. */
static inline bool function_spend_memory(query_context *c, size_t n) {
    return arena_fits(c->arena, n) && function_spend(c, n / 8 + 1);
}

/* The same for the n bytes of a result. */
static inline bool function_spend_bytes(query_context *c, size_t n) {
    return !function_too_large(c, n) && function_spend_memory(c, n);
}

/* value_array for a function's result. */
static inline query_value function_array(query_context *c, const query_value *items, size_t n) {
    query_value made = value_array(c->arena, items, n);
    c->too_large = c->too_large || !value_is_defined(&made);
    return made;
}

/* Reads a number without fraction that fits 64 bits. */
static inline bool function_whole(const query_value *v, int64_t *whole_out) {
    const double bound = 9223372036854775808.0;
    if (v->type != TYPE_NUMBER || (!v->is_integer && (v->number != trunc(v->number) || v->number < -bound || v->number >= bound))) {
        return false;
    }
    *whole_out = v->is_integer ? v->integer : (int64_t)v->number;
    return true;
}

static inline bool function_texts(const query_value *args, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (args[i].type != TYPE_STRING) {
            return false;
        }
    }
    return true;
}

/* The values of an array, in the row's arena; NULL: no memory or steps left. */
query_value *function_elements(query_context *c, const query_value *array, size_t *n_out);
