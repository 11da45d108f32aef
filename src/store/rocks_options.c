/* RocksDB's options: how each family is written, merged and read. docs/layout.md, "Families", has the reasons and the figures.
 *
 * Two ways of merging tables:
 *
 *   leveled  each level is one sorted sequence, ten times as large as the one above it. A table that comes in is merged with what it
 *            overlaps, so keys in random order are rewritten about ten times in each level. Keys in ascending order are only moved.
 *   tiered   tables of similar age and size are merged into one sorted sequence (RocksDB calls it universal). An entry is rewritten once
 *            for each time that the data has grown by a few times. But merging everything needs as much free space as there is data.
 *
 * Items have ascending keys. Index entries and primary keys do not, so they are tiered, if the disk has room for it. */
#include "store/rocks_blocks.h"
#include "store/rocks_int.h"
#include "store/rocks_memtable.h"

enum {
    MEGABYTE = 1024 * 1024,
    TABLE_BYTES = 64 * MEGABYTE,
    TABLE_BYTES_LEAST = 2 * MEGABYTE, /* lower bounds, for small disks */
    WAL_BYTES_LEAST = 4 * MEGABYTE,
    LEVEL_BYTES = 256 * MEGABYTE,
    FILTER_BITS = 10,
    FILTER_BITS_KEYS = 12, /* of keys that a lookup seeks in each sequence */
    ITEM_BLOCK_BYTES = 16 * 1024,
    BLOCK_ENTRIES = 16, /* of STORE_INDEX at least, which has the rows of clustered containers */
    PART_BYTES = 4096,  /* size of a block of filters and indexes */
    /* Tiered families: sorted sequences that a read merges. Merging begins at a number that depends on the size (rocks_tiers.c). */
    TIERS_SLOWED = 96,   /* writes are delayed: so many come in during a load while two large merges take both processors */
    TIERS_STOPPED = 128, /* writes wait */
};

typedef struct family_shape {
    size_t memtable_bytes;
    int memtables;
    bool random_keys; /* tiered, if there is room */
    bool walked;      /* read by scans, not by whole keys */
} family_shape;

static const family_shape shapes[FAMILIES] = {
    [STORE_META] = {4 * MEGABYTE, 4, false, true},
    [STORE_ITEMS] = {64 * MEGABYTE, 3, false, false},
    [STORE_INDEX] = {64 * MEGABYTE, 3, true, false},
    [STORE_TERMS] = {4 * MEGABYTE, 4, true, true}, /* its memtable has range deletions only */
    [STORE_VERSIONS] = {64 * MEGABYTE, 2, false, true},
    [FAMILY_RUNS] = {32 * MEGABYTE, 4, false, false}, /* most runs in a full memtable are already deleted */
};

/* RocksDB preallocates whole files. So on a small disk files are small: a fraction of the space that is kept free. */
static uint64_t file_bytes(const char *dir, uint64_t usual, unsigned part, uint64_t least) {
    uint64_t space, floor;
    if (!store__space_read(dir, &space, &floor) || floor / part >= usual || floor == SPACE_RESERVE_BYTES) {
        return usual;
    }
    return floor / part > least ? floor / part : least;
}

/* ---- tables ---- */

static void shape_blocks(rocksdb_block_based_table_options_t *table, int family) {
    if (family == STORE_ITEMS) { /* large values, looked up by keys that exist */
        rocksdb_block_based_options_set_block_size(table, ITEM_BLOCK_BYTES);
        rocksdb_block_based_options_set_block_restart_interval(table, 1);
    } else if (family == STORE_VERSIONS) { /* large values, scanned in order */
        rocksdb_block_based_options_set_block_size(table, ITEM_BLOCK_BYTES);
    } else if (family != STORE_TERMS) {
        rocksdb_block_based_options_set_data_block_index_type(table,
                                                              rocksdb_block_based_table_data_block_index_type_binary_search_and_hash);
        rocksdb_block_based_options_set_data_block_hash_ratio(table, 0.75);
        store__blocks_of_entries(table, BLOCK_ENTRIES, ITEM_BLOCK_BYTES);
    }
}

/* Filters and indexes are cut into blocks of the cache, so that memory does not grow with the data. Of each table only the list of these
 * blocks stays in memory. */
static void set_parts(rocksdb_block_based_table_options_t *table) {
    rocksdb_block_based_options_set_index_type(table, rocksdb_block_based_table_index_type_two_level_index_search);
    rocksdb_block_based_options_set_partition_filters(table, 1);
    rocksdb_block_based_options_set_metadata_block_size(table, PART_BYTES);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(table, 1);
    rocksdb_block_based_options_set_pin_top_level_index_and_filter(table, 1);
}

