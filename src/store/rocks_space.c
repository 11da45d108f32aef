/* Disk space: which batches are accepted when space runs short, and how deletes free it.
 *
 * RocksDB must not run out of disk: the outcome of a write would be unknown, and a failed compaction ends the process. So the free space is
 * checked before each batch (at most every SPACE_CHECK_US), and a reserve is kept:
 *
 *   free space                 accepted batches (store_use)
 *   above the reserve          all
 *   above a half of the floor  deletes of items, containers and databases
 *   above an eighth            deletes of containers and databases
 *   below                      none
 *
 *   floor    SPACE_RESERVE_BYTES, or a tenth of a small disk
 *   reserve  the floor, or the size of the tables if that is more, since all of them may be compacted at once; SPACE_RESERVE_BYTES at
 *            most, since a compaction is of STORE_COMPACTION_BYTES at most
 *
 * A tiered family (rocks_options.c) may be merged completely, which needs as much space as it has. With less free space above the reserve
 * its compactions are off; the others go on. A start with less space opens all families as leveled ones.
 *
 * Unflushed data counts as used, since it needs space in tables. Space of unfinished tables counts as free: it comes back when they, or the
 * tables or log that they replace, are removed.
 *
 * Deletes of items leave their entries and one more for each delete in the tables, until both are merged. RocksDB merges newer tables with
 * older ones when these have grown, so without further writes they would stay. Once deletes are half of what is left, or a quarter if
 * nothing is written, the reclaimer merges the whole family: at most two to four entries are rewritten for each that was deleted.
 *
 * Below the reserve, RocksDB's automatic compactions are off. Deletes of items free nothing until they are compacted together with what
 * they delete. The reclaimer does that, for the range of deleted keys in each family, once the result fits into the free space. Deletes of
 * containers drop whole files and need no compaction. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/log.h"
#include "store/rocks_int.h"
#include "store/rocks_memtable.h"

enum {
    SPACE_CHECK_US = 50 * 1000,
    SAY_AGAIN_US = 60 * 1000 * 1000,
    COMPACT_PAUSE_US = 500 * 1000,
    COMPACTION_WORTH = 4, /* a whole tiered family is compacted if at least such a part of it was deleted */
    UNFLUSHED_LITTLE = 4 * 1024 * 1024,
    GARBAGE_LOOK_US = 5 * 1000 * 1000,
    LOAD_LOOK_US = 1000 * 1000,        /* so often whether a load has ended, since what it left must be merged before it is read */
    GARBAGE_BYTES_LEAST = 1024 * 1024, /* smaller families are left alone */
    LOG_EXCESS = 2,                    /* the log is cut if it is so many times as large as it may be */
    CLOSE_BYTES = 32 * 1024 * 1024,    /* with more in memory, a close flushes, since replaying the log would delay the next start */
};

/* Deletes as a part of the other entries, from which on a family is merged. */
static const double garbage_while_written = 0.5, garbage_while_idle = 0.25;

int64_t store__now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

bool store__space_read(const char *path, uint64_t *free_out, uint64_t *floor_out) {
    struct statvfs disk;
    if (statvfs(path, &disk) != 0) {
        return false;
    }
    uint64_t tenth = (uint64_t)disk.f_blocks * disk.f_frsize / 10;
    *floor_out = tenth < SPACE_RESERVE_BYTES ? tenth : SPACE_RESERVE_BYTES;
    *free_out = (uint64_t)disk.f_bavail * disk.f_frsize;
    return true;
}

/* ---- accepting batches ---- */

uint64_t store__tables_bytes(const char *path) {
    uint64_t sum = 0;
    struct stat file;
    DIR *d = opendir(path);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot && strcmp(dot, ".sst") == 0 && fstatat(dirfd(d), entry->d_name, &file, 0) == 0) {
            sum += (uint64_t)file.st_blocks * 512;
        }
    }
    if (d) {
        closedir(d);
    }
    return sum;
}

