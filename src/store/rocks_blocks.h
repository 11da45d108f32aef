/* rocks_blocks.h — where a block of a table ends.
 *
 * A block of 4 KB suits small entries: a lookup searches one block, and what it reads of it is little. But it has only three or four rows
 * of 1 KB, and for a scan entering a block (its index entry, the cache's lookup) costs as much as several rows. So a block has a number of
 * entries at least, unless they are very large. */
#pragma once

#include <rocksdb/c.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A block ends as RocksDB's block size has it, but not before it has `entries` entries or `bytes` bytes. */
void store__blocks_of_entries(rocksdb_block_based_table_options_t *table, unsigned entries, size_t bytes);

#ifdef __cplusplus
}
#endif
