/* damage.c — damages the data folder of a stopped server, so that tests see the damage found.   damage FOLDER WHAT TEXT [OTHER]
 *
 *   entry-lost   the index entries that have TEXT in their key are removed
 *   entry-moved  they get OTHER in its place, of the same length
 *   item-lost    the item that has TEXT in it is removed, but not what leads to it
 *   item-broken  its first member gets a type that BSON does not have
 *
 * Prints how many keys it has changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "item/layout.h"
#include "store/store.h"

typedef struct damage {
    store *store;
    store_batch batch;
    slice text, other;
    unsigned n;
} damage;

typedef void (*damage_kind)(damage *d, store_family family, slice key, slice value, size_t at);

static void lose(damage *d, store_family family, slice key, slice value, size_t at) {
    (void)value;
    (void)at;
    store_delete(&d->batch, family, key);
}

static void move(damage *d, store_family family, slice key, slice value, size_t at) {
    slice changed = arena_copy(&d->batch.arena, key);
    memcpy((char *)(uintptr_t)changed.p + at, d->other.p, d->other.n);
    store_delete(&d->batch, family, key);
    store_put(&d->batch, family, changed, value);
}

static void spoil(damage *d, store_family family, slice key, slice value, size_t at) {
    (void)at;
    slice changed = arena_copy(&d->batch.arena, value);
    ((char *)(uintptr_t)changed.p)[LAYOUT_HEAD_BYTES + 4] = 0x2A;
    store_put(&d->batch, family, key, changed);
}

/* Each key of the family that has the text in itself, or in its value. */
static err each(damage *d, store_family family, bool in_key, damage_kind change) {
    slice key, value;
    store_scan *scan = store_scan_open(d->store, family, NULL, SLICE_EMPTY, SLICE_EMPTY, false);
    while (store_scan_next(scan, &key, &value)) {
        slice where = in_key ? key : value;
        const char *found = where.n ? memmem(where.p, where.n, d->text.p, d->text.n) : NULL;
        if (found) {
            change(d, family, key, value, (size_t)(found - where.p));
            d->n++;
        }
    }
    return store_scan_close(scan);
}

static err run(damage *d, const char *what) {
    static const struct {
        const char *what;
        store_family family;
        bool in_key;
        damage_kind change;
    } kinds[] = {
        {"entry-lost", STORE_TERMS, true, lose},
        {"entry-moved", STORE_TERMS, true, move},
        {"item-lost", STORE_ITEMS, false, lose},
        {"item-broken", STORE_ITEMS, false, spoil},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].what, what) == 0) {
            err code = each(d, kinds[i].family, kinds[i].in_key, kinds[i].change);
            return code == OK ? store_write(d->store, &d->batch) : code;
        }
    }
    return E_BAD_REQUEST;
}

int main(int n, char **arguments) {
    char why[512];
    if (n < 4 || (n > 4 && strlen(arguments[3]) != strlen(arguments[4]))) {
        fprintf(stderr, "damage FOLDER entry-lost|entry-moved|item-lost|item-broken TEXT [OTHER]\n");
        return 2;
    }
    damage d = {.text = slice_str(arguments[3]), .other = n > 4 ? slice_str(arguments[4]) : SLICE_EMPTY};
    if (store_open_rocks(&(store_options){.dir = arguments[1], .sync = true, .cache_bytes = 8 << 20}, &d.store, why, sizeof why) != OK) {
        fprintf(stderr, "damage: %s\n", why);
        return 1;
    }
    store_batch_init(&d.batch);
    err code = run(&d, arguments[2]);
    store_batch_free(&d.batch);
    store_close(d.store);
    printf("%u\n", d.n);
    return code == OK ? 0 : 1;
}
