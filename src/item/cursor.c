/* Cursors of feeds, and their encoding.
 *
 *     u8 version (1) · u8 stretches · stretches × (u64 after · bound · bound)     numbers big-endian; a bound is u8 bytes · the EPK's bytes
 *
 * The cursor of a partition has at most one stretch, without bounds. */
#include "item/item.h"

enum { CURSOR_VERSION = 1 };

void item_cursor_init(item_cursor *c, const epk *min, const epk *max) {
    c->moment = NULL;
    c->partition = NULL;
    c->prefix = NULL;
    c->n = 1;
    c->stretches[0] = (item_stretch){.min = *min, .max = *max};
}

void item_cursor_init_partition(item_cursor *c, const item_key *partition) {
    epk none = {0};
    item_cursor_init(c, &none, &none);
    c->partition = partition;
}

void item_cursor_copy(item_cursor *to, const item_cursor *from) {
    memcpy(to, from, offsetof(item_cursor, stretches) + from->n * sizeof *from->stretches);
}

/* ---- encoding ---- */

void item_cursor_write(buf *out, const item_cursor *c) {
    buf_add_byte(out, CURSOR_VERSION);
    buf_add_byte(out, (char)c->n);
    for (size_t i = 0; i < c->n; i++) {
        buf_add_be64(out, c->stretches[i].after);
        if (!c->partition) {
            epk_put(out, &c->stretches[i].min);
            epk_put(out, &c->stretches[i].max);
        }
    }
}

/* The stretch must lie within `whole`, and not begin before `from`. */
static bool take_stretch(slice *rest, const item_cursor *c, const item_stretch *whole, const epk *from, item_stretch *out) {
    *out = (item_stretch){.min = whole->min, .max = whole->max};
    if (!slice_take_be(rest, 8, &out->after)) {
        return false;
    }
    return c->partition || (epk_take(rest, &out->min) && epk_take(rest, &out->max) && epk_cmp(from, &out->min) <= 0 &&
                            epk_cmp(&out->min, &out->max) < 0 && epk_cmp(&out->max, &whole->max) <= 0);
}

bool item_cursor_read(slice bytes, item_cursor *c) {
    item_stretch whole = c->stretches[0];
    uint64_t version, n;
    if (!slice_take_be(&bytes, 1, &version) || version != CURSOR_VERSION || !slice_take_be(&bytes, 1, &n) ||
        n > (c->partition ? 1 : ITEM_STRETCHES_MAX)) {
        return false;
    }
    bool good = true;
    for (size_t i = 0; i < n && good; i++) {
        good = take_stretch(&bytes, c, &whole, i ? &c->stretches[i - 1].max : &whole.min, &c->stretches[i]);
    }
    c->n = n;
    return good && bytes.n == 0;
}
