#include "item/written.h"

#include <stdlib.h>

#include "base/memory.h"

/* The values of a unique key that were given to an item, which may have other values by now. */
struct written_claim {
    written_claim *next;
    unsigned index;
    slice key;
    const written_item *holder;
};

static size_t bucket_of(slice bytes) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < bytes.n; i++) {
        hash = (hash ^ (unsigned char)bytes.p[i]) * 0x100000001b3;
    }
    return (hash ^ hash >> 32) % WRITTEN_BUCKETS;
}

/* ---- by key ---- */

written_item *item__writes_find(const item_writes *w, slice primary) {
    written_item *e = w->by_key[bucket_of(primary)];
    while (e && !slice_eq(e->primary, primary)) {
        e = e->next;
    }
    return e;
}

static void copy_key(arena *a, const item_key *from, item_key *to) {
    to->epk = from->epk;
    to->row = arena_copy(a, from->row);
    pkey_copy(&to->partition, &from->partition);
    for (size_t i = 0; i < to->partition.n; i++) {
        to->partition.values[i].text = arena_copy(a, from->partition.values[i].text);
    }
}

written_item *item__writes_enter(item_writes *w, const item_key *key, slice primary, const item_expected *expected) {
    written_item *e = arena_new(w->arena, written_item);
    written_item **bucket = &w->by_key[bucket_of(primary)];
    e->next = *bucket;
    e->next_all = w->all;
    e->primary = arena_copy(w->arena, primary);
    e->expected = *expected;
    e->now_at = e;
    copy_key(w->arena, key, &e->key);
    *bucket = w->all = e;
    if (expected->there) {
        written_item **numbers = &w->by_number[expected->number % WRITTEN_BUCKETS];
        e->next_number = *numbers;
        *numbers = e;
    }
    return e;
}

/* ---- unique values ---- */

static bool still_holds(const item_writes *w, const written_claim *c) {
    layout_key k;
    if (!c->holder->there) {
        return false;
    }
    return item_unique_key(w->container, c->index, &c->holder->key, c->holder->body, &k) && slice_eq(layout_view(&k), c->key);
}

bool item__writes_claims(const item_writes *w, const written_item *e, slice unique_key) {
    bool claimed = false;
    for (const written_claim *c = w->claims[bucket_of(unique_key)]; c && !claimed; c = c->next) {
        claimed = c->holder != e && slice_eq(c->key, unique_key) && still_holds(w, c);
    }
    return claimed;
}

static void claim(item_writes *w, const written_item *e) {
    for (unsigned i = 0; e->there && i < w->container->unique_keys_n; i++) {
        layout_key k;
        if (!item_unique_key(w->container, i, &e->key, e->body, &k)) {
            continue;
        }
        written_claim **bucket = &w->claims[bucket_of(layout_view(&k))];
        written_claim *made = arena_new(w->arena, written_claim);
        *made = (written_claim){*bucket, i, arena_copy(w->arena, layout_view(&k)), e};
        *bucket = made;
    }
}

/* ---- new items ---- */

static void note_number(item_writes *w, written_item *e) {
    if (w->made_n == w->made_cap) {
        w->made_cap = w->made_cap ? 2 * w->made_cap : 16;
        w->made = mem_resize(w->made, w->made_cap * sizeof *w->made);
        w->made_numbers = mem_resize(w->made_numbers, w->made_cap * sizeof *w->made_numbers);
    }
    w->made[w->made_n] = e;
    w->made_numbers[w->made_n++] = e->head.number;
}

/* The index of the first row from `at` on. */
static size_t first_row(const item_writes *w, slice at) {
    size_t low = 0, high = w->rows_n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (slice_cmp(w->rows[middle]->primary, at) >= 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static void note_row(item_writes *w, written_item *e) {
    if (e->in_rows) {
        return;
    }
    if (w->rows_n == w->rows_cap) {
        w->rows_cap = w->rows_cap ? 2 * w->rows_cap : 16;
        w->rows = mem_resize(w->rows, w->rows_cap * sizeof *w->rows);
    }
    size_t at = first_row(w, e->primary);
    memmove(w->rows + at + 1, w->rows + at, (w->rows_n++ - at) * sizeof *w->rows);
    w->rows[at] = e;
    e->in_rows = true;
}

void item__writes_set(item_writes *w, written_item *e, bool there, const item_head *head, slice body, bool made) {
    e->written = true;
    e->there = there;
    e->head = there ? *head : (item_head){0};
    e->body = there ? body : SLICE_EMPTY;
    claim(w, e);
    if (made) {
        note_number(w, e);
        note_row(w, e);
    }
}

/* The entry of the item that had this number in the snapshot; NULL: not touched. */
static written_item *with_number(const item_writes *w, uint64_t number) {
    written_item *e = w->by_number[number % WRITTEN_BUCKETS];
    while (e && e->expected.number != number) {
        e = e->next_number;
    }
    return e;
}

static size_t first_made_after(const item_writes *w, uint64_t number) {
    size_t low = 0, high = w->made_n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (w->made_numbers[middle] > number) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

void item__writes_rename(item_writes *w, written_item *from, written_item *to, const item_head *head, slice body) {
    written_item *first = with_number(w, head->number);
    if (first) {
        first->now_at = to;
    } else {
        w->made[first_made_after(w, head->number - 1)] = to;
    }
    item__writes_set(w, from, false, NULL, SLICE_EMPTY, false);
    item__writes_set(w, to, true, head, body, false);
    note_row(w, to);
}

/* ---- what feeds and rows see ---- */

static bool show(const written_item *e, uint64_t number, item_written *written_out) {
    bool there = e->there && e->head.number == number;
    *written_out = (item_written){.number = number, .head = e->head, .body = there ? e->body : SLICE_EMPTY, .primary = e->primary};
    return there;
}

/* Finds an item by its number in the snapshot, or by the number it was created with. */
static bool find_written(const item_overlay *overlay, uint64_t number, item_written *written_out) {
    const item_writes *w = (const item_writes *)overlay;
    const written_item *e = with_number(w, number);
    if (e) {
        show(e->now_at, number, written_out);
        return e->written;
    }
    size_t i = first_made_after(w, number - 1);
    bool own = i < w->made_n && w->made_numbers[i] == number;
    if (own) {
        show(w->made[i], number, written_out);
    }
    return own;
}

static bool next_new(const item_overlay *overlay, uint64_t after, item_written *written_out) {
    const item_writes *w = (const item_writes *)overlay;
    size_t i = first_made_after(w, after);
    while (i < w->made_n && !show(w->made[i], w->made_numbers[i], written_out)) {
        i++;
    }
    return i < w->made_n;
}

static bool next_row(const item_overlay *overlay, slice at, bool backward, item_written *written_out) {
    const item_writes *w = (const item_writes *)overlay;
    size_t i = first_row(w, at), end = backward ? 0 : w->rows_n;
    while (i != end) {
        const written_item *e = w->rows[backward ? i - 1 : i];
        bool stored = e->expected.there && e->expected.number == e->head.number; /* it was renamed, and back */
        if (e->there && !stored) {
            return show(e, e->head.number, written_out);
        }
        i = backward ? i - 1 : i + 1;
    }
    return false;
}

/* ---- init and free ---- */

void item__writes_init(item_writes *w, const container *c, arena *a) {
    *w = (item_writes){.overlay = {find_written, next_new, next_row}, .container = c, .arena = a};
}

void item__writes_free(item_writes *w) {
    free(w->made);
    free(w->made_numbers);
    free(w->rows);
}
