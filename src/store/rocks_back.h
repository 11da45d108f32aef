/* rocks_back.h — long scans backward.
 *
 * A step back costs RocksDB two to three times a step forward: a block's keys have no way back, and a memtable is searched from its top. So
 * after the first steps the rows before the last one are read forward, a chunk at a time, and handed out from the chunk's end:
 *
 *        guess ──── forward ────►│ last row
 *   …────┼───────────────────────┼──────────── rows handed out ──►
 *
 * The distance between the keys of the last rows says where a chunk begins. If the guess is bad, because the keys are not spread evenly,
 * the scan goes on step by step for a while. Private to store/. */
#pragma once

#include <rocksdb/c.h>

#include "base/buf.h"

typedef struct back_row {
    size_t at;
    uint32_t key_n, value_n;
} back_row;

typedef struct rocks_back {
    slice lower; /* bound of the scan */
    buf bytes;   /* keys and values of the chunk */
    back_row *rows;
    size_t n, room; /* rows of the chunk that are left to hand out */
    buf high;       /* the chunk ends before this key */
    buf above;      /* a key above it, … */
    size_t between; /* … with so many rows from it down to `high` */
    size_t passed;  /* bytes of these */
    unsigned steps, steps_least, chunk;
    bool chunked; /* the iterator is not at the last row */
    bool ended;
} rocks_back;

void store__back_init(rocks_back *b, slice lower);
void store__back_free(rocks_back *b);
void store__back_restart(rocks_back *b); /* the iterator was moved */

/* The row before the last one. `here`: the row is where the iterator is. False: there is none, or the iterator has failed. */
bool store__back_next(rocks_back *b, rocksdb_iterator_t *iterator, bool here, slice *key_out, slice *value_out);

/* Moves the iterator to the last row before `key`. */
void store__back_seek(rocksdb_iterator_t *iterator, slice key);
