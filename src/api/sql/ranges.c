/* GET …/pkranges and …/pkranges/{id}: the physical partitions, as SDKs read them to route requests. */
#include "api/sql/sql_int.h"

static double rate_of(const container_range *range) {
    return atomic_load_explicit(&container_range_bucket(range)->rate, memory_order_relaxed);
}

static double rate_of_all(const container_tiles *tiles) {
    double all = 0;
    for (size_t i = 0; i < tiles->map->n; i++) {
        all += rate_of(tiles->ranges[i]);
    }
    return all;
}

/* `all`: what the ranges together may spend; 0: no limit. */
static void write_range(buf *out, const container *c, size_t i, double all) {
    const partition_range *range = &c->tiles->map->ranges[i];
    rid in = sql_container_rid(c), database = rid_database_of(&in), r = rid_child(in, RID_PKRANGE, (uint64_t)range->id + 1);
    char etag[ITEM_ETAG_BYTES + 1];
    item_etag(etag, c->version, (uint32_t)c->ts);
    buf_add_lit(out, "{\"_rid\":\"");
    rid_write(out, &r);
    buf_addf(out, "\",\"id\":\"%u\",\"_etag\":", range->id);
    json_add_string(out, slice_of(etag, ITEM_ETAG_BYTES));
    buf_add_lit(out, ",\"minInclusive\":\"");
    epk_write(out, &range->min);
    buf_add_lit(out, "\",\"maxExclusive\":\"");
    epk_write(out, &range->max);
    buf_addf(out, "\",\"ridPrefix\":%u,\"_self\":\"dbs/", range->rid_prefix);
    rid_write(out, &database);
    buf_add_lit(out, "/colls/");
    rid_write(out, &in);
    buf_add_lit(out, "/pkranges/");
    rid_write(out, &r);
    buf_add_lit(out, "/\",\"throughputFraction\":");
    json_add_double(out, all > 0 ? rate_of(c->tiles->ranges[i]) / all : 1.0 / (double)c->tiles->map->n);
    buf_addf(out, ",\"status\":\"%s\",\"parents\":[", partition_status_text(range->status));
    for (uint32_t p = 0; p < range->parents_n; p++) {
        buf_addf(out, "%s\"%u\"", p ? "," : "", range->parents[p]);
    }
    buf_addf(out, "],\"ownedArchivalPKRangeIds\":[],\"_ts\":%ld,\"lsn\":%lu}", (long)c->ts,
             (unsigned long)atomic_load_explicit(&c->tiles->ranges[i]->lsn, memory_order_relaxed));
}

/* The map's version: readers who have it get 304 (If-None-Match with A-IM, as the .NET and Java SDKs poll it). */
static slice map_etag(sql_request *q) {
    return arena_printf(q->http->arena, "\"%u\"", q->container->tiles->map->next_id);
}

static void answer_same(sql_request *q) {
    sql_start(q, 304);
    sql_field_text(q, "etag", map_etag(q));
    sql_add_account(q);
    sql_add_container_paths(q, q->container);
    sql_start_body(q);
    sql_end(q);
}

/* "7" of an earlier answer: ranges made since then have ids from 7 on. Anything else: all of them. */
static uint32_t known_before(const sql_request *q) {
    slice etag = sql_get(q, FIELD_IF_NONE_MATCH);
    uint64_t number = 0;
    bool quoted = etag.n > 2 && etag.p[0] == '"' && etag.p[etag.n - 1] == '"';
    bool known = sql_has(q, FIELD_A_IM) && quoted && slice_to_u64(slice_of(etag.p + 1, etag.n - 2), &number) &&
                 number <= q->container->tiles->map->next_id;
    return known ? (uint32_t)number : 0;
}

static size_t write_ranges(buf *out, const container *c, uint32_t from_id) {
    size_t n = 0;
    double all = rate_of_all(c->tiles);
    for (size_t i = 0; i < c->tiles->map->n; i++) {
        if (c->tiles->map->ranges[i].id >= from_id) {
            if (n++) {
                buf_add_byte(out, ',');
            }
            write_range(out, c, i, all);
        }
    }
    return n;
}

/* All of them in one page, whatever the page size: pages of a map that changes between them would not fit together. */
void sql_range_list(sql_request *q) {
    err code = sql_find_container(q);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    uint32_t known = known_before(q);
    if (known == q->container->tiles->map->next_id) {
        answer_same(q);
        return;
    }
    rid in = sql_container_rid(q->container);
    buf list = buf_init(BUF_NO_LIMIT);
    size_t n = write_ranges(&list, q->container, known);
    sql_start(q, 200);
    sql_field_text(q, "etag", map_etag(q));
    sql_add_account(q);
    sql_add_container_paths(q, q->container);
    buf_addf(sql_fields(q), "x-ms-item-count: %zu\r\n", n);
    buf *out = sql_start_body(q);
    sql_feed_open(out, &in, "PartitionKeyRanges");
    buf_add_slice(out, buf_view(&list));
    sql_feed_close(out, n);
    buf_free(&list);
    sql_end(q);
}

void sql_range_read(sql_request *q) {
    uint64_t id;
    const partition_range *range = NULL;
    err code = sql_find_container(q);
    if (code == OK && slice_to_u64(q->route.child, &id) && id <= UINT32_MAX) {
        range = partition_map_by_id(q->container->tiles->map, (uint32_t)id);
    }
    if (code != OK || !range) {
        sql_fail(q, code != OK ? code : E_NOT_FOUND);
        return;
    }
    sql_start(q, 200);
    sql_field_text(q, "etag", map_etag(q));
    sql_add_container_paths(q, q->container);
    const container_tiles *tiles = q->container->tiles;
    write_range(sql_start_body(q), q->container, (size_t)(range - tiles->map->ranges), rate_of_all(tiles));
    sql_end(q);
}
