#include "item/stored.h"

#include "base/log.h"
#include "item/changes.h"
#include "item/hot.h"
#include "item/index_entries.h"
#include "item/size_cache.h"

enum { PLACE_BYTES = 12 };

/* Parses an item's value. A value from the store stays pinned; one from the group is copied. */
static err load_value(const item_work *w, slice item, store_value value, bool of_group, stored_item *stored) {
    stored->there = true;
    stored->pin = value;
    slice bytes = of_group ? arena_copy(w->arena, item) : item;
    if (!layout_head_read(bytes, &stored->head, &stored->body)) {
        log_error("item", "stored item is damaged", "segment=%u number=%lu", stored->place.segment, (unsigned long)stored->place.number);
        store_give(&stored->pin);
        return E_STORE_CORRUPT;
    }
    return OK;
}

/* Loads the item that a clustered container stores at its primary key. */
static err load_row(const item_work *w, slice primary, stored_item *stored_out) {
    store_value value;
    bool of_group;
    slice item;
    TRY(commit_get(w->group, STORE_INDEX, primary, &value, &of_group));
    if (!layout_row_read(value.bytes, &stored_out->place.segment, &item)) {
        store_give(&value);
        return E_STORE_CORRUPT;
    }
    TRY(load_value(w, item, value, of_group, stored_out));
    stored_out->place.number = stored_out->head.number;
    return OK;
}

err item__load_place(const item_work *w, item_place place, stored_item *stored_out) {
    layout_key k;
    store_value value;
    bool of_group;
    slice primary;
    layout_item(&k, place);
    *stored_out = (stored_item){.place = place};
    TRY(commit_get(w->group, STORE_ITEMS, layout_view(&k), &value, &of_group));
    if (!layout_lead_read(value.bytes, &primary)) {
        return load_value(w, value.bytes, value, of_group, stored_out);
    }
    err code = load_row(w, primary, stored_out);
    store_give(&value);
    bool same = code != OK || (stored_out->place.segment == place.segment && stored_out->place.number == place.number);
    if (!same) {
        store_give(&stored_out->pin);
    }
    return same && code != E_NOT_FOUND ? code : E_STORE_CORRUPT; /* a dangling lead */
}

/* ---- lsns ---- */

uint64_t item__next_lsn(const item_work *w, uint64_t before) {
    const container_range *range = w->range;
    bool shared = w->batch && range->batch == w->batch && before != range->pending.lsn;
    return range->pending.lsn + !shared;
}

uint64_t item__take_lsn(item_work *w, uint64_t before) {
    container_range *range = w->range;
    uint64_t lsn = item__next_lsn(w, before);
    range->batch_removes = range->batch_removes && lsn == range->pending.lsn;
    range->pending.lsn = lsn;
    range->batch = w->batch;
    return lsn;
}

/* ---- the keys of an item: prebuilt, or built in `space` ---- */

void item__spell_keys(item_work *w, const item_key *key, layout_key *primary, layout_key *size) {
    uint32_t container = w->container->space->container;
    layout_primary(primary, container, &key->epk, &key->partition, key->row);
    layout_size(size, container, &key->epk, &key->partition);
    w->spelled = key;
    w->primary_key = primary;
    w->size_key = size;
}

static slice primary_key(const item_work *w, const item_key *key, layout_key *space) {
    if (w->spelled == key) {
        return layout_view(w->primary_key);
    }
    layout_primary(space, w->container->space->container, &key->epk, &key->partition, key->row);
    return layout_view(space);
}

static slice size_key(const item_work *w, const item_key *key, layout_key *space) {
    if (w->spelled == key) {
        return layout_view(w->size_key);
    }
    layout_size(space, w->container->space->container, &key->epk, &key->partition);
    return layout_view(space);
}

/* ---- loading ---- */

