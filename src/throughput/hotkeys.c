/* hotkeys.c — by RU: filtered space-saving (Homem and Carvalho, 2010). COUNTERS keys have a counter each; all others share CELLS counters
 * ("cells") by hash. If a key's cell would exceed the smallest counter, the key takes over that counter, and the key that had it moves its
 * count to its cell. So a long tail of rarely used keys stays in the cells, which are many and hence small.
 *
 * Sampling: imagine all RU spent as a line, with requests as consecutive pieces. Marks are set on the line at random, about `step` apart,
 * and the request that covers a mark is credited with the distance from the previous mark. A key's chance grows with its spending, and the
 * credits add up to all RU spent. `step` is adjusted every second, or after SAMPLES_MOST samples. */
#include "throughput/hotkeys.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
    COUNTERS = 64,
    CELLS = 1024,
    SIZES = 32,  /* more than HOTKEYS_TOP, since some may shrink */
    FILTER = 16, /* words of 64 bits; far more bits than SIZES */
    SAMPLES_MOST = 1000,
    MINUTES_FORGOTTEN = 60, /* after this many halvings a count is 0 */
};

static const int64_t SECOND = 1000000000;
static const int64_t MINUTE = 60 * SECOND;
static const double MICRO = 1e6;
static const double COUNT_LEAST = 0.01; /* RU; smaller counts are dropped */

typedef struct label {
    uint8_t n;
    char text[HOTKEY_TEXT_MAX];
} label;

typedef struct keys_by_ru {
    pthread_mutex_t lock;
    bool started;
    int64_t halved_ns;
    double weight_s; /* seconds that the counts represent at `halved_ns`; halved together with the counts */
    size_t n;
    uint64_t hashes[COUNTERS];
    double counts[COUNTERS];
    float cells[CELLS];
    label labels[COUNTERS];
    /* sampling */
    uint64_t random;
    double step; /* mean distance of marks in RU; 0: every request is counted */
    int64_t tuned_ns;
    unsigned samples;
    double sampled_ru, sampled_requests; /* totals that the samples represent */
} keys_by_ru;

typedef struct keys_by_size {
    pthread_mutex_t lock;
    bool seeded;
    size_t n;
    uint64_t hashes[SIZES];
    uint64_t bytes[SIZES];
    label labels[SIZES];
} keys_by_size;

struct hotkeys {
    _Atomic uint64_t pending;        /* micro-RU spent since the last mark */
    _Atomic uint64_t mark;           /* distance of the next mark from the last, in micro-RU */
    _Atomic uint64_t gone;           /* hash of a deleted partition still to be removed; 0: none */
    _Atomic uint64_t least;          /* smallest size in the list; 0 while the list is not full */
    _Atomic uint64_t filter[FILTER]; /* Bloom filter of the keys in the list */
    _Atomic uint64_t left_out;       /* largest size that is not in the list, since creation or the last start of seeding */
    keys_by_ru ru;
    keys_by_size size;
};

hotkeys *hotkeys_new(void) {
    hotkeys *h = mem_zero(sizeof *h);
    pthread_mutex_init(&h->ru.lock, NULL);
    pthread_mutex_init(&h->size.lock, NULL);
    h->ru.random = 88172645463325252u; /* any value but 0; constant, so that runs are reproducible */
    return h;
}

void hotkeys_free(hotkeys *h) {
    if (h) {
        pthread_mutex_destroy(&h->ru.lock);
        pthread_mutex_destroy(&h->size.lock);
        free(h);
    }
}

static void write_label(label *l, hotkey_text text, const void *key) {
    size_t n = text(key, l->text, sizeof l->text);
    l->n = (uint8_t)(n < sizeof l->text ? n : sizeof l->text);
}

/* The index of a hash, or `n`. */
static size_t find(const uint64_t *hashes, size_t n, uint64_t hash) {
    size_t i = 0;
    while (i < n && hashes[i] != hash) {
        i++;
    }
    return i;
}

/* Halving */

static void scale_counts(keys_by_ru *k, double factor) {
    for (unsigned i = 0; i < CELLS; i++) {
        k->cells[i] *= (float)factor;
    }
    size_t left = 0;
    for (size_t i = 0; i < k->n; i++) {
        double count = k->counts[i] * factor;
        if (count >= COUNT_LEAST) {
            k->counts[left] = count;
            k->hashes[left] = k->hashes[i];
            k->labels[left] = k->labels[i];
            left++;
        }
    }
    k->n = left;
}

