/* count.c — counts the items that meet demands, by their entries, without loading any. */
#include "find/find_int.h"

err find_count(item_view *v, const find_demands *demands, size_t most, size_t *counts_out, uint64_t *entries_out) {
    find_access access = {0};
    find__finder f = {.access = &access, .view = v, .demands = *demands};
    err code = OK;
    for (size_t i = 0; i < demands->n && code == OK; i++) {
        code = find__read_demand(&f, &demands->list[i], 0, NULL, most, &counts_out[i]);
    }
    *entries_out += access.report.entries;
    return code;
}
