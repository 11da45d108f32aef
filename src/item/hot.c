#include "item/hot.h"

enum { STEPS_BETWEEN_CLOCKS = 256, ROUNDS_MAX = 3 };

static hotkeys *hotkeys_of(container_range *range) {
    hotkeys *hot = atomic_load_explicit(&range->hotkeys, memory_order_acquire);
    if (!hot) {
        hotkeys *made = hotkeys_new();
        if (atomic_compare_exchange_strong(&range->hotkeys, &hot, made)) {
            return made;
        }
        hotkeys_free(made);
    }
    return hot;
}

/* Writes the key as in the partition key header, truncated to `max`. */
static size_t write_text(const pkey *key, char *into, size_t max) {
    buf text = buf_init(BUF_NO_LIMIT);
    pkey_write(&text, key);
    size_t n = text.n < max ? text.n : max;
    memcpy(into, text.p, n);
    buf_free(&text);
    return n;
}

static size_t text_of_item(const void *key, char *into, size_t max) {
    return write_text(&((const item_key *)key)->partition, into, max);
}

/* Eight bytes at a time, cheaply, since most EPKs are hashes already. */
static uint64_t hash_of(const epk *e) {
    uint64_t hash = e->n, piece;
    size_t i = 0;
    for (; i + sizeof piece <= e->n; i += sizeof piece) {
        memcpy(&piece, e->bytes + i, sizeof piece);
        hash = (hash ^ piece) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    for (piece = 0; i < e->n; i++) {
        piece = piece << 8 | e->bytes[i];
    }
    hash = (hash ^ piece) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

/* ---- feeding ---- */

/* A container without a partition key has only one partition, so there is nothing to compare. */
void item__note_spent(container_range *range, const item_key *key, double ru, int64_t now_ns) {
    if (key->partition.n) {
        hotkeys_spent(hotkeys_of(range), hash_of(&key->epk), ru, now_ns, text_of_item, key);
    }
}

void item__note_size(container_range *range, const item_key *key, uint64_t bytes) {
    if (key->partition.n) {
        hotkeys_size(hotkeys_of(range), hash_of(&key->epk), bytes, text_of_item, key);
    }
}

/* ---- seeding ---- */

typedef struct seeder {
    const items *items;
    hotkeys *hot;
    hot_seeding *seeding;
    int64_t until_us;
    unsigned steps;
    bool stopped;
} seeder;

/* Decodes a key with an unknown number of components. */
static size_t text_of_entry(const void *key, char *into, size_t max) {
    const slice *encoded = key;
    arena scratch = arena_init();
    pkey whole = {0};
    size_t used = 0, n = 0;
    for (size_t levels = 1; levels <= LIMIT_KEY_COMPONENTS && used < encoded->n; levels++) {
        if (!pkey_decode(&scratch, *encoded, levels, &whole, &used)) {
            break;
        }
    }
    n = write_text(&whole, into, max);
    arena_free(&scratch);
    return n;
}

static bool seed_one(void *context, const epk *e, slice key, const size_sum *size) {
    seeder *s = context;
    s->seeding->next = *e; /* if it stops here, the next call repeats this EPK, since several partitions may share it */
    s->stopped = ++s->steps % STEPS_BETWEEN_CLOCKS == 0 && clock_monotonic_us(s->items->clock) >= s->until_us;
    if (!s->stopped) {
        hotkeys_seed(s->hot, hash_of(e), size->bytes, text_of_entry, &key);
    }
    return !s->stopped;
}

bool item_hot_sizes_known(const container *c, size_t position) {
    return hotkeys_sizes_known(hotkeys_of(c->tiles->ranges[position]));
}

err item_hot_seed(const items *s, const container *c, size_t position, hot_seeding *seeding, int64_t until_us, bool *ended_out) {
    const container_tiles *tiles = c->tiles;
    const partition_range *range = &tiles->map->ranges[position];
    seeder seeder = {.items = s, .hot = hotkeys_of(tiles->ranges[position]), .seeding = seeding, .until_us = until_us};
    *ended_out = false;
    if (!seeding->begun) {
        hotkeys_seed_start(seeder.hot);
        *seeding = (hot_seeding){.begun = true, .next = range->min};
    }
    size_pieces pieces = {.container = tiles->ranges[position]->container, .from = seeding->next, .to = range->max, .n = 1};
    TRY(item_sizes_each(tiles->ranges[position]->home->store, NULL, &pieces, seed_one, &seeder));
    if (!seeder.stopped) {
        hotkeys_seed_end(seeder.hot);
        *ended_out = true;
    }
    return OK;
}

/* ---- looking up ---- */

/* The key that a text of the sketch shows. False: the text was cut, or the key has a value that JSON cannot show exactly. */
static bool key_shown(op *o, const container *c, const hotkey *shown, pkey *key_out, epk *e_out) {
    pkey read;
    if (shown->text_n == HOTKEY_TEXT_MAX || pkey_parse(o, slice_of(shown->text, shown->text_n), &read) != OK) {
        return false;
    }
    c->key.typed ? pkey_make_typed(o->arena, &read, key_out) : pkey_copy(key_out, &read);
    epk_of(&c->key, key_out, e_out);
    return hash_of(e_out) == shown->hash;
}

static err look_up(const container *c, const container_range *range, hot_size *found) {
    layout_key k;
    store_value value;
    pkey key;
    epk e;
    slice unused;
    arena scratch = arena_init();
    op o;
    op_init(&o, &scratch, 0);
    found->size = (size_sum){.bytes = (uint64_t)found->key.value};
    found->exact = key_shown(&o, c, &found->key, &key, &e);
    err code = OK;
    if (found->exact) {
        layout_size(&k, c->space->container, &e, &key);
        code = store_get(range->home->store, STORE_INDEX, NULL, layout_view(&k), &value);
        if (code == OK) {
            code = layout_size_read(layout_view(&k), value.bytes, &e, &unused, &found->size) ? OK : E_STORE_CORRUPT;
            store_give(&value);
        } else if (code == E_NOT_FOUND) {
            found->size = (size_sum){0};
            code = OK;
        }
    }
    arena_free(&scratch);
    return code;
}

static size_t text_of_hotkey(const void *key, char *into, size_t max) {
    const hotkey *known = key;
    size_t n = known->text_n < max ? known->text_n : max;
    memcpy(into, known->text, n);
    return n;
}

/* *changed_out: the sketch had wrong sizes, which were corrected. */
static err look_up_top(const container *c, container_range *range, hot_size *top, size_t *n_out, bool *changed_out) {
    hotkeys *hot = hotkeys_of(range);
    hotkey keys[HOTKEYS_TOP];
    size_t n = hotkeys_top_by_size(hot, keys);
    *changed_out = false;
    *n_out = 0;
    for (size_t i = 0; i < n; i++) {
        hot_size *found = &top[*n_out];
        found->key = keys[i];
        TRY(look_up(c, range, found));
        if (found->size.bytes != (uint64_t)keys[i].value) {
            hotkeys_size(hot, keys[i].hash, found->size.bytes, text_of_hotkey, &keys[i]);
            *changed_out = true;
        }
        *n_out += found->size.bytes > 0;
    }
    return OK;
}

static void sort(hot_size *top, size_t n) {
    for (size_t i = 1; i < n; i++) {
        hot_size moved = top[i];
        size_t at = i;
        for (; at > 0 && top[at - 1].size.bytes < moved.size.bytes; at--) {
            top[at] = top[at - 1];
        }
        top[at] = moved;
    }
}

/* Each round corrects wrong sizes; under concurrent writes some may always be wrong, so the rounds are limited. */
err item_hot_sizes(const container *c, size_t position, hot_size top[HOTKEYS_TOP], size_t *n_out) {
    container_range *range = c->tiles->ranges[position];
    bool changed = true;
    *n_out = 0;
    for (int i = 0; i < ROUNDS_MAX && changed; i++) {
        TRY(look_up_top(c, range, top, n_out, &changed));
    }
    sort(top, *n_out);
    return OK;
}

/* ---- after a split or a merge ---- */

typedef struct heir {
    const container *container;
    const container_tiles *tiles;
    size_t position;
} heir;

static bool is_of_heir(void *context, const hotkey *known) {
    const heir *h = context;
    arena scratch = arena_init();
    pkey key;
    epk e;
    op o;
    op_init(&o, &scratch, 0);
    bool is = key_shown(&o, h->container, known, &key, &e) && container_position(h->tiles, &e) == h->position;
    arena_free(&scratch);
    return is;
}

void item_hot_copy_usage(const container *c, const container_tiles *tiles, size_t position, container_range *from, int64_t now_ns) {
    hotkeys *old = atomic_load_explicit(&from->hotkeys, memory_order_acquire);
    heir h = {c, tiles, position};
    if (old) {
        hotkeys_inherit(hotkeys_of(tiles->ranges[position]), old, now_ns, is_of_heir, &h);
    }
}