static void halve_if_due(keys_by_ru *k, int64_t now) {
    if (!k->started) {
        k->started = true;
        k->halved_ns = k->tuned_ns = now;
    }
    int64_t minutes = (now - k->halved_ns) / MINUTE;
    if (minutes <= 0) {
        return;
    }
    double factor = minutes < MINUTES_FORGOTTEN ? ldexp(1, -(int)minutes) : 0;
    scale_counts(k, factor);
    k->weight_s = 60 + (k->weight_s - 60) * factor; /* equals `weight = (weight + 60) / 2` repeated `minutes` times */
    k->halved_ns += minutes * MINUTE;
}

/* Sampling */

/* Uniform, 0 to 1 (xorshift64*). */
static double chance(keys_by_ru *k) {
    k->random ^= k->random >> 12;
    k->random ^= k->random << 25;
    k->random ^= k->random >> 27;
    return (double)((k->random * 2685821657736338717u) >> 11) * 0x1p-53;
}

static void tune(keys_by_ru *k, int64_t now) {
    double seconds = fmax((double)(now - k->tuned_ns) / (double)SECOND, 1e-3);
    bool many = k->sampled_requests / seconds > SAMPLES_MOST;
    k->step = many ? k->sampled_ru / seconds / SAMPLES_MOST : 0;
    k->tuned_ns = now;
    k->samples = 0;
    k->sampled_ru = k->sampled_requests = 0;
}

/* The credit, in RU, of the request that covers a mark; the rest of the pending RU is left for the next sample. */
static double take_credit(hotkeys *h, keys_by_ru *k) {
    double pending = (double)atomic_exchange_explicit(&h->pending, 0, memory_order_relaxed);
    double credit = pending;
    if (k->step > 0) {
        double step = k->step * MICRO, mark = (double)atomic_load_explicit(&h->mark, memory_order_relaxed);
        credit = fmin(mark, pending);
        credit += floor((pending - credit) / step) * step; /* a large request may cover several marks */
        uint64_t rest = (uint64_t)fmax(pending - credit, 0);
        atomic_fetch_add_explicit(&h->pending, rest, memory_order_relaxed);
    }
    return credit / MICRO;
}

static void set_next_mark(hotkeys *h, keys_by_ru *k, double credit, double ru, int64_t now) {
    k->samples++;
    k->sampled_ru += credit;
    k->sampled_requests += credit / ru;
    if (k->samples >= SAMPLES_MOST || now - k->tuned_ns >= SECOND) {
        tune(k, now);
    }
    atomic_store_explicit(&h->mark, (uint64_t)(k->step * MICRO * (0.5 + chance(k))), memory_order_relaxed);
}

/* Counting */

static float *cell_of(keys_by_ru *k, uint64_t hash) {
    return &k->cells[(hash * 0x9e3779b97f4a7c15u) >> 54];
}

static size_t smallest(const keys_by_ru *k) {
    size_t least = 0;
    for (size_t i = 1; i < k->n; i++) {
        least = k->counts[i] < k->counts[least] ? i : least;
    }
    return least;
}

static void count(keys_by_ru *k, uint64_t hash, double ru, hotkey_text text, const void *key) {
    size_t i = find(k->hashes, k->n, hash);
    if (i < k->n) {
        k->counts[i] += ru;
        return;
    }
    float *cell = cell_of(k, hash);
    double with_cell = (double)*cell + ru;
    if (k->n < COUNTERS) {
        k->n++;
    } else {
        i = smallest(k);
        if (with_cell <= k->counts[i]) {
            *cell = (float)with_cell;
            return;
        }
        *cell_of(k, k->hashes[i]) = (float)k->counts[i];
    }
    k->hashes[i] = hash;
    k->counts[i] = with_cell;
    write_label(&k->labels[i], text, key);
}

_Static_assert(CELLS == 1 << (64 - 54), "cell_of takes the top bits");

void hotkeys_spent(hotkeys *h, uint64_t hash, double ru, int64_t now_ns, hotkey_text text, const void *key) {
    uint64_t micro = ru > 0 ? (uint64_t)(fmin(ru, 1e9) * MICRO) : 0;
    uint64_t pending = micro + atomic_fetch_add_explicit(&h->pending, micro, memory_order_relaxed);
    if (micro == 0 || pending < atomic_load_explicit(&h->mark, memory_order_relaxed) || pthread_mutex_trylock(&h->ru.lock)) {
        return;
    }
    keys_by_ru *k = &h->ru;
    halve_if_due(k, now_ns);
    double credit = take_credit(h, k);
    if (credit > 0) { /* otherwise another thread has just taken it */
        count(k, hash, credit, text, key);
        set_next_mark(h, k, credit, (double)micro / MICRO, now_ns);
    }
    pthread_mutex_unlock(&k->lock);
}

