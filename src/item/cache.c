/* The cache has shards with a lock each. A shard is a chained hash table whose entries also form a ring for clock eviction: the hand spares
 * an entry once if it was used since the hand last passed. */
#include "item/cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"

enum {
    SHARDS = 64,
    STRIPES = 4096,
    BUCKETS_MIN = 64,
    NOTES_MIN = 64,
    NOTES_SIDE_BY_SIDE = 4,
    LINE_BYTES = 64,
    LINES_AHEAD = 4,
    BYTES_PER_NOTE = 512,
    ITEM_BYTES_MAX = 64 * 1024, /* larger items are left to RocksDB's cache */
    MALLOC_BYTES = 16,
};

/* The entry of a shard and the item in one block, so that a lookup touches little memory. The shard's lock protects the links and `used`.
 */
struct cached_item {
    cached_item *chain;
    uint64_t hash;
    item_place place;
    atomic_uint refs; /* the shard's is one of them */
    bool used;
    uint32_t key_bytes, value_bytes;
    cached_item *ring_next, *ring_before;
    char bytes[]; /* the key, then the value */
};

typedef struct shard {
    pthread_mutex_t lock;
    cached_item **buckets;
    size_t buckets_n, entries_n;
    cached_item *hand;
    size_t bytes;
} shard;

/* Protected by the lock of the key's shard: all keys of a stripe are in the same shard. */
typedef struct stripe {
    uint64_t version; /* number of the last change of one of its keys */
    uint32_t blocked;
} stripe;

/* Maps the place with this number to its primary key, by the key's hash. Lossy: another place may overwrite the note. */
typedef struct note {
    atomic_uint_fast64_t number, hash;
} note;

/* A key that the current group writes. */
typedef struct written_key {
    uint64_t hash;
    item_place place;
    slice key;   /* in the batch's arena, as is the value */
    slice value; /* the item in the batch; empty: removed */
} written_key;

struct item_cache {
    commit_hook hook;
    size_t shard_bytes_max;
    uint64_t secrets[2]; /* for the hash function */
    shard shards[SHARDS];
    stripe stripes[STRIPES];
    note *notes;
    uint64_t notes_mask;
    atomic_uint_fast64_t changes; /* numbers changes of keys, which are counted when their write has ended */
    written_key *written;         /* owned by the committer */
    size_t written_n, written_cap;
};

static inline uint64_t mix(const item_cache *c, uint64_t h, uint64_t word) {
    __uint128_t product = (__uint128_t)(h ^ c->secrets[0]) * (word ^ c->secrets[1]);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Clients choose ids: without a secret, a client could put all its items into one bucket and slow down others in the shard. */
static uint64_t hash_of(const item_cache *c, slice key) {
    uint64_t h = key.n;
    const char *p = key.p;
    size_t n = key.n;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = mix(c, h, word);
    }
    uint64_t rest = 0;
    memcpy(&rest, p, n);
    return mix(c, h, rest);
}

static shard *shard_of(item_cache *c, uint64_t hash) {
    return &c->shards[hash % SHARDS];
}

static stripe *stripe_of(item_cache *c, uint64_t hash) {
    return &c->stripes[hash % STRIPES]; /* SHARDS divides STRIPES, so a stripe lies in one shard */
}

static cached_item **bucket_of(shard *s, uint64_t hash) {
    return &s->buckets[(hash / SHARDS) & (s->buckets_n - 1)];
}

/* ---- items ---- */

void cached_item_give(const cached_item *item) {
    cached_item *own = (cached_item *)(uintptr_t)item;
    if (atomic_fetch_sub_explicit(&own->refs, 1, memory_order_acq_rel) == 1) {
        free(own);
    }
}

slice cached_item_key(const cached_item *item) {
    return slice_of(item->bytes, item->key_bytes);
}

slice cached_item_value(const cached_item *item) {
    return slice_of(item->bytes + item->key_bytes, item->value_bytes);
}

item_place cached_item_place(const cached_item *item) {
    return item->place;
}

static cached_item *item_make(uint64_t hash, slice key, slice value, item_place place) {
    cached_item *item = mem_alloc(sizeof *item + key.n + value.n);
    *item = (cached_item){.hash = hash, .place = place, .refs = 1, .key_bytes = (uint32_t)key.n, .value_bytes = (uint32_t)value.n};
    memcpy(item->bytes, key.p, key.n);
    memcpy(item->bytes + key.n, value.p, value.n);
    return item;
}

