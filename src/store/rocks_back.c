#include "store/rocks_back.h"

#include <stdlib.h>

#include "base/memory.h"

enum {
    STEPS_LEAST = 16, /* short scans read nothing that they do not hand out */
    STEPS_MOST = 4096,
    CHUNK_LEAST = 16, /* rows */
    CHUNK_MOST = 128,
    CHUNK_WORTH = 8, /* a chunk of fewer rows does not pay */
    CHUNK_BYTES = 256 * 1024,
    DIGITS = 16 /* bytes of a key that count as a number */
};

void store__back_init(rocks_back *b, slice lower) {
    *b = (rocks_back){.lower = lower, .bytes = buf_init(BUF_NO_LIMIT), .high = buf_init(BUF_NO_LIMIT), .above = buf_init(BUF_NO_LIMIT)};
    store__back_restart(b);
}

void store__back_free(rocks_back *b) {
    buf_free(&b->bytes);
    buf_free(&b->high);
    buf_free(&b->above);
    free(b->rows);
}

void store__back_restart(rocks_back *b) {
    b->n = b->steps = 0;
    b->chunked = b->ended = false;
    b->steps_least = STEPS_LEAST;
    b->chunk = CHUNK_LEAST;
}

static slice key_at(const rocksdb_iterator_t *iterator) {
    slice key;
    key.p = rocksdb_iter_key(iterator, &key.n);
    return key;
}

void store__back_seek(rocksdb_iterator_t *iterator, slice key) {
    rocksdb_iter_seek_for_prev(iterator, key.p, key.n);
    if (rocksdb_iter_valid(iterator) && slice_eq(key_at(iterator), key)) {
        rocksdb_iter_prev(iterator);
    }
}

/* ---- where a chunk begins ---- */

typedef unsigned __int128 number;

static number number_at(slice key, size_t at) {
    number n = 0;
    for (size_t i = 0; i < DIGITS; i++) {
        n = n << 8 | (at + i < key.n ? (uint8_t)key.p[at + i] : 0);
    }
    return n;
}

/* The key some `rows` rows below `high`, if they are as far apart as those from `above` down to `high`. */
static void guess(const rocks_back *b, size_t rows, char *key, size_t *n_out) {
    slice high = buf_view(&b->high), above = buf_view(&b->above);
    size_t common = 0, at;
    while (common < high.n && common < above.n && high.p[common] == above.p[common]) {
        common++;
    }
    at = common < 4 ? 0 : common - 4; /* the digits above those that differ take the carry */
    number low = number_at(high, at), apart = (number_at(above, at) - low) / b->between, all = apart * rows;
    number n = all / rows == apart && all < low ? low - all : 0;
    memcpy(key, high.p, at);
    for (size_t i = DIGITS; i-- > 0; n >>= 8) {
        key[at + i] = (char)(uint8_t)n;
    }
    *n_out = at + DIGITS;
}

/* ---- chunks ---- */

static void keep(rocks_back *b, slice key, slice value) {
    if (b->n == b->room) {
        b->room = b->room ? 2 * b->room : 2 * CHUNK_LEAST;
        b->rows = mem_resize(b->rows, b->room * sizeof *b->rows);
    }
    b->rows[b->n++] = (back_row){.at = b->bytes.n, .key_n = (uint32_t)key.n, .value_n = (uint32_t)value.n};
    buf_add_slice(&b->bytes, key);
    buf_add_slice(&b->bytes, value);
}

/* Reads the rows of [from, high). False: there are many more than wanted. */
static bool read_rows(rocks_back *b, rocksdb_iterator_t *iterator, slice from, size_t wanted) {
    buf_clear(&b->bytes);
    buf_reserve(&b->bytes, (wanted + wanted / 8) * (b->passed / b->between));
    for (rocksdb_iter_seek(iterator, from.p, from.n); rocksdb_iter_valid(iterator); rocksdb_iter_next(iterator)) {
        slice key = key_at(iterator), value;
        if (slice_cmp(key, buf_view(&b->high)) >= 0) {
            return true;
        }
        if (b->n == 2 * wanted || b->bytes.n > 2 * CHUNK_BYTES) {
            b->n = 0;
            return false;
        }
        value.p = rocksdb_iter_value(iterator, &value.n);
        keep(b, key, value);
    }
    return true;
}

