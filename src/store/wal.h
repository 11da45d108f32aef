/* wal.h — checks RocksDB's log for damage before RocksDB opens it.
 *
 * After a power loss the last batch may be torn. It was not synced, so it was never acknowledged, and RocksDB drops it. But RocksDB would
 * as quietly drop everything after a batch that was damaged later, on the disk, and those batches were acknowledged. This check tells the
 * two cases apart: batches are synced one after the other, so a whole batch after a damaged one means that the damaged one had been
 * synced. */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* Checks the logs in `dir`, RocksDB's folder. On E_STORE_CORRUPT, `why` names the file, the offset and what to do about it. */
MUST_CHECK err store_wal_check(const char *dir, char *why, size_t why_n);
