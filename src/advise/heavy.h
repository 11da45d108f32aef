/* heavy.h — the keys with the most weight among any number of keys, in bounded memory (Misra and Gries, pruned in batches).
 *
 * When the table is full, the weight of its median is subtracted from every key, and keys without weight left are dropped. So a key's
 * weight is too small by `error` at most, never too large, and a key of more than `error` is in the table. With up to HEAVY_KEYS keys all
 * weights are exact. */
#pragma once

#include "base/slice.h"

enum { HEAVY_KEYS = 1024, HEAVY_SLOTS = 2 * HEAVY_KEYS, HEAVY_TEXT_BYTES = 39 };

typedef struct heavy_key {
    uint64_t hash;
    double weight;
    uint8_t text_n;
    char text[HEAVY_TEXT_BYTES]; /* the beginning of the key's text, whole UTF-8 characters */
} heavy_key;

typedef struct heavy {
    double total, error;
    size_t n;
    heavy_key keys[HEAVY_KEYS];
    uint16_t slots[HEAVY_SLOTS]; /* index in `keys`, plus one; found by hash, linear probing */
} heavy;

void heavy_add(heavy *h, uint64_t hash, double weight, slice text); /* weight > 0 */
const heavy_key *heavy_find(const heavy *h, uint64_t hash);         /* NULL: not in the table */
void heavy_sort(heavy *h);                                          /* heaviest first */
