/* Pages of items in document-number order: a run of STORE_ITEMS for a range, the 'o' entries for one logical partition. */
#include "item/item.h"
#include "throughput/charge.h"

typedef struct page {
    const items *items;
    const container *container;
    const item_scope *scope;
    op *op;
    item_visit visit;
    void *context;
    const store_snapshot *at; /* of a partition's page, which reads twice: entries, and the items they lead to */
} page;

/* An item is of a scope by its partition key, which is in its body. */
static bool in_scope(const page *p, slice body) {
    const item_scope *scope = p->scope;
    if (!scope->partition && !scope->min) {
        return true;
    }
    pkey key;
    epk e;
    if (pkey_extract(p->op, body, &p->container->key, &key) != OK) {
        return false;
    }
    if (scope->partition) {
        return pkey_equal(&key, &scope->partition->partition);
    }
    epk_of(&p->container->key, &key, &e);
    return epk_cmp(&e, scope->min) >= 0 && epk_cmp(&e, scope->max) < 0;
}

/* False: the page is full. */
static bool offer(const page *p, item_found *found) {
    if (item_expired(p->container, &found->head, p->op->now_s) || !in_scope(p, found->body)) {
        return true;
    }
    if (!p->visit(p->context, found)) {
        return false;
    }
    op_charge(p->op, charge_read(found->body.n));
    return true;
}

static err offer_place(const page *p, item_found *found, bool *full_out) {
    layout_key k;
    layout_item(&k, found->place);
    err code = store_get(p->items->store, STORE_ITEMS, p->at, layout_view(&k), &found->value);
    if (code == E_NOT_FOUND) {
        /* An entry that leads nowhere. Dropping a deleted container's files does not wait for snapshots. */
        return p->container->space->deleted ? E_OWNER_NOT_FOUND : E_STORE_CORRUPT;
    }
    TRY(code);
    if (!layout_head_read(found->value.bytes, &found->head, &found->body)) {
        item_give(found);
        return E_STORE_CORRUPT;
    }
    *full_out = !offer(p, found);
    item_give(found);
    return OK;
}

static store_scan *open_scan(const page *p, uint64_t after) {
    layout_key from, to;
    uint32_t number = p->container->space->container;
    if (p->scope->partition) {
        layout_order(&from, number, &p->scope->partition->epk, after + 1);
        layout_order(&to, number, &p->scope->partition->epk, UINT64_MAX);
    } else {
        layout_item(&from, (item_place){p->scope->range->segment, after + 1});
        layout_segment(&to, p->scope->range->segment);
        layout_after(&to);
    }
    return store_scan_open(p->items->store, p->scope->partition ? STORE_INDEX : STORE_ITEMS, p->at, layout_view(&from), layout_view(&to),
                           false);
}

/* One entry of the scan: of the items themselves, or leading to one. */
static err step(const page *p, slice key, slice value, uint64_t *after, bool *full_out) {
    item_found found = {.range = p->scope->range};
    *full_out = false;
    bool read = p->scope->partition ? layout_order_read(key, value, &found.place)
                                    : layout_item_read(key, &found.place) && layout_head_read(value, &found.head, &found.body);
    if (!read) {
        return E_STORE_CORRUPT;
    }
    if (p->scope->partition) {
        TRY(offer_place(p, &found, full_out));
    } else {
        *full_out = !offer(p, &found);
    }
    if (!*full_out) {
        *after = found.place.number;
    }
    return OK;
}

err item_feed(const items *s, op *o, const container *c, const item_scope *scope, uint64_t *after, size_t steps_max, item_visit visit,
              void *context, bool *more_out) {
    *more_out = false;
    if (*after == UINT64_MAX) {
        return OK;
    }
    page p = {s, c, scope, o, visit, context, scope->partition ? store_snapshot_take(s->store) : NULL};
    store_scan *scan = open_scan(&p, *after);
    slice key, value;
    err code = OK;
    size_t steps = 0;
    while (code == OK && !*more_out && store_scan_next(scan, &key, &value)) {
        if (steps++ == steps_max) {
            *more_out = true;
            break;
        }
        code = step(&p, key, value, after, more_out);
    }
    err ended = store_scan_close(scan);
    if (p.at) {
        store_snapshot_give(s->store, p.at);
    }
    return code != OK ? code : ended;
}
