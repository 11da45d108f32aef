#include "call/call_int.h"

static void go(call *c) {
    call_usage *u = (call_usage *)c;
    range_info range;
    container *newest = account_container_newest(c->core->account, c->container);
    if (!newest) {
        call__end(c, E_OWNER_NOT_FOUND);
        return;
    }
    for (; range_info_at(newest, u->ranges, &range); u->ranges++) {
        u->usage.items += range.usage.items;
        u->usage.bytes += range.usage.bytes;
        u->usage.index_bytes += range.usage.index_bytes;
        u->partitions += range.partitions;
    }
    container_give(newest);
    call__finish(c);
}

void call_usage_init(call_usage *u, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    call_init(&u->call, core, client, o, container, done);
    u->usage = (range_usage){0};
    u->partitions = 0;
    u->ranges = 0;
}

void call_usage_submit(call_usage *u) {
    epk min = epk_min(), end = epk_max();
    call__enter(&u->call, &min, &end, call__one_range(&u->call, &min, &end), false, go);
}