static size_t text_of_known(const void *key, char *into, size_t max) {
    const hotkey *known = key;
    size_t n = known->text_n < max ? known->text_n : max;
    memcpy(into, known->text, n);
    return n;
}

/* Copies the time base too: the counts represent the same seconds in both sketches, so rates stay the same. */
void hotkeys_inherit(hotkeys *to, hotkeys *from, int64_t now_ns, bool (*belongs)(void *context, const hotkey *key), void *context) {
    keys_by_ru *old = &from->ru, *new = &to->ru;
    pthread_mutex_lock(&old->lock);
    pthread_mutex_lock(&new->lock);
    halve_if_due(old, now_ns);
    if (!new->started) {
        new->started = true;
        new->halved_ns = old->halved_ns;
        new->tuned_ns = now_ns;
        new->weight_s = old->weight_s;
    }
    for (size_t i = 0; i < old->n; i++) {
        hotkey key = {.hash = old->hashes[i], .text_n = old->labels[i].n, .value = old->counts[i]};
        memcpy(key.text, old->labels[i].text, key.text_n);
        if (belongs(context, &key)) {
            count(new, key.hash, key.value, text_of_known, &key);
        }
    }
    pthread_mutex_unlock(&new->lock);
    pthread_mutex_unlock(&old->lock);
}

/* Sizes */

static unsigned bit_of(uint64_t hash) {
    return (unsigned)((hash * 0x9e3779b97f4a7c15u) >> 54); /* below FILTER * 64 */
}

_Static_assert(FILTER * 64 == 1 << (64 - 54), "bit_of takes the top bits");

static bool may_be_listed(const hotkeys *h, uint64_t hash) {
    unsigned bit = bit_of(hash);
    return atomic_load_explicit(&h->filter[bit / 64], memory_order_relaxed) >> bit % 64 & 1;
}

/* Rebuilds the filter after keys were added or removed. Bits of keys that stay are never cleared in between. */
static void note_keys(hotkeys *h) {
    const keys_by_size *k = &h->size;
    uint64_t words[FILTER] = {0};
    for (size_t i = 0; i < k->n; i++) {
        unsigned bit = bit_of(k->hashes[i]);
        words[bit / 64] |= (uint64_t)1 << bit % 64;
    }
    for (unsigned i = 0; i < FILTER; i++) {
        atomic_store_explicit(&h->filter[i], words[i], memory_order_relaxed);
    }
}

static size_t smallest_size(const keys_by_size *k) {
    size_t least = 0;
    for (size_t i = 1; i < k->n; i++) {
        least = k->bytes[i] < k->bytes[least] ? i : least;
    }
    return least;
}

static void note_least(hotkeys *h) {
    const keys_by_size *k = &h->size;
    atomic_store_explicit(&h->least, k->n == SIZES ? k->bytes[smallest_size(k)] : 0, memory_order_relaxed);
}

static void remove_size(hotkeys *h, uint64_t hash) {
    keys_by_size *k = &h->size;
    size_t i = find(k->hashes, k->n, hash);
    if (i < k->n) {
        k->n--;
        k->hashes[i] = k->hashes[k->n];
        k->bytes[i] = k->bytes[k->n];
        k->labels[i] = k->labels[k->n];
        note_keys(h);
        note_least(h);
    }
}

static void leave_out(hotkeys *h, uint64_t bytes) {
    uint64_t most = atomic_load_explicit(&h->left_out, memory_order_relaxed);
    while (bytes > most && !atomic_compare_exchange_weak_explicit(&h->left_out, &most, bytes, memory_order_relaxed, memory_order_relaxed)) {
    }
}

static void note_size(hotkeys *h, uint64_t hash, uint64_t bytes, hotkey_text text, const void *key) {
    keys_by_size *k = &h->size;
    size_t i = find(k->hashes, k->n, hash);
    if (i == k->n) {
        if (k->n < SIZES) {
            k->n++;
        } else {
            i = smallest_size(k);
            bool larger = bytes > k->bytes[i];
            leave_out(h, larger ? k->bytes[i] : bytes);
            if (!larger) {
                return;
            }
        }
        k->hashes[i] = hash;
        write_label(&k->labels[i], text, key);
        note_keys(h);
    }
    k->bytes[i] = bytes;
    note_least(h);
}

