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

static void count_refused(const items *s, const op *o, container_range *range) {
    meter_add(&range->meter, METER_READ, 0, elapsed_us(o, clock_monotonic_us(s->clock)), true, false);
}

static uint32_t wait_ms(int64_t ns) {
    return (uint32_t)((ns + 999999) / 1000000);
}

err item__admit(const items *s, op *o, container_range *range) {
    if (o->admitted) {
        return OK;
    }
    int64_t wait_ns = bucket_admit(container_range_bucket(range), class_of(o), clock_monotonic_us(s->clock) * 1000);
    if (wait_ns == 0) {
        return OK;
    }
    o->retry_after_ms = wait_ms(wait_ns);
    op_charge(o, CHARGE_THROTTLED);
    count_refused(s, o, range);
    return E_THROTTLED;
}

/* ---- one by one ---- */

/* What is left of a bucket while a request's operations are admitted. */
typedef struct room {
    bucket *bucket;
    double left;
    bool refused; /* an operation was: it waits for the debt, the others only for themselves */
} room;

static room *room_of(item_commit *c, room *rooms, size_t *n, bucket *b) {
    for (size_t i = *n; i-- > 0;) {
        if (rooms[i].bucket == b) {
            return &rooms[i];
        }
    }
    rooms[*n] = (room){.bucket = b, .left = bucket_room(b, class_of(c->op), clock_monotonic_us(c->items->clock) * 1000)};
    return &rooms[(*n)++];
}

/* As far as it is known before the item is: by the size of a new body, else by what is usual. */
static double expected_charge(const item_op *op, const bucket *b) {
    double usual = atomic_load_explicit(&b->usual_charge, memory_order_relaxed);
    bool writes = op->kind == ITEM_CREATE || op->kind == ITEM_UPSERT || op->kind == ITEM_REPLACE;
    double least = writes ? charge_create(op->body.n, 0) : charge_read(0);
    return op->kind == ITEM_READ || least > usual ? least : usual;
}

static void refuse(item_commit *c, item_op *op, room *r, container_range *range, double charge) {
    int64_t now_ns = clock_monotonic_us(c->items->clock) * 1000;
    double rate = atomic_load_explicit(&r->bucket->rate, memory_order_relaxed);
    int64_t own_ns = rate > 0 ? (int64_t)(charge / rate * 1e9) : 0;
    int64_t debt_ns = r->refused ? 0 : bucket_admit(r->bucket, class_of(c->op), now_ns);
    op->code = E_THROTTLED;
    op->op.retry_after_ms = wait_ms(own_ns + debt_ns);
    op_charge(&op->op, CHARGE_THROTTLED);
    op_charge(c->op, CHARGE_THROTTLED);
    count_refused(c->items, c->op, range);
    r->refused = true;
}

void item__admit_each(item_commit *c) {
    room *rooms = arena_array(c->op->arena, room, c->n);
    size_t n = 0;
    for (size_t i = 0; i < c->n && !c->op->admitted; i++) {
        item_op *op = &c->ops[i];
        if (op->code != OK) {
            continue;
        }
        container_range *range = container_route(c->container->tiles, &op->key.epk);
        room *r = room_of(c, rooms, &n, container_range_bucket(range));
        double charge = expected_charge(op, r->bucket);
        if (r->left < 0) {
            refuse(c, op, r, range, charge);
        } else {
            r->left -= charge;
        }
    }
}

/* ---- charging ---- */

void item__debit(const items *s, const op *o, container_range *range, const item_key *key, meter_work work, double ru, bool failed) {
    int64_t now_us = clock_monotonic_us(s->clock);
    bucket_charge(container_range_bucket(range), class_of(o), ru, now_us * 1000);
    meter_add(&range->meter, work, ru, elapsed_us(o, now_us), false, failed);
    if (key) {
        item__note_spent(range, key, ru, now_us * 1000);
    }
}

double item_rate(const container *c, const item_key *key) {
    return atomic_load(&container_range_bucket(container_route(c->tiles, &key->epk))->rate);
}

void item_debit(const items *s, const op *o, const container *c, const item_key *key, double ru, bool counted, bool failed) {
    container_tiles *tiles = container_space_newest(c->space);
    container_range *range = container_route(tiles, &key->epk);
    if (counted) {
        item__debit(s, o, range, key, METER_SCRIPT, ru, failed);
    } else {
        item__debit_more(s, o, range, METER_SCRIPT, ru);
    }
    container_tiles_give(tiles);
}

void item__debit_more(const items *s, const op *o, container_range *range, meter_work work, double ru) {
    bucket_charge(container_range_bucket(range), class_of(o), ru, clock_monotonic_us(s->clock) * 1000);
    meter_add_ru(&range->meter, work, ru);
}
