#include "item/size_cache.h"

#include <stdlib.h>

#include "base/keyed_hash.h"
#include "base/memory.h"

enum {
    ENTRY_BYTES_MAX = 112, /* longer ones are read from the store */
    WAYS = 4               /* an entry may be in so many slots */
};

typedef struct slot {
    uint64_t hash;
    uint64_t group; /* the last group that wrote the entry */
    bool known;     /* the value is that of the store */
    uint8_t entry_bytes, value_bytes;
    char entry[ENTRY_BYTES_MAX];
    char value[LAYOUT_SIZE_BYTES];
} slot;

struct size_cache {
    commit_hook hook;
    uint64_t group;    /* the number of the current group */
    uint32_t *written; /* the slots that it writes */
    size_t written_n, written_cap;
    size_t sets_n; /* a power of two, or 0 */
    slot *slots;   /* WAYS for each set */
};

static slice entry_of(const slot *s) {
    return slice_of(s->entry, s->entry_bytes);
}

static slot *set_of(const size_cache *c, uint64_t hash) {
    return &c->slots[(hash & (c->sets_n - 1)) * WAYS];
}

static bool is_kept(const size_cache *c, slice entry) {
    return entry.n <= ENTRY_BYTES_MAX && c->sets_n > 0;
}

/* NULL: it is in no slot. */
static slot *find(const size_cache *c, uint64_t hash, slice entry) {
    slot *set = set_of(c, hash);
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].hash == hash && slice_eq(entry_of(&set[i]), entry)) {
            return &set[i];
        }
    }
    return NULL;
}

bool size_cache_find(const size_cache *c, slice entry, slice *value_out) {
    const slot *s = is_kept(c, entry) ? find(c, keyed_hash_bytes(entry, 0), entry) : NULL;
    if (!s || !s->known) {
        return false;
    }
    *value_out = slice_of(s->value, s->value_bytes);
    return true;
}

/* ---- writing ---- */

/* The group's changes are complete: takes the new values. An entry whose changes were all cut is in the store as before, but no longer
 * known here. */
static void before_write(commit_hook *hook, commit_group *group) {
    size_cache *c = (size_cache *)hook;
    for (size_t i = 0; i < c->written_n; i++) {
        slot *s = &c->slots[c->written[i]];
        const store_change *change = store_batch_find(&group->batch, STORE_INDEX, entry_of(s));
        if (!change || (change->kind == STORE_PUT && change->value.n != sizeof s->value)) {
            s->entry_bytes = 0;
            continue;
        }
        s->value_bytes = change->kind == STORE_PUT ? sizeof s->value : 0;
        memcpy(s->value, change->value.p ? change->value.p : "", s->value_bytes);
    }
}

static void after_write(commit_hook *hook, err code) {
    size_cache *c = (size_cache *)hook;
    for (size_t i = 0; i < c->written_n; i++) {
        slot *s = &c->slots[c->written[i]];
        s->known = code == OK && s->entry_bytes > 0;
    }
    c->written_n = 0;
    c->group++;
}

static void list_slot(size_cache *c, const slot *s) {
    if (c->written_n == c->written_cap) {
        c->written_cap = c->written_cap ? c->written_cap * 2 : 256;
        c->written = mem_resize(c->written, c->written_cap * sizeof *c->written);
    }
    c->written[c->written_n++] = (uint32_t)(s - c->slots);
}

/* The slot of the set that was written longest ago. */
static slot *oldest(const size_cache *c, uint64_t hash) {
    slot *set = set_of(c, hash), *old = set;
    for (unsigned i = 1; i < WAYS; i++) {
        old = set[i].group < old->group ? &set[i] : old;
    }
    return old;
}

void size_cache_written(size_cache *c, commit_group *group, slice entry) {
    if (!is_kept(c, entry)) {
        return;
    }
    uint64_t hash = keyed_hash_bytes(entry, 0);
    slot *s = find(c, hash, entry);
    if (!s) {
        s = oldest(c, hash);
        s->hash = hash;
        s->entry_bytes = (uint8_t)entry.n;
        memcpy(s->entry, entry.p, entry.n);
    }
    s->known = false;
    if (s->group != c->group) {
        s->group = c->group;
        list_slot(c, s);
        commit_link(group, &c->hook);
    }
}

/* ---- open and close ---- */

size_cache *size_cache_open(size_t bytes_max) {
    size_cache *c = mem_zero(sizeof *c);
    c->hook = (commit_hook){.before = before_write, .after = after_write};
    c->group = 1;
    size_t sets = 1, set_bytes = WAYS * sizeof *c->slots;
    while (2 * sets * set_bytes <= bytes_max) {
        sets *= 2;
    }
    c->sets_n = set_bytes <= bytes_max ? sets : 0;
    c->slots = c->sets_n ? mem_zero(sets * set_bytes) : NULL; /* untouched pages take no memory */
    return c;
}

void size_cache_close(size_cache *c) {
    free(c->slots);
    free(c->written);
    free(c);
}
