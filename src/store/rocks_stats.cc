#include "store/rocks_stats.h"

#include <rocksdb/db.h>

#include <cstdlib>
#include <map>
#include <string>

// RocksDB's C API declares these types and keeps their definitions to itself. They have been so in every version with a C API; the unit
// test store_figures fails if they change.
extern "C" {
struct rocksdb_t {
    rocksdb::DB *rep;
};
struct rocksdb_column_family_handle_t {
    rocksdb::ColumnFamilyHandle *rep;
};
}

void store__rocks_stats(rocksdb_t *db, rocksdb_column_family_handle_t *family, const char *property, store__stat each, void *context) {
    std::map<std::string, std::string> values;
    db->rep->GetMapProperty(family->rep, property, &values);
    for (const auto &value : values) {
        each(context, value.first.c_str(), std::strtod(value.second.c_str(), nullptr));
    }
}
