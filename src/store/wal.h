/* wal.h — is RocksDB's log whole? Looked at before RocksDB opens it.
 *
 * After a loss of power the last batch may be torn: it was not synced, nobody was told of it, and RocksDB drops it. It would as quietly
 * drop everything after a batch that was damaged later, on the disk, and those batches were acknowledged. The two are told apart here:
 * batches are synced one after the other, so a whole one behind a damaged one means that the damaged one had been synced. */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* The logs in `dir`, RocksDB's folder. E_STORE_CORRUPT with the file, the place and the way out in `why`. */
MUST_CHECK err store_wal_check(const char *dir, char *why, size_t why_n);
