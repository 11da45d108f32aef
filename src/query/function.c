#include "query/function_int.h"

const query_function *const query_function_tables[] = {
    query_functions_string, query_functions_pattern, query_functions_math,   query_functions_array, query_functions_type,
    query_functions_date,   query_functions_spatial, query_functions_search, query_functions_other, NULL,
};

bool query_function_is_pattern(const query_function *f) {
    const query_function *each = query_functions_pattern;
    while (each->name && each != f) {
        each++;
    }
    return each->name != NULL;
}

const query_function *query_function_find(slice name) {
    for (const query_function *const *table = query_function_tables; *table; table++) {
        for (const query_function *f = *table; f->name; f++) {
            if (slice_eq_nocase(slice_str(f->name), name)) {
                return f;
            }
        }
    }
    return NULL;
}

query_value *function_elements(query_context *c, const query_value *array, size_t *n_out) {
    size_t n = value_length(array);
    *n_out = 0;
    if (!function_spend_memory(c, n * sizeof(query_value))) {
        return NULL;
    }
    query_value *values = arena_alloc(c->arena, (n + 1) * sizeof *values);
    doc_walk w;
    doc_element e;
    doc_walk_init(&w, array->bytes);
    while (*n_out < n && doc_walk_next(&w, &e)) {
        values[(*n_out)++] = value_of_element(&e);
    }
    return values;
}
