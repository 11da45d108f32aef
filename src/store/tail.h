/* tail.h — the newest changes of STORE_TERMS in memory: a short list of sorted runs (store/sorted_run.h), and a thread that keeps it short.
 *
 * Each written batch adds a run. Four or more neighbouring runs of similar size are merged: small ones by the writer, larger ones by the
 * merger, the tail's own thread. When all runs together are large, the merger has the owner flush them, that is, write them to permanent
 * storage; then they leave the tail. If runs come faster than they can be flushed, the writer waits.
 *
 *   writer    begin … write the batch, with the run … end
 *   reader    take a version … look with a cursor … give it back
 *   merger    merges, flushes, and merges all runs into one after a while without writes
 *
 * A version is the list of runs at one moment, and never changes. A change may be both flushed and in a version: the version's runs are
 * always laid over the flushed data, so a repeated change has no effect. But no change may be missing from both, and the flushed data must
 * not be newer than the version: see store_tail_overtaken. Any thread reads; one writes. */
#pragma once

#include <pthread.h>

#include "store/sorted_run.h"

typedef struct store_tail store_tail;

typedef struct store_version {
    atomic_uint refs;
    uint64_t number; /* number of the newest batch in it */
    size_t bytes;
    size_t ranged; /* runs from this index on have no ranges */
    size_t n;
    store_run *runs[]; /* oldest first */
} store_version;

typedef struct store_tail_options {
    size_t bytes;    /* size at which the runs are flushed */
    uint64_t number; /* number of the last batch ever written */
    /* Called on the merger's thread. Writes the runs of a version, which are the oldest of the tail, to permanent storage. Readers see all
     * of them or none. Checks store_tail_stops now and then. NULL: nothing is ever flushed, and there is no writer. */
    err (*flush)(void *context, const store_version *runs);
    void *context;
} store_tail_options;

store_tail *store_tail_open(const store_tail_options *options); /* NULL: the merger's thread could not be started */

/* Flushes a large tail, but only if it is `whole`: if the owner's log could not be read to its end, the tail is left as it is. */
void store_tail_close(store_tail *tail, bool whole);

/* Waits until all current runs are flushed, or flushing fails. Any thread but the writer's. */
void store_tail_drain(store_tail *tail);

/* ---- the writer ---- */

/* Call before writing a batch: waits while the tail is too large. Not OK: it is too large, and flushing fails with this error. */
MUST_CHECK err store_tail_admit(store_tail *tail);
uint64_t store_tail_begin(store_tail *tail); /* returns the batch's number; from now on readers may find the batch in the store */
void store_tail_end(store_tail *tail, store_run *run, bool written); /* takes ownership of the run, which has that number */
void store_tail_load(store_tail *tail, store_run *run);              /* adds a logged run while the owner opens; oldest first */

/* ---- readers ---- */

store_version *store_tail_take(store_tail *tail);
store_version *store_version_hold(store_version *version);
void store_version_give(store_version *version);

bool store_tail_writing(store_tail *tail, const store_version *version);   /* whether a later batch is being written */
bool store_tail_await(store_tail *tail, uint64_t number);                  /* waits until the batch has ended; false: it failed */
bool store_tail_overtaken(store_tail *tail, const store_version *version); /* whether newer changes may have begun to be flushed */
bool store_tail_stops(store_tail *tail);
size_t store_tail_held(store_tail *tail); /* bytes of memory */

typedef enum store_found { STORE_UNKNOWN, STORE_FOUND, STORE_GONE } store_found;

/* Looks a key up in the version. If it is found, the value lives as long as its run, which the caller must give back. */
store_found store_version_get(const store_version *version, slice key, slice *value_out, store_run **run_out);

/* The range by which a run of the version deletes `key` in the flushed data, or NULL. */
const store_range *store_version_covers(const store_version *version, slice key);

/* ---- a cursor: iterates over all runs of a version as if they were one ---- */

typedef struct store_cursor_source {
    const store_run *run;
    size_t age; /* its index in the version: a higher one is newer */
    size_t at;
    slice key;
} store_cursor_source;

typedef struct store_cursor {
    const store_version *version;
    bool backward, live; /* live: positioned on a change, not at the end */
    store_run_change change;
    size_t same; /* how many sources, from the first on, are positioned on this key */
    size_t n;    /* sources that are not at their end, sorted by key, newest first among equal keys */
    store_cursor_source *sources;
} store_cursor;

void store_cursor_open(store_cursor *cursor, const store_version *version); /* the caller holds the version meanwhile */
void store_cursor_close(store_cursor *cursor);

/* Moves to the first change from `key` on, or, backward, to the last one before it. key NULL: the very beginning or end. */
void store_cursor_seek(store_cursor *cursor, const slice *key, bool backward);
void store_cursor_next(store_cursor *cursor);
