/* rocks_memtable.h — a skip list of our own for RocksDB's memtables.
 *
 * RocksDB's own compares whole keys through virtual calls, and Debian's build checks the order again at all levels with every insert: a
 * third of a create. This one has the first bytes of the next key beside each link, so a search hardly touches nodes that it does not
 * step to, and it begins at the place of the last insert: keys that a batch adds in their order cost a few comparisons each.
 *
 * Nothing of it is on disk. */
#pragma once

#include <rocksdb/c.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a family use such memtables. Its keys must be ordered by their bytes, as by default. The database must not write concurrently
 * (rocksdb_options_set_allow_concurrent_memtable_write). */
void store__memtable_use(rocksdb_options_t *family_options);

/* Memory of flushed memtables is kept for the next ones, 64 MB at most in the process: gives it back. Any thread. */
void store__memtable_free_spare(void);

#ifdef __cplusplus
}
#endif
