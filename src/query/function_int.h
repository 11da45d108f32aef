/* function_int.h — within query/: what the functions share. */
#pragma once

#include <math.h>

#include "query/function.h"

/* Pays for work of about n × 10 ns; false when the time is up, and then the function's value is undefined. */
static inline bool function_spend(query_context *c, uint64_t n) {
    if (!c->steps) {
        return true;
    }
    *c->steps = *c->steps > n ? *c->steps - n : 0;
    return *c->steps > 0;
}

/* Likewise for n bytes made; what may be made in all is bounded by the row's arena (QUERY_ITEM_BYTES). */
static inline bool function_spend_bytes(query_context *c, size_t n) {
    return n <= VALUE_BYTES_MAX && function_spend(c, n / 8 + 1);
}

/* A number without fraction that fits 64 bits. */
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

/* The values of an array, in the row's arena; NULL when the time is up. */
query_value *function_elements(query_context *c, const query_value *array, size_t *n_out);
