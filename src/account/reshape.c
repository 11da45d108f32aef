/* Splits and merges: adjacent ranges are replaced by other ranges, in one small write.
 *
 * A split has three steps; clients can write during all of them:
 *   1. choose the cuts by the sizes of the logical partitions (item/logical_size.h)
 *   2. a solo commit, which writes nothing, starts a watch on the range and takes a snapshot; the contents of each piece are summed up in
 *      the snapshot, while the watch counts changes
 *   3. another solo commit writes the new map and the new ranges' counts: the sums plus the changes
 * A merge has only the last step: counts are added.
 *
 * No item is touched. The new ranges read their items from the old range's segments, and the smaller ones move their items out later
 * (item/move.c). The new ranges continue from the old range's LSN (in a merge from the higher one), so that session tokens and change feed
 * positions stay valid. A crash leaves either the old map or the new one; the rest is in memory only.
 *
 * Everything happens in one home: ranges are merged only within a home, and split ranges stay in theirs. In the first home the container's
 * record is part of the batch. In another home the new tiles get their own record, in the same batch as the counts, and are valid from then
 * on; the container's record is written next. Until then the tiles with the highest epoch are the valid ones (account/records.c). */
#include <semaphore.h>
#include <stdlib.h>

#include "account/account_int.h"
#include "account/settings.h"
#include "base/log.h"
#include "base/memory.h"
#include "item/hot.h"

typedef struct reshape {
    commit base;
    commit_hook hook;
    sem_t done;
    account *account;
    const reshape_request *request;
    home *home; /* the ranges' home */
    arena *arena;
    int64_t started_us, held_from_us;

    size_pieces pieces;
    size_sum *sums; /* sums of each piece at the snapshot */
    const store_snapshot *at;
    range_watch *watch;
    container_range *splitting; /* the range that says so; NULL: none */

    size_t first;           /* position in the newest tiles, while a commit runs */
    uint32_t segment;       /* segment of the first new range; the others have the next numbers */
    container_tiles *tiles; /* the new ones */
    container_tiles *old;   /* the replaced ones; NULL: not yet replaced */
    container *made;
    account_event event;
} reshape;

static void is_done(commit *base) {
    sem_post(&((reshape *)base)->done);
}

static err run_solo(reshape *r, const home *home, store_use use, err (*apply)(commit *, commit_group *)) {
    r->base = (commit){.solo = true, .use = use, .apply = apply, .done = is_done};
    sem_init(&r->done, 0, 0);
    committer_submit(home->committer, &r->base);
    while (sem_wait(&r->done) != 0) {
    }
    sem_destroy(&r->done);
    return r->base.code;
}

/* ---- finding the ranges ---- */

static err find_ranges(const reshape_request *q, const container_tiles *tiles, size_t *first_out) {
    const partition_range *first = partition_map_by_id(tiles->map, q->first_id);
    if (q->container->space->deleted) {
        return E_OWNER_NOT_FOUND;
    }
    if (!first || (size_t)(first - tiles->map->ranges) + q->n > tiles->map->n) {
        return E_RANGE_GONE;
    }
    *first_out = (size_t)(first - tiles->map->ranges);
    for (size_t i = 1; i < q->n; i++) {
        if (tiles->ranges[*first_out + i]->home != tiles->ranges[*first_out]->home) {
            return E_BAD_REQUEST;
        }
    }
    return OK;
}

static err find_home(reshape *r) {
    container_tiles *tiles = container_space_newest(r->request->container->space);
    size_t first;
    err code = find_ranges(r->request, tiles, &first);
    r->home = code == OK ? tiles->ranges[first]->home : NULL;
    container_tiles_give(tiles);
    return code;
}

/* The newest tiles as known to the ranges' home, which alone changes its ranges. */
static container_tiles *newest_here(const reshape *r) {
    return container_part_of(r->request->container->space, r->home)->tiles;
}

/* ---- 1: choosing the cuts ---- */

