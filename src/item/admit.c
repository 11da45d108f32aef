#include "item/admit.h"

#include "throughput/charge.h"

static bucket_class class_of(const op *o) {
    return (bucket_class){o->low_priority ? BUCKET_LOW : BUCKET_HIGH, o->lane};
}

static uint32_t elapsed_us(const op *o, int64_t now_us) {
    int64_t us = o->arrived_us ? now_us - o->arrived_us : 0;
    return us < 0 ? 0 : us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

err item__admit(const items *s, op *o, container_range *range) {
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

static hotkeys *hotkeys_of(container_range *range) {
    hotkeys *hot = atomic_load_explicit(&range->hotkeys, memory_order_acquire);
    if (!hot) {
        hotkeys *made = hotkeys_new();
        if (atomic_compare_exchange_strong(&range->hotkeys, &hot, made)) {
            return made;
        }
        hotkeys_free(made);
    }
    return hot;
}

/* As in the partition key header, cut to what fits. */
static size_t key_text(const void *key, char *into, size_t max) {
    buf text = buf_init(BUF_NO_LIMIT);
    pkey_write(&text, &((const item_key *)key)->partition);
    size_t n = text.n < max ? text.n : max;
    memcpy(into, text.p, n);
    buf_free(&text);
    return n;
}

static uint64_t hash_of(const item_key *key) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < key->epk.n; i++) {
        hash = (hash ^ key->epk.bytes[i]) * 1099511628211u;
    }
    return hash;
}

void item__settle(const items *s, const op *o, container_range *range, const item_key *key, double ru, bool failed) {
    int64_t now_us = clock_monotonic_us(s->clock);
    bucket_charge(container_range_bucket(range), class_of(o), ru, now_us * 1000);
    meter_add(&range->meter, ru, elapsed_us(o, now_us), false, failed);
    if (key && key->partition.n) {
        hotkeys_spent(hotkeys_of(range), hash_of(key), ru, now_us * 1000, key_text, key);
    }
}
