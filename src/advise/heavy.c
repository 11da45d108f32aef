#include "advise/heavy.h"

#include <stdlib.h>

static size_t slot_of(const heavy *h, uint64_t hash) {
    size_t slot = hash % HEAVY_SLOTS;
    while (h->slots[slot] && h->keys[h->slots[slot] - 1].hash != hash) {
        slot = (slot + 1) % HEAVY_SLOTS;
    }
    return slot;
}

static void index_keys(heavy *h) {
    memset(h->slots, 0, sizeof h->slots);
    for (size_t i = 0; i < h->n; i++) {
        h->slots[slot_of(h, h->keys[i].hash)] = (uint16_t)(i + 1);
    }
}

static int heavier_first(const void *a, const void *b) {
    const heavy_key *left = a, *right = b;
    int order = (left->weight < right->weight) - (left->weight > right->weight);
    return order ? order : (left->hash > right->hash) - (left->hash < right->hash);
}

void heavy_sort(heavy *h) {
    qsort(h->keys, h->n, sizeof *h->keys, heavier_first);
    index_keys(h);
}

/* Leaves less than half of the keys. */
static void prune(heavy *h) {
    qsort(h->keys, h->n, sizeof *h->keys, heavier_first);
    double cut = h->keys[h->n / 2].weight;
    size_t kept = 0;
    while (h->keys[kept].weight > cut) {
        h->keys[kept++].weight -= cut;
    }
    h->n = kept;
    h->error += cut;
    index_keys(h);
}

static size_t whole_characters(slice text) {
    size_t n = text.n < HEAVY_TEXT_BYTES ? text.n : HEAVY_TEXT_BYTES;
    while (n < text.n && n && ((unsigned char)text.p[n] & 0xC0) == 0x80) {
        n--;
    }
    return n;
}

void heavy_add(heavy *h, uint64_t hash, double weight, slice text) {
    h->total += weight;
    size_t slot = slot_of(h, hash);
    if (h->slots[slot]) {
        h->keys[h->slots[slot] - 1].weight += weight;
        return;
    }
    if (h->n == HEAVY_KEYS) {
        prune(h);
        slot = slot_of(h, hash);
    }
    heavy_key *k = &h->keys[h->n++];
    *k = (heavy_key){.hash = hash, .weight = weight, .text_n = (uint8_t)whole_characters(text)};
    if (k->text_n) {
        memcpy(k->text, text.p, k->text_n);
    }
    h->slots[slot] = (uint16_t)h->n;
}

const heavy_key *heavy_find(const heavy *h, uint64_t hash) {
    size_t slot = slot_of(h, hash);
    return h->slots[slot] ? &h->keys[h->slots[slot] - 1] : NULL;
}