/* Cuts into equal widths, for a range without data; into fewer pieces if the range is too narrow. */
static uint32_t cut_evenly(const pkey_definition *key, const epk *from, const epk *to, uint32_t parts, epk *cuts) {
    uint32_t n = 0;
    for (uint32_t i = 1; i < parts; i++) {
        n += epk_part(key, n ? &cuts[n - 1] : from, to, 1, parts - i + 1, &cuts[n]);
    }
    return n;
}

static err choose_cuts(reshape *r) {
    const reshape_request *q = r->request;
    container_tiles *tiles = container_space_newest(q->container->space);
    size_t first;
    err code = find_ranges(q, tiles, &first);
    if (code == OK) {
        const partition_range *range = &tiles->map->ranges[first];
        r->splitting = container_range_take(tiles->ranges[first]);
        atomic_store(&r->splitting->splitting, true);
        epk *cuts = arena_array(r->arena, epk, q->parts);
        uint32_t n = 0;
        r->pieces = (size_pieces){.container = q->container->space->container, .from = range->min, .to = range->max, .n = q->parts};
        uint64_t total = atomic_load(&tiles->ranges[first]->bytes);
        code = total ? item_sizes_cut(r->home->store, &q->container->key, &r->pieces, total, cuts, &n) : OK;
        if (code == OK && n == 0 && q->reason != PLAN_STORAGE) {
            n = cut_evenly(&q->container->key, &range->min, &range->max, q->parts, cuts);
        }
        r->pieces.cuts = cuts;
        r->pieces.n = n + 1;
    }
    container_tiles_give(tiles);
    return code;
}

/* ---- 2: contents of the pieces ---- */

static err apply_watch(commit *base, commit_group *group) {
    reshape *r = (reshape *)base;
    container_tiles *tiles = newest_here(r);
    TRY(find_ranges(r->request, tiles, &r->first));
    r->watch = tiles->ranges[r->first]->watch = range_watch_new(&r->pieces);
    r->at = store_snapshot_take(group->store);
    return OK;
}

static err apply_unwatch(commit *base, commit_group *group) {
    reshape *r = (reshape *)base;
    container_tiles *tiles = newest_here(r);
    (void)group;
    for (size_t i = 0; i < tiles->map->n; i++) {
        if (tiles->ranges[i]->watch == r->watch) {
            tiles->ranges[i]->watch = NULL;
        }
    }
    return OK;
}

static err weigh_pieces(reshape *r) {
    r->sums = arena_array(r->arena, size_sum, r->pieces.n);
    TRY(run_solo(r, r->home, STORE_READS, apply_watch));
    err code = item_sizes_sum(r->home->store, r->at, &r->pieces, r->sums);
    store_snapshot_give(r->home->store, r->at);
    return code;
}

/* ---- 3: the new map ---- */

/* The counts that each new range starts with. */
static err new_counts(reshape *r, const container_tiles *tiles, range_counts *counts) {
    const reshape_request *q = r->request;
    range_counts all = {0};
    size_sum check = {0};
    for (size_t i = r->first; i < r->first + q->n; i++) {
        const range_counts *old = &tiles->ranges[i]->written;
        all.lsn = old->lsn > all.lsn ? old->lsn : all.lsn;
        all.items += old->items;
        all.bytes += old->bytes;
        all.index_bytes += old->index_bytes;
        all.partitions += old->partitions;
    }
    all.number_next = 1;
    r->event.items = all.items;
    r->event.bytes = all.bytes;
    counts[0] = all;
    for (uint32_t i = 0; r->watch && i < r->pieces.n; i++) {
        const size_sum *sum = &r->sums[i], *since = &r->watch->written[i];
        counts[i] = (range_counts){all.lsn,
                                   1,
                                   sum->items + since->items,
                                   sum->bytes + since->bytes,
                                   sum->index_bytes + since->index_bytes,
                                   sum->partitions + since->partitions};
        check.items += counts[i].items;
        check.bytes += counts[i].bytes;
        check.index_bytes += counts[i].index_bytes;
        check.partitions += counts[i].partitions;
    }
    bool exact = !r->watch || (r->watch->code == OK && check.items == all.items && check.bytes == all.bytes &&
                               check.index_bytes == all.index_bytes && check.partitions == all.partitions);
    if (!exact) {
        log_error("account", "a split was given up: its pieces do not add up", "container=%u range=%u items=%lu of %lu",
                  q->container->space->container, q->first_id, (unsigned long)check.items, (unsigned long)all.items);
    }
    return exact ? OK : E_STORE_CORRUPT;
}

