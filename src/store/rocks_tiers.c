/* How many sorted sequences a tiered family (rocks_options.c) may have before some of them are merged.
 *
 * A lookup takes 1 to 2 µs in each sequence. But with few of them for much data, the newest large one takes part in every merge of small
 * ones: with four, an entry of 50,000,000 items would be rewritten forty times. With one more for each doubling of the family it is
 * rewritten five times, as tests/unit/store_tiers.c shows:
 *
 *   size of the family, in flushes   up to 31   32   64   128   256   512   1024   2048
 *   sequences                               4    5    6     7     8     9     10     11
 *
 * A flush of the tail writes about a third of its bytes, because tables are compressed; memtables are flushed at a similar size.
 *
 * While items are loaded and index entries are hardly read, these merge later, and only sequences of similar size: some thirty at once.
 * An entry is written 1.7 times in place of 4.0 in 1,000,000 items, 2.3 in place of 4.5 in 10,000,000. When the load ends, the family
 * merges to its usual number. Small keys do not merge later, because each create looks for some. A new folder begins as if items were
 * loaded. */
#include <stdio.h>

#include "base/log.h"
#include "store/rocks_int.h"

enum {
    TIERS_LEAST = 4,
    FLUSHES_WAITING = 2,
    FLUSHES_FEW = 16, /* up to twice as many flushes, TIERS_LEAST are enough */
    TAIL_COMPRESSION = 3,
    TIERS_LOADING = 32,
    LOAD_FLUSH_S = 10,               /* loading: the tail is flushed at least so often */
    LOAD_SCANS_S = 100,              /* … and fewer scans of index entries begin in a second */
    LOAD_PAUSE_US = 4 * 1000 * 1000, /* a load that pauses for longer has ended */
    FIT_BYTES = 64 << 20,            /* free space without which options are not changed, since RocksDB writes them to a file */
};

/* RocksDB's rules of merging, from the newest sequences on. */
typedef struct tier_rules {
    int stop;    /* how far a merge goes: while the next sequence is like its neighbour, or no larger than all newer ones together */
    int ratio;   /* … give or take so many per cent */
    int width;   /* so many are merged at least */
    int garbage; /* everything is merged if the newer sequences have so many per cent of the oldest one's size */
} tier_rules;

/* Small keys are overwritten. Index entries are deleted, and many deletions are merged away (rocks_space.c). */
static const tier_rules usual = {rocksdb_total_size_compaction_stop_style, 20, 3, 100};
static const tier_rules usual_terms = {rocksdb_total_size_compaction_stop_style, 20, 3, 300};
static const tier_rules loading = {rocksdb_similar_size_compaction_stop_style, 100, 3, 400};

static const tier_rules *rules_of(int family, int sequences) {
    return sequences == TIERS_LOADING ? &loading : family == STORE_TERMS ? &usual_terms : &usual;
}

int store__tiers_of(const rocks *r, uint64_t bytes) {
    uint64_t few = (uint64_t)r->tail_bytes / TAIL_COMPRESSION * FLUSHES_FEW;
    int tiers = TIERS_LEAST;
    for (uint64_t size = bytes / 2; size >= few && few; size /= 2) {
        tiers++;
    }
    return tiers;
}

/* One step back and forth between two numbers is not worth a change, because RocksDB writes a file of options for each. */
static bool differs(int now, int wanted) {
    return wanted > now || wanted < now - 1;
}

/* The log of runs is about as short as tables. */
bool store__tiers_loading(rocks *r, int64_t now_us) {
    tiers *t = &r->tiers;
    uint64_t logged = atomic_load_explicit(&r->written.logged[FAMILY_RUNS], memory_order_relaxed), scans = atomic_load(&t->scans);
    double seconds = (double)(now_us - t->looked_us) / 1e6, flush = (double)r->tail_bytes / TAIL_COMPRESSION;
    bool first = t->looked_us == 0;
    bool fast = (double)(logged - t->logged_seen) * LOAD_FLUSH_S >= flush * seconds;
    bool read = (double)(scans - t->scans_seen) >= LOAD_SCANS_S * seconds;
    t->looked_us = now_us;
    t->logged_seen = logged;
    t->scans_seen = scans;
    t->fast_us = fast && !first ? now_us : t->fast_us;
    return t->fast_us && now_us - t->fast_us < LOAD_PAUSE_US && !read;
}

