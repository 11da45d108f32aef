/* failing_store.h — for tests: wraps another store, and makes the n-th read, write or scan from now fail. */
#pragma once

#include <stdatomic.h>

#include "store/store.h"

typedef struct store_fault_plan {
    /* Calls until the failure: 1 fails the next one, 0 never. After a failure, calls succeed again unless `sticky`. */
    unsigned get_in, write_in, scan_in;
    unsigned miss_in; /* the same for a get in memory, which then does not find the key there */
    err code;
    bool sticky;
    atomic_bool behind; /* as if the disk did not keep up */
    store_use room;     /* batches with a lower use are refused, as by a full disk */
    bool torn;          /* the failing write is carried out all the same: a disk that reports an error too late */
    unsigned fired;
    atomic_uint disk_ms;     /* a slow disk: nothing is in memory, and each get takes this long; 0: off */
    atomic_bool disk_cached; /* of that disk: a key that was read or written is in memory */
    atomic_bool disk_scans;  /* of that disk: the same for each row of a scan */
    atomic_uint disk_held;   /* how often the committer waited for that disk */
} store_fault_plan;

/* The caller owns the plan and may change it between calls. Closing this store closes the inner one. */
store *store_open_fault(store *inner, store_fault_plan *plan);
