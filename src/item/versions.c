/* The log of versions: writing, turning it on and off, and retention. Everything but item_trim_due and item_trim runs on the committer's
 * thread. */
#include "item/versions.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "item/stored.h"

enum { TRIM_HEADS = 4, TRIM_PERIODS = 64, RECLAIMED_RANGES_MAX = 64, COVERING_MAX = 64 };

/* ---- writing ---- */

static void put_head(store_batch *batch, uint32_t container, uint32_t segment, const log_head *head) {
    layout_key k;
    char bytes[LAYOUT_LOG_HEAD_BYTES_MAX];
    layout_log_head(&k, container, segment);
    store_put(batch, STORE_VERSIONS, layout_view(&k), slice_of(bytes, layout_log_head_write(bytes, head)));
}

static log_head head_of(const partition_range *range, uint64_t born, uint64_t floor) {
    return (log_head){.min = range->min, .max = range->max, .born = born, .floor = floor};
}

/* Writes the range's log head with its first version. Only a head on disk is remembered, since the rest of the group may still fail. */
static err need_head(item_work *w, const item_key *key, uint64_t lsn) {
    layout_key k;
    store_value value;
    bool of_group;
    container_range *range = w->range;
    uint32_t turns = w->part->log_generation;
    if (range->log_opened == turns) {
        return OK;
    }
    layout_log_head(&k, range->container, range->segment);
    err code = commit_get(w->group, STORE_VERSIONS, layout_view(&k), &value, &of_group);
    if (code == OK) {
        store_give(&value);
        range->log_opened = of_group ? 0 : turns;
        return OK;
    }
    if (code == E_NOT_FOUND) {
        log_head head = head_of(&w->tiles->map->ranges[container_position(w->tiles, &key->epk)], lsn - 1, 0);
        put_head(&w->group->batch, range->container, range->segment, &head);
        code = OK;
    }
    return code;
}

/* Versions of one lsn are told apart by their place among them. */
static uint16_t next_place(container_range *range, uint64_t lsn) {
    range->log_place = range->log_lsn == lsn ? (uint16_t)(range->log_place + 1) : 0;
    range->log_lsn = lsn;
    return range->log_place;
}

/* The note of the edit that is being applied. */
static slice note_of(const item_work *w) {
    return w->op ? w->op->note : SLICE_EMPTY;
}

static err put_version(item_work *w, const item_key *key, const log_entry *entry, uint64_t lsn, const item_head *head, slice body,
                       slice note) {
    layout_key k;
    char bytes[LAYOUT_LOG_ENTRY_BYTES_MAX];
    TRY(need_head(w, key, lsn));
    size_t n = layout_log_entry_write(bytes, entry);
    layout_version(&k, w->range->container, w->range->segment, lsn);
    layout_add_version_place(&k, next_place(w->range, lsn));
    char *value = store_put_space(&w->group->batch, STORE_VERSIONS, layout_view(&k), n + LAYOUT_HEAD_BYTES + body.n + note.n);
    memcpy(value, bytes, n);
    layout_head_write(value + n, head);
    memcpy(value + n + LAYOUT_HEAD_BYTES, body.p, body.n);
    if (note.n) {
        memcpy(value + n + LAYOUT_HEAD_BYTES + body.n, note.p, note.n);
    }
    return OK;
}

err item__log_put(item_work *w, const item_key *key, const item_head *head, slice body, const stored_item *before) {
    if (w->part->version_minutes == 0) {
        return OK;
    }
    log_entry entry = {
        .kind = before->there ? VERSION_REPLACE : VERSION_CREATE,
        .ts = clock_ts(w->now_s),
        .previous_lsn = before->there ? before->head.lsn : 0,
        .epk = key->epk,
    };
    return put_version(w, key, &entry, head->lsn, head, body, note_of(w));
}

