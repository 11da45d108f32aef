#include "api/sql/authorization.h"
#include "api/sql/listing.h"
#include "query/schema.h"
#include "throughput/charge.h"

/* The largest partition keys among those that the range has sampled. */
static void write_keys(buf *out, const container *c, size_t position) {
    hotkey top[HOTKEYS_TOP];
    size_t n = range_largest_keys(c, position, top);
    for (size_t i = 0, written = 0; i < n; i++) {
        if (top[i].text_n < HOTKEY_TEXT_MAX) { /* a longer body is truncated, which is then not valid JSON */
            buf_addf(out, "%s{\"partitionKey\":%.*s,\"sizeInKB\":%lu}", written++ ? "," : "", (int)top[i].text_n, top[i].text,
                     (unsigned long)top[i].value / 1024);
        }
    }
}

/* The format that SDKs expect when they request partition statistics. */
static void write_statistics(buf *out, const container *c) {
    range_info info;
    for (size_t i = 0; range_info_at(c, i, &info); i++) {
        buf_addf(out,
                 "%s{\"id\":\"%u\",\"sizeInKB\":%lu,\"documentCount\":%lu,\"sampledDistinctPartitionKeyCount\":%lu,\"partitionKeys\":[",
                 i ? "," : "", info.range.id, (unsigned long)(info.usage.bytes + info.usage.index_bytes) / 1024,
                 (unsigned long)info.usage.items, (unsigned long)info.partitions);
        write_keys(out, c, i);
        buf_add_lit(out, "]}");
    }
}

/* Since this version all containers have a partition key: those without one show a key of the system, which no item has. */
static bool shows_system_key(const sql_request *q, const container *c) {
    return c->key.n == 0 && sql_version_at_least(q, "2018-12-31");
}

static void write_container(buf *out, const container *c, bool system_key, bool statistics) {
    char etag[ITEM_ETAG_BYTES + 1];
    rid r = sql_container_rid(c), database = rid_database_of(&r);
    item_etag(etag, c->version, (uint32_t)c->ts);
    json_from_bson_open(out, c->settings);
    if (system_key) {
        buf_add_lit(out, ",\"partitionKey\":{\"paths\":[\"/_partitionKey\"],\"kind\":\"Hash\",\"systemKey\":true}");
    }
    buf_add_lit(out, ",\"_rid\":\"");
    rid_write(out, &r);
    buf_add_lit(out, "\",\"_ts\":");
    buf_add_i64(out, c->ts);
    buf_add_lit(out, ",\"_self\":\"dbs/");
    rid_write(out, &database);
    buf_add_lit(out, "/colls/");
    rid_write(out, &r);
    buf_add_lit(out, "/\",\"_etag\":");
    json_add_string(out, slice_of(etag, ITEM_ETAG_BYTES));
    buf_add_lit(
        out, ",\"_docs\":\"docs/\",\"_sprocs\":\"sprocs/\",\"_triggers\":\"triggers/\",\"_udfs\":\"udfs/\",\"_conflicts\":\"conflicts/\"");
    if (statistics) {
        buf_add_lit(out, ",\"statistics\":[");
        write_statistics(out, c);
        buf_add_byte(out, ']');
    }
    buf_add_byte(out, '}');
}

static void answer(sql_request *q, unsigned status) {
    const container *c = q->container;
    sql_start(q, status);
    sql_add_etag(q, c->version, (uint32_t)c->ts);
    sql_add_range(q, range_mark_first(c));
    sql_add_usage(q, range_usage_of_all(c));
    buf_addf(sql_fields(q), "x-ms-documentdb-collection-index-transformation-progress: %u\r\n", container_space_progress(c->space));
    buf_add_lit(sql_fields(q), "x-ms-cosmos-max-content-length: 2097152\r\n"
                               "collection-partition-index: 0\r\ncollection-service-index: 0\r\n");
    write_container(sql_start_body(q), c, shows_system_key(q, c), sql_flag(q, FIELD_STATISTICS) && sql_access_covers_container(q));
    sql_end(q);
}

