#include <stdio.h>

#include "base/log.h"
#include "item/admit.h"
#include "item/edit_int.h"
#include "item/fetch.h"
#include "item/view.h"
#include "item/wipe.h"
#include "throughput/charge.h"

bool item_expired(const container *c, const item_head *head, int64_t now_s) {
    if (c->ttl == TTL_OFF || head->ttl == TTL_NEVER || head->ts == UINT32_MAX) { /* the last second stands for all later times (clock_ts) */
        return false;
    }
    int32_t ttl = head->ttl > 0 ? head->ttl : c->ttl;
    return ttl > 0 && (int64_t)head->ts + ttl <= now_s;
}

void item_etag(char text[ITEM_ETAG_BYTES + 1], uint64_t version, uint32_t ts) {
    static const char digits[] = "0123456789abcdef";
    memcpy(text, "\"00000000-0000-0d00-0000-000000000000\"", ITEM_ETAG_BYTES + 1);
    for (int i = 0; i < 8; i++) {
        text[1 + i] = digits[(uint32_t)version >> (28 - 4 * i) & 15];
        text[25 + i] = digits[ts >> (28 - 4 * i) & 15];
    }
}

bool item_etag_matches(slice wanted, uint64_t version, uint32_t ts) {
    char text[ITEM_ETAG_BYTES + 1];
    if (slice_eq(wanted, SLICE_LIT("*"))) {
        return true;
    }
    item_etag(text, version, ts);
    return slice_eq(wanted, slice_of(text, ITEM_ETAG_BYTES)) || slice_eq(wanted, slice_of(text + 1, ITEM_ETAG_BYTES - 2));
}

void item_give(item_found *found) {
    store_give(&found->value);
    if (found->cached) {
        cached_item_give(found->cached);
        found->cached = NULL;
    }
}

static err read_head(item_found *found, slice value) {
    if (layout_head_read(value, &found->head, &found->body)) {
        return OK;
    }
    log_error("item", "stored item is damaged", "segment=%u number=%lu", found->place.segment, (unsigned long)found->place.number);
    item_give(found);
    return E_STORE_CORRUPT;
}

/* How a key leads to an item: it is the primary key, or contains the number. */
typedef enum lead { BY_KEY, BY_NUMBER } lead;

/* Finds the place that a key leads to. In a clustered container this loads the item itself, and found->value is set. */
static err look_up(const home *h, const store_snapshot *at, slice key, lead by, item_found *found) {
    store_value value;
    slice item;
    TRY(item__get(h->store, STORE_INDEX, at, key, found, &value));
    if (by == BY_KEY && layout_row_read(value.bytes, &found->place.segment, &item)) {
        found->value = value;
        TRY(read_head(found, item));
        found->place.number = found->head.number;
        return OK;
    }
    bool placed = by == BY_KEY ? layout_place_read(value.bytes, &found->place) : layout_order_read(key, value.bytes, &found->place);
    store_give(&value);
    return placed ? OK : E_STORE_CORRUPT;
}

/* Between the two lookups the item may be moved, or deleted and created anew at another place: then the first lookup is repeated. */
static err find_stored(const home *h, slice key, lead by, item_found *found) {
    item_place before = {0};
    for (;;) {
        TRY(look_up(h, NULL, key, by, found));
        if (found->value.owner) {
            return OK;
        }
        if (found->place.segment == before.segment && found->place.number == before.number) {
            return E_STORE_CORRUPT; /* the same place again: the key is dangling */
        }
        before = found->place;
        err code = item__fetch(h->store, NULL, found);
        if (code != E_NOT_FOUND) {
            return code;
        }
    }
}

/* Between the two lookups a replace may have given the item another id. */
static bool was_renamed(const container *c, const item_key *key, const item_found *found) {
    bson_iter_t id;
    return c->row.n == 0 && doc_find_key(found->body, SLICE_LIT("id"), &id) && !slice_eq(doc_text(&id), key->row);
}

static err find_row(const home *h, const container *c, const item_key *key, slice primary, item_found *found) {
    TRY(find_stored(h, primary, BY_KEY, found));
    while (was_renamed(c, key, found)) {
        item_give(found);
        *found = (item_found){.range = found->range, .in_memory = found->in_memory};
        TRY(find_stored(h, primary, BY_KEY, found));
    }
    return OK;
}

static err find(const home *h, const container *c, const item_key *key, item_found *found) {
    layout_key k;
    cache_ticket ticket;
    layout_primary(&k, c->space->container, &key->epk, &key->partition, key->row);
    found->cached = item_cache_take(h->cache, layout_view(&k), &ticket);
    if (found->cached) {
        found->place = cached_item_place(found->cached);
        return read_head(found, cached_item_value(found->cached));
    }
    TRY(find_row(h, c, key, layout_view(&k), found));
    item_cache_add(h->cache, &ticket, layout_view(&k), item__found_value(found), found->place);
    return OK;
}

