/* choose.c — finds the demand with the fewest entries, by counting entries, and decides how many are worth collecting. */
#include <math.h>

#include "find/find_int.h"

enum { PROBE_FACTOR = 8 };

/* Keeps the items found for the best demand so far, since these are often all of its items. */
static void keep_probed(find__finder *f, find__refs *found, const find_demand *of, uint64_t after) {
    find__refs before = f->probed;
    f->probed = *found;
    f->probed_of = of;
    f->probed_after = after;
    *found = before;
}

/* A demand of many values has an entry or more of each: with too small a limit it would be counted in vain. */
static size_t first_limit(const find__finder *f) {
    size_t spans = SIZE_MAX;
    for (size_t i = 0; i < f->demands.n; i++) {
        spans = f->demands.list[i].n < spans ? f->demands.list[i].n : spans;
    }
    return spans < 4 || spans > FIND_REFS_MAX ? FIND_FIRST_PROBE : spans * (FIND_FIRST_PROBE / 4);
}

/* All demands are counted up to a small limit first, then up to a larger one, until one has fewer entries than the limit. */
err find__smallest(find__finder *f, uint64_t after, size_t most, const find_demand **best_out) {
    find__refs found = {0};
    err code = OK;
    *best_out = NULL;
    f->probed_of = NULL;
    for (size_t limit = first_limit(f); f->demands.n; limit *= PROBE_FACTOR) {
        size_t least = limit < most ? limit : most, bound = least;
        for (size_t i = 0; i < f->demands.n && code == OK; i++) {
            const find_demand *d = &f->demands.list[i];
            size_t n;
            if (after == 0 && find__is_long(f, d, least)) {
                continue;
            }
            found.n = 0;
            code = find__read_demand(f, d, after, &found, least, &n);
            if (n < least) {
                least = n;
                *best_out = d;
                keep_probed(f, &found, d, after);
            } else if (code == OK && after == 0) {
                find__note_long(f, d, n);
            }
        }
        if (*best_out || bound == most || code != OK) {
            break;
        }
    }
    find__free_refs(f, &found);
    return code;
}

err find__take_all(find__finder *f, const find_demand *used, uint64_t after, find__refs *found) {
    size_t n;
    if (used == f->probed_of && after == f->probed_after) {
        *found = f->probed;
        f->probed = (find__refs){0};
        f->probed_of = NULL;
        return OK;
    }
    return find__read_demand(f, used, after, found, SIZE_MAX, &n);
}

const find_demand *find__first_point_demand(const find__finder *f) {
    for (size_t i = 0; i < f->demands.n; i++) {
        if (find_is_point(&f->demands.list[i])) {
            return &f->demands.list[i];
        }
    }
    return NULL;
}

/* Loading a found item costs as much as scanning FIND_SCAN_PER_LOAD items, and a scan ends once it has the wanted rows. */
size_t find__entries_worth_collecting(const find__finder *f) {
    double all = (double)f->view->items_n + 1, most = all / FIND_SCAN_PER_LOAD;
    if (f->access->asked.wanted != SIZE_MAX) {
        double page = sqrt(2.5 * (double)f->access->asked.wanted * all);
        most = page < most ? page : most;
    }
    most = most < 2 * FIND_FIRST_PROBE ? 2 * FIND_FIRST_PROBE : most;
    return most < FIND_REFS_MAX ? (size_t)most : FIND_REFS_MAX;
}

size_t find__quick_limit(const find__finder *f, size_t most) {
    return f->access->asked.quick && most > FIND_QUICK_ENTRIES ? FIND_QUICK_ENTRIES : most;
}