err item__log_remove(item_work *w, const item_key *key, const stored_item *stored, bool expired, uint64_t lsn) {
    if (w->part->version_minutes == 0) {
        return OK;
    }
    log_entry entry = {
        .kind = VERSION_DELETE,
        .expired = expired,
        .ts = clock_ts(w->now_s),
        .previous_lsn = stored->head.lsn,
        .epk = key->epk,
    };
    return put_version(w, key, &entry, lsn, &stored->head, stored->body, SLICE_EMPTY);
}

/* ---- turning on and off ---- */

typedef struct trimmed {
    uint32_t segment;
    uint64_t to; /* versions up to this lsn were dropped */
} trimmed;

void item_versions_start(commit_group *group, const container *c, const home *home) {
    const container_tiles *tiles = container_part_of(c->space, home)->tiles;
    for (size_t i = 0; i < tiles->map->n; i++) {
        if (tiles->ranges[i]->home != home) {
            continue;
        }
        uint64_t lsn = tiles->ranges[i]->written.lsn;
        log_head head = head_of(&tiles->map->ranges[i], lsn, lsn);
        put_head(&group->batch, c->space->container, tiles->ranges[i]->segment, &head);
    }
}

void item_versions_drop(store_batch *batch, uint32_t container) {
    layout_key from, to;
    layout_container(&from, container);
    to = from;
    layout_after(&to);
    store_delete_range(batch, STORE_VERSIONS, layout_view(&from), layout_view(&to));
}

static int by_segment(const void *a, const void *b) {
    uint32_t x = ((const trimmed *)a)->segment, y = ((const trimmed *)b)->segment;
    return (x > y) - (x < y);
}

/* A reclaim deletes its keys again later, when a new log may have started: so it covers only keys that the new log can never write. These
 * are the old lsns of each current segment, and all segments between them. */
static void reclaim_runs(store *store, const container *c, const trimmed *written_to, size_t n) {
    uint32_t container = c->space->container, first = 0;
    for (size_t i = 0; i < n; i++) {
        layout_key from, to;
        layout_version(&from, container, first, 0);
        layout_version(&to, container, written_to[i].segment, written_to[i].to + 1);
        store_reclaim(store, STORE_VERSIONS, layout_view(&from), layout_view(&to));
        first = written_to[i].segment + 1;
    }
}

void item_versions_reclaim(const container *c, const home *home) {
    const container_tiles *tiles = container_part_of(c->space, home)->tiles;
    trimmed written_to[RECLAIMED_RANGES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < tiles->map->n; i++) {
        if (tiles->ranges[i]->home == home && n == RECLAIMED_RANGES_MAX) { /* leave it to compaction */
            return;
        }
        if (tiles->ranges[i]->home == home) {
            written_to[n++] = (trimmed){tiles->ranges[i]->segment, tiles->ranges[i]->written.lsn};
        }
    }
    qsort(written_to, n, sizeof *written_to, by_segment);
    reclaim_runs(home->store, c, written_to, n);
}

/* ---- retention ---- */

typedef struct trim {
    commit base;
    home *home;
    container *container;
    atomic_uint *in_flight;
    int64_t now_s, cutoff_s; /* older versions are removed */
    trimmed dropped[TRIM_HEADS];
    size_t dropped_n;
    /* new values of the part's members of the same names, once the group is written */
    uint32_t trim_from;
    int64_t trim_due_s;
} trim;

static container_part *part_of(const trim *t) {
    return container_part_of(t->container->space, t->home);
}

static void version_run(const trim *t, uint32_t segment, uint64_t last, layout_key *from, layout_key *to) {
    uint32_t container = t->container->space->container;
    layout_version(from, container, segment, 0);
    if (last == UINT64_MAX) {
        layout_version(to, container, segment + 1, 0);
    } else {
        layout_version(to, container, segment, last + 1);
    }
}

static void drop_versions(trim *t, commit_group *group, uint32_t segment, uint64_t last) {
    layout_key from, to;
    version_run(t, segment, last, &from, &to);
    store_delete_range(&group->batch, STORE_VERSIONS, layout_view(&from), layout_view(&to));
    t->dropped[t->dropped_n++] = (trimmed){segment, last};
}

