/* tail.h — the newest changes of STORE_TERMS in memory: a short list of sorted runs (store/run.h), and the thread that keeps it short.
 *
 * Each written batch adds a run. Runs are merged while the older one is not more than twice the newer one, small ones by the writer,
 * larger ones by the merger, a thread of the tail's own. When all of them together are large the merger has the owner flush them, that is
 * write them where they stay for good, and then they leave the tail. If they come faster than they can be flushed, the writer waits.
 *
 *   writer    begin … the batch is written with the run … end
 *   reader    take a version … look with a cursor … give it back
 *   merger    merges, flushes, and merges all there is when nobody has written for a while
 *
 * A version is a moment: the runs there were, never changed. What the owner has flushed and what a version holds may overlap: a version's
 * runs are always laid over what is flushed, so the same changes again alter nothing. They must not miss anything, and what is flushed must
 * not be newer than the version: see store_tail_overtaken. Any thread reads; one writes. */
#pragma once

#include <pthread.h>

#include "store/run.h"

typedef struct store_tail store_tail;

typedef struct store_version {
    atomic_uint refs;
    uint64_t number; /* of the newest batch that it has */
    size_t bytes;
    size_t ranged; /* only the first so many runs may have ranges */
    size_t n;
    store_run *runs[]; /* the oldest first */
} store_version;

typedef struct store_tail_options {
    size_t bytes;    /* from which on they are flushed */
    uint64_t number; /* of the last batch there ever was */
    /* Merger's thread. Writes the runs of a version, which are the oldest of the tail, where they stay; all or, as far as readers can see,
     * nothing. Looks at store_tail_stops now and then. NULL: nothing is ever flushed, and nobody writes. */
    err (*flush)(void *context, const store_version *runs);
    void *context;
} store_tail_options;

store_tail *store_tail_open(const store_tail_options *options); /* NULL: no thread could be started for the merger */

/* Settles what is large, if it is the whole of the owner's log: one that could not be read to its end stays as it is. */
void store_tail_close(store_tail *tail, bool whole);

/* Waits until all that is there now is flushed, or that fails. Any thread but the writer's. */
void store_tail_drain(store_tail *tail);

/* ---- the writer ---- */

/* Before a batch is written: waits while the tail is too large. Not OK: it is, and flushing fails, for this reason. */
MUST_CHECK err store_tail_admit(store_tail *tail);
uint64_t store_tail_begin(store_tail *tail);                         /* the batch's number: from now on readers may meet it in the store */
void store_tail_end(store_tail *tail, store_run *run, bool written); /* takes the run, whose number it was given */
void store_tail_load(store_tail *tail, store_run *run);              /* as the owner finds them when it opens, the oldest first */

/* ---- readers ---- */

store_version *store_tail_take(store_tail *tail);
store_version *store_version_hold(store_version *version);
void store_version_give(store_version *version);

bool store_tail_writing(store_tail *tail, const store_version *version);   /* a later batch has begun to be written */
bool store_tail_await(store_tail *tail, uint64_t number);                  /* until that batch has ended; false: it failed */
bool store_tail_overtaken(store_tail *tail, const store_version *version); /* something newer may have begun to be flushed */
bool store_tail_stops(store_tail *tail);
size_t store_tail_held(store_tail *tail); /* bytes of memory */

typedef enum store_found { STORE_UNKNOWN, STORE_FOUND, STORE_GONE } store_found;

/* What the version says of a key. The value lives as long as its run, which is the caller's to give back when it is found. */
store_found store_version_get(const store_version *version, slice key, slice *value_out, store_run **run_out);

/* The range by which a run of the version deletes what is older than all of them, or NULL. */
const store_range *store_version_covers(const store_version *version, slice key);

/* ---- a cursor: all runs of a version as if they were one ---- */

typedef struct store_cursor_source {
    const store_run *run;
    size_t age; /* its place in the version: the larger, the newer */
    size_t at;
    slice key;
} store_cursor_source;

typedef struct store_cursor {
    const store_version *version;
    bool backward, live; /* live: it stands on a change */
    store_run_change change;
    size_t same; /* so many of the first sources stand on the change's key */
    size_t n;    /* sources that are not at their end, in order of their keys, the newest first among equals */
    store_cursor_source *sources;
} store_cursor;

void store_cursor_open(store_cursor *cursor, const store_version *version); /* which the caller holds on to */
void store_cursor_close(store_cursor *cursor);

/* To the first change from `key` on, or, backward, to the last one before it. key NULL: from the very beginning or end. */
void store_cursor_seek(store_cursor *cursor, const slice *key, bool backward);
void store_cursor_next(store_cursor *cursor);