static err read_item(const items *s, op *o, const container *c, const item_key *key, bool in_memory, item_found *found_out) {
    container_range *range = container_route(c->tiles, &key->epk);
    *found_out = (item_found){.range = range, .in_memory = in_memory};
    TRY(item__admit(s, o, range));
    bool wipes = item_wipes_now(c);
    err code = find(range->home, c, key, found_out);
    if (code == E_NOT_IN_MEMORY) {
        o->admitted = true;
        return code;
    }
    if (code == OK && item_gone(c, wipes, &found_out->head, found_out->body, o->now_s)) {
        item_give(found_out);
        code = E_NOT_FOUND;
    }
    double ru = (code == OK ? charge_read(found_out->body.n) : CHARGE_FAILED) * (o->strong ? CHARGE_STRONG_READ_FACTOR : 1);
    op_charge(o, ru);
    item__debit(s, o, range, key, METER_READ, ru, code != OK);
    return code;
}

err item_read(const items *s, op *o, const container *c, const item_key *key, item_found *found_out) {
    return read_item(s, o, c, key, false, found_out);
}

err item_read_in_memory(const items *s, op *o, const container *c, const item_key *key, item_found *found_out) {
    return read_item(s, o, c, key, true, found_out);
}

err item__read_now(const container *c, const item_key *key, int64_t now_s, item_found *found_out) {
    *found_out = (item_found){0};
    bool wipes = item_wipes_now(c);
    TRY(find(container_route(c->tiles, &key->epk)->home, c, key, found_out));
    if (item_gone(c, wipes, &found_out->head, found_out->body, now_s)) {
        item_give(found_out);
        *found_out = (item_found){0};
        return E_NOT_FOUND;
    }
    return OK;
}

err item_admit_many(const items *s, op *o, const container *c, const item_key *keys, size_t n) {
    const container_range *last = NULL;
    for (size_t i = 0; i < n; i++) {
        container_range *range = container_route(c->tiles, &keys[i].epk);
        if (range != last) {
            TRY(item__admit(s, o, range));
            last = range;
        }
    }
    o->admitted = true;
    return OK;
}

static void prefetch(const container *c, const item_key *key, uint64_t *hash, unsigned step) {
    item_cache *cache = container_route(c->tiles, &key->epk)->home->cache;
    if (step == 0) {
        layout_key k;
        layout_primary(&k, c->space->container, &key->epk, &key->partition, key->row);
        *hash = item_cache_hash(cache, layout_view(&k));
    }
    item_cache_prefetch(cache, *hash, step);
}

void item_read_ahead(const container *c, const item_key *keys, size_t n, size_t i, item_ahead *ahead) {
    for (size_t step = 0; step < ITEM_CACHE_STEPS && n > 1; step++) {
        size_t to = i + (ITEM_CACHE_STEPS - step) * 2; /* less than ITEMS_AHEAD_MAX ahead */
        for (size_t at = i ? to : 0; at <= to && at < n; at++) {
            prefetch(c, &keys[at], &ahead->hashes[at % ITEMS_AHEAD_MAX], (unsigned)step);
        }
    }
}

/* Without an order in the partition this tries the segments one after the other. */
static err find_number(const items *s, const container *c, const item_key *key, uint64_t number, item_found *found) {
    layout_key k;
    if (!c->ordered) {
        return item_read_place(s, c, NULL, (item_place){.number = number}, found);
    }
    layout_order(&k, c->space->container, &key->epk, number);
    return find_stored(container_route(c->tiles, &key->epk)->home, layout_view(&k), BY_NUMBER, found);
}

err item_row_of_number(const items *s, op *o, const container *c, const item_key *key, uint64_t number, slice *row_out) {
    slice row;
    item_found found = {0};
    TRY(find_number(s, c, key, number, &found));
    bool meant = item_in_scope(o, c, &(item_scope){.partition = key}, found.body);
    bool has_row = row_of(o, o->arena, &c->row, found.body, &row) == OK;
    *row_out = has_row && meant ? arena_copy(o->arena, row) : SLICE_EMPTY;
    item_give(&found);
    return !meant ? E_NOT_FOUND : has_row ? OK : E_STORE_CORRUPT;
}

err item_number_of(const items *s, const container *c, const item_key *key, uint64_t *number_out) {
    layout_key k;
    item_found found = {0};
    layout_primary(&k, c->space->container, &key->epk, &key->partition, key->row);
    (void)s;
    TRY(look_up(container_route(c->tiles, &key->epk)->home, NULL, layout_view(&k), BY_KEY, &found));
    *number_out = found.place.number;
    item_give(&found);
    return OK;
}

static err read_at(const home *h, const store_snapshot *at, item_place place, item_found *found_out) {
    *found_out = (item_found){.place = place};
    return item__fetch(h->store, at, found_out);
}

/* The home of a segment. A segment that is not in the newest tiles has become empty, so any home will do. */
static const home *home_of_segment(const items *s, const container_tiles *tiles, uint32_t segment) {
    size_t i = 0;
    while (s->homes_n > 1 && i < tiles->segments_n && tiles->segments[i] != segment) {
        i++;
    }
    return s->homes_n > 1 && i < tiles->segments_n ? tiles->segment_homes[i] : s->homes[0];
}