static void remove_missed(hotkeys *h) {
    uint64_t gone = atomic_load_explicit(&h->gone, memory_order_relaxed);
    if (gone) {
        atomic_store_explicit(&h->gone, 0, memory_order_relaxed);
        remove_size(h, gone);
    }
}

/* The fast path covers most partitions: not in the list, and too small for it. */
void hotkeys_size(hotkeys *h, uint64_t hash, uint64_t bytes, hotkey_text text, const void *key) {
    if (bytes <= atomic_load_explicit(&h->least, memory_order_relaxed) && !may_be_listed(h, hash)) {
        leave_out(h, bytes);
        return;
    }
    if (pthread_mutex_trylock(&h->size.lock)) {
        if (bytes == 0) { /* remember it, since no later write may report it; if two are missed at once, which is rare, the first is lost */
            atomic_store_explicit(&h->gone, hash, memory_order_relaxed);
        }
        leave_out(h, bytes);
        return;
    }
    remove_missed(h);
    if (bytes) {
        note_size(h, hash, bytes, text, key);
    } else {
        remove_size(h, hash);
    }
    pthread_mutex_unlock(&h->size.lock);
}

void hotkeys_seed_start(hotkeys *h) {
    pthread_mutex_lock(&h->size.lock);
    h->size.seeded = false;
    atomic_store_explicit(&h->left_out, 0, memory_order_relaxed);
    pthread_mutex_unlock(&h->size.lock);
}

void hotkeys_seed(hotkeys *h, uint64_t hash, uint64_t bytes, hotkey_text text, const void *key) {
    pthread_mutex_lock(&h->size.lock);
    note_size(h, hash, bytes, text, key);
    pthread_mutex_unlock(&h->size.lock);
}

void hotkeys_seed_end(hotkeys *h) {
    pthread_mutex_lock(&h->size.lock);
    h->size.seeded = true;
    pthread_mutex_unlock(&h->size.lock);
}

/* Reading */

static void add_hotkey(hotkey top[HOTKEYS_TOP], size_t *n, uint64_t hash, double value, const label *l) {
    size_t at = *n;
    while (at > 0 && top[at - 1].value < value) {
        at--;
    }
    if (at == HOTKEYS_TOP) {
        return;
    }
    *n += *n < HOTKEYS_TOP;
    memmove(&top[at + 1], &top[at], (*n - at - 1) * sizeof *top);
    top[at] = (hotkey){.hash = hash, .value = value, .text_n = l->n};
    memcpy(top[at].text, l->text, l->n);
}

size_t hotkeys_top_by_ru(hotkeys *h, int64_t now_ns, hotkey top[HOTKEYS_TOP]) {
    keys_by_ru *k = &h->ru;
    size_t n = 0;
    pthread_mutex_lock(&k->lock);
    halve_if_due(k, now_ns);
    double seconds = fmax(k->weight_s + (double)(now_ns - k->halved_ns) / (double)SECOND, 1);
    for (size_t i = 0; i < k->n; i++) {
        add_hotkey(top, &n, k->hashes[i], k->counts[i] / seconds, &k->labels[i]);
    }
    pthread_mutex_unlock(&k->lock);
    return n;
}

size_t hotkeys_top_by_size(hotkeys *h, hotkey top[HOTKEYS_TOP]) {
    keys_by_size *k = &h->size;
    size_t n = 0;
    pthread_mutex_lock(&k->lock);
    remove_missed(h);
    for (size_t i = 0; i < k->n; i++) {
        add_hotkey(top, &n, k->hashes[i], (double)k->bytes[i], &k->labels[i]);
    }
    pthread_mutex_unlock(&k->lock);
    return n;
}

bool hotkeys_sizes_known(hotkeys *h) {
    hotkey top[HOTKEYS_TOP];
    size_t n = hotkeys_top_by_size(h, top);
    double left_out = (double)atomic_load_explicit(&h->left_out, memory_order_relaxed);
    pthread_mutex_lock(&h->size.lock);
    bool seeded = h->size.seeded;
    pthread_mutex_unlock(&h->size.lock);
    return seeded && (n == HOTKEYS_TOP ? top[n - 1].value >= left_out : !(left_out > 0));
}
