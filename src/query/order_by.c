#include "query/order_by.h"

#include "query/key.h"

find_order query_order_of(arena *a, const query *q) {
    const query_select *s = q->select;
    find_order_part *parts = arena_array(a, find_order_part, s->order_n + 1);
    for (size_t i = 0; i < s->order_n; i++) {
        parts[i].known = query_path_of(q, s->order[i].expr, &parts[i].path);
        parts[i].descending = s->order[i].descending;
        parts[i].bounded = s->order[i].expr->kind == EXPR_KEY && s->order[i].expr->key->prefix.n;
    }
    return (find_order){parts, s->order_n};
}

static bool has_composite(op *o, const query *q, const index_policy *policy) {
    bool backward;
    find_order order = query_order_of(o->arena, q);
    return find_composite_for(&order, policy, &backward) != NULL;
}

err query_check_order(op *o, const query *q, const index_policy *policy) {
    const query_select *s = q->select;
    find_path p;
    if (s->order_n > 1 && !has_composite(o, q, policy)) {
        return op_fail(o, E_BAD_REQUEST, "The order by query does not have a corresponding composite index that it can be served from.");
    }
    if (s->order_n != 1 || !query_path_of(q, s->order[0].expr, &p) || p.n == 0 || index_is_system(p.steps[0])) {
        return OK;
    }
    return index_policy_covers(policy, p.steps, p.n)
               ? OK
               : op_fail(o, E_BAD_REQUEST, "The index path corresponding to the specified order-by item is excluded.");
}