/* Finds the first version from an lsn on, or the last one; false: none. */
static bool peek(store_scan *scan, const layout_key *at, bool last, uint64_t *lsn_out, uint32_t *ts_out) {
    slice key, value, body, note;
    log_entry entry;
    item_head head;
    store_scan_seek(scan, layout_view(at), last);
    if (!store_scan_next(scan, &key, &value) || !layout_version_lsn(key, lsn_out) ||
        !layout_log_entry_read(value, &entry, &head, &body, &note)) {
        return false;
    }
    *ts_out = entry.ts;
    return true;
}

/* Finds the last version that is too old; 0: none. Time ascends with the lsn, so this is a binary search. */
static err last_too_old(const trim *t, commit_group *group, uint32_t segment, uint64_t *last_out, bool *empty_out) {
    layout_key from, to, at;
    uint64_t low, high, found;
    uint32_t ts, container = t->container->space->container;
    version_run(t, segment, UINT64_MAX, &from, &to);
    store_scan *scan = store_scan_open(group->store, STORE_VERSIONS, NULL, layout_view(&from), layout_view(&to), false);
    *last_out = 0;
    *empty_out = !peek(scan, &from, false, &low, &ts);
    if (!*empty_out && ts < t->cutoff_s && peek(scan, &to, true, &high, &ts)) {
        if (ts < t->cutoff_s) {
            low = high;
        }
        while (high > low + 1) { /* low is too old; from high on, none is */
            uint64_t middle = low + (high - low) / 2;
            layout_version(&at, container, segment, middle);
            bool there = peek(scan, &at, false, &found, &ts);
            if (there && found < high && ts < t->cutoff_s) {
                low = found;
            } else {
                high = middle;
            }
        }
        *last_out = low;
    }
    return store_scan_close(scan);
}

/* The head of an empty segment is superseded if the heads of the current ranges reject the same readers. */
static err is_superseded(const trim *t, commit_group *group, const log_head *head, bool *superseded_out) {
    const container_tiles *tiles = part_of(t)->tiles;
    size_t i = container_position(tiles, &head->min), left = COVERING_MAX;
    *superseded_out = true;
    for (; *superseded_out && i < tiles->map->n && epk_cmp(&tiles->map->ranges[i].min, &head->max) < 0; i++) {
        layout_key k;
        store_value value;
        bool of_group;
        log_head now;
        layout_log_head(&k, tiles->ranges[i]->container, tiles->ranges[i]->segment);
        err code = left-- ? commit_get(group, STORE_VERSIONS, layout_view(&k), &value, &of_group) : E_NOT_FOUND;
        *superseded_out = code == OK && layout_log_head_read(value.bytes, &now) && now.floor >= head->floor;
        if (code == OK) {
            store_give(&value);
        } else if (code != E_NOT_FOUND) {
            return code;
        }
    }
    return OK;
}

static err trim_segment(trim *t, commit_group *group, uint32_t segment, log_head *head) {
    const container_space *space = t->container->space;
    bool written_to = container_route(part_of(t)->tiles, &head->min)->segment == segment, empty, superseded = false;
    uint64_t last;
    TRY(last_too_old(t, group, segment, &last, &empty));
    if (last) {
        drop_versions(t, group, segment, last);
        head->floor = last;
        put_head(&group->batch, space->container, segment, head);
    } else if (empty && !written_to) {
        TRY(is_superseded(t, group, head, &superseded));
    }
    if (superseded) {
        layout_key k;
        layout_log_head(&k, space->container, segment);
        store_delete(&group->batch, STORE_VERSIONS, layout_view(&k));
    }
    return OK;
}

/* Trims a few segments; the next commit continues after them. Skips a head that this group has changed, since the scan only sees the
 * disk. */