/* ---- entries, under the shard's lock ---- */

static size_t cost_of(const cached_item *e) {
    return sizeof *e + e->key_bytes + e->value_bytes + MALLOC_BYTES + 2 * sizeof(cached_item *); /* of its buckets */
}

static cached_item *find(shard *s, uint64_t hash, slice key) {
    for (cached_item *e = *bucket_of(s, hash); e; e = e->chain) {
        if (e->hash == hash && slice_eq(slice_of(e->bytes, e->key_bytes), key)) {
            return e;
        }
    }
    return NULL;
}

static void drop(shard *s, cached_item *e) {
    cached_item **link = bucket_of(s, e->hash);
    while (*link != e) {
        link = &(*link)->chain;
    }
    *link = e->chain;
    if (s->hand == e) {
        s->hand = e->ring_next == e ? NULL : e->ring_next;
    }
    e->ring_before->ring_next = e->ring_next;
    e->ring_next->ring_before = e->ring_before;
    s->bytes -= cost_of(e);
    s->entries_n--;
    cached_item_give(e);
}

static void drop_hash(shard *s, uint64_t hash) {
    for (cached_item *e = *bucket_of(s, hash), *next; e; e = next) {
        next = e->chain;
        if (e->hash == hash) {
            drop(s, e);
        }
    }
}

static void make_room(shard *s, size_t bytes_max) {
    while (s->bytes > bytes_max && s->hand) {
        cached_item *e = s->hand;
        s->hand = e->ring_next;
        if (e->used) {
            e->used = false;
        } else {
            drop(s, e);
        }
    }
}

static void grow(shard *s) {
    size_t before = s->buckets_n;
    cached_item **old = s->buckets;
    s->buckets_n = before ? before * 2 : BUCKETS_MIN;
    s->buckets = mem_zero(s->buckets_n * sizeof *s->buckets);
    for (size_t i = 0; i < before; i++) {
        for (cached_item *e = old[i], *next; e; e = next) {
            next = e->chain;
            cached_item **bucket = bucket_of(s, e->hash);
            e->chain = *bucket;
            *bucket = e;
        }
    }
    free(old);
}

static void link_entry(shard *s, cached_item *e) {
    if (s->entries_n >= s->buckets_n) {
        grow(s);
    }
    cached_item **bucket = bucket_of(s, e->hash);
    e->chain = *bucket;
    *bucket = e;
    if (s->hand) { /* just behind the hand, which reaches it last */
        e->ring_next = s->hand;
        e->ring_before = s->hand->ring_before;
        e->ring_before->ring_next = e;
        s->hand->ring_before = e;
    } else {
        s->hand = e->ring_next = e->ring_before = e;
    }
    s->entries_n++;
    s->bytes += cost_of(e);
}

/* Numbers that follow each other share a line of the processor's cache: such items are often read together. */
static note *note_of(item_cache *c, item_place place) {
    uint64_t mixed = (place.number / NOTES_SIDE_BY_SIDE ^ (uint64_t)place.segment << 40) * 0x9E3779B97F4A7C15u;
    uint64_t first = (mixed >> 20) * NOTES_SIDE_BY_SIDE;
    return &c->notes[(first + place.number % NOTES_SIDE_BY_SIDE) & c->notes_mask];
}

/* Takes ownership of `e` (may be NULL). An existing entry of the same key stays. */
static void add(item_cache *c, shard *s, cached_item *e) {
    if (e && s->buckets_n && find(s, e->hash, slice_of(e->bytes, e->key_bytes))) {
        cached_item_give(e);
    } else if (e) {
        note *n = note_of(c, e->place);
        atomic_store_explicit(&n->number, e->place.number, memory_order_relaxed);
        atomic_store_explicit(&n->hash, e->hash, memory_order_relaxed);
        link_entry(s, e);
        make_room(s, c->shard_bytes_max);
    }
}

/* ---- reading and adding ---- */

const cached_item *item_cache_take(item_cache *c, slice primary_key, cache_ticket *ticket_out) {
    uint64_t hash = hash_of(c, primary_key);
    shard *s = shard_of(c, hash);
    cached_item *item = NULL;
    pthread_mutex_lock(&s->lock);
    cached_item *e = s->buckets_n ? find(s, hash, primary_key) : NULL;
    if (e) {
        e->used = true;
        item = e;
        atomic_fetch_add_explicit(&item->refs, 1, memory_order_relaxed);
    }
    *ticket_out = (cache_ticket){hash, stripe_of(c, hash)->version};
    pthread_mutex_unlock(&s->lock);
    return item;
}

