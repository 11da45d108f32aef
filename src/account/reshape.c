/* Splits and merges: ranges that lie side by side become others, by one small write.
 *
 * A split has three steps, and writes go on through all of them:
 *   1. the sizes of the logical partitions tell where to cut (item/sizes.h)
 *   2. a commit of its own, which writes nothing, starts a watch on the range and takes a snapshot; what each piece holds is summed up in
 *      the snapshot, while the watch counts what changes
 *   3. another commit of its own writes the new map, and the new ranges' counts: sums and changes together
 * A merge is the last step alone: counts add up.
 *
 * No item is touched. The new ranges read their items where they are, in the old range's segments, and the smaller ones move theirs out
 * later (item/move.c). The new ranges go on with the old one's LSN, the higher one of a merge, so that session tokens and change positions
 * stay valid. A crash leaves the old map or the new one; the rest is in memory only. */
#include <semaphore.h>
#include <stdlib.h>

#include "account/account_int.h"
#include "account/settings.h"
#include "base/log.h"
#include "base/memory.h"

typedef struct reshape {
    commit base;
    commit_hook hook;
    sem_t done;
    account *account;
    const reshape_request *request;
    arena *arena;
    int64_t started_us, held_from_us;

    size_pieces pieces;
    size_sum *sums; /* of each piece at the snapshot */
    const store_snapshot *at;
    range_watch *watch;

    size_t first; /* position in the newest tiles, while a commit runs */
    container_tiles *tiles;
    container *made;
    account_event event;
} reshape;

static void is_done(commit *base) {
    sem_post(&((reshape *)base)->done);
}

static err run_solo(reshape *r, store_use use, err (*apply)(commit *, commit_group *)) {
    r->base = (commit){.solo = true, .use = use, .apply = apply, .done = is_done};
    sem_init(&r->done, 0, 0);
    committer_submit(r->account->homes[0]->committer, &r->base);
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
    return OK;
}

/* ---- 1: where to cut ---- */

/* Into equal widths, where there is no data to go by; fewer if the range is too narrow. */
static uint32_t cut_blindly(const pkey_definition *key, const epk *from, const epk *to, uint32_t parts, epk *cuts) {
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
        epk *cuts = arena_array(r->arena, epk, q->parts);
        uint32_t n = 0;
        r->pieces = (size_pieces){.container = q->container->space->container, .from = range->min, .to = range->max, .n = q->parts};
        uint64_t total = atomic_load(&tiles->ranges[first]->bytes);
        code = total ? item_sizes_cut(tiles->ranges[first]->home->store, &q->container->key, &r->pieces, total, cuts, &n) : OK;
        if (code == OK && n == 0 && q->reason != PLAN_STORAGE) {
            n = cut_blindly(&q->container->key, &range->min, &range->max, q->parts, cuts);
        }
        r->pieces.cuts = cuts;
        r->pieces.n = n + 1;
    }
    container_tiles_give(tiles);
    return code;
}

/* ---- 2: what the pieces hold ---- */

static err apply_watch(commit *base, commit_group *group) {
    reshape *r = (reshape *)base;
    container_tiles *tiles = r->request->container->space->newest;
    TRY(find_ranges(r->request, tiles, &r->first));
    r->watch = tiles->ranges[r->first]->watch = range_watch_new(&r->pieces);
    r->at = store_snapshot_take(group->store);
    return OK;
}

static err apply_unwatch(commit *base, commit_group *group) {
    reshape *r = (reshape *)base;
    container_tiles *tiles = r->request->container->space->newest;
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
    TRY(run_solo(r, STORE_READS, apply_watch));
    err code = item_sizes_sum(r->account->homes[0]->store, r->at, &r->pieces, r->sums);
    store_snapshot_give(r->account->homes[0]->store, r->at);
    return code;
}

/* ---- 3: the new map ---- */

/* What each new range starts with. */
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
            list[i].leaving = list[i].leaving && source->leaving; /* one of those merged has it as its own: so have all now */
            return;
        }
    }
    list[(*n)++] = (range_source){.segment = source->segment, .leaving = source->leaving || leaving};
}

