/* rocks_stats.h — RocksDB's map properties, which its C API does not have: the numbers of a family by name. */
#pragma once

#include <rocksdb/c.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*store__stat)(void *context, const char *name, double value);

/* Calls `each` for every number of the property ("rocksdb.cfstats" has "compaction.L0.WriteGB" and so on). */
void store__rocks_stats(rocksdb_t *db, rocksdb_column_family_handle_t *family, const char *property, store__stat each, void *context);

#ifdef __cplusplus
}
#endif
