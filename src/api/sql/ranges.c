/* GET …/pkranges and …/pkranges/{id}: the physical partitions, as SDKs read them to route requests. */
#include "api/sql/sql_int.h"

static double rate_of_all(const container *c) {
    range_info info;
    double all = 0;
    for (size_t i = 0; range_info_at(c, i, &info); i++) {
        all += info.rate;
    }
    return all;
}

static size_t count_of_all(const container *c) {
    range_info info;
    size_t n = 0;
    while (range_info_at(c, n, &info)) {
        n++;
    }
    return n;
}

/* The range's fraction of the container's throughput. */
static double fraction_of(const container *c, const range_info *info) {
    double all = rate_of_all(c);
    return all > 0 ? info->rate / all : 1.0 / (double)count_of_all(c);
}

static void write_range(buf *out, const container *c, const range_info *info, double fraction) {
    const partition_range *range = &info->range;
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
    json_add_double(out, fraction);
    buf_addf(out, ",\"status\":\"%s\",\"parents\":[", partition_status_text(range->status));
    for (uint32_t p = 0; p < range->parents_n; p++) {
        buf_addf(out, "%s\"%u\"", p ? "," : "", range->parents[p]);
    }
    buf_addf(out, "],\"ownedArchivalPKRangeIds\":[],\"_ts\":%ld,\"lsn\":%lu}", (long)c->ts, (unsigned long)info->mark.lsn);
}

/* The map's version. A client that already has it gets 304 (If-None-Match with A-IM, as the .NET and Java SDKs poll it). */
static slice map_etag(sql_request *q) {
    return arena_printf(q->http->arena, "\"%u\"", range_next_id(q->container));
}

static void answer_same(sql_request *q) {
    sql_start(q, 304);
    sql_field_text(q, "etag", map_etag(q));
    sql_add_account(q);
    sql_add_container_paths(q, q->container);
    sql_start_body(q);
    sql_end(q);
}

/* The etag "7" of an earlier answer means that ranges made since have ids from 7 on. Returns 0, meaning all ranges, for anything else. */
static uint32_t known_before(const sql_request *q) {
    slice etag = sql_get(q, FIELD_IF_NONE_MATCH);
    uint64_t number = 0;
    bool quoted = etag.n > 2 && etag.p[0] == '"' && etag.p[etag.n - 1] == '"';
    bool known = sql_has(q, FIELD_A_IM) && quoted && slice_to_u64(slice_of(etag.p + 1, etag.n - 2), &number) &&
                 number <= range_next_id(q->container);
    return known ? (uint32_t)number : 0;
}

static size_t write_ranges(buf *out, const container *c, uint32_t from_id) {
    range_info info;
    size_t n = 0, count = count_of_all(c);
    double all = rate_of_all(c);
    for (size_t i = 0; range_info_at(c, i, &info); i++) {
        if (info.range.id >= from_id) {
            if (n++) {
                buf_add_byte(out, ',');
            }
            write_range(out, c, &info, all > 0 ? info.rate / all : 1.0 / (double)count);
        }
    }
    return n;
}

/* Returns all ranges in one page, whatever the page size: the map may change between pages, and the pages would not fit together. */
void sql_range_list(sql_request *q) {
    err code = sql_find_container(q);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    uint32_t known = known_before(q);
    if (known == range_next_id(q->container)) {
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
    range_info info;
    err code = sql_find_container(q);
    bool is_number = slice_to_u64(q->route.child, &id) && id <= UINT32_MAX;
    if (code != OK || !is_number || !range_info_by_id(q->container, (uint32_t)id, &info)) {
        sql_fail(q, code != OK ? code : E_NOT_FOUND);
        return;
    }
    sql_start(q, 200);
    sql_field_text(q, "etag", map_etag(q));
    sql_add_container_paths(q, q->container);
    write_range(sql_start_body(q), q->container, &info, fraction_of(q->container, &info));
    sql_end(q);
}