bool store__tiers_late(const rocks *r) {
    return r->tiers.now[STORE_TERMS] == TIERS_LOADING;
}

static int sequences_of(const rocks *r, int family, uint64_t bytes, bool loads) {
    int tiers = store__tiers_of(r, bytes);
    return loads && family == STORE_TERMS && tiers < TIERS_LOADING ? TIERS_LOADING : tiers;
}

static void fit_family(rocks *r, int family, bool loads) {
    uint64_t bytes = 0;
    rocksdb_property_int_cf(r->db, r->families[family], "rocksdb.live-sst-files-size", &bytes);
    int wanted = sequences_of(r, family, bytes, loads);
    if (!differs(r->tiers.now[family], wanted)) {
        return;
    }
    const tier_rules *rules = rules_of(family, wanted);
    char sequences[16], merging[160], *message = NULL;
    const char *name[] = {"level0_file_num_compaction_trigger", "compaction_options_universal"}, *value[] = {sequences, merging};
    snprintf(sequences, sizeof sequences, "%d", wanted);
    snprintf(merging, sizeof merging, "{stop_style=%s;size_ratio=%d;min_merge_width=%d;max_size_amplification_percent=%d}",
             rules == &loading ? "kCompactionStopStyleSimilarSize" : "kCompactionStopStyleTotalSize", rules->ratio, rules->width,
             rules->garbage);
    rocksdb_set_options_cf(r->db, r->families[family], 2, name, value, &message);
    store__classify(message, "changing options failed");
    r->tiers.now[family] = wanted; /* also after a failure, which is not worth repeating every time */
}

void store__tiers_begin(rocks *r, rocksdb_options_t *o, int family, uint64_t bytes) {
    int sequences = sequences_of(r, family, bytes, bytes == 0);
    const tier_rules *rules = rules_of(family, sequences);
    rocksdb_universal_compaction_options_t *merging = rocksdb_universal_compaction_options_create();
    rocksdb_universal_compaction_options_set_stop_style(merging, rules->stop);
    rocksdb_universal_compaction_options_set_size_ratio(merging, rules->ratio);
    rocksdb_universal_compaction_options_set_min_merge_width(merging, rules->width);
    rocksdb_universal_compaction_options_set_max_size_amplification_percent(merging, rules->garbage);
    rocksdb_options_set_universal_compaction_options(o, merging);
    rocksdb_universal_compaction_options_destroy(merging);
    rocksdb_options_set_level0_file_num_compaction_trigger(o, sequences); /* all sequences of a tiered family count */
    r->tiers.now[family] = sequences;
}

void store__tiers_fit(rocks *r, int64_t now_us) {
    uint64_t space, floor;
    bool first = r->tiers.looked_us == 0, loads = store__tiers_loading(r, now_us);
    if (!store__space_read(r->db_path, &space, &floor) || space < FIT_BYTES) {
        return;
    }
    for (int f = 0; f < FAMILIES; f++) {
        if (store__is_tiered(r, f) && !(first && f == STORE_TERMS)) {
            fit_family(r, f, loads);
        }
    }
}

static uint64_t property(rocks *r, int family, const char *name) {
    uint64_t value = 0;
    return rocksdb_property_int_cf(r->db, r->families[family], name, &value) == 0 ? value : 0;
}

/* RocksDB delays or stops writes if tables are merged, or memtables are flushed, more slowly than data comes. Before it stops them for lack
 * of memtables, more than one waits for its flush. */
bool store__is_behind(store *s) {
    rocks *r = (rocks *)s;
    bool behind =
        property(r, STORE_ITEMS, "rocksdb.actual-delayed-write-rate") > 0 || property(r, STORE_ITEMS, "rocksdb.is-write-stopped") > 0;
    for (int f = 0; f < FAMILIES && !behind; f++) {
        behind = property(r, f, "rocksdb.num-immutable-mem-table") >= FLUSHES_WAITING;
    }
    return behind;
}
