/* Partition keys: round trips between header text, keys and their encoding; bounds; effective partition keys of all kinds. */
#include <assert.h>

#include "partition/map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void round_trip_text(op *o, const pkey *key) {
    buf text = buf_init(BUF_NO_LIMIT);
    pkey again;
    pkey_write(&text, key);
    err code = pkey_parse(o, buf_view(&text), &again);
    assert(code == OK && pkey_equal(key, &again));
    buf_free(&text);
}

static void round_trip_bytes(op *o, const pkey *key) {
    buf bytes = buf_init(BUF_NO_LIMIT);
    pkey again;
    size_t used = 0;
    pkey_encode(&bytes, key);
    bool good = pkey_decode(o->arena, buf_view(&bytes), key->n, &again, &used);
    assert(good && used == bytes.n && pkey_equal(key, &again));
    buf_free(&bytes);
}

static void round_trip_hex(const epk *e) {
    buf text = buf_init(BUF_NO_LIMIT);
    epk again;
    epk_write(&text, e);
    bool good = epk_parse(buf_view(&text), &again);
    assert(good && epk_cmp(e, &again) == 0);
    buf_free(&text);
}

static const pkey_definition definitions[] = {
    {.kind = PKEY_HASH, .version = 1, .n = 1},       {.kind = PKEY_HASH, .version = 2, .n = 1},
    {.kind = PKEY_MULTI_HASH, .version = 2, .n = 2}, {.kind = PKEY_MULTI_HASH, .version = 2, .n = 3},
    {.kind = PKEY_HASH, .version = 2, .n = 0},
};

enum { DEFINITIONS = sizeof definitions / sizeof definitions[0] };

static void place(const pkey_definition *definition, const pkey *key) {
    static partition_map *maps[DEFINITIONS];
    partition_map **map = &maps[definition - definitions];
    *map = *map ? *map : partition_map_new(definition, 7);
    epk e;
    epk min;
    epk max;
    const partition_range *first = NULL;
    epk_of(definition, key, &e);
    epk_prefix_range(definition, key, &min, &max);
    assert(epk_cmp(&min, &e) == 0 && epk_cmp(&e, &max) < 0);
    const partition_range *range = partition_map_find(*map, &e);
    assert(epk_cmp(&range->min, &e) <= 0 && epk_cmp(&e, &range->max) < 0);
    assert(partition_map_overlap(*map, &min, &max, &first) >= 1 && first == range);
    round_trip_hex(&e);
}

static void try_header(op *o, slice text) {
    pkey key;
    if (pkey_parse(o, text, &key) != OK) {
        assert(key.n == 0 && o->detail_n > 0);
        return;
    }
    round_trip_text(o, &key);
    round_trip_bytes(o, &key);
    for (size_t i = 0; i < DEFINITIONS; i++) {
        place(&definitions[i], &key);
    }
}

/* Bytes that decode are the only encoding of their key. */
static void try_bytes(op *o, slice bytes) {
    for (size_t n = 1; n <= LIMIT_KEY_LEVELS; n++) {
        pkey key;
        size_t used = 0;
        if (!pkey_decode(o->arena, bytes, n, &key, &used)) {
            continue;
        }
        buf again = buf_init(BUF_NO_LIMIT);
        pkey_encode(&again, &key);
        assert(again.n == used && slice_starts(bytes, buf_view(&again)));
        buf_free(&again);
    }
}

static void try_bounds(slice text) {
    epk low;
    epk high;
    size_t half = text.n / 2 & ~(size_t)1;
    if (!epk_parse(slice_of(text.p, half), &low) || !epk_parse(slice_skip(text, half), &high)) {
        return;
    }
    for (size_t i = 0; i < DEFINITIONS; i++) {
        epk middle;
        if (epk_middle(&definitions[i], &low, &high, &middle)) {
            assert(epk_cmp(&low, &middle) < 0 && epk_cmp(&middle, &high) < 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    arena a = arena_init();
    op o;
    op_init(&o, &a, 0);
    slice input = slice_of(n ? data : (const uint8_t *)"", n);
    try_header(&o, input);
    try_bytes(&o, input);
    try_bounds(input);
    if (n >= 5) {
        partition_map_free(partition_map_read(input));
    }
    arena_free(&a);
    return 0;
}