static void add_source(range_source *list, size_t *n, const range_source *source, bool leaving) {
    for (size_t i = 0; i < *n; i++) {
        if (list[i].segment == source->segment) {
            list[i].leaving = list[i].leaving && source->leaving; /* if a merged range keeps the segment, the new range keeps it too */
            return;
        }
    }
    list[(*n)++] = (range_source){.segment = source->segment, .leaving = source->leaving || leaving};
}

static int by_segment(const void *a, const void *b) {
    uint32_t x = ((const range_source *)a)->segment, y = ((const range_source *)b)->segment;
    return (x > y) - (x < y);
}

/* The sources of a new range: the segments of the old ranges, if it has items, and its own segment. After a split all pieces except the
 * largest move their items out of the old segments; after too many merges a range gathers its items in one segment. */
enum { SOURCES_KEPT_MAX = 8 };

static range_sources new_sources(reshape *r, const container_tiles *tiles, uint64_t items, bool leaves, uint32_t segment) {
    size_t most = 1, n = 0;
    for (size_t i = r->first; i < r->first + r->request->n; i++) {
        most += tiles->sources[i].n;
    }
    range_source *list = arena_array(r->arena, range_source, most);
    for (size_t i = r->first; items && i < r->first + r->request->n; i++) {
        if (tiles->ranges[i]->written.items) {
            for (size_t j = 0; j < tiles->sources[i].n; j++) {
                add_source(list, &n, &tiles->sources[i].list[j], leaves);
            }
        }
    }
    for (size_t i = 0; i < n && n > SOURCES_KEPT_MAX; i++) {
        list[i].leaving = true;
    }
    qsort(list, n, sizeof *list, by_segment);
    list[n++] = (range_source){.segment = segment};
    return (range_sources){list, n};
}

static uint32_t largest(const range_counts *counts, uint32_t n) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++) {
        best = counts[i].bytes > counts[best].bytes ? i : best;
    }
    return best;
}

static bucket **buckets_of(reshape *r, container_range *const *ranges, size_t n) {
    bucket **buckets = arena_array(r->arena, bucket *, n);
    for (size_t i = 0; i < n; i++) {
        buckets[i] = container_range_bucket(ranges[i]);
    }
    return buckets;
}

static void hand_over_credit(reshape *r, const container_tiles *old) {
    size_t before_n = r->request->n, after_n = r->event.after_n;
    bucket **before = buckets_of(r, &old->ranges[r->first], before_n), **after = buckets_of(r, &r->tiles->ranges[r->first], after_n);
    bucket_hand_over(before, before_n, after, after_n, clock_monotonic_us(r->account->items.clock) * 1000);
}

static void put_counts(store_batch *batch, const container_range *range) {
    layout_key k;
    layout_range(&k, range->container, range->id);
    layout_counts_write(store_put_space(batch, STORE_META, layout_view(&k), LAYOUT_COUNTS_BYTES), &range->written);
}