/* Adds the item unless its stripe's version is outside of [from, to]. */
static void add_unchanged(item_cache *c, uint64_t hash, uint64_t from, uint64_t to, slice primary_key, slice value, item_place place) {
    if (value.n > ITEM_BYTES_MAX) {
        return;
    }
    cached_item *e = item_make(hash, primary_key, value, place);
    shard *s = shard_of(c, hash);
    pthread_mutex_lock(&s->lock);
    const stripe *t = stripe_of(c, hash);
    bool unchanged = !t->blocked && t->version >= from && t->version <= to;
    if (unchanged) {
        add(c, s, e);
    }
    pthread_mutex_unlock(&s->lock);
    if (!unchanged) {
        cached_item_give(e);
    }
}

void item_cache_add(item_cache *c, const cache_ticket *ticket, slice primary_key, slice value, item_place place) {
    add_unchanged(c, ticket->hash, ticket->version, ticket->version, primary_key, value, place);
}

uint64_t item_cache_now(const item_cache *c) {
    return atomic_load_explicit(&c->changes, memory_order_acquire);
}

void item_cache_add_of(item_cache *c, uint64_t now, slice primary_key, slice value, item_place place) {
    add_unchanged(c, hash_of(c, primary_key), 0, now, primary_key, value, place);
}

/* ---- by place ---- */