static uint64_t reserve_of(uint64_t floor, uint64_t tables) {
    return tables < floor ? floor : tables < SPACE_RESERVE_BYTES ? tables : SPACE_RESERVE_BYTES;
}

static uint64_t property(rocks *r, int family, const char *name) {
    uint64_t value = 0;
    return rocksdb_property_int_cf(r->db, r->families[family], name, &value) == 0 ? value : 0;
}

static uint64_t sum_of(rocks *r, const char *name) {
    uint64_t sum = 0;
    for (int f = 0; f < FAMILIES; f++) {
        sum += property(r, f, name);
    }
    return sum;
}

/* Bytes in the log and in memory, which need space in tables before the log's space can be freed. */
static uint64_t unflushed_bytes(rocks *r) {
    return sum_of(r, "rocksdb.cur-size-all-mem-tables") + store_tail_held(r->tail);
}

static void flush_family(rocks *r, int family, bool wait) {
    char *message = NULL;
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(options, wait);
    rocksdb_flush_cf(r->db, options, r->families[family], &message);
    store__classify(message, "flush failed");
    rocksdb_flushoptions_destroy(options);
}

/* Flushes memtables to tables, which frees the log's space. */
static void flush(rocks *r, bool wait) {
    for (int f = 0; f < FAMILIES; f++) {
        flush_family(r, f, wait);
    }
}

void store__flush_large(rocks *r) {
    bool fine = !r->read_only && !r->failed && r->space.room == STORE_GROWS;
    if (fine && sum_of(r, "rocksdb.cur-size-all-mem-tables") >= CLOSE_BYTES) {
        flush(r, true);
    }
}

/* Hysteresis: once space was short, growing needs an eighth more, since RocksDB's compactions are switched with it. */
static store_use room_in(const disk_space *s, uint64_t space, uint64_t floor, uint64_t reserve, uint64_t unflushed) {
    uint64_t enough = s->room == STORE_GROWS ? reserve : reserve + reserve / 8;
    return space > enough + unflushed      ? STORE_GROWS
           : space > floor / 2 + unflushed ? STORE_FREES
           : space > floor / 8             ? STORE_DROPS
                                           : STORE_READS;
}

static void switch_compactions(rocks *r, bool tiered, bool allowed) {
    static const char *const name[] = {"disable_auto_compactions"};
    const char *value[] = {allowed ? "false" : "true"};
    for (int f = 0; f < FAMILIES; f++) {
        char *message = NULL;
        if (store__is_tiered(r, f) == tiered) {
            rocksdb_set_options_cf(r->db, r->families[f], 1, name, value, &message);
            store__classify(message, "changing options failed");
        }
    }
}

/* Size of all tables of tiered families. */
static uint64_t tiers_bytes(rocks *r) {
    uint64_t sum = 0;
    for (int f = 0; f < FAMILIES; f++) {
        sum += store__is_tiered(r, f) ? property(r, f, "rocksdb.live-sst-files-size") : 0;
    }
    return sum;
}

/* Turns RocksDB's automatic compactions on or off. Needs space, since RocksDB writes its options to a file. */
static void let_compact(rocks *r, bool allowed, uint64_t space, uint64_t reserve) {
    uint64_t needed = reserve + tiers_bytes(r);
    bool tiers = allowed && space > (r->space.no_tiers ? needed + needed / 8 : needed);
    if (space < OPEN_BYTES) {
        return;
    }
    if (allowed == r->space.no_compactions) {
        r->space.no_compactions = !allowed;
        switch_compactions(r, false, allowed);
    }
    if (tiers == r->space.no_tiers) {
        r->space.no_tiers = !tiers;
        switch_compactions(r, true, tiers);
        if (!tiers && allowed) {
            log_warn("store", "too little space to merge index tables: queries get slower. Free space, or restart to merge them in pieces",
                     "dir=%s free=%lu needed=%lu", r->folder.dir, (unsigned long)space, (unsigned long)needed);
        }
    }
}

