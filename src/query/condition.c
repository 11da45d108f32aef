#include "query/condition.h"

typedef struct condition {
    item_condition base;
    const container *container;
    query query;
} condition;

static bool found_row(void *context) {
    *(bool *)context = true;
    return false;
}

static err check(const item_condition *base, op *o, const item_head *head, slice body) {
    const condition *c = (const condition *)base;
    arena row = arena_init_counted(o->budget);
    query_runner *r = arena_new(&row, query_runner);
    query_item item = {.body = body, .number = head->number, .version = item_version(head), .ts = head->ts};
    bool found = false;
    memcpy(item.container_rid, c->container->rid, sizeof item.container_rid);
    query_runner_init(r, &c->query, o, &row, o->now_s * 1000);
    query_renew_steps(r, QUERY_CONDITION_STEPS);
    r->context.keep = o->arena;
    query_value value = value_of_item(&item);
    query_each_row(r, c->query.select, &value, found_row, &found);
    err code = !query_may_keep(r) ? r->code : found ? OK : E_PRECONDITION;
    arena_free(&row);
    return code;
}

err query_condition_read(op *o, const container *c, slice text, const item_condition **condition_out) {
    condition *made = arena_new(o->arena, condition);
    *condition_out = &made->base;
    made->base.check = check;
    made->container = c;
    if (text.n > QUERY_CONDITION_BYTES_MAX) {
        return op_fail(o, E_BAD_REQUEST, "The condition of a patch exceeded the maximum limit of %d characters.",
                       QUERY_CONDITION_BYTES_MAX);
    }
    TRY(query_prepare_condition(o, o->arena, text, &made->query));
    return made->query.ast->udf_calls ? op_fail(o, E_BAD_REQUEST, "The condition of a patch cannot call user-defined functions.") : OK;
}
