/* How many sorted sequences a tiered family (rocks_options.c) may have before some of them are merged.
 *
 * A lookup takes 1 to 2 µs in each sequence. But with few of them for much data, the newest large one takes part in every merge of small
 * ones: with four, an entry of 50,000,000 items would be rewritten forty times. With one more for each doubling of the family it is
 * rewritten five times, as tests/unit/store_tiers.c shows:
 *
 *   size of the family, in flushes   up to 31   32   64   128   256   512   1024   2048
 *   sequences                               4    5    6     7     8     9     10     11
 *
 * A flush of the tail writes about a third of its bytes, because tables are compressed; memtables are flushed at a similar size. */
#include <stdio.h>

#include "base/log.h"
#include "store/rocks_int.h"

enum {
    TIERS_LEAST = 4,
    FLUSHES_FEW = 16, /* up to twice as many flushes, TIERS_LEAST are enough */
    TAIL_COMPRESSION = 3,
    FIT_US = 1000 * 1000, /* time between looks at the sizes */
};

static const char sequences_option[] = "level0_file_num_compaction_trigger"; /* all sequences of a tiered family count */

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

static void fit_family(rocks *r, int family) {
    uint64_t bytes = 0;
    rocksdb_property_int_cf(r->db, r->families[family], "rocksdb.live-sst-files-size", &bytes);
    int wanted = store__tiers_of(r, bytes);
    if (!differs(r->tiers[family], wanted)) {
        return;
    }
    char text[16], *message = NULL;
    const char *name[] = {sequences_option}, *value[] = {text};
    snprintf(text, sizeof text, "%d", wanted);
    rocksdb_set_options_cf(r->db, r->families[family], 1, name, value, &message);
    store__classify(message, "changing options failed");
    r->tiers[family] = wanted; /* also after a failure, which is not worth repeating every second */
}

void store__tiers_fit(rocks *r, int64_t now_us) {
    if (r->tiers_fitted_us && now_us - r->tiers_fitted_us < FIT_US) {
        return;
    }
    r->tiers_fitted_us = now_us;
    for (int f = 0; f < FAMILIES; f++) {
        if (store__is_tiered(r, f)) {
            fit_family(r, f);
        }
    }
}