static int by_segment(const void *a, const void *b) {
    uint32_t x = ((const range_source *)a)->segment, y = ((const range_source *)b)->segment;
    return (x > y) - (x < y);
}

/* Where a new range finds its items: in all that the old ones had, if it has any; and its own segment. After a split all but the largest
 * leave; after too many merges a range gathers its items in a segment of its own. */
enum { SOURCES_WELCOME = 8 };

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
    for (size_t i = 0; i < n && n > SOURCES_WELCOME; i++) {
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
    bucket **before = buckets_of(r, &old->ranges[r->first], before_n), **after = buckets_of(r, &r->made->tiles->ranges[r->first], after_n);
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
    e->number = r->account->events_next;
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
    e->took_us = us_since(r, r->started_us); /* up to here, in case the server ends before apply_event */
}

/* The tiles after: the ranges before and behind stay, those between are new. */
static container_tiles *build_tiles(reshape *r, const container_tiles *old, partition_map *map, const range_counts *counts,
                                    uint32_t parts) {
    account *a = r->account;
    size_t behind = r->first + r->request->n;
    uint32_t keeper = largest(counts, parts);
    container_range **ranges = arena_array(r->arena, container_range *, map->n);
    range_sources *sources = arena_array(r->arena, range_sources, map->n);
    for (size_t i = 0; i < map->n; i++) {
        if (i >= r->first && i < r->first + parts) {
            uint32_t part = (uint32_t)(i - r->first), segment = a->numbers.segment++;
            ranges[i] = container_range_new(r->request->container->space->container, &map->ranges[i], segment, old->ranges[r->first]->home);
            container_range_restore(ranges[i], &counts[part]);
            sources[i] = new_sources(r, old, counts[part].items, part != keeper, segment);
        } else {
            size_t from = i < r->first ? i : i - (r->first + parts) + behind;
            ranges[i] = container_range_take(old->ranges[from]);
            sources[i] = old->sources[from];
        }
    }
    return container_tiles_new(map, ranges, sources);
}

static void reshape_before(commit_hook *hook, commit_group *group) {
    reshape *r = (reshape *)((char *)hook - offsetof(reshape, hook));
    account__put_numbers(&group->batch, &r->account->numbers);
}

static void reshape_after(commit_hook *hook, err code) {
    reshape *r = (reshape *)((char *)hook - offsetof(reshape, hook));
    account *a = r->account;
    if (code != OK) {
        return;
    }
    container_space *space = r->made->space;
    container_tiles *old = container_tiles_take(space->newest);
    for (size_t i = r->first; r->event.after_n && i < r->first + r->request->n; i++) {
        old->ranges[i]->gone = true;
        old->ranges[i]->watch = NULL;
    }
    pthread_rwlock_wrlock(&a->lock);
    container_space_set(space, a->homes[0], container_tiles_take(r->made->tiles));
    container_node *node = account__node_of(a, r->made);
    account__swap_container(a, node, container_take(r->made));
    account__divide(a, node);
    if (r->event.after_n && !account__provision(a, node).shared) {
        hand_over_credit(r, old);
    }
    pthread_rwlock_unlock(&a->lock);
    container_tiles_give(old);
    if (r->event.after_n) {
        r->event.held_us = us_since(r, r->held_from_us);
        r->event.took_us = us_since(r, r->started_us);
        account__add_event(a, &r->event);
    }
}

/* Writes the container's record with these tiles; they are seen by all once it is on disk. */
static void put_tiles(reshape *r, commit_group *group, const container_node *node, container_tiles *tiles) {
    r->made = account__with_tiles(r->account, node->container, tiles);
    account__put_container(&group->batch, node->database->database->number, r->made);
    r->hook = (commit_hook){.before = reshape_before, .after = reshape_after};
    commit_link(group, &r->hook);
}

/* A merge that was right when it was decided, but the throughput has been raised since. */
static bool is_outdated(const reshape *r, const container_tiles *old) {
    account *a = r->account;
    const reshape_request *q = r->request;
    if (q->reason != PLAN_SCALE_DOWN || a->rules.serverless) {
        return false;
    }
    double total = account__provision(a, account__node_of(a, q->container)).total;
    return total > (double)a->rules.range_throughput * (double)(old->map->n - q->n + 1);
}