err item__load(const item_work *w, const item_key *key, stored_item *stored_out) {
    layout_key k;
    store_value value;
    bool of_group;
    item_place place;
    *stored_out = (stored_item){0};
    if (w->size.items == 0) { /* its whole partition is empty, as before most creates */
        return OK;
    }
    slice primary = primary_key(w, key, &k);
    if (w->container->clustered) {
        err found = load_row(w, primary, stored_out);
        return found == E_NOT_FOUND ? OK : found;
    }
    err code = commit_get(w->group, STORE_INDEX, primary, &value, &of_group);
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
    return code == E_NOT_FOUND ? E_STORE_CORRUPT : code; /* a dangling primary key */
}

err item__key_of(const container *c, arena *a, slice body, item_key *key_out) {
    op unused = {0};
    key_out->partition.n = 0;
    if (row_of(&unused, a, &c->row, body, &key_out->row) != OK) {
        return E_STORE_CORRUPT;
    }
    if (c->key.n) {
        TRY(pkey_extract(&unused, body, &c->key, &key_out->partition));
    }
    epk_of(&c->key, &key_out->partition, &key_out->epk);
    return OK;
}

/* ---- expiry entries: written only while the container has a ttl; the sweep checks the item, so a leftover entry does no harm ----
 *
 * The newest settings decide, not those that the request arrived with: if the ttl was turned on meanwhile, the item needs its entry. */

