/* The metrics of stores: a line for each family of each store, and for each level that has files. */
#include "api/admin/metrics.h"

typedef struct family_metric {
    const char *name, *type, *help;
    size_t at;
} family_metric;

#define AT(field) offsetof(store_family_figures, field)
static const family_metric family_metrics[] = {
    {"tesela_store_bytes", "gauge", "Size of the tables.", AT(bytes)},
    {"tesela_store_entries", "gauge", "Entries in the tables, deletions included.", AT(entries)},
    {"tesela_store_deletions", "gauge", "Deletions among them.", AT(deletions)},
    {"tesela_store_filter_bytes", "gauge", "Size of the filters in the tables.", AT(filter_bytes)},
    {"tesela_store_index_bytes", "gauge", "Size of the tables' own indexes.", AT(index_bytes)},
    {"tesela_store_memtable_bytes", "gauge", "Memory of entries that are not in tables yet.", AT(memtable_bytes)},
    {"tesela_store_reader_bytes", "gauge", "Memory of open tables outside of the cache.", AT(reader_bytes)},
    {"tesela_store_pending_bytes", "gauge", "Bytes that compactions have yet to rewrite.", AT(pending_bytes)},
    {"tesela_store_logged_bytes_total", "counter", "Keys and values written to the log.", AT(logged)},
    {"tesela_store_flushed_bytes_total", "counter", "Tables written by flushes.", AT(flushed)},
    {"tesela_store_ingested_bytes_total", "counter", "Tables written from sorted index entries.", AT(ingested)},
    {"tesela_store_compacted_bytes_total", "counter", "Tables written by compactions.", AT(compacted)},
    {"tesela_store_read_back_bytes_total", "counter", "Tables read by compactions.", AT(read_back)},
    {"tesela_store_slowed_total", "counter", "How often writes were delayed because compaction was behind.", AT(slowed)},
    {"tesela_store_stopped_total", "counter", "How often writes were stopped because compaction was behind.", AT(stopped)},
};

static void add_family_metric(buf *out, const metrics *m, const family_metric *metric) {
    metrics_add_head(out, metric->name, metric->type, metric->help);
    for (size_t i = 0; i < m->stores_n; i++) {
        for (size_t j = 0; j < m->stores[i].n; j++) {
            const store_family_figures *f = &m->stores[i].families[j];
            buf_addf(out, "%s{store=\"%zu\",family=\"%s\"}", metric->name, i, f->name);
            metrics_add_value(out, (double)*(const uint64_t *)(const void *)((const char *)f + metric->at));
        }
    }
}

static void add_levels(buf *out, const metrics *m) {
    const char *name = "tesela_store_level_bytes";
    metrics_add_head(out, name, "gauge", "Size of the tables of one level.");
    for (size_t i = 0; i < m->stores_n; i++) {
        for (size_t j = 0; j < m->stores[i].n; j++) {
            const store_family_figures *f = &m->stores[i].families[j];
            for (size_t level = 0; level < STORE_LEVELS; level++) {
                if (f->levels[level].files) {
                    buf_addf(out, "%s{store=\"%zu\",family=\"%s\",level=\"%zu\"}", name, i, f->name, level);
                    metrics_add_value(out, (double)f->levels[level].bytes);
                }
            }
        }
    }
}

static void add_store_metric(buf *out, const metrics *m, const char *name, const char *type, const char *help, size_t at) {
    metrics_add_head(out, name, type, help);
    for (size_t i = 0; i < m->stores_n; i++) {
        buf_addf(out, "%s{store=\"%zu\"}", name, i);
        metrics_add_value(out, (double)*(const uint64_t *)(const void *)((const char *)&m->stores[i] + at));
    }
}

void metrics_add_stores(buf *out, const metrics *m) {
    if (!m->stores_n) {
        return;
    }
    for (size_t i = 0; i < sizeof family_metrics / sizeof *family_metrics; i++) {
        add_family_metric(out, m, &family_metrics[i]);
    }
    add_levels(out, m);
    add_store_metric(out, m, "tesela_store_cache_bytes", "gauge", "Size of the block cache.", offsetof(store_figures, cache_bytes));
    add_store_metric(out, m, "tesela_store_cache_used_bytes", "gauge", "How much of it is in use.", offsetof(store_figures, cache_used));
    add_store_metric(out, m, "tesela_store_tail_bytes", "gauge", "Index entries in memory.", offsetof(store_figures, tail_bytes));
    add_store_metric(out, m, "tesela_store_log_bytes", "gauge", "Size of the log's files.", offsetof(store_figures, log_bytes));
    add_store_metric(out, m, "tesela_store_table_reads_total", "counter", "Blocks of tables that were not in the cache.",
                     offsetof(store_figures, table_reads));
    add_store_metric(out, m, "tesela_store_table_read_bytes_total", "counter", "Bytes of such blocks.",
                     offsetof(store_figures, table_read_bytes));
}