static err trim_some(trim *t, commit_group *group) {
    layout_key from, to;
    slice key, value;
    log_head head;
    uint32_t segment, container = t->container->space->container;
    err code = OK;
    size_t n = 0;
    layout_log_head(&from, container, t->trim_from);
    layout_log_heads(&to, container);
    layout_after(&to);
    store_scan *scan = store_scan_open(group->store, STORE_VERSIONS, NULL, layout_view(&from), layout_view(&to), false);
    bool more = true;
    while (code == OK && n < TRIM_HEADS && (more = store_scan_next(scan, &key, &value))) {
        bool read = layout_log_head_segment(key, &segment) && layout_log_head_read(value, &head);
        bool changed = store_batch_find(&group->batch, STORE_VERSIONS, key);
        code = !read ? E_STORE_CORRUPT : changed ? OK : trim_segment(t, group, segment, &head);
        t->trim_from = read ? segment + 1 : t->trim_from;
        n++;
    }
    err ended = store_scan_close(scan);
    if (!more) {
        int64_t period = (t->now_s - t->cutoff_s) / TRIM_PERIODS;
        t->trim_from = 0;
        t->trim_due_s = t->now_s + (period > 0 ? period : 1);
    }
    return code != OK ? code : ended;
}

static err trim_apply(commit *base, commit_group *group) {
    trim *t = (trim *)base;
    const container_space *space = t->container->space;
    const container_part *part = part_of(t);
    uint32_t minutes = atomic_load(&part->version_minutes);
    t->cutoff_s = t->now_s - (int64_t)minutes * 60;
    t->trim_from = part->trim_from;
    t->trim_due_s = atomic_load(&part->trim_due_s);
    if (space->deleted || minutes == 0) {
        return OK;
    }
    err code = trim_some(t, group);
    if (code != OK) {
        log_warn("item", "old versions stay", "container=%u code=%s", space->container, err_lookup(code)->name);
    }
    return code;
}

static void trim_done(commit *base) {
    trim *t = (trim *)base;
    container_part *part = part_of(t);
    if (base->code == OK) {
        part->trim_from = t->trim_from;
        atomic_store(&part->trim_due_s, t->trim_due_s);
    } else {
        atomic_store(&part->trim_due_s, t->now_s + 1);
    }
    for (size_t i = 0; base->code == OK && i < t->dropped_n; i++) {
        layout_key from, to;
        version_run(t, t->dropped[i].segment, t->dropped[i].to, &from, &to);
        store_reclaim(t->home->store, STORE_VERSIONS, layout_view(&from), layout_view(&to));
    }
    atomic_uint *in_flight = t->in_flight;
    container_give(t->container);
    free(t);
    atomic_fetch_sub(in_flight, 1);
}

static bool part_is_due(const container_part *part, int64_t now_s) {
    return part->home && now_s >= atomic_load_explicit(&part->trim_due_s, memory_order_relaxed);
}

bool item_trim_due(const container *c, int64_t now_s) {
    bool due = false;
    for (size_t i = 0; i < c->space->parts_n && !due; i++) {
        due = part_is_due(&c->space->parts[i], now_s);
    }
    return due && item_versions_kept(c);
}

static void trim_part(container *c, container_part *part, int64_t now_s, atomic_uint *in_flight) {
    trim *t = mem_zero(sizeof *t);
    t->base = (commit){.queue = &part->commits, .use = STORE_FREES, .apply = trim_apply, .done = trim_done};
    t->home = part->home;
    t->container = container_take(c);
    t->in_flight = in_flight;
    t->now_s = now_s;
    atomic_fetch_add(in_flight, 1);
    committer_submit(part->home->committer, &t->base);
}

void item_trim(const items *s, container *c, atomic_uint *in_flight) {
    int64_t now_s = clock_wall_ms(s->clock) / 1000;
    for (size_t i = 0; i < c->space->parts_n; i++) {
        if (c->space->parts[i].home) {
            trim_part(c, &c->space->parts[i], now_s, in_flight);
        }
    }
}
