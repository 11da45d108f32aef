/* rocks_files.h — table files whose reads can be told not to wait for the disk.
 *
 * A thread that may not wait reads from the kernel's page cache (RWF_NOWAIT). If a page is not there, the read fails, and RocksDB's call
 * ends with STORE_WOULD_WAIT in its message. So a loop answers what is in RocksDB's cache or in the page cache, and hands over the rest. */
#pragma once

#include <rocksdb/c.h>
#include <stdbool.h>

#define STORE_WOULD_WAIT "not in the page cache"

#ifdef __cplusplus
extern "C" {
#endif

void store__files_use(rocksdb_options_t *db_options); /* makes a database use such files */

/* Whether reads of this thread fail where they would wait. Returns what it was before. */
bool store__files_no_wait(bool no_wait);

#ifdef __cplusplus
}
#endif
