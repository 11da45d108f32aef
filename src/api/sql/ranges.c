/* GET …/pkranges and …/pkranges/{id}: the physical partitions, as SDKs read them to route requests. */
#include "api/sql/sql_int.h"

static void write_range(buf *out, const container *c, size_t i) {
    const partition_range *range = &c->space->map->ranges[i];
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
    json_add_double(out, 1.0 / (double)c->space->map->n);
    buf_addf(out, ",\"status\":\"%s\",\"parents\":[", partition_status_text(range->status));
    for (uint32_t p = 0; p < range->parents_n; p++) {
        buf_addf(out, "%s\"%u\"", p ? "," : "", range->parents[p]);
    }
    buf_addf(out, "],\"ownedArchivalPKRangeIds\":[],\"_ts\":%ld,\"lsn\":%lu}", (long)c->ts,
             (unsigned long)atomic_load_explicit(&c->space->ranges[i].lsn, memory_order_relaxed));
}

/* The map's version: readers who have it get 304 (If-None-Match with A-IM, as the .NET and Java SDKs poll it). */
static slice map_etag(sql_request *q) {
    return arena_printf(q->http->arena, "\"%u\"", q->container->space->map->next_id);
}

static void answer_same(sql_request *q) {
    sql_start(q, 304);
    sql_field_text(q, "etag", map_etag(q));
    sql_add_account(q);
    sql_add_container_paths(q, q->container);
    sql_start_body(q);
    sql_end(q);
}

void sql_range_list(sql_request *q) {
    uint32_t after;
    size_t max, n = 0;
    err code = sql_page_size(q, &max);
    code = code != OK ? code : sql_continuation_number(q, &after);
    code = code != OK ? code : sql_find_container(q);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    if (sql_has(q, FIELD_A_IM) && slice_eq(sql_get(q, FIELD_IF_NONE_MATCH), map_etag(q))) {
        answer_same(q);
        return;
    }
    const container *c = q->container;
    size_t last = after + max < c->space->map->n ? after + max : c->space->map->n;
    rid in = sql_container_rid(c);
    sql_start(q, 200);
    sql_field_text(q, "etag", map_etag(q));
    sql_add_account(q);
    sql_add_container_paths(q, c);
    buf_addf(sql_fields(q), "x-ms-item-count: %zu\r\n", last > after ? last - after : 0);
    if (last < c->space->map->n) {
        sql_add_continuation_number(q, (uint32_t)last);
    }
    buf *out = sql_start_body(q);
    sql_feed_open(out, &in, "PartitionKeyRanges");
    for (size_t i = after; i < last; i++, n++) {
        if (n) {
            buf_add_byte(out, ',');
        }
        write_range(out, c, i);
    }
    sql_feed_close(out, n);
    sql_end(q);
}

void sql_range_read(sql_request *q) {
    uint64_t id;
    const partition_range *range = NULL;
    err code = sql_find_container(q);
    if (code == OK && slice_to_u64(q->route.child, &id) && id <= UINT32_MAX) {
        range = partition_map_by_id(q->container->space->map, (uint32_t)id);
    }
    if (code != OK || !range) {
        sql_fail(q, code != OK ? code : E_NOT_FOUND);
        return;
    }
    sql_start(q, 200);
    sql_field_text(q, "etag", map_etag(q));
    sql_add_container_paths(q, q->container);
    write_range(sql_start_body(q), q->container, (size_t)(range - q->container->space->map->ranges));
    sql_end(q);
}
