#include "item/admit.h"

#include "item/hot.h"
#include "throughput/charge.h"

static bucket_class class_of(const op *o) {
    return (bucket_class){o->low_priority ? BUCKET_LOW : BUCKET_HIGH, o->throughput_bucket};
}

static uint32_t elapsed_us(const op *o, int64_t now_us) {
    int64_t us = o->arrived_us ? now_us - o->arrived_us : 0;
    return us < 0 ? 0 : us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

err item__admit(const items *s, op *o, container_range *range) {
    if (o->admitted) {
        return OK;
    }
    int64_t now_us = clock_monotonic_us(s->clock);
    int64_t wait_ns = bucket_admit(container_range_bucket(range), class_of(o), now_us * 1000);
    if (wait_ns == 0) {
        return OK;
    }
    o->retry_after_ms = (uint32_t)((wait_ns + 999999) / 1000000);
    op_charge(o, CHARGE_THROTTLED);
    meter_add(&range->meter, 0, elapsed_us(o, now_us), true, false);
    return E_THROTTLED;
}

void item__settle(const items *s, const op *o, container_range *range, const item_key *key, double ru, bool failed) {
    int64_t now_us = clock_monotonic_us(s->clock);
    bucket_charge(container_range_bucket(range), class_of(o), ru, now_us * 1000);
    meter_add(&range->meter, ru, elapsed_us(o, now_us), false, failed);
    if (key) {
        item__spent(range, key, ru, now_us * 1000);
    }
}

double item_rate(const container *c, const item_key *key) {
    return atomic_load(&container_range_bucket(container_route(c->tiles, &key->epk))->rate);
}

void item_settle(const items *s, const op *o, const container *c, const item_key *key, double ru, bool counted, bool failed) {
    container_tiles *tiles = container_space_newest(c->space);
    container_range *range = container_route(tiles, &key->epk);
    if (counted) {
        item__settle(s, o, range, key, ru, failed);
    } else {
        item__settle_more(s, o, range, ru);
    }
    container_tiles_give(tiles);
}

void item__settle_more(const items *s, const op *o, container_range *range, double ru) {
    bucket_charge(container_range_bucket(range), class_of(o), ru, clock_monotonic_us(s->clock) * 1000);
    meter_add_ru(&range->meter, ru);
}
