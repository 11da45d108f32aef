/* fault.h — a store that wraps another and fails when told to, for tests: the n-th read, write or scan from now. */
#pragma once

#include "store/store.h"

typedef struct store_fault_plan {
    /* Calls until the failure: 1 fails the next one, 0 never. After it has fired, calls succeed again unless `sticky`. */
    unsigned get_in, write_in, scan_in;
    err code;
    bool sticky;
    store_use room; /* batches of an earlier use are refused as by a full disk */
    bool torn;      /* the failing write reaches the store beneath all the same: a disk that fails after the fact */
    unsigned fired;
} store_fault_plan;

/* The plan is the caller's and may be changed between calls; the inner store is closed with this one. */
store *store_open_fault(store *inner, store_fault_plan *plan);
