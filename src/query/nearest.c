#include "query/nearest.h"

#include "query/demand_int.h"

enum { LIST_PER_ROW = 10 }; /* the service's default for searchListSizeMultiplier */

static bool is_called(const query_expr *e, const char *name) {
    return e->kind == EXPR_CALL && e->function && slice_eq(slice_str(e->function->name), slice_str(name));
}

/* Reads {"distanceFunction": …, "searchListSizeMultiplier": …}. False: not a constant, another distance than the graph's, or brute
 * force. */
static bool read_options(query__demand_reader *r, const query_expr *e, find_nearest *n) {
    query_value force, options;
    search_distance distance = n->embedding->distance;
    if (e->items_n > 2 && (!query__demand_constant(r, e->items[2], &force) || force.type != TYPE_BOOL || force.truth)) {
        return false; /* true: brute force, all vectors are compared */
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

static bool read_numbers(query__demand_reader *r, const query_expr *e, find_nearest *n) {
    query_value v;
    double *numbers;
    size_t count;
    if (!query__demand_constant(r, e, &v) || v.type != TYPE_ARRAY || !search_vector_of(r->arena, v.bytes, &numbers, &count)) {
        return false;
    }
    n->numbers = numbers;
    return count == n->embedding->dimensions;
}

/* Whether the nearest come first and their number is limited. */
static bool asks_for_nearest(const query *q, const query_expr *e, search_distance distance) {
    bool greatest_first = is_called(e, "_VectorScore") || distance != SEARCH_EUCLIDEAN;
    return (q->top >= 0 || q->limit >= 0) && q->select->order[0].descending == greatest_first && !q->select->distinct && q->udfs_n == 0;
}

find_nearest query_nearest_of(query_runner *r, const index_policy *policy) {
    const query *q = r->query;
    const query_select *s = q->select;
    find_nearest n = {.list_per_row = LIST_PER_ROW};
    query__demand_reader reader = {.runner = r, .query = q, .policy = policy, .arena = r->op->arena};
    const query_expr *e = s->order_n == 1 && !s->order_by_rank && !q->aggregates && s->sources_n == 1 ? s->order[0].expr : NULL;
    find_path path;
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