static err read_number(const container_tiles *tiles, const item_moment *moment, uint64_t number, item_found *found_out) {
    err code = E_NOT_FOUND;
    for (size_t i = 0; i < tiles->segments_n && code == E_NOT_FOUND; i++) {
        const home *h = tiles->segment_homes[i];
        if (!moment || h == moment->home) {
            code = read_at(h, moment ? moment->at : NULL, (item_place){tiles->segments[i], number}, found_out);
        }
    }
    return code;
}

/* A number belongs to one item for life, and items move to newer segments only: trying all segments in order finds the item, once the tiles
 * are the newest. */
err item_read_place(const items *s, const container *c, const item_moment *moment, item_place place, item_found *found_out) {
    item_written written;
    if (moment && moment->overlay && moment->overlay->find(moment->overlay, place.number, &written)) {
        *found_out = (item_found){.head = written.head, .body = written.body, .place = place};
        return written.body.n ? OK : E_NOT_FOUND;
    }
    const home *h = moment ? moment->home : home_of_segment(s, c->tiles, place.segment);
    err code = read_at(h, moment ? moment->at : NULL, place, found_out);
    if (code != E_NOT_FOUND) {
        return code;
    }
    for (bool newest = false; code == E_NOT_FOUND && !newest;) {
        container_tiles *tiles = moment ? container_tiles_take(moment->tiles) : container_space_newest(c->space);
        code = read_number(tiles, moment, place.number, found_out);
        newest = moment || atomic_load(&c->space->epoch) == tiles->epoch;
        container_tiles_give(tiles);
    }
    return code;
}

/* ---- reading at a snapshot ---- */

/* Tiles and snapshot must fit together: if the tiles are still the newest after the snapshot was taken, they were so when it was taken
 * (item/feed.c). */
void item_moment_take(container *c, const home *home, item_moment *moment_out) {
    container_space *space = c->space;
    container_part *part = container_part_of(space, home);
    for (;;) {
        container_index *index = container_part_index(space, part);
        *moment_out = (item_moment){.tiles = container_space_newest(space), .home = home, .at = store_snapshot_take(home->store)};
        bool usable = !part->index_switching && part->index == index;
        moment_out->index = usable ? index : NULL;
        if (!usable) {
            container_index_give(index);
        }
        if (atomic_load(&space->epoch) == moment_out->tiles->epoch) {
            return;
        }
        item_moment_give(moment_out);
    }
}

/* Newer tiles are fine: the keys that lead to a partition's items do not name a range, and a range has the same home as its ancestors. */
void item_moment_take_at(container *c, const home *home, const store_snapshot *at, item_moment *moment_out) {
    *moment_out = (item_moment){.tiles = container_space_newest(c->space), .home = home, .at = at, .borrowed = true};
}

void item_moment_give(item_moment *moment) {
    if (!moment->borrowed) {
        store_snapshot_give(moment->home->store, moment->at);
    }
    if (moment->index) {
        container_index_give(moment->index);
    }
    container_tiles_give(moment->tiles);
    *moment = (item_moment){0};
}

static err read_then(const container *c, const item_moment *moment, slice key, lead by, item_found *found_out) {
    const home *h = moment->home;
    *found_out = (item_found){0};
    TRY(look_up(h, moment->at, key, by, found_out));
    err code = found_out->value.owner ? OK : item__fetch(h->store, moment->at, found_out);
    if (code == E_NOT_FOUND) { /* the files of a deleted container are dropped without waiting for snapshots */
        return c->space->deleted ? E_OWNER_NOT_FOUND : E_STORE_CORRUPT;
    }
    return code;
}

err item_read_at(const container *c, const item_moment *moment, const item_key *key, item_found *found_out) {
    layout_key k;
    layout_primary(&k, c->space->container, &key->epk, &key->partition, key->row);
    return read_then(c, moment, layout_view(&k), BY_KEY, found_out);
}

err item_read_number_at(const items *s, op *o, const container *c, const item_moment *moment, const item_key *key, uint64_t number,
                        item_found *found_out) {
    layout_key k;
    if (!c->ordered) {
        item_moment before = *moment;
        before.overlay = NULL;
        TRY(item_read_place(s, c, &before, (item_place){.number = number}, found_out));
    } else {
        layout_order(&k, c->space->container, &key->epk, number);
        TRY(read_then(c, moment, layout_view(&k), BY_NUMBER, found_out));
    }
    if (!item_in_scope(o, c, &(item_scope){.partition = key}, found_out->body)) {
        item_give(found_out);
        return E_NOT_FOUND;
    }
    return OK;
}

err item_unique_holder_at(const container *c, const item_moment *moment, slice unique_key, item_found *found_out) {
    return read_then(c, moment, unique_key, BY_KEY, found_out); /* a unique key leads to a place, as a primary key does */
}
