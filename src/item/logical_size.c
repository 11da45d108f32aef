#include "item/logical_size.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/units.h"
#include "item/stored.h"
#include "partition/split_merge.h"

/* ---- walking ---- */

static void bound(layout_key *k, uint32_t container, const epk *e) {
    epk end = epk_max();
    if (epk_cmp(e, &end) >= 0) { /* beyond all EPKs */
        layout_sizes(k, container);
        layout_after(k);
    } else {
        layout_size(k, container, e, NULL);
    }
}

err item_sizes_each(store *s, const store_snapshot *at, const size_pieces *pieces, size_visit visit, void *context) {
    layout_key from, to;
    slice key, value, partition;
    epk e;
    size_sum size;
    bound(&from, pieces->container, &pieces->from);
    bound(&to, pieces->container, &pieces->to);
    store_scan *scan = store_scan_open(s, STORE_INDEX, at, layout_view(&from), layout_view(&to), false);
    err code = OK;
    while (code == OK && store_scan_next(scan, &key, &value)) {
        if (!layout_size_read(key, value, &e, &partition, &size)) {
            code = E_STORE_CORRUPT;
        } else if (!visit(context, &e, partition, &size)) {
            break;
        }
    }
    err ended = store_scan_close(scan);
    return code != OK ? code : ended;
}

/* ---- where to cut ---- */

typedef struct cutting {
    const pkey_definition *key;
    plan_cutter cutter;
    epk *cuts;
    uint32_t n;
    epk last;
    bool any;
} cutting;

static bool cut_before(void *context, const epk *e, slice key, const size_sum *size) {
    cutting *c = context;
    (void)key;
    if (c->any && epk_cmp(&c->last, e) == 0) { /* V1 keys with the same hash share an EPK: no cut can separate them */
        c->cutter.sum += size->bytes;
        return true;
    }
    if (plan_cut_here(&c->cutter, size->bytes)) {
        epk_cut(c->key, &c->last, e, &c->cuts[c->n++]);
    }
    c->last = *e;
    c->any = true;
    return true;
}

err item_sizes_cut(store *s, const pkey_definition *key, const size_pieces *pieces, uint64_t total, epk *cuts, uint32_t *cuts_n) {
    cutting c = {.key = key, .cutter = {.total = total, .parts = pieces->n}, .cuts = cuts};
    err code = item_sizes_each(s, NULL, pieces, cut_before, &c);
    *cuts_n = c.n;
    return code;
}

/* ---- sizes of the pieces ---- */

static uint32_t piece_of(const size_pieces *pieces, const epk *e) {
    uint32_t low = 0, high = pieces->n - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (epk_cmp(&pieces->cuts[middle], e) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void add(size_sum *to, const size_sum *size) {
    to->items += size->items;
    to->bytes += size->bytes;
    to->index_bytes += size->index_bytes;
    to->partitions += size->partitions;
}

static void take(size_sum *from, const size_sum *size) {
    from->items -= size->items;
    from->bytes -= size->bytes;
    from->index_bytes -= size->index_bytes;
    from->partitions -= size->partitions;
}

typedef struct summing {
    const size_pieces *pieces;
    size_sum *sums;
} summing;

static bool sum_up(void *context, const epk *e, slice key, const size_sum *size) {
    summing *s = context;
    (void)key;
    add(&s->sums[piece_of(s->pieces, e)], size);
    return true;
}

err item_sizes_sum(store *s, const store_snapshot *at, const size_pieces *pieces, size_sum *sums) {
    summing all = {pieces, sums};
    memset(sums, 0, pieces->n * sizeof *sums);
    return item_sizes_each(s, at, pieces, sum_up, &all);
}

/* ---- watching ---- */

range_watch *range_watch_new(const size_pieces *pieces) {
    range_watch *watch = mem_zero(sizeof *watch + 2 * pieces->n * sizeof *watch->pending + pieces->n * sizeof *pieces->cuts);
    epk *cuts = (epk *)(void *)((char *)(watch + 1) + 2 * pieces->n * sizeof *watch->pending);
    memcpy(cuts, pieces->cuts, (pieces->n - 1) * sizeof *cuts);
    watch->pieces = *pieces;
    watch->pieces.cuts = cuts;
    watch->pending = (size_sum *)(void *)(watch + 1);
    watch->written = watch->pending + pieces->n;
    return watch;
}

void range_watch_free(range_watch *watch) {
    free(watch);
}

/* Whether this change is the size entry of a partition in the watched range. */
static bool is_watched(const range_watch *watch, const store_change *change, epk *e) {
    if (change->family != STORE_INDEX || change->kind == STORE_DELETE_RANGE || !layout_size_epk(change->key, watch->pieces.container, e)) {
        return false;
    }
    return epk_cmp(&watch->pieces.from, e) <= 0 && epk_cmp(e, &watch->pieces.to) < 0;
}

static err count_change(range_watch *watch, commit_group *group, const store_change *change, const epk *e) {
    store_value before;
    epk unused;
    slice key;
    size_sum size;
    size_sum *sum = &watch->pending[piece_of(&watch->pieces, e)];
    err code = store_get(group->store, STORE_INDEX, NULL, change->key, &before);
    if (code == OK) {
        bool read = layout_size_read(change->key, before.bytes, &unused, &key, &size);
        store_give(&before);
        if (!read) {
            return E_STORE_CORRUPT;
        }
        take(sum, &size);
    } else if (code != E_NOT_FOUND) {
        return code;
    }
    if (change->kind == STORE_PUT && layout_size_read(change->key, change->value, &unused, &key, &size)) {
        add(sum, &size);
    }
    return OK;
}

void range_watch_count(range_watch *watch, commit_group *group) {
    const store_batch *batch = &group->batch;
    epk e;
    memset(watch->pending, 0, watch->pieces.n * sizeof *watch->pending);
    for (size_t i = 0; i < batch->n && watch->code == OK; i++) {
        const store_change *change = &batch->changes[i];
        if (is_watched(watch, change, &e) && store_batch_find(batch, STORE_INDEX, change->key) == change) {
            watch->code = count_change(watch, group, change, &e);
        }
    }
}

void range_watch_end(range_watch *watch, err code) {
    for (uint32_t i = 0; i < watch->pieces.n && code == OK; i++) {
        add(&watch->written[i], &watch->pending[i]);
    }
}

/* ---- the limit ---- */

err item__check_room(item_work *w, op *o, size_t before, size_t after) {
    bool fixed = w->container->key.n == 0;
    uint64_t most = fixed ? w->items->limits.fixed_bytes : w->items->limits.partition_bytes;
    if (after <= before || w->size.bytes + (after - before) <= most) {
        return OK;
    }
    char shown[32];
    bytes_text(shown, sizeof shown, most);
    return fixed ? op_fail(o, E_CONTAINER_FULL, "The container has no partition key and reached its maximum size of %s.", shown)
                 : op_fail(o, E_PARTITION_FULL,
                           "Partition key reached maximum size of %s. Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk", shown);
}
