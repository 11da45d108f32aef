#include "query/nearest.h"

#include <math.h>

#include "query/access.h"
#include "query/demand_int.h"

enum {
    LIST_MAX = 16384,    /* a search is bounded, however many items there are */
    LIST_MIN = 256,      /* of a search: shorter ones miss too much where vectors have no order */
    LIST_PER_ROW = 10,   /* what searchListSizeMultiplier is on the service, if it is not given */
    LIST_GROWTH = 4,     /* when too few of those found pass WHERE */
    PART_OF_ITEMS = 8,   /* a longer list than this part of them is not worth it */
    MORE_THAN_WANTED = 8 /* ranked exactly, so that what floats do not tell apart comes in order */
};

/* ---- what is asked ---- */

static bool is_called(const query_expr *e, const char *name) {
    return e->kind == EXPR_CALL && e->function && slice_eq(slice_str(e->function->name), slice_str(name));
}

/* {"distanceFunction": …, "searchListSizeMultiplier": …}; false: it asks for another distance than the graph's, or is not known. */
static bool read_options(query__demand_reader *r, const query_expr *e, query_nearest *n) {
    query_value force, options;
    search_distance distance = n->embedding->distance;
    if (e->items_n > 2 && (!query__demand_constant(r, e->items[2], &force) || force.type != TYPE_BOOL || force.truth)) {
        return false; /* true: each vector is compared */
    }
    if (e->items_n < 4) {
        return true;
    }
    if (!query__demand_constant(r, e->items[3], &options) || options.type != TYPE_OBJECT) {
        return false;
    }
    query_value name = value_member(r->arena, &options, SLICE_LIT("distanceFunction"));
    query_value list = value_member(r->arena, &options, SLICE_LIT("searchListSizeMultiplier"));
    if (list.type == TYPE_NUMBER && list.number >= 1 && list.number <= 100) {
        n->list_per_row = list.number;
    }
    bool named = !value_is_defined(&name) || (name.type == TYPE_STRING && search_distance_named(name.bytes, &distance));
    return named && distance == n->embedding->distance;
}

static bool read_numbers(query__demand_reader *r, const query_expr *e, query_nearest *n) {
    query_value v;
    double *numbers;
    size_t count;
    if (!query__demand_constant(r, e, &v) || v.type != TYPE_ARRAY || !search_vector_of(r->arena, v.bytes, &numbers, &count)) {
        return false;
    }
    n->numbers = numbers;
    return count == n->embedding->dimensions;
}

/* The nearest first, and not all of them. */
static bool asks_for_nearest(const query *q, const query_expr *e, search_distance distance) {
    bool greatest_first = is_called(e, "_VectorScore") || distance != SEARCH_EUCLIDEAN;
    return (q->top >= 0 || q->limit >= 0) && q->select->order[0].descending == greatest_first && !q->select->distinct && q->udfs_n == 0;
}

query_nearest query_nearest_of(query_runner *r, const index_policy *policy) {
    const query *q = r->query;
    const query_select *s = q->select;
    query_nearest n = {.list_per_row = LIST_PER_ROW};
    query__demand_reader reader = {.runner = r, .query = q, .policy = policy, .arena = r->op->arena};
    const query_expr *e = s->order_n == 1 && !s->order_by_rank && !q->aggregates && s->sources_n == 1 ? s->order[0].expr : NULL;
    query_path path;
    if (!policy->vectors_n || !e || !(is_called(e, "VectorDistance") || is_called(e, "_VectorScore"))) {
        return n;
    }
    size_t of_item = query_path_of(q, e->items[0], &path) ? 0 : 1;
    if ((of_item == 1 && !query_path_of(q, e->items[1], &path)) || !path.single || path.n == 0) {
        return n;
    }
    n.vector = index_policy_vector(policy, index_path_of(path.steps, path.n));
    n.embedding = n.vector ? index_policy_embedding(policy, n.vector->hash) : NULL;
    n.indexed = n.embedding != NULL;
    n.meant = n.indexed && n.vector->kind == VECTOR_DISK_ANN && read_options(&reader, e, &n) &&
              asks_for_nearest(q, e, n.embedding->distance) && read_numbers(&reader, e->items[1 - of_item], &n);
    return n;
}

/* ---- asking ---- */

typedef struct asking {
    query_access *access;
    const query_nearest *nearest;
    item_view *view;
    uint64_t *fresh; /* offered in this round */
    size_t fresh_n;
    uint64_t near_matched; /* rows, of all rounds */
} asking;

bool query_nearest_was_seen(const query_graph_use *use, uint64_t number) {
    return item_numbers_have(use->seen, use->seen_n, number);
}

static err offer(asking *s, const item_nearest_found *found, uint64_t number) {
    query_access *a = s->access;
    if (a->before_load) {
        a->before_load(a->context);
    }
    s->fresh[s->fresh_n++] = number;
    return item_view_offer_near(s->view, found, number);
}

/* What the graph does not know, and of what it knows the nearest, until enough of them had a row. */
static err offer_found(asking *s, const item_nearest_found *found, uint64_t enough) {
    query_access *a = s->access;
    for (size_t i = 0; i < found->others_n && !s->view->stopped; i++) {
        TRY(query_nearest_was_seen(&a->graph, found->others[i]) ? OK : offer(s, found, found->others[i]));
    }
    for (size_t i = 0; i < found->near_n && s->near_matched < enough && !s->view->stopped; i++) {
        uint64_t number = found->near[i].label, before = a->matched;
        bool seen = query_nearest_was_seen(&a->graph, number) || item_numbers_have(found->others, found->others_n, number);
        TRY(seen ? OK : offer(s, found, number));
        s->near_matched += a->matched - before;
    }
    return OK;
}

/* Those of this round join the others. */
static void remember(asking *s) {
    query_graph_use *use = &s->access->graph;
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
    query_graph_use *use = &s->access->graph;
    item_nearest_found found;
    TRY(item_view_nearest(s->view, s->nearest->embedding, s->nearest->vector, s->nearest->numbers, list, &found));
    use->state = found.state;
    use->known = found.known;
    use->others = found.others_n;
    *all_out = false;
    if (found.state != NEAREST_FOUND) {
        return OK;
    }
    s->access->entries += found.near_n + found.others_n;
    s->fresh = arena_array(s->view->op->arena, uint64_t, found.near_n + found.others_n + 1);
    s->fresh_n = 0;
    TRY(offer_found(s, &found, enough));
    remember(s);
    *all_out = found.near_n >= found.known;
    return OK;
}

err query_nearest_find(query_access *a, const query_nearest *n, item_view *v, bool *found_out) {
    asking s = {.access = a, .nearest = n, .view = v};
    double wanted = (double)a->wanted + (double)a->given, most = fmin(LIST_MAX, (double)v->items_n / PART_OF_ITEMS);
    uint64_t enough = a->wanted + a->wanted / 4 + MORE_THAN_WANTED;
    bool all = false;
    for (double list = fmax(LIST_MIN, fmin(n->list_per_row * wanted, most)); wanted < most; list *= LIST_GROWTH) {
        TRY(ask(&s, (size_t)list, enough, &all));
        *found_out = a->graph.state == NEAREST_FOUND && (all || s.near_matched >= enough || v->stopped);
        if (*found_out || a->graph.state != NEAREST_FOUND || list * LIST_GROWTH > most) {
            return OK;
        }
    }
    *found_out = false;
    return OK;
}
