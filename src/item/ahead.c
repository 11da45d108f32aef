#include "item/ahead.h"

#include "item/fetch.h"
#include "item/index_entries.h"
#include "item/receipt.h"

/* If a read fails, the committer will report the error. */

/* Reads a value into memory. Returns the place that it leads to, or place 0. */
static item_place fetch(const home *home, const layout_key *k) {
    store_value value;
    item_place place = {0};
    if (store_get(home->store, STORE_INDEX, NULL, layout_view(k), &value) == OK) {
        (void)layout_place_read(value.bytes, &place);
        store_give(&value);
    }
    return place;
}

static void fetch_place(const home *home, item_place place) {
    item_found found = {.place = place};
    if (place.segment && item__fetch(home->store, NULL, &found) == OK) {
        item_give(&found);
    }
}

/* In a clustered container the primary key has the item itself. */
static void fetch_item(const item_commit *c, const home *home, const item_key *key, slice row) {
    layout_key k;
    layout_primary(&k, c->container->space->container, &key->epk, &key->partition, row);
    item_place place = fetch(home, &k);
    if (!c->container->clustered) {
        fetch_place(home, place);
    }
}

/* Reads the size of the logical partition. */
static size_sum fetch_size(const item_commit *c, const home *home, const item_key *key) {
    layout_key k;
    store_value value;
    epk unused;
    slice partition;
    size_sum size = {0};
    layout_size(&k, c->container->space->container, &key->epk, &key->partition);
    if (store_get(home->store, STORE_INDEX, NULL, layout_view(&k), &value) == OK) {
        if (!layout_size_read(layout_view(&k), value.bytes, &unused, &partition, &size)) {
            size = (size_sum){0};
        }
        store_give(&value);
    }
    return size;
}

/* Reads the items that will get local entries with the next `writes` writes of a partition. */
static void fetch_local(const item_commit *c, const home *home, const item_key *key, const size_sum *size, size_t writes) {
    layout_key from, to;
    slice entry, value;
    item_place place;
    bool grows = c->container->key.n && c->container->ordered && size->local != LOCAL_ALL && size->items + writes > LOCAL_FROM;
    if (!grows || (!size->local_from && writes == 1)) { /* the first write of a large partition only notes which items are missing */
        return;
    }
    layout_order(&from, c->container->space->container, &key->epk, size->local + 1);
    layout_order(&to, c->container->space->container, &key->epk, size->local_from ? size->local_from : UINT64_MAX);
    store_scan *scan = store_scan_open(home->store, STORE_INDEX, NULL, layout_view(&from), layout_view(&to), false);
    for (size_t left = writes * LOCAL_STEP; left > 0 && store_scan_next(scan, &entry, &value); left--) {
        if (layout_order_read(entry, value, &place)) {
            fetch_place(home, place);
        }
    }
    (void)!store_scan_close(scan);
}

static bool in_same_partition(const item_op *a, const item_op *b) {
    return epk_cmp(&a->key.epk, &b->key.epk) == 0 && pkey_equal(&a->key.partition, &b->key.partition);
}

/* Reads what belongs to the partition of the operation, unless it was read for the one before. */
static void fetch_partition(const item_commit *c, const home *home, size_t i) {
    size_t writes = 0;
    if (i > c->from && in_same_partition(&c->ops[i - 1], &c->ops[i])) {
        return;
    }
    for (size_t j = i; j < c->n && in_same_partition(&c->ops[i], &c->ops[j]); j++) {
        writes += c->ops[j].kind != ITEM_READ && c->ops[j].kind != ITEM_DELETE;
    }
    size_sum size = fetch_size(c, home, &c->ops[i].key);
    fetch_local(c, home, &c->ops[i].key, &size, writes);
}

static void fetch_unique(const item_commit *c, const home *home, const item_op *op) {
    layout_key k;
    bool has_body = op->kind == ITEM_CREATE || op->kind == ITEM_UPSERT || op->kind == ITEM_REPLACE;
    for (unsigned i = 0; has_body && i < c->container->unique_keys_n; i++) {
        if (item_unique_key(c->container, i, &op->key, op->body, &k)) {
            fetch_place(home, fetch(home, &k));
        }
    }
}

static void fetch_one(const item_commit *c, size_t i) {
    const item_op *op = &c->ops[i];
    const home *home = container_route(c->container->tiles, &op->key.epk)->home;
    fetch_partition(c, home, i);
    fetch_item(c, home, &op->key, op->key.row);
    if (op->row_after.n) {
        fetch_item(c, home, &op->key, op->row_after);
    }
    fetch_unique(c, home, op);
    if (op->receipt.key.n) {
        item__receipt_fetch(c->items, home, c->container, op->receipt.key);
    }
}

void item__fetch_ahead(item_commit *first) {
    for (item_commit *c = first; c; c = c->also) {
        for (size_t i = c->from; i < c->n; i++) {
            fetch_one(c, i);
        }
        c->missed = false;
    }
    first->fetched = true;
}