/* Logs a change at once, and a lasting shortage every minute. */
static void say(rocks *r, store_use room, uint64_t space, int64_t now) {
    disk_space *s = &r->space;
    bool lasts = room != STORE_GROWS && now - s->said_us >= SAY_AGAIN_US;
    if (room == s->room && !lasts) {
        return;
    }
    s->said_us = now;
    if (room == STORE_GROWS) {
        log_info("store", "disk has space again: writes go on", "dir=%s free=%lu", r->folder.dir, (unsigned long)space);
    } else {
        static const char *const still[] = {
            [STORE_FREES] = "items, containers and databases can be deleted",
            [STORE_DROPS] = "containers and databases can be deleted",
            [STORE_READS] = "nothing can be deleted: free space outside of the data folder",
        };
        log_error("store", "disk nearly full: writes refused until space is freed, reads go on", "dir=%s free=%lu still=\"%s\"",
                  r->folder.dir, (unsigned long)space, still[room]);
    }
}

static store_use find_room(rocks *r, uint64_t *space_out) {
    uint64_t space, floor, live = sum_of(r, "rocksdb.live-sst-files-size"), unflushed = unflushed_bytes(r);
    if (!store__space_read(r->db_path, &space, &floor)) {
        *space_out = 0;
        return STORE_GROWS;
    }
    *space_out = space;
    store_use room = room_in(&r->space, space, floor, reserve_of(floor, live), unflushed);
    if (room != STORE_GROWS) {
        uint64_t kept = sum_of(r, "rocksdb.total-sst-files-size"), there = store__tables_bytes(r->db_path);
        uint64_t unfinished = there > kept ? there - kept : 0;
        room = room_in(&r->space, space + unfinished, floor, reserve_of(floor, live), unflushed);
    }
    if (room != STORE_GROWS && (unflushed > UNFLUSHED_LITTLE || r->space.room == STORE_GROWS) && space > unflushed) {
        flush(r, false);
    }
    return room;
}

static void look(rocks *r, int64_t now) {
    uint64_t space;
    store_use room = find_room(r, &space);
    say(r, room, space, now);
    let_compact(r, room == STORE_GROWS, space, SPACE_RESERVE_BYTES);
    r->space.room = room;
    r->space.checked_us = now;
}

/* Logs that writes are refused until a restart, because the disk was full at start or a write failed. */
static void say_restart(rocks *r, int64_t now) {
    uint64_t space = 0, floor = 0;
    if (now - r->space.said_us < SAY_AGAIN_US) {
        return;
    }
    r->space.said_us = now;
    store__space_read(r->db_path, &space, &floor);
    log_error("store",
              r->opened_full ? "the disk was full at the start: reads only, until a restart with free space"
                             : "a write to disk failed: reads only, until a restart",
              "dir=%s free=%lu enough=%s", r->folder.dir, (unsigned long)space, space > floor ? "yes" : "no");
}

bool store__space_accepts(rocks *r, store_use use) {
    int64_t now = store__now_us();
    if (r->read_only || r->failed) {
        if (r->opened_full || r->failed) {
            say_restart(r, now);
        }
        return true; /* the write itself reports the error */
    }
    if (!r->space.checked_us || now - r->space.checked_us >= SPACE_CHECK_US) {
        look(r, now);
    }
    return use >= r->space.room;
}

/* ---- freeing the space of deleted items ---- */

/* Reclaimer's lock held. */
static void widen(key_range *range, slice key) {
    if (!range->any) {
        range->from = range->to = buf_init(BUF_NO_LIMIT);
    }
    if (!range->any || slice_cmp(key, buf_view(&range->from)) < 0) {
        buf_clear(&range->from);
        buf_add_slice(&range->from, key);
    }
    if (!range->any || slice_cmp(key, buf_view(&range->to)) > 0) {
        buf_clear(&range->to);
        buf_add_slice(&range->to, key);
    }
    range->any = true;
}