/* Another place may have overwritten the note, even between its two words, so the item's own place is compared. */
const cached_item *item_cache_take_place(item_cache *c, item_place place) {
    const note *n = note_of(c, place);
    uint64_t hash = atomic_load_explicit(&n->hash, memory_order_relaxed);
    if (atomic_load_explicit(&n->number, memory_order_relaxed) != place.number) {
        return NULL;
    }
    shard *s = shard_of(c, hash);
    cached_item *item = NULL;
    pthread_mutex_lock(&s->lock);
    for (cached_item *e = s->buckets_n ? *bucket_of(s, hash) : NULL; e && !item; e = e->chain) {
        if (e->hash == hash && e->place.number == place.number && e->place.segment == place.segment) {
            e->used = true;
            item = e;
            atomic_fetch_add_explicit(&item->refs, 1, memory_order_relaxed);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return item;
}

static void prefetch_item(const cached_item *item) {
    for (int i = 0; i < LINES_AHEAD; i++) {
        __builtin_prefetch((const char *)item + i * LINE_BYTES);
    }
}

/* Under the shard's lock. */
static void prefetch_entry(shard *s, uint64_t hash, unsigned step) {
    cached_item **bucket = bucket_of(s, hash);
    if (step == 0) {
        __builtin_prefetch(bucket);
    } else if (step == 1) {
        __builtin_prefetch(*bucket);
    } else {
        cached_item *e = *bucket;
        while (e && e->hash != hash) {
            e = e->chain;
        }
        if (e) {
            prefetch_item(e);
        }
    }
}

uint64_t item_cache_hash(const item_cache *c, slice primary_key) {
    return hash_of(c, primary_key);
}

void item_cache_prefetch(item_cache *c, uint64_t hash, unsigned step) {
    shard *s = shard_of(c, hash);
    pthread_mutex_lock(&s->lock);
    if (s->buckets_n) {
        prefetch_entry(s, hash, step);
    }
    pthread_mutex_unlock(&s->lock);
}

void item_cache_prefetch_note(item_cache *c, item_place place) {
    __builtin_prefetch(note_of(c, place));
}

void item_cache_prefetch_place(item_cache *c, item_place place, unsigned step) {
    const note *n = note_of(c, place);
    uint64_t hash = atomic_load_explicit(&n->hash, memory_order_relaxed);
    if (atomic_load_explicit(&n->number, memory_order_relaxed) == place.number) {
        item_cache_prefetch(c, hash, step);
    }
}

/* ---- writing: the committer's thread ---- */

/* The item in the batch; empty if the batch makes the key lead elsewhere. */
static slice value_in(const store_batch *batch, const written_key *w) {
    layout_key k;
    item_place place;
    layout_item(&k, w->place);
    const store_change *item = store_batch_find(batch, STORE_ITEMS, layout_view(&k));
    const store_change *lead = store_batch_find(batch, STORE_INDEX, w->key);
    slice row;
    if (lead && lead->kind == STORE_PUT && layout_row_read(lead->value, &place.segment, &row)) { /* the row of a clustered container */
        return place.segment == w->place.segment ? row : SLICE_EMPTY;
    }
    bool elsewhere = lead && (lead->kind != STORE_PUT || !layout_place_read(lead->value, &place) || place.segment != w->place.segment ||
                              place.number != w->place.number);
    return item && item->kind == STORE_PUT && !elsewhere ? item->value : SLICE_EMPTY;
}

static void block(item_cache *c, uint64_t hash) {
    shard *s = shard_of(c, hash);
    pthread_mutex_lock(&s->lock);
    stripe_of(c, hash)->blocked++;
    if (s->buckets_n) {
        drop_hash(s, hash);
    }
    pthread_mutex_unlock(&s->lock);
}

/* Also adds the new entry, unless it is NULL. */
static void unblock(item_cache *c, uint64_t hash, cached_item *e) {
    shard *s = shard_of(c, hash);
    pthread_mutex_lock(&s->lock);
    stripe *t = stripe_of(c, hash);
    t->blocked--;
    t->version = atomic_fetch_add_explicit(&c->changes, 1, memory_order_release) + 1;
    add(c, s, e);
    pthread_mutex_unlock(&s->lock);
}

static void before_write(commit_hook *hook, commit_group *group) {
    item_cache *c = (item_cache *)hook;
    for (size_t i = 0; i < c->written_n; i++) {
        written_key *w = &c->written[i];
        w->value = value_in(&group->batch, w);
        block(c, w->hash);
    }
}

static void after_write(commit_hook *hook, err code) {
    item_cache *c = (item_cache *)hook;
    for (size_t i = 0; i < c->written_n; i++) {
        const written_key *w = &c->written[i];
        bool keep = code == OK && w->value.n && w->value.n <= ITEM_BYTES_MAX;
        unblock(c, w->hash, keep ? item_make(w->hash, w->key, w->value, w->place) : NULL);
    }
    c->written_n = 0;
}

void item_cache_written(item_cache *c, commit_group *group, slice primary_key, item_place place) {
    if (c->written_n == c->written_cap) {
        c->written_cap = c->written_cap ? c->written_cap * 2 : 256;
        c->written = mem_resize(c->written, c->written_cap * sizeof *c->written);
    }
    c->written[c->written_n++] =
        (written_key){.hash = hash_of(c, primary_key), .place = place, .key = arena_copy(&group->batch.arena, primary_key)};
    commit_link(group, &c->hook);
}

size_t item_cache_mark(const item_cache *c) {
    return c->written_n;
}

void item_cache_cut(item_cache *c, size_t mark) {
    c->written_n = mark;
}

/* ---- open and close ---- */

item_cache *item_cache_open(size_t bytes_max) {
    item_cache *c = mem_zero(sizeof *c);
    c->hook = (commit_hook){.before = before_write, .after = after_write};
    c->shard_bytes_max = bytes_max / SHARDS;
    random_source random;
    random_seed_system(&random);
    c->secrets[0] = random_u64(&random);
    c->secrets[1] = random_u64(&random);
    size_t notes = NOTES_MIN;
    while (notes < bytes_max / BYTES_PER_NOTE) {
        notes *= 2;
    }
    c->notes = mem_zero(notes * sizeof *c->notes); /* untouched pages take no memory */
    c->notes_mask = notes - 1;
    for (unsigned i = 0; i < SHARDS; i++) {
        pthread_mutex_init(&c->shards[i].lock, NULL);
    }
    return c;
}

size_t item_cache_longest_chain(const item_cache *c) {
    size_t longest = 0;
    for (const shard *s = c->shards; s < c->shards + SHARDS; s++) {
        for (size_t i = 0; i < s->buckets_n; i++) {
            size_t n = 0;
            for (const cached_item *e = s->buckets[i]; e; e = e->chain) {
                n++;
            }
            longest = n > longest ? n : longest;
        }
    }
    return longest;
}

void item_cache_close(item_cache *c) {
    for (unsigned i = 0; i < SHARDS; i++) {
        shard *s = &c->shards[i];
        while (s->hand) {
            drop(s, s->hand);
        }
        free(s->buckets);
        pthread_mutex_destroy(&s->lock);
    }
    free(c->notes);
    free(c->written);
    free(c);
}
