#include "item/load.h"

#include "item/fetch.h"

enum { NEAR = 8 }; /* this many steps are cheaper than a get */

void item__near_open(item_near *n, const home *h, const store_snapshot *at) {
    *n = (item_near){.home = h, .at = at};
}

static err close_scan(item_near *n) {
    err code = n->scan ? store_scan_close(n->scan) : OK;
    n->scan = NULL;
    n->live = false;
    return code;
}

err item__near_close(item_near *n) {
    return close_scan(n);
}

/* The distance to `to` in this direction; 0: not ahead, or too far to step. */
static uint64_t ahead(item_place from, item_place to, bool backward) {
    uint64_t distance = backward ? from.number - to.number : to.number - from.number;
    return from.segment == to.segment && distance <= NEAR ? distance : 0;
}

static void step(item_near *n) {
    slice key;
    n->live = store_scan_next(n->scan, &key, &n->value) && layout_item_read(key, &n->place);
}

/* Positions the iterator on `place`, if there is an item. */
static err seek(item_near *n, item_place place, bool backward) {
    layout_key from, to, at;
    layout_item(&at, (item_place){place.segment, place.number + backward});
    if (n->scan && n->segment != place.segment) {
        TRY(close_scan(n));
    }
    if (!n->scan) {
        layout_segment(&from, place.segment);
        to = from;
        layout_after(&to);
        n->scan = store_scan_open(n->home->store, STORE_ITEMS, n->at, layout_view(&from), layout_view(&to), backward);
        n->segment = place.segment;
    }
    n->backward = backward;
    store_scan_seek(n->scan, layout_view(&at), backward);
    step(n);
    return OK;
}

static bool stands_on(const item_near *n, item_place place) {
    return n->live && n->place.segment == place.segment && n->place.number == place.number;
}

/* *near_out: the iterator is on the place. It is moved only if the previous place was near too. */
static err is_near(item_near *n, item_place place, bool *near_out) {
    item_place last = n->last;
    n->last = place;
    *near_out = false;
    bool forward = ahead(last, place, false) > 0, backward = ahead(last, place, true) > 0;
    if (last.segment == 0 || (!forward && !backward)) {
        return OK;
    }
    if (n->live && n->backward == backward && ahead(n->place, place, backward) > 0) {
        while (n->live && ahead(n->place, place, backward) > 0) {
            step(n);
        }
    } else if (!stands_on(n, place)) {
        TRY(seek(n, place, backward));
    }
    *near_out = stands_on(n, place);
    return OK;
}

/* The cache holds the newest version of an item. If that version is not newer than the snapshot, the snapshot has it too. */
static bool take_cached(const item_near *n, item_found *found) {
    found->cached = n->lsn ? item_cache_take_place(n->home->cache, found->place) : NULL;
    if (found->cached && layout_head_read(cached_item_value(found->cached), &found->head, &found->body) && found->head.lsn <= n->lsn) {
        return true;
    }
    item_give(found);
    return false;
}

err item__near_load(item_near *n, item_found *found) {
    layout_key k;
    bool near;
    slice value;
    TRY(is_near(n, found->place, &near));
    if (near) {
        value = n->value;
    } else if (take_cached(n, found)) {
        return OK;
    } else {
        layout_item(&k, found->place);
        TRY(store_get(n->home->store, STORE_ITEMS, n->at, layout_view(&k), &found->value));
        value = found->value.bytes;
    }
    return item__fetch_value(n->home->store, n->at, value, found);
}