static uint32_t us_since(const reshape *r, int64_t since_us) {
    int64_t us = clock_monotonic_us(r->account->items.clock) - since_us;
    return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

static void note_event(reshape *r, const container_tiles *old, container_range *const *made, uint32_t parts) {
    account_event *e = &r->event;
    const container *c = r->request->container;
    e->ts_ms = clock_wall_ms(r->account->items.clock);
    e->reason = r->request->reason;
    memcpy(e->database, c->database_id.p, c->database_id.n);
    memcpy(e->container, c->id.p, c->id.n);
    e->before_n = (uint32_t)r->request->n;
    e->after_n = parts;
    for (uint32_t i = 0; i < e->before_n && i < 8; i++) {
        e->before[i] = old->ranges[r->first + i]->id;
    }
    for (uint32_t i = 0; i < parts && i < 8; i++) {
        e->after[i] = made[i]->id;
    }
    if (e->reason == PLAN_SCALE_DOWN && account__undoes_command(r->account, e)) {
        e->reason = PLAN_UNDO;
    }
    e->took_us = us_since(r, r->started_us); /* so far, in case the server ends before apply_event */
}

/* Builds the new tiles: ranges before and after the reshaped ones stay, those in between are new. */
static container_tiles *build_tiles(reshape *r, const container_tiles *old, partition_map *map, const range_counts *counts,
                                    uint32_t parts) {
    size_t behind = r->first + r->request->n;
    uint32_t stays = largest(counts, parts);
    container_range **ranges = arena_array(r->arena, container_range *, map->n);
    range_sources *sources = arena_array(r->arena, range_sources, map->n);
    for (size_t i = 0; i < map->n; i++) {
        if (i >= r->first && i < r->first + parts) {
            uint32_t part = (uint32_t)(i - r->first), segment = r->segment + part;
            ranges[i] = container_range_new(r->request->container->space->container, &map->ranges[i], segment, r->home);
            container_range_restore(ranges[i], &counts[part]);
            sources[i] = new_sources(r, old, counts[part].items, part != stays, segment);
        } else {
            size_t from = i < r->first ? i : i - (r->first + parts) + behind;
            ranges[i] = container_range_take(old->ranges[from]);
            sources[i] = old->sources[from];
        }
    }
    container_tiles *tiles = container_tiles_new(map, ranges, sources);
    tiles->epoch = old->epoch + 1;
    return tiles;
}

/* ---- replacing the tiles ---- */

static void numbers_before(commit_hook *hook, commit_group *group) {
    reshape *r = (reshape *)((char *)hook - offsetof(reshape, hook));
    account__put_numbers(&group->batch, &r->account->numbers);
}

/* Called under the account's lock, on the committer's thread of the ranges' home. */
static void publish_tiles(reshape *r, const container_node *node) {
    account *a = r->account;
    container_space *space = r->request->container->space;
    container_tiles *old = container_tiles_take(space->newest);
    for (size_t i = r->first; r->event.after_n && i < r->first + r->request->n; i++) {
        old->ranges[i]->gone = true;
        old->ranges[i]->watch = NULL;
    }
    container_space_set(space, r->home, container_tiles_take(r->tiles));
    if (node) { /* NULL: deleted in the meantime */
        account__divide(a, node);
    }
    if (node && r->event.after_n && !account__provision(a, node).shared) {
        hand_over_credit(r, old);
    }
    if (r->event.after_n) {
        r->old = container_tiles_take(old);
    }
    container_tiles_give(old);
}

static void add_event(reshape *r) {
    if (r->event.after_n) {
        r->event.held_us = us_since(r, r->held_from_us);
        r->event.took_us = us_since(r, r->started_us);
        account__add_event(r->account, &r->event);
    }
}

static void record_after(commit_hook *hook, err code) {
    reshape *r = (reshape *)((char *)hook - offsetof(reshape, hook));
    account *a = r->account;
    if (code != OK) {
        return;
    }
    pthread_rwlock_wrlock(&a->lock);
    container_node *node = account__node_of(a, r->made);
    if (r->home && r->home->number == 0) {
        publish_tiles(r, node);
    }
    account__swap_container(a, node, container_take(r->made));
    pthread_rwlock_unlock(&a->lock);
    atomic_store(&r->made->space->tiles_unrecorded, false);
    add_event(r);
}

/* Writes the container's record with the new tiles, and the event, in a commit of the first home. */
static void put_record(reshape *r, commit_group *group, const container_node *node) {
    r->made = container_with_tiles(node->container, container_tiles_take(r->tiles));
    account__put_container(&group->batch, node->database->database->number, r->made);
    if (r->event.after_n) {
        r->event.number = r->account->events_next;
        account__put_event(&group->batch, &r->event);
    }
    r->hook = (commit_hook){.before = numbers_before, .after = record_after};
    commit_link(group, &r->hook);
}

static void elsewhere_before(commit_hook *hook, commit_group *group) {
    (void)hook;
    (void)group;
}

static void elsewhere_after(commit_hook *hook, err code) {
    reshape *r = (reshape *)((char *)hook - offsetof(reshape, hook));
    account *a = r->account;
    if (code != OK) {
        return;
    }
    atomic_store(&r->request->container->space->tiles_unrecorded, true);
    pthread_rwlock_wrlock(&a->lock);
    publish_tiles(r, account__node_of(a, r->request->container));
    pthread_rwlock_unlock(&a->lock);
}

/* Writes the new tiles, which are published once they are on disk. */
static void put_tiles(reshape *r, commit_group *group) {
    const container *c = r->request->container;
    if (r->home->number == 0) {
        put_record(r, group, account__node_of(r->account, c));
        return;
    }
    account__put_tiles(&group->batch, c->space->container, r->tiles);
    r->hook = (commit_hook){.before = elsewhere_before, .after = elsewhere_after};
    commit_link(group, &r->hook);
}

/* Whether a merge is no longer right because the throughput was raised since it was decided. */
static bool is_outdated(const reshape *r, const container_tiles *old) {
    account *a = r->account;
    const reshape_request *q = r->request;
    if (q->reason != PLAN_SCALE_DOWN || a->rules.serverless) {
        return false;
    }
    pthread_rwlock_rdlock(&a->lock); /* the thread may be another home's */
    const container_node *node = account__node_of(a, q->container);
    double total = node ? account__provision(a, node).total : 0;
    pthread_rwlock_unlock(&a->lock);
    return total > (double)a->rules.range_throughput * (double)(old->map->n - q->n + 1);
}

static void take_segments(reshape *r) {
    r->segment = r->account->numbers.segment;
    r->account->numbers.segment += r->pieces.n;
}

static err apply_map(commit *base, commit_group *group) {
    reshape *r = (reshape *)base;
    const reshape_request *q = r->request;
    const container_tiles *old = q->container->space->newest; /* changes of it are serialised by the balancer's turn */
    uint32_t parts = r->pieces.n;
    r->held_from_us = clock_monotonic_us(r->account->items.clock);
    TRY(find_ranges(q, old, &r->first));
    if (is_outdated(r, old)) {
        return E_RANGE_GONE;
    }
    range_counts *counts = arena_array(r->arena, range_counts, parts);
    TRY(new_counts(r, old, counts));
    partition_map *map = partition_map_reshape(old->map, r->first, q->n, r->pieces.cuts, parts);
    if (!map) {
        return E_BAD_REQUEST; /* too many ranges, or ids */
    }
    if (r->home->number == 0) {
        take_segments(r);
    }
    r->tiles = build_tiles(r, old, map, counts, parts);
    for (size_t i = 0; i < parts; i++) {
        put_counts(&group->batch, r->tiles->ranges[r->first + i]);
    }
    for (size_t i = r->first; i < r->first + q->n; i++) {
        account__delete_range_records(&group->batch, q->container->space->container, old->ranges[i]->id);
    }
    note_event(r, old, &r->tiles->ranges[r->first], parts);
    put_tiles(r, group);
    return OK;
}

/* The extra steps for a home other than the first: segment numbers before the reshape, the container's record after it. */
static err apply_segments(commit *base, commit_group *group) {
    reshape *r = (reshape *)base;
    take_segments(r);
    account__put_numbers(&group->batch, &r->account->numbers);
    return OK;
}

static err apply_record(commit *base, commit_group *group) {
    reshape *r = (reshape *)base;
    const container_node *node = account__node_of(r->account, r->request->container);
    if (node) {
        put_record(r, group, node);
    }
    return OK;
}

/* The tiles are valid already: if the record cannot be written now, it is written later. False: it was not written. */
static bool record_tiles(reshape *r) {
    err code = r->home->number ? run_solo(r, r->account->homes[0], STORE_GROWS, apply_record) : OK;
    if (code != OK) {
        log_warn("account", "a container's record does not know its newest ranges yet", "container=%u code=%s",
                 r->request->container->space->container, err_lookup(code)->name);
    }
    return code == OK;
}

static err reshape_here(reshape *r) {
    if (r->home->number) {
        TRY(run_solo(r, r->account->homes[0], STORE_GROWS, apply_segments));
    }
    return run_solo(r, r->home, STORE_GROWS, apply_map);
}

/* Rewrites the event with its duration, which is known only now. */
static err apply_event(commit *base, commit_group *group) {
    account__put_event(&group->batch, &((reshape *)base)->event);
    return OK;
}

/* ---- a whole reshape ---- */

static err split(reshape *r) {
    TRY(choose_cuts(r));
    if (r->pieces.n < 2) {
        return E_BAD_REQUEST;
    }
    err code = weigh_pieces(r);
    code = code != OK ? code : reshape_here(r);
    if (r->watch) {
        err unwatched = run_solo(r, r->home, STORE_READS, apply_unwatch);
        range_watch_free(r->watch);
        code = code != OK ? code : unwatched;
    }
    return code;
}

static err merge(reshape *r) {
    r->pieces = (size_pieces){.n = 1};
    return reshape_here(r);
}

/* Passes the old ranges' load on to the container's history and to the new ranges' hot keys. Meters do not tick meanwhile (the caller holds
 * balancer.turn). */
static void hand_over_meters(reshape *r) {
    const clock_source *clock = r->account->items.clock;
    const container *c = r->request->container;
    int64_t second = clock_wall_ms(clock) / 1000, now_ns = clock_monotonic_us(clock) * 1000;
    for (size_t i = r->first; i < r->first + r->request->n; i++) {
        container_range *range = r->old->ranges[i];
        meter_absorb(&c->space->past, &range->meter, second, atomic_load(&container_range_bucket(range)->rate));
        for (size_t j = r->first; j < r->first + r->event.after_n; j++) {
            item_hot_copy_usage(c, r->tiles, j, range, now_ns);
        }
    }
}

static void end(reshape *r) {
    if (r->splitting) {
        atomic_store(&r->splitting->splitting, false);
        container_range_give(r->splitting);
    }
    if (r->old) {
        container_tiles_give(r->old);
    }
    if (r->made) {
        container_give(r->made);
    }
    if (r->tiles) {
        container_tiles_give(r->tiles);
    }
    arena_free(r->arena);
}

err account__reshape(account *a, const reshape_request *request) {
    arena scratch = arena_init();
    reshape r = {.account = a, .request = request, .arena = &scratch, .started_us = clock_monotonic_us(a->items.clock)};
    err code = account__record_tiles(a, request->container);
    code = code != OK ? code : find_home(&r);
    code = code != OK ? code : request->n == 1 ? split(&r) : merge(&r);
    if (code == OK) {
        const account_event *e = &r.event;
        hand_over_meters(&r);
        if (record_tiles(&r)) {
            (void)!run_solo(&r, a->homes[0], STORE_GROWS, apply_event); /* if it fails, the stored duration is a little too short */
        }
        log_info("account", request->n == 1 ? "a range was split" : "ranges were merged",
                 "container=%s/%s before=%u after=%u first=%u reason=%s items=%lu us=%u held_us=%u", e->database, e->container, e->before_n,
                 e->after_n, e->before[0], plan_reason_text(e->reason), (unsigned long)e->items, e->took_us, e->held_us);
    }
    end(&r);
    return code;
}

err account__record_tiles(account *a, container *c) {
    if (!atomic_load(&c->space->tiles_unrecorded)) {
        return OK;
    }
    arena scratch = arena_init();
    reshape_request request = {.container = c};
    reshape r = {.account = a, .request = &request, .arena = &scratch, .tiles = container_space_newest(c->space)};
    err code = run_solo(&r, a->homes[0], STORE_GROWS, apply_record);
    end(&r);
    return code;
}

/* ---- after a move ---- */

/* Removes the sources that the range has left. When the last range leaves a segment, the segment is empty. */
static err apply_forget(commit *base, commit_group *group) {
    reshape *r = (reshape *)base;
    const container_tiles *old = r->request->container->space->newest;
    TRY(find_ranges(r->request, old, &r->first));
    size_t n = 0;
    const range_sources *before = &old->sources[r->first];
    range_source *list = arena_array(r->arena, range_source, before->n);
    for (size_t i = 0; i < before->n; i++) {
        if (!before->list[i].leaving) {
            list[n++] = before->list[i];
        }
    }
    size_t map_n = old->map->n;
    container_range **ranges = arena_array(r->arena, container_range *, map_n);
    range_sources *sources = arena_array(r->arena, range_sources, map_n);
    for (size_t i = 0; i < map_n; i++) {
        ranges[i] = container_range_take(old->ranges[i]);
        sources[i] = i == r->first ? (range_sources){list, n} : old->sources[i];
    }
    partition_map *map = partition_map_build(old->map->ranges, map_n, old->map->next_id);
    layout_key k;
    layout_move(&k, r->request->container->space->container, r->request->first_id);
    store_delete(&group->batch, STORE_META, layout_view(&k));
    r->tiles = container_tiles_new(map, ranges, sources);
    r->tiles->epoch = old->epoch + 1;
    put_tiles(r, group);
    return OK;
}

err account__forget_sources(account *a, container *c, uint32_t range_id) {
    arena scratch = arena_init();
    reshape_request request = {.container = c, .first_id = range_id, .n = 1};
    reshape r = {.account = a, .request = &request, .arena = &scratch};
    err code = account__record_tiles(a, c);
    code = code != OK ? code : find_home(&r);
    code = code != OK ? code : run_solo(&r, r.home, STORE_GROWS, apply_forget);
    if (code == OK) {
        (void)record_tiles(&r);
    }
    end(&r);
    return code;
}

/* ---- manual splits and merges ---- */

enum { KEPT_US = 5 * 60 * 1000000 }; /* after a manual split, no automatic merges for this long */

static err split_error(op *o, err code) {
    if (code == E_BAD_REQUEST) {
        return op_fail(o, code, "The range cannot be split: it holds one logical partition, or there are too many ranges.");
    }
    return code;
}

err account_split(account *a, op *o, container *c, uint32_t range_id, uint32_t parts) {
    if (c->key.n == 0) {
        return op_fail(o, E_BAD_REQUEST, "A container without a partition key has one physical partition, always.");
    }
    if (parts < 2 || parts > 100) {
        return op_fail(o, E_BAD_REQUEST, "A range can be split into 2 to 100.");
    }
    reshape_request request = {.container = c, .first_id = range_id, .n = 1, .parts = parts, .reason = PLAN_COMMAND};
    pthread_mutex_lock(&a->balancer.turn);
    err code = account__reshape(a, &request);
    atomic_store(&c->space->merges_after_us, clock_monotonic_us(a->items.clock) + KEPT_US);
    pthread_mutex_unlock(&a->balancer.turn);
    account_wake(a);
    return split_error(o, code);
}

static err check_neighbours(account *a, op *o, container *c, uint32_t first_id, uint32_t second_id) {
    container_tiles *tiles = container_space_newest(c->space);
    const partition_range *first = partition_map_by_id(tiles->map, first_id), *second = partition_map_by_id(tiles->map, second_id);
    err code = OK;
    if (!first || !second) {
        code = E_RANGE_GONE;
    } else if (tiles->ranges[first - tiles->map->ranges]->home != tiles->ranges[second - tiles->map->ranges]->home) {
        code = op_fail(o, E_BAD_REQUEST, "The two ranges are in different stores. Only ranges of one store can be merged.");
    } else if (second != first + 1) {
        code = op_fail(o, E_BAD_REQUEST, "Only neighbours can be merged: the second range must begin where the first ends.");
    } else {
        uint64_t bytes = container_range_stored(tiles->ranges[first - tiles->map->ranges]) +
                         container_range_stored(tiles->ranges[second - tiles->map->ranges]);
        if (bytes > account__range_bytes(a, c)) {
            code = op_fail(o, E_BAD_REQUEST, "The two ranges together hold more than a physical partition may.");
        }
    }
    container_tiles_give(tiles);
    return code;
}

err account_merge(account *a, op *o, container *c, uint32_t first_id, uint32_t second_id) {
    reshape_request request = {.container = c, .first_id = first_id, .n = 2, .parts = 1, .reason = PLAN_COMMAND};
    pthread_mutex_lock(&a->balancer.turn);
    err code = check_neighbours(a, o, c, first_id, second_id);
    code = code != OK ? code : account__reshape(a, &request);
    pthread_mutex_unlock(&a->balancer.turn);
    account_wake(a);
    return code;
}