void store__space_note(rocks *r, const store_batch *batch) {
    if (r->space.room == STORE_GROWS || batch->use != STORE_FREES) {
        return;
    }
    pthread_mutex_lock(&r->reclaim_lock);
    for (size_t i = 0; i < batch->n; i++) {
        if (batch->changes[i].kind == STORE_DELETE) {
            widen(&r->space.deleted[batch->changes[i].family], batch->changes[i].key);
        }
    }
    r->space.compact = true;
    pthread_mutex_unlock(&r->reclaim_lock);
    store__wake_reclaimer(r);
}

void store__space_note_range(rocks *r, int family, slice from, slice to) {
    pthread_mutex_lock(&r->reclaim_lock);
    widen(&r->space.deleted[family], from);
    widen(&r->space.deleted[family], to);
    pthread_mutex_unlock(&r->reclaim_lock);
}

/* Marks whole families, since deletes before this start of the server are not known one by one. */
static void note_all(rocks *r) {
    static const char last[16] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    pthread_mutex_lock(&r->reclaim_lock);
    for (int f = STORE_ITEMS; f < STORE_FAMILIES; f++) {
        widen(&r->space.deleted[f], SLICE_EMPTY);
        widen(&r->space.deleted[f], slice_of(last, sizeof last));
    }
    r->space.compact = true;
    pthread_mutex_unlock(&r->reclaim_lock);
    store__wake_reclaimer(r);
}

