/* long.c — which lists of entries are known to be long.
 *
 * To find the demand with the fewest entries, the others are read as far as the best one goes, only to learn that they are not shorter. A
 * condition such as a kind or a label is read so again and again, with every value of the other condition. So it is remembered how many
 * entries a list had at least, and for the next 32 times it counts as read that far, without being read. Entries that were removed
 * meanwhile are not noticed until then: a choice of the second best demand costs time, and changes no result.
 *
 * Lists are known by a hash: two with the same hash share what is known of them. */
#include "base/hash.h"
#include "find/find_int.h"

enum { SLOTS = 4096, USES = 32, LEAST_MAX = 0xFFFF };

/* hash 40 bits · least 16 bits · uses 8 bits; 0: nothing is known */
static atomic_uint_fast64_t slots[SLOTS];

static uint64_t hash_of(const find__finder *f, const find_span *span) {
    const item_view *v = f->view;
    uint64_t of = (uintptr_t)v->index;
    of = of * 31 + (v->partition ? hash_bytes(epk_view(&v->partition->epk), 1) : v->range->segment);
    return hash_bytes(span->from, of * 31 + span->path);
}

static uint64_t least_of(uint64_t known) {
    return known >> 8 & LEAST_MAX;
}

bool find__is_long(find__finder *f, const find_demand *d, size_t n) {
    if (!find_is_point(d)) {
        return false;
    }
    uint64_t hash = hash_of(f, &d->spans[0]), known = atomic_load_explicit(&slots[hash % SLOTS], memory_order_relaxed);
    if (known >> 24 != hash >> 24 || least_of(known) < n || (known & 0xFF) >= USES) {
        return false;
    }
    atomic_store_explicit(&slots[hash % SLOTS], known + 1, memory_order_relaxed); /* a lost update does no harm */
    f->access->report.entries += n;
    return true;
}

void find__note_long(find__finder *f, const find_demand *d, size_t n) {
    if (find_is_point(d)) {
        uint64_t hash = hash_of(f, &d->spans[0]), least = n < LEAST_MAX ? n : LEAST_MAX;
        atomic_store_explicit(&slots[hash % SLOTS], hash >> 24 << 24 | least << 8, memory_order_relaxed);
    }
}