static void set_tables(rocks *r, rocksdb_options_t *o, int family) {
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, r->cache);
    rocksdb_block_based_options_set_filter_policy(
        table, rocksdb_filterpolicy_create_bloom_full(family == STORE_INDEX ? FILTER_BITS_KEYS : FILTER_BITS));
    if (family == STORE_TERMS) { /* filters are queried by stem, never by whole key */
        rocksdb_block_based_options_set_whole_key_filtering(table, 0);
        rocksdb_options_set_prefix_extractor(o, store__stems());
    }
    rocksdb_block_based_options_set_format_version(table, 5);
    set_parts(table);
    shape_blocks(table, family);
    rocksdb_options_set_block_based_table_factory(o, table);
    rocksdb_block_based_options_destroy(table);
    /* The same in every level: tables that need no merging are moved down, not rewritten. */
    rocksdb_options_set_compression(o, rocksdb_lz4_compression);
    rocksdb_options_set_optimize_filters_for_hits(o, family == STORE_ITEMS || family == STORE_TERMS);
}

/* ---- merging ---- */

static void set_tiers(rocks *r, rocksdb_options_t *o, int family) {
    rocksdb_options_set_compaction_style(o, rocksdb_universal_compaction);
    store__tiers_begin(r, o, family, store__tables_bytes(r->db_path) / 2); /* no family is known yet */
    rocksdb_options_set_level0_slowdown_writes_trigger(o, TIERS_SLOWED);
    rocksdb_options_set_level0_stop_writes_trigger(o, TIERS_STOPPED);
}

static void set_levels(rocksdb_options_t *o) {
    rocksdb_options_set_level_compaction_dynamic_level_bytes(o, 1);
    rocksdb_options_set_max_bytes_for_level_base(o, LEVEL_BYTES);
    rocksdb_options_set_max_compaction_bytes(o, STORE_COMPACTION_BYTES);
}

rocksdb_options_t *store__family_options(rocks *r, int family) {
    const family_shape *shape = &shapes[family];
    rocksdb_options_t *o = rocksdb_options_create();
    set_tables(r, o, family);
    shape->random_keys && r->tiered ? set_tiers(r, o, family) : set_levels(o);
    store__memtable_use(o);
    rocksdb_options_set_write_buffer_size(o, shape->memtable_bytes);
    rocksdb_options_set_max_write_buffer_number(o, shape->memtables);
    rocksdb_options_set_disable_auto_compactions(o, r->opened_low);
    rocksdb_options_set_target_file_size_base(o, file_bytes(r->folder.dir, TABLE_BYTES, 8, TABLE_BYTES_LEAST));
    rocksdb_options_set_memtable_whole_key_filtering(o, !shape->walked);
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(o, shape->walked ? 0 : 0.02);
    return o;
}

bool store__is_tiered(const rocks *r, int family) {
    return r->tiered && shapes[family].random_keys;
}

/* ---- the database ---- */

rocksdb_options_t *store__db_options(rocks *r) {
    rocksdb_options_t *o = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(o, 1);
    rocksdb_options_set_create_missing_column_families(o, 1);
    rocksdb_options_set_max_open_files(o, -1);
    rocksdb_options_set_max_background_flushes(o, STORE_FLUSHES); /* so that no family waits for another one's flush */
    rocksdb_options_set_max_background_compactions(o, STORE_COMPACTIONS);
    rocksdb_options_set_max_file_opening_threads(o, STORE_OPENING_THREADS);
    rocksdb_options_set_max_total_wal_size(o, file_bytes(r->folder.dir, r->log_bytes, 3, WAL_BYTES_LEAST));
    /* Only the last group of the log can be unsynced, and its pages may reach the disk in any order: reading stops at the first torn
     * record. */
    rocksdb_options_set_wal_recovery_mode(o, rocksdb_point_in_time_recovery);
    rocksdb_options_set_info_log_level(o, 2); /* warnings */
    rocksdb_options_set_keep_log_file_num(o, 4);
    rocksdb_options_set_max_log_file_size(o, 4 * MEGABYTE);
    rocksdb_options_set_stats_dump_period_sec(o, 0);
    rocksdb_options_set_stats_persist_period_sec(o, 0);
    rocksdb_options_set_skip_stats_update_on_db_open(o, 1);
    store__files_write_steadily(o);
    rocksdb_options_set_enable_pipelined_write(o, 0);
    rocksdb_options_set_allow_concurrent_memtable_write(o, 0);
    r->files = store__files_open(o);
    return o;
}