/* ---- create, replace, delete ---- */

static void made(sql_request *q, container *c) {
    op_charge(&q->op, CHARGE_METADATA_WRITE);
    q->container = c;
    sql_change_code(q) == OK ? answer(q, q->http->method == VERB_POST ? 201 : 200) : sql_fail(q, sql_change_code(q));
}

static void created(sql_request *q) {
    made(q, ((container_creation *)q->change)->container_out);
}

static void replaced(sql_request *q) {
    made(q, ((container_replacement *)q->change)->container_out);
}

/* Computed properties are queries, which the account layer cannot check: they are checked here. */
static err read_settings(sql_request *q, slice *settings_out) {
    TRY(sql_body(q, JSON_OBJECT, settings_out));
    return query_schema_check(&q->op, *settings_out);
}

void sql_container_create(sql_request *q) {
    container_creation *create = sql_new_change(q, container_creation);
    create->database = sql_database_name(q);
    create->hierarchical_allowed = sql_version_at_least(q, "2020-07-15");
    err code = read_settings(q, &create->settings);
    code = code != OK ? code : sql_throughput(q, &create->throughput);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_await_change(q, created);
    account_create_container(create);
}

void sql_container_replace(sql_request *q) {
    container_replacement *replace = sql_new_change(q, container_replacement);
    replace->database = sql_database_name(q);
    replace->container = sql_container_name(q);
    replace->api = SLICE_LIT("sql");
    err code = read_settings(q, &replace->settings);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_await_change(q, replaced);
    account_replace_container(replace);
}

void sql_container_delete(sql_request *q) {
    container_deletion *remove = sql_new_change(q, container_deletion);
    remove->database = sql_database_name(q);
    remove->container = sql_container_name(q);
    sql_await_change(q, sql_deleted);
    account_delete_container(remove);
}

/* ---- read, list ---- */

void sql_container_read(sql_request *q) {
    op_charge(&q->op, CHARGE_METADATA_READ);
    err code = sql_find_container(q);
    const container *c = q->container;
    if (code != OK) {
        sql_fail(q, code);
    } else if (item_etag_matches(sql_get(q, FIELD_IF_NONE_MATCH), c->version, (uint32_t)c->ts)) {
        sql_not_modified(q, c->version, (uint32_t)c->ts);
    } else {
        answer(q, 200);
    }
}

static err find_mark(sql_request *q, item_mark *mark_out) {
    uint32_t id;
    range_info info;
    item_key key;
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    *mark_out = range_mark_first(q->container);
    if (sql_has(q, FIELD_RANGE_ID)) {
        TRY(sql_range_id(q, &id));
        if (!range_info_by_id(q->container, id, &info)) {
            return E_RANGE_GONE;
        }
        *mark_out = info.mark;
    } else if (q->key_given) {
        TRY(item_check_key(&q->op, q->container, &q->partition, SLICE_EMPTY, &key));
        *mark_out = range_mark_at(q->container, &key.epk);
    }
    return OK;
}

/* A barrier of direct mode: how far the range has come that the request names, by its id or by a partition key. */
void sql_container_head(sql_request *q) {
    item_mark mark;
    err code = find_mark(q, &mark);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_start(q, 200);
    sql_add_range(q, mark);
    sql_end(q);
}

static bool list_one(void *context, const container *c) {
    sql_listing *l = context;
    buf *out = sql_listing_add(l, c->space->container);
    if (out) {
        write_container(out, c, shows_system_key(l->q, c), false);
    }
    return out;
}

static void list_all(sql_listing *l) {
    account_each_container(l->q->front->account, l->q->database, l->after, list_one, l);
}

void sql_container_list(sql_request *q) {
    err code = sql_find_database(q);
    if (code != OK) {
        sql_fail(q, code == E_NOT_FOUND ? E_OWNER_NOT_FOUND : code);
        return;
    }
    sql_listing_run(q, &q->database->rid, "DocumentCollections", list_all);
}
