#include "item/stored.h"

#include "base/log.h"

err item__load_place(const item_work *w, item_place place, stored_item *stored_out) {
    layout_key k;
    store_value value;
    bool of_group;
    layout_item(&k, place);
    TRY(commit_get(w->group, STORE_ITEMS, layout_view(&k), &value, &of_group));
    *stored_out = (stored_item){.there = true, .place = place, .pin = value};
    slice bytes = of_group ? arena_copy(w->arena, value.bytes) : value.bytes;
    if (!layout_head_read(bytes, &stored_out->head, &stored_out->body)) {
        log_error("item", "stored item is damaged", "segment=%u number=%lu", place.segment, (unsigned long)place.number);
        store_give(&stored_out->pin);
        return E_STORE_CORRUPT;
    }
    return OK;
}

err item__load(const item_work *w, const item_key *key, stored_item *stored_out) {
    layout_key k;
    store_value value;
    bool of_group;
    item_place place;
    *stored_out = (stored_item){0};
    layout_primary(&k, w->container->space->container, &key->epk, &key->partition, key->id);
    err code = commit_get(w->group, STORE_INDEX, layout_view(&k), &value, &of_group);
    if (code == E_NOT_FOUND) {
        return OK;
    }
    TRY(code);
    bool placed = layout_place_read(value.bytes, &place);
    store_give(&value);
    if (!placed) {
        return E_STORE_CORRUPT;
    }
    code = item__load_place(w, place, stored_out);
    return code == E_NOT_FOUND ? E_STORE_CORRUPT : code; /* a primary key that leads nowhere */
}

err item__key_of(const container *c, slice body, item_key *key_out) {
    bson_iter_t it;
    op unused = {0};
    key_out->partition = (pkey){0};
    if (!doc_find_key(body, SLICE_LIT("id"), &it) || !BSON_ITER_HOLDS_UTF8(&it)) {
        return E_STORE_CORRUPT;
    }
    key_out->id = doc_text(&it);
    if (c->key.n) {
        TRY(pkey_extract(&unused, body, &c->key, &key_out->partition));
    }
    epk_of(&c->key, &key_out->partition, &key_out->epk);
    return OK;
}

/* ---- expiry entries: only while the container has a ttl; the sweep checks each, so one left over does no harm ----
 * The newest settings decide, not those that the request came with: an item must have its entry when the ttl was turned on meanwhile. */

bool item__expiry_key(const container *c, item_place place, const item_head *head, layout_key *k) {
    uint32_t container = c->space->container;
    if (c->space->ttl == TTL_OFF || head->ttl == TTL_NEVER) {
        return false;
    }
    if (head->ttl > 0) {
        uint64_t at = (uint64_t)head->ts + (uint32_t)head->ttl;
        layout_expiry(k, container, LAYOUT_TTL_OWN, at > UINT32_MAX ? UINT32_MAX : (uint32_t)at, place);
    } else {
        layout_expiry(k, container, LAYOUT_TTL_DEFAULT, head->ts, place);
    }
    return true;
}

static void count(const item_work *w, int items, int64_t bytes) {
    w->range->pending.items += (uint64_t)(int64_t)items;
    w->range->pending.bytes += (uint64_t)bytes;
}

/* The primary key of an item that is written; whoever has it cached hears of it. */
static void primary_key(const item_work *w, const item_key *key, item_place place, layout_key *k) {
    layout_primary(k, w->container->space->container, &key->epk, &key->partition, key->id);
    item_cache_written(w->items->cache, w->group, layout_view(k), place);
}

/* The entries that only a new item needs. */
static void put_leads(const item_work *w, const item_key *key, item_place place, slice primary) {
    layout_key k;
    char bytes[12];
    layout_place_write(bytes, place);
    store_put(&w->group->batch, STORE_INDEX, primary, slice_of(bytes, 12));
    layout_order(&k, w->container->space->container, &key->epk, place.number);
    store_put(&w->group->batch, STORE_INDEX, layout_view(&k), slice_of(bytes, 4));
}

void item__put(const item_work *w, const item_key *key, item_place place, const item_head *head, slice body, const stored_item *before) {
    layout_key k, primary;
    primary_key(w, key, place, &primary);
    layout_item(&k, place);
    char *value = store_put_space(&w->group->batch, STORE_ITEMS, layout_view(&k), LAYOUT_HEAD_BYTES + body.n);
    layout_head_write(value, head);
    memcpy(value + LAYOUT_HEAD_BYTES, body.p, body.n);
    if (before->there) {
        item__unique_remove(w, key, before->body);
        if (item__expiry_key(w->container, place, &before->head, &k)) {
            store_delete(&w->group->batch, STORE_INDEX, layout_view(&k));
        }
        count(w, 0, (int64_t)body.n - (int64_t)before->body.n);
    } else {
        put_leads(w, key, place, layout_view(&primary));
        count(w, 1, (int64_t)(LAYOUT_HEAD_BYTES + body.n));
    }
    item__unique_put(w, key, body, place);
    if (item__expiry_key(w->container, place, head, &k)) {
        store_put(&w->group->batch, STORE_INDEX, layout_view(&k), SLICE_EMPTY);
    }
}

void item__remove(const item_work *w, const item_key *key, const stored_item *stored) {
    layout_key k;
    store_batch *batch = &w->group->batch;
    uint32_t container = w->container->space->container;
    layout_item(&k, stored->place);
    store_delete(batch, STORE_ITEMS, layout_view(&k));
    primary_key(w, key, stored->place, &k);
    store_delete(batch, STORE_INDEX, layout_view(&k));
    layout_order(&k, container, &key->epk, stored->place.number);
    store_delete(batch, STORE_INDEX, layout_view(&k));
    item__unique_remove(w, key, stored->body);
    if (item__expiry_key(w->container, stored->place, &stored->head, &k)) {
        store_delete(batch, STORE_INDEX, layout_view(&k));
    }
    count(w, -1, -(int64_t)(LAYOUT_HEAD_BYTES + stored->body.n));
}