static err apply_map(commit *base, commit_group *group) {
    reshape *r = (reshape *)base;
    const reshape_request *q = r->request;
    const container_tiles *old = q->container->space->newest;
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
    container_tiles *tiles = build_tiles(r, old, map, counts, parts);
    for (size_t i = 0; i < parts; i++) {
        put_counts(&group->batch, tiles->ranges[r->first + i]);
    }
    for (size_t i = r->first; i < r->first + q->n; i++) {
        account__delete_range_records(&group->batch, q->container->space->container, old->ranges[i]->id);
    }
    note_event(r, old, &tiles->ranges[r->first], parts);
    account__put_event(&group->batch, &r->event);
    put_tiles(r, group, account__node_of(r->account, q->container), tiles);
    return OK;
}

/* The event was written with the map; how long that took is known only now. */
static err apply_event(commit *base, commit_group *group) {
    account__put_event(&group->batch, &((reshape *)base)->event);
    return OK;
}

/* ---- all of it ---- */

static err split(reshape *r) {
    TRY(choose_cuts(r));
    if (r->pieces.n < 2) {
        return E_BAD_REQUEST;
    }
    err code = weigh_pieces(r);
    code = code != OK ? code : run_solo(r, STORE_GROWS, apply_map);
    if (r->watch) {
        err unwatched = run_solo(r, STORE_READS, apply_unwatch);
        range_watch_free(r->watch);
        code = code != OK ? code : unwatched;
    }
    return code;
}

static err merge(reshape *r) {
    r->pieces = (size_pieces){.n = 1};
    return run_solo(r, STORE_GROWS, apply_map);
}

err account__reshape(account *a, const reshape_request *request) {
    arena scratch = arena_init();
    reshape r = {.account = a, .request = request, .arena = &scratch, .started_us = clock_monotonic_us(a->items.clock)};
    err code = request->n == 1 ? split(&r) : merge(&r);
    if (code == OK) {
        const account_event *e = &r.event;
        (void)!run_solo(&r, STORE_GROWS, apply_event); /* if it fails, the stored duration is a little too short */
        log_info("account", request->n == 1 ? "a range was split" : "ranges were merged",
                 "container=%s/%s before=%u after=%u first=%u reason=%s items=%lu us=%u held_us=%u", e->database, e->container, e->before_n,
                 e->after_n, e->before[0], plan_reason_text(e->reason), (unsigned long)e->items, e->took_us, e->held_us);
    }
    if (r.made) {
        container_give(r.made);
    }
    arena_free(&scratch);
    return code;
}

/* ---- after a move ---- */

/* A source that was left is not looked at any more. The last range to leave a segment leaves it empty. */
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
    put_tiles(r, group, account__node_of(r->account, r->request->container), container_tiles_new(map, ranges, sources));
    return OK;
}

err account__forget_sources(account *a, container *c, uint32_t range_id) {
    arena scratch = arena_init();
    reshape_request request = {.container = c, .first_id = range_id, .n = 1};
    reshape r = {.account = a, .request = &request, .arena = &scratch};
    err code = run_solo(&r, STORE_GROWS, apply_forget);
    if (r.made) {
        container_give(r.made);
    }
    arena_free(&scratch);
    return code;
}

/* ---- by command ---- */

enum { KEPT_US = 5 * 60 * 1000000 }; /* how long what was split by command is not merged by itself */

static err told(op *o, err code) {
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
    return told(o, code);
}

static err check_neighbours(account *a, op *o, container *c, uint32_t first_id, uint32_t second_id) {
    container_tiles *tiles = container_space_newest(c->space);
    const partition_range *first = partition_map_by_id(tiles->map, first_id), *second = partition_map_by_id(tiles->map, second_id);
    err code = OK;
    if (!first || !second) {
        code = E_RANGE_GONE;
    } else if (second != first + 1) {
        code = op_fail(o, E_BAD_REQUEST, "Only neighbours can be merged: the second range must begin where the first ends.");
    } else {
        uint64_t bytes = container_range_stored(tiles->ranges[first - tiles->map->ranges]) +
                         container_range_stored(tiles->ranges[second - tiles->map->ranges]);
        if (bytes > a->rules.range_bytes) {
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
