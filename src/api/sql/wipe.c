/* All items of a partition key are deleted by one request. */
#include "api/sql/sql_int.h"

typedef struct wiping {
    call_wipe call;
    sql_request *q;
} wiping;

static void was_wiped(call *c) {
    wiping *w = (wiping *)c;
    sql_request *q = w->q;
    sql_call_done(q, c);
    if (c->code != OK) {
        sql_fail(q, c->code);
        return;
    }
    sql_start(q, 200);
    sql_add_range(q, q->mark);
    sql_field_text(q, "x-ms-cosmos-is-partition-key-delete-pending", w->call.wipe.pending ? SLICE_LIT("true") : SLICE_LIT("false"));
    sql_start_body(q);
    sql_end(q);
}

/* A container without a partition key has one logical partition: that is the whole container, which this does not delete. */
static err prepare(wiping *w) {
    sql_request *q = w->q;
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    sql_call_prepare(q, call_wipe_init, &w->call, was_wiped);
    if (q->container->key.n == 0) {
        return op_fail(&q->op, E_BAD_REQUEST, "The container has no partition key: delete its items one by one, or the container.");
    }
    return item_check_key(&q->op, q->container, sql_header_key(q), SLICE_EMPTY, &w->call.wipe.key);
}

void sql_partition_delete(sql_request *q) {
    wiping *w = arena_new(q->http->arena, wiping);
    w->q = q;
    err code = prepare(w);
    code == OK ? call_wipe_submit(&w->call) : sql_fail(q, code);
}