static uint64_t number_after(const char *text, const char *name) {
    const char *at = text ? strstr(text, name) : NULL;
    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

typedef struct entry_counts {
    double all, deletes;
} entry_counts;

static entry_counts count_entries(rocks *r, int family) {
    char *text = rocksdb_property_value_cf(r->db, r->families[family], "rocksdb.aggregated-table-properties");
    entry_counts n = {
        .all = (double)(number_after(text, "# entries=") + property(r, family, "rocksdb.num-entries-active-mem-table")),
        .deletes = (double)(number_after(text, "# deletions=") + property(r, family, "rocksdb.num-deletes-active-mem-table")),
    };
    rocksdb_free(text);
    return n;
}

/* Which fraction of the entries is deleted, assuming that each delete is for one of them. */
static double deleted_of(double entries, double deletes) {
    return entries <= 0 ? 0 : deletes * 2 >= entries ? 1 : deletes / (entries - deletes);
}

static double deleted_part(rocks *r, int family) {
    entry_counts n = count_entries(r, family);
    return deleted_of(n.all, n.deletes);
}

/* A compaction writes its result before it removes its input. If it runs out of disk, RocksDB waits until space for all of its input is
 * free. So it is only started if the result fits. */
static bool fits(rocks *r, int family, double bytes, uint64_t space) {
    double most = store__is_tiered(r, family) ? bytes : STORE_COMPACTION_BYTES;
    return (bytes < most ? bytes : most) < (double)space * 0.9;
}

/* If items are deleted, their index entries are deleted too or soon will be, so the larger fraction of the two counts. */
static bool compaction_pays(rocks *r, int family, const key_range *range) {
    uint64_t space, floor;
    double own = deleted_part(r, family), items = deleted_part(r, STORE_ITEMS), deleted = own > items ? own : items;
    double bytes = (double)store__plain_bytes(r, family, buf_view(&range->from), buf_view(&range->to));
    return deleted > 0 && store__space_read(r->db_path, &space, &floor) && fits(r, family, bytes * (1 - deleted), space);
}

/* RocksDB compacts a tiered family as a whole, whatever the range. */
bool store__space_pays(rocks *r, int family, slice from, slice to) {
    return !store__is_tiered(r, family) ||
           store__plain_bytes(r, family, from, to) * COMPACTION_WORTH >= property(r, family, "rocksdb.live-sst-files-size");
}

bool store__space_can_drop(rocks *r, int family, slice from, slice to) {
    uint64_t space, floor, all = property(r, family, "rocksdb.live-sst-files-size"), dropped = store__plain_bytes(r, family, from, to);
    return !store__space_read(r->db_path, &space, &floor) || fits(r, family, (double)(all - (dropped < all ? dropped : all)), space);
}

void store__compact(rocks *r, int family, slice from, slice to) {
    rocksdb_compactoptions_t *options = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_exclusive_manual_compaction(options, 0);
    rocksdb_compact_range_cf_opt(r->db, r->families[family], options, from.p, from.n, to.p, to.n);
    rocksdb_compactoptions_destroy(options);
}

static void compact_family(rocks *r, int family, key_range *range) {
    if (!range->any) {
        return;
    }
    if (!compaction_pays(r, family, range)) { /* after more deletes it may be */
        store__space_note_range(r, family, buf_view(&range->from), buf_view(&range->to));
        return;
    }
    flush(r, true);
    if (family == STORE_TERMS) {
        store__terms_drain(r);
        store__idle_drop(r, INT64_MAX);
    }
    store__compact(r, family, buf_view(&range->from), buf_view(&range->to));
}

void store__space_compact(rocks *r) {
    key_range deleted[STORE_FAMILIES];
    pthread_mutex_lock(&r->reclaim_lock);
    memcpy(deleted, r->space.deleted, sizeof deleted);
    memset(r->space.deleted, 0, sizeof r->space.deleted);
    r->space.compact = false;
    pthread_mutex_unlock(&r->reclaim_lock);
    for (int f = 0; f < STORE_FAMILIES; f++) {
        compact_family(r, f, &deleted[f]);
        buf_free(&deleted[f].from);
        buf_free(&deleted[f].to);
    }
    r->space.compacted_us = store__now_us();
}

/* ---- merging deleted entries away while there is space ---- */

void store__garbage_note_write(rocks *r) {
    atomic_fetch_add_explicit(&r->garbage.writes, 1, memory_order_relaxed);
    if (!atomic_load_explicit(&r->garbage.watched, memory_order_relaxed)) {
        pthread_mutex_lock(&r->reclaim_lock);
        atomic_store(&r->garbage.watched, true);
        pthread_cond_signal(&r->reclaim_wake);
        pthread_mutex_unlock(&r->reclaim_lock);
    }
}

/* Deletes that the last merge had to keep for a snapshot are not counted again. */
static double garbage_part(rocks *r, int family) {
    entry_counts n = count_entries(r, family);
    double *kept = &r->garbage.kept[family];
    *kept = *kept < n.deletes ? *kept : n.deletes;
    return deleted_of(n.all - *kept, n.deletes - *kept);
}

static bool can_merge(rocks *r, int family) {
    uint64_t space, floor, bytes = property(r, family, "rocksdb.live-sst-files-size");
    return bytes >= GARBAGE_BYTES_LEAST && store__space_read(r->db_path, &space, &floor) && space > SPACE_RESERVE_BYTES &&
           fits(r, family, (double)bytes, space - SPACE_RESERVE_BYTES);
}

static int family_with_garbage(rocks *r, double worth) {
    for (int f = STORE_ITEMS; f < STORE_FAMILIES; f++) {
        if (can_merge(r, f) && garbage_part(r, f) >= worth) {
            return f;
        }
    }
    return -1;
}

/* The family whose memtable has the least, but something; -1: none. */
static int least_memtable(rocks *r) {
    uint64_t least = UINT64_MAX;
    int family = -1;
    for (int f = 0; f < FAMILIES; f++) {
        uint64_t bytes = property(r, f, "rocksdb.cur-size-active-mem-table");
        if (property(r, f, "rocksdb.num-entries-active-mem-table") && bytes < least) {
            least = bytes;
            family = f;
        }
    }
    return family;
}

/* If two flushes end at the same moment, each takes the log for still needed by the other. RocksDB then cuts it only when one more flush
 * has ended, and begins none meanwhile although the log grows beyond its limit. */
static void cut_log(rocks *r) {
    uint64_t space, floor;
    int family = store__log_bytes(r) > LOG_EXCESS * r->log_bytes ? least_memtable(r) : -1;
    if (family >= 0 && store__space_read(r->db_path, &space, &floor) && space > SPACE_RESERVE_BYTES) {
        flush_family(r, family, false);
    }
}

/* Looks for a family to merge, and whether to look again: until there was nothing to do after the last write. */
static int look_for_garbage(rocks *r, int64_t now) {
    garbage *g = &r->garbage;
    unsigned writes = atomic_load(&g->writes);
    bool idle = writes == g->writes_seen;
    g->writes_seen = writes;
    g->looked_us = now;
    if (idle) {
        store__memtable_free_spare();
    }
    int family = family_with_garbage(r, idle ? garbage_while_idle : garbage_while_written);
    pthread_mutex_lock(&r->reclaim_lock);
    atomic_store(&g->watched, !idle || family >= 0 || atomic_load(&g->writes) != writes || store__tiers_late(r));
    pthread_mutex_unlock(&r->reclaim_lock);
    return family;
}

int store__garbage_next(rocks *r) {
    int64_t now = store__now_us();
    bool looks = now - r->garbage.looked_us >= GARBAGE_LOOK_US;
    bool fits = now - r->tiers.looked_us >= (store__tiers_late(r) ? LOAD_LOOK_US : GARBAGE_LOOK_US);
    if (!atomic_load(&r->garbage.watched) || (!looks && !fits)) {
        return -1;
    }
    pthread_mutex_unlock(&r->reclaim_lock);
    if (fits) {
        store__tiers_fit(r, now);
    }
    if (looks) {
        cut_log(r);
    }
    int family = looks ? look_for_garbage(r, now) : -1;
    pthread_mutex_lock(&r->reclaim_lock);
    return r->stopping ? -1 : family;
}

/* What came during the merge is for the next one; what else is left was needed. */
static double kept_by_merge(rocks *r, int family, unsigned writes_before) {
    bool is_newer = atomic_load(&r->garbage.writes) != writes_before && property(r, family, "rocksdb.num-snapshots") == 0;
    return is_newer ? 0 : count_entries(r, family).deletes;
}

void store__garbage_merge(rocks *r, int family) {
    int64_t begun = store__now_us();
    unsigned writes = atomic_load(&r->garbage.writes);
    uint64_t before = property(r, family, "rocksdb.live-sst-files-size");
    flush_family(r, family, true);
    if (family == STORE_TERMS || family == STORE_ITEMS) { /* with the items their entries were deleted: in tables these count too */
        store__terms_drain(r);
        store__idle_drop(r, INT64_MAX);
    }
    store__compact(r, family, slice_of(NULL, 0), slice_of(NULL, 0));
    r->garbage.kept[family] = kept_by_merge(r, family, writes);
    r->garbage.looked_us = store__now_us();
    log_info("store", "deleted entries merged away", "dir=%s family=%s bytes_before=%lu bytes=%lu ms=%ld", r->folder.dir,
             store__family_names[family], (unsigned long)before, (unsigned long)property(r, family, "rocksdb.live-sst-files-size"),
             (long)((r->garbage.looked_us - begun) / 1000));
}

/* ---- opening and closing ---- */

bool store__space_compact_due(rocks *r) {
    return r->space.compact && store__now_us() - r->space.compacted_us >= COMPACT_PAUSE_US;
}

bool store__space_has_tiers(const rocks *r) {
    uint64_t space, floor;
    return store__space_read(r->folder.dir, &space, &floor) && floor == SPACE_RESERVE_BYTES &&
           space > SPACE_RESERVE_BYTES + store__tables_bytes(r->db_path);
}

bool store__space_is_low(const char *path) {
    uint64_t space, floor;
    return store__space_read(path, &space, &floor) && space <= reserve_of(floor, store__tables_bytes(path));
}

void store__space_open(rocks *r, bool low) {
    r->space.room = low ? STORE_FREES : STORE_GROWS;
    r->space.no_compactions = r->space.no_tiers = low;
    look(r, store__now_us());
    if (r->space.room != STORE_GROWS) {
        note_all(r);
    }
}

void store__space_close(rocks *r) {
    for (int f = 0; f < STORE_FAMILIES; f++) {
        buf_free(&r->space.deleted[f].from);
        buf_free(&r->space.deleted[f].to);
    }
}