bool item__expiry_key(const container *c, const container_part *part, item_place place, const item_head *head, slice body, layout_key *k) {
    uint32_t container = c->space->container;
    int64_t at_s;
    if (c->expiries_n) {
        bool expires = part->ttl != TTL_OFF && item_expires_by_date(c, body, &at_s);
        if (expires) {
            at_s = at_s < head->ts ? head->ts : at_s; /* the sweep does not look at earlier times again */
            layout_expiry(k, container, LAYOUT_TTL_OWN, at_s >= UINT32_MAX ? UINT32_MAX : (uint32_t)at_s, place);
        }
        return expires;
    }
    if (part->ttl == TTL_OFF || head->ttl == TTL_NEVER) {
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

/* ---- counting: the range's counts and the partition's size entry ---- */

err item__enter(item_work *w, const item_key *key) {
    w->range = container_route(w->tiles, &key->epk);
    return item__enter_range(w, key);
}

/* The size entry; E_NOT_FOUND if the partition has none. */
static err load_size(const item_work *w, slice entry, store_value *value_out) {
    bool of_group;
    *value_out = (store_value){0};
    if (!size_cache_find(w->home->sizes, entry, &value_out->bytes)) { /* it knows no entry that the group has written */
        return commit_get(w->group, STORE_INDEX, entry, value_out, &of_group);
    }
    return value_out->bytes.n ? OK : E_NOT_FOUND;
}

err item__enter_range(item_work *w, const item_key *key) {
    layout_key k;
    store_value value;
    epk unused;
    slice partition, entry = size_key(w, key, &k);
    w->size = (size_sum){0};
    err code = load_size(w, entry, &value);
    if (code == E_NOT_FOUND) {
        return OK;
    }
    TRY(code);
    bool read = layout_size_read(entry, value.bytes, &unused, &partition, &w->size);
    store_give(&value);
    return read ? OK : E_STORE_CORRUPT;
}

/* Amounts added; negative: removed. */
typedef struct change {
    int64_t items, bytes, index_bytes;
} change;

static void count(item_work *w, const item_key *key, change c) {
    layout_key k;
    range_counts *range = &w->range->pending;
    bool was_there = w->size.items > 0;
    w->size.items += (uint64_t)c.items;
    w->size.bytes += (uint64_t)c.bytes;
    w->size.index_bytes += (uint64_t)c.index_bytes;
    range->items += (uint64_t)c.items;
    range->bytes += (uint64_t)c.bytes;
    range->index_bytes += (uint64_t)c.index_bytes;
    range->partitions += (uint64_t)((w->size.items > 0) - was_there);
    slice entry = size_key(w, key, &k);
    if (w->size.items > 0) {
        layout_size_write(store_put_space(&w->group->batch, STORE_INDEX, entry, LAYOUT_SIZE_BYTES), &w->size);
    } else {
        store_delete(&w->group->batch, STORE_INDEX, entry);
    }
    size_cache_written(w->home->sizes, w->group, entry);
    item__note_size(w->range, key, w->size.bytes); /* if the group fails, readers of the sketch correct it (item/hot.h) */
}

void item__count_index(item_work *w, const item_key *key, int64_t bytes) {
    count(w, key, (change){0, 0, bytes});
}

void item__count_bytes(item_work *w, const item_key *key, int64_t bytes) {
    count(w, key, (change){.bytes = bytes});
}

/* ---- the item and its entries ---- */

/* The primary key of an item that is written. Also tells the cache about the write. */
static slice written_key(const item_work *w, const item_key *key, item_place place, layout_key *space) {
    slice primary = primary_key(w, key, space);
    item_cache_written(w->home->cache, w->group, primary, place);
    return primary;
}

/* The size of the keys that lead to a new or moved item, without its unique keys. */
static size_t lead_keys_bytes(const item_work *w, const item_key *key, slice primary) {
    size_t order = w->container->ordered ? 4 + 1 + key->epk.n + 1 + 8 + 4 : 0; /* the entry of layout_order */
    return primary.n + PLACE_BYTES + order + (w->container->clustered ? LAYOUT_ROW_BYTES + LAYOUT_LEAD_BYTES + primary.n : 0);
}

static void put_order(const item_work *w, const item_key *key, item_place place, const char place_bytes[PLACE_BYTES]) {
    layout_key k;
    if (w->container->ordered) {
        layout_order(&k, w->container->space->container, &key->epk, place.number);
        store_put(&w->group->batch, STORE_INDEX, layout_view(&k), slice_of(place_bytes, 4));
    }
}

static void put_leads(const item_work *w, const item_key *key, item_place place, slice primary) {
    layout_key k;
    char bytes[PLACE_BYTES];
    layout_place_write(bytes, place);
    if (w->container->clustered) {
        layout_item(&k, place);
        layout_lead_write(store_put_space(&w->group->batch, STORE_ITEMS, layout_view(&k), LAYOUT_LEAD_BYTES + primary.n), primary);
    } else {
        store_put(&w->group->batch, STORE_INDEX, primary, slice_of(bytes, PLACE_BYTES));
    }
    put_order(w, key, place, bytes);
}

static void put_value(const item_work *w, item_place place, slice primary, const item_head *head, slice body) {
    layout_key k;
    char *value;
    if (w->container->clustered) {
        value = store_put_space(&w->group->batch, STORE_INDEX, primary, LAYOUT_ROW_BYTES + LAYOUT_HEAD_BYTES + body.n);
        layout_row_write(value, place.segment);
        value += LAYOUT_ROW_BYTES;
    } else {
        layout_item(&k, place);
        value = store_put_space(&w->group->batch, STORE_ITEMS, layout_view(&k), LAYOUT_HEAD_BYTES + body.n);
    }
    layout_head_write(value, head);
    memcpy(value + LAYOUT_HEAD_BYTES, body.p, body.n);
}

static void put_expiry(const item_work *w, item_place place, const item_head *head, slice body) {
    layout_key k;
    if (item__expiry_key(w->container, w->part, place, head, body, &k)) {
        store_put(&w->group->batch, STORE_INDEX, layout_view(&k), SLICE_EMPTY);
    }
}

static void remove_expiry(const item_work *w, item_place place, const item_head *head, slice body) {
    layout_key k;
    if (item__expiry_key(w->container, w->part, place, head, body, &k)) {
        store_delete(&w->group->batch, STORE_INDEX, layout_view(&k));
    }
}

err item__put(item_work *w, const item_key *key, item_place place, const item_head *head, slice body, const stored_item *before) {
    layout_key k;
    slice primary = written_key(w, key, place, &k);
    put_value(w, place, primary, head, body);
    item__put_change(w, key, place, head, before);
    TRY(item__put_terms(w, key, place, head, body, before));
    TRY(item__log_put(w, key, head, body, before));
    if (before->there) {
        size_t removed = item__unique_remove(w, key, before->body);
        remove_expiry(w, place, &before->head, before->body);
        size_t added = item__unique_put(w, key, body, place);
        count(w, key, (change){0, (int64_t)body.n - (int64_t)before->body.n, (int64_t)added - (int64_t)removed});
    } else {
        put_leads(w, key, place, primary);
        size_t added = lead_keys_bytes(w, key, primary) + item__unique_put(w, key, body, place);
        count(w, key, (change){1, (int64_t)(LAYOUT_HEAD_BYTES + body.n), (int64_t)added});
    }
    put_expiry(w, place, head, body);
    return OK;
}

void item__rename(item_work *w, const item_key *from, const item_key *to, item_place place) {
    layout_key k;
    slice primary = written_key(w, from, place, &k);
    store_delete(&w->group->batch, STORE_INDEX, primary);
    int64_t before = (int64_t)lead_keys_bytes(w, from, primary);
    primary = primary_key(w, to, &k);
    put_leads(w, to, place, primary);
    count(w, to, (change){.index_bytes = (int64_t)lead_keys_bytes(w, to, primary) - before});
}

err item__remove(item_work *w, const item_key *key, const stored_item *stored, bool expired) {
    layout_key space, k;
    store_batch *batch = &w->group->batch;
    TRY(item__remove_terms(w, key, stored));
    TRY(item__log_remove(w, key, stored, expired, item__next_lsn(w, stored->head.lsn)));
    item__remove_change(w, key, stored);
    TRY(item__remove_attachments(w, key, stored->place.number));
    layout_item(&k, stored->place);
    store_delete(batch, STORE_ITEMS, layout_view(&k));
    slice primary = written_key(w, key, stored->place, &space);
    store_delete(batch, STORE_INDEX, primary);
    if (w->container->ordered) {
        layout_order(&k, w->container->space->container, &key->epk, stored->place.number);
        store_delete(batch, STORE_INDEX, layout_view(&k));
    }
    size_t removed = lead_keys_bytes(w, key, primary) + item__unique_remove(w, key, stored->body);
    remove_expiry(w, stored->place, &stored->head, stored->body);
    count(w, key, (change){-1, -(int64_t)(LAYOUT_HEAD_BYTES + stored->body.n), -(int64_t)removed});
    item__take_lsn(w, stored->head.lsn);
    w->range->batch_removes = true;
    return OK;
}

err item__remove_gone(item_work *w, const item_key *key, const stored_item *stored) {
    uint64_t batch = w->batch;
    w->batch = 0;
    err code = item__remove(w, key, stored, item_expired(w->container, &stored->head, w->now_s));
    w->batch = batch;
    return code;
}

/* The cache needs no notice: its copy of the item stays valid, and places are looked up in the store. */
err item__move(item_work *w, const item_key *key, const stored_item *stored, uint32_t segment) {
    layout_key k;
    item_place place = {segment, stored->place.number};
    TRY(item__move_terms(w, stored, segment));
    item__move_change(w, key, stored, segment);
    layout_item(&k, stored->place);
    store_delete(&w->group->batch, STORE_ITEMS, layout_view(&k));
    layout_primary(&k, w->container->space->container, &key->epk, &key->partition, key->row);
    put_value(w, place, layout_view(&k), &stored->head, stored->body);
    put_leads(w, key, place, layout_view(&k));
    item__unique_put(w, key, stored->body, place);
    remove_expiry(w, stored->place, &stored->head, stored->body);
    put_expiry(w, place, &stored->head, stored->body);
    return OK;
}