static bool has_failed(rocksdb_iterator_t *iterator) {
    char *message = NULL;
    rocksdb_iter_get_error(iterator, &message);
    rocksdb_free(message);
    return message;
}

static size_t rows_wanted(const rocks_back *b) {
    size_t each = b->passed / b->between, most = CHUNK_BYTES / (each ? each : 1);
    return b->chunk < most ? b->chunk : most;
}

/* The next chunk; without rows if there are none below `high`. False: it is not known where it begins. */
static bool read_chunk(rocks_back *b, rocksdb_iterator_t *iterator) {
    size_t wanted = b->between && b->high.n ? rows_wanted(b) : 0;
    if (wanted < CHUNK_WORTH) {
        return false;
    }
    char *key = mem_alloc(b->high.n + DIGITS);
    slice from = {.p = key};
    guess(b, wanted, key, &from.n);
    bool last = slice_cmp(from, b->lower) <= 0;
    bool good = slice_cmp(from, buf_view(&b->high)) < 0 && read_rows(b, iterator, last ? b->lower : from, wanted);
    free(key);
    if (good && !rocksdb_iter_valid(iterator) && has_failed(iterator)) {
        b->n = 0;
        last = true;
    }
    if (!good || (!b->n && !last)) {
        return false;
    }
    b->ended = last;
    b->chunked = true;
    b->chunk = b->chunk < CHUNK_MOST ? 2 * b->chunk : CHUNK_MOST;
    b->steps_least = STEPS_LEAST;
    b->between = b->n;
    b->passed = b->bytes.n;
    return true;
}

static void set_key(buf *b, slice key) {
    buf_clear(b);
    buf_add_slice(b, key);
}

static slice row_key(const rocks_back *b, size_t i) {
    return slice_of(b->bytes.p + b->rows[i].at, b->rows[i].key_n);
}

/* The last row is the first of the chunk before, or where the iterator is. */
static bool go_by_chunk(rocks_back *b, rocksdb_iterator_t *iterator) {
    if (b->chunked) {
        buf above = b->above;
        b->above = b->high;
        b->high = above;
        set_key(&b->high, row_key(b, 0));
    } else {
        set_key(&b->high, key_at(iterator));
        b->between = b->steps - 1;
    }
    if (read_chunk(b, iterator)) {
        return true;
    }
    b->steps_least = b->steps_least < STEPS_MOST ? 2 * b->steps_least : STEPS_MOST;
    b->chunk = CHUNK_LEAST;
    b->chunked = false;
    b->steps = 0;
    store__back_seek(iterator, buf_view(&b->high));
    return false;
}

static bool hand_out(rocks_back *b, slice *key_out, slice *value_out) {
    if (!b->n) {
        return false;
    }
    const back_row *row = &b->rows[--b->n];
    *key_out = slice_of(b->bytes.p + row->at, row->key_n);
    *value_out = slice_of(key_out->p + row->key_n, row->value_n);
    return true;
}

bool store__back_next(rocks_back *b, rocksdb_iterator_t *iterator, bool here, slice *key_out, slice *value_out) {
    if (b->n || b->ended) {
        return hand_out(b, key_out, value_out);
    }
    if (b->chunked || b->steps >= b->steps_least) {
        if (go_by_chunk(b, iterator)) {
            return hand_out(b, key_out, value_out);
        }
    } else if (!here) {
        rocksdb_iter_prev(iterator);
    }
    if (!rocksdb_iter_valid(iterator)) {
        b->ended = true;
        return false;
    }
    *key_out = key_at(iterator);
    value_out->p = rocksdb_iter_value(iterator, &value_out->n);
    if (b->steps++ == 0) {
        set_key(&b->above, *key_out);
        b->passed = 0;
    } else {
        b->passed += key_out->n + value_out->n;
    }
    return true;
}
