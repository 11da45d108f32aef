#include "find/nearest.h"

#include <math.h>

#include "find/find_int.h"

enum {
    LIST_MAX = 16384,    /* longest search list, however many items there are */
    LIST_MIN = 256,      /* shortest search list: with less, searches of unclustered vectors miss too much */
    LIST_GROWTH = 4,     /* factor for the next search if too few of the items found meet the condition */
    PART_OF_ITEMS = 8,   /* a list longer than items / PART_OF_ITEMS costs more than comparing all */
    MORE_THAN_WANTED = 8 /* extra rows, so that vectors whose float distances are equal are ranked by exact ones */
};

typedef struct asking {
    find_access *access;
    const find_nearest *nearest;
    item_view *view;
    uint64_t *fresh; /* offered in this round */
    size_t fresh_n;
    uint64_t near_matched; /* rows of items that the graph found, in all rounds */
} asking;

bool find_nearest_was_offered(const find_graph_use *use, uint64_t number) {
    return item_numbers_have(use->seen, use->seen_n, number);
}

static err offer(asking *s, const item_nearest_found *found, uint64_t number) {
    find_access *a = s->access;
    if (a->visitor.before_load) {
        a->visitor.before_load(a->visitor.context);
    }
    s->fresh[s->fresh_n++] = number;
    return item_view_offer_near(s->view, found, number);
}

/* Offers all items that are not in the graph, then the nearest that are in it, until enough of these had a row. */
static err offer_found(asking *s, const item_nearest_found *found, uint64_t enough) {
    find_access *a = s->access;
    for (size_t i = 0; i < found->others_n && !s->view->stopped; i++) {
        TRY(find_nearest_was_offered(&a->report.graph, found->others[i]) ? OK : offer(s, found, found->others[i]));
    }
    for (size_t i = 0; i < found->near_n && s->near_matched < enough && !s->view->stopped; i++) {
        uint64_t number = found->near[i].label, before = a->turn.matched;
        bool seen = find_nearest_was_offered(&a->report.graph, number) || item_numbers_have(found->others, found->others_n, number);
        TRY(seen ? OK : offer(s, found, number));
        s->near_matched += a->turn.matched - before;
    }
    return OK;
}

/* Adds this round's items to `seen`. */
static void remember(asking *s) {
    find_graph_use *use = &s->access->report.graph;
    uint64_t *all = arena_array(s->view->op->arena, uint64_t, use->seen_n + s->fresh_n + 1);
    if (use->seen_n) {
        memcpy(all, use->seen, use->seen_n * sizeof *all);
    }
    memcpy(all + use->seen_n, s->fresh, s->fresh_n * sizeof *all);
    use->seen = all;
    use->seen_n += s->fresh_n;
    item_numbers_sort(all, use->seen_n);
}

static err ask(asking *s, size_t list, uint64_t enough, bool *all_out) {
    find_graph_use *use = &s->access->report.graph;
    item_nearest_found found;
    TRY(item_view_nearest(s->view, s->nearest->embedding, s->nearest->vector, s->nearest->numbers, list, &found));
    use->state = found.state;
    use->known = found.known;
    use->others = found.others_n;
    *all_out = false;
    if (found.state != NEAREST_FOUND) {
        return OK;
    }
    s->access->report.entries += found.near_n + found.others_n;
    s->fresh = arena_array(s->view->op->arena, uint64_t, found.near_n + found.others_n + 1);
    s->fresh_n = 0;
    TRY(offer_found(s, &found, enough));
    remember(s);
    *all_out = found.near_n >= found.known;
    return OK;
}

err find__nearest(find_access *a, const find_nearest *n, item_view *v, bool *found_out) {
    asking s = {.access = a, .nearest = n, .view = v};
    double wanted = (double)a->asked.wanted + (double)a->asked.given, most = fmin(LIST_MAX, (double)v->items_n / PART_OF_ITEMS);
    uint64_t enough = a->asked.wanted + a->asked.wanted / 4 + MORE_THAN_WANTED;
    bool all = false;
    for (double list = fmax(LIST_MIN, fmin(n->list_per_row * wanted, most)); wanted < most; list *= LIST_GROWTH) {
        TRY(ask(&s, (size_t)list, enough, &all));
        *found_out = a->report.graph.state == NEAREST_FOUND && (all || s.near_matched >= enough || v->stopped);
        if (*found_out || a->report.graph.state != NEAREST_FOUND || list * LIST_GROWTH > most) {
            return OK;
        }
    }
    *found_out = false;
    return OK;
}
