/* rocks_files.h — table files whose reads are counted, and can be told not to wait for the disk.
 *
 * A thread that may not wait reads from the kernel's page cache (RWF_NOWAIT). If a page is not there, the read fails, and RocksDB's call
 * ends with STORE_WOULD_WAIT in its message. So a loop answers what is in RocksDB's cache or in the page cache, and hands over the rest.
 *
 * The checksums of the log are computed by the processor's instruction for them, where it has one. */
#pragma once

#include <rocksdb/c.h>
#include <stdbool.h>
#include <stdint.h>

#define STORE_WOULD_WAIT "not in the page cache"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct store_files store_files; /* those of one database */

store_files *store__files_open(rocksdb_options_t *db_options); /* makes a database use such files */
void store__files_close(store_files *files);                   /* call when the database is closed; NULL is fine */

/* Blocks of tables that were not in RocksDB's cache, and their bytes: read by lookups, scans and compactions, from the page cache or the
 * disk. A long scan reads several blocks at a time. */
uint64_t store__files_reads(const store_files *files);
uint64_t store__files_bytes(const store_files *files);

/* Files are written to the disk a megabyte at a time, and their writer waits for the megabyte before: so at any moment a sync of the log
 * has little to wait for. The second is for a table that is written outside of the database. */
void store__files_write_steadily(rocksdb_options_t *db_options);
rocksdb_envoptions_t *store__files_steady(void);

/* Options to take in such a table: it is moved, and not changed, because RocksDB would sync the change while all writes wait. */
rocksdb_ingestexternalfileoptions_t *store__files_taking_in(void);

/* Whether reads of this thread fail where they would wait. Returns what it was before. */
bool store__files_no_wait(bool no_wait);

#ifdef __cplusplus
}
#endif
