#include "query/condition.h"

static bool found_row(void *context) {
    *(bool *)context = true;
    return false;
}

/* If the budget given was below the condition's own limit, running out of it means: try again with a larger budget. Otherwise the condition
 * fails. */
static err outcome(query_runner *r, uint64_t steps, bool found, item_edit_budget *b) {
    err code = !query_may_keep(r) ? r->code : found ? OK : E_PRECONDITION;
    b->exceeded = b->exceeded || (code == E_QUERY_TOO_LONG && steps < QUERY_CONDITION_STEPS);
    b->steps -= steps - r->steps;
    return code;
}

static err check(op *o, const item_edit_input *in, item_edit_budget *b) {
    const query *q = in->ready;
    if (!in->there) {
        return E_PRECONDITION;
    }
    arena row = arena_init_counted(o->budget);
    query_runner *r = arena_new(&row, query_runner);
    query_item item = {.body = in->body, .number = in->head.number, .version = item_version(&in->head), .ts = in->head.ts};
    uint64_t steps = b->steps < QUERY_CONDITION_STEPS ? b->steps : QUERY_CONDITION_STEPS;
    bool found = false;
    memcpy(item.container_rid, in->container->rid, sizeof item.container_rid);
    query_runner_init(r, q, o, &row, o->now_s * 1000);
    query_renew_steps(r, steps);
    r->context.keep = o->arena;
    query_value value = value_of_item(&item);
    query_each_row(r, q->select, &value, found_row, &found);
    err code = outcome(r, steps, found, b);
    arena_free(&row);
    return code;
}

static err prepare(op *o, const container *c, slice argument, const void **ready_out) {
    query *q = arena_new(o->arena, query);
    doc_element text;
    (void)c;
    *ready_out = q;
    if (!doc_find_member(argument, SLICE_LIT("filter"), &text) || text.type != BSON_TYPE_UTF8) {
        return op_fail(o, E_BAD_REQUEST, "The argument of a filter must have its text in 'filter'.");
    }
    slice filter = doc_element_text(&text);
    if (filter.n > QUERY_CONDITION_BYTES_MAX) {
        return op_fail(o, E_BAD_REQUEST, "The condition of a patch exceeded the maximum limit of %d characters.",
                       QUERY_CONDITION_BYTES_MAX);
    }
    TRY(query_prepare_condition(o, o->arena, filter, q));
    return q->ast->udf_calls ? op_fail(o, E_BAD_REQUEST, "The condition of a patch cannot call user-defined functions.") : OK;
}

static const item_condition_kind filter_kind = {.id = ITEM_CONDITION_FILTER, .name = "filter", .prepare = prepare, .check = check};

void query_condition_register(void) {
    item_condition_register(&filter_kind);
}

item_condition query_condition_of(arena *a, slice text) {
    bson_t argument = BSON_INITIALIZER;
    bson_append_utf8(&argument, "filter", -1, text.p, (int)text.n);
    item_condition condition = {.kind = ITEM_CONDITION_FILTER, .argument = arena_copy(a, slice_of(bson_get_data(&argument), argument.len))};
    bson_destroy(&argument);
    return condition;
}
