/* Decoding shared by all requests: names, partition keys, page sizes, throughput. */
#include <stdlib.h>

#include "api/sql/authorization.h"
#include "api/sql/itembody.h"
#include "api/sql/sql_int.h"
#include "item/foreign.h"

bool sql_flag(const sql_request *q, sql_field field) {
    slice value = sql_get(q, field);
    return slice_eq_nocase(value, SLICE_LIT("true")) || slice_eq(value, SLICE_LIT("1"));
}

bool sql_version_at_least(const sql_request *q, const char *date) {
    slice version = sql_get(q, FIELD_VERSION);
    return version.n >= 10 && slice_cmp(slice_of(version.p, 10), slice_str(date)) >= 0;
}

err sql_find_database(sql_request *q) {
    return account_database(q->front->account, q->route.database, q->route.database_by_rid, &q->database);
}

static bool is_another(const sql_request *q, slice text) {
    rid r;
    return text.n && (rid_parse(text, &r) != RID_CONTAINER || memcmp(r.bytes, q->container->rid, sizeof q->container->rid) != 0);
}

/* A container may have been deleted and made again under its name. What clients intend is checked for them; in direct mode they also say
 * which container they have cached, and read it again when that is no longer the one. */
static err check_rids(sql_request *q) {
    return is_another(q, sql_get(q, FIELD_INTENDED_RID)) ? E_WRONG_CONTAINER_RID
           : is_another(q, sql_get(q, FIELD_CACHED_RID)) ? E_NAME_STALE
                                                         : OK;
}

static bool is_foreign(const container *c) {
    return !slice_eq(c->api, SLICE_LIT("sql"));
}

int64_t sql_foreign_ms(const sql_request *q) {
    return is_foreign(q->container) ? net_loop_wall_ms(q->http->client->loop) : 0;
}

/* Containers of other APIs can be read. Items can be written if the API adopts them (item/foreign.h); scripts, attachments and the like
 * belong to the SQL API's own containers. */
static err check_api(sql_request *q) {
    slice api = q->container->api;
    sql_kind kind = q->route.kind;
    bool reads = q->http->method == VERB_GET || q->http->method == VERB_HEAD || sql_access_is_query(q);
    bool items = kind == SQL_ITEMS || kind == SQL_ITEM || kind == SQL_PARTITION_KEY_DELETE;
    const item_owner *owner = item_owner_of(q->container);
    if (reads || !is_foreign(q->container) || (items && owner)) {
        return OK;
    }
    return op_fail(&q->op, E_FORBIDDEN, "The container was made by the %.*s API: the SQL API reads %s; change %s there.", slice_shown(api),
                   api.p, owner ? "and writes its items only" : "its items", owner ? "everything else" : "them");
}

err sql_find_container(sql_request *q) {
    const sql_route *route = &q->route;
    err code = account_container(q->front->account, route->database, route->database_by_rid, route->container, route->container_by_rid,
                                 &q->container);
    if (code == E_NOT_FOUND && route->kind != SQL_CONTAINER) {
        code = E_OWNER_NOT_FOUND;
    }
    if (code != OK) {
        return op_fail(&q->op, code, "%s",
                       code == E_OWNER_NOT_FOUND ? "Owner resource does not exist"
                                                 : "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found");
    }
    TRY(sql_access_check_container(q));
    TRY(check_api(q));
    return check_rids(q);
}

err sql_partition_key(sql_request *q) {
    slice header = sql_get(q, FIELD_PARTITION_KEY);
    q->key_given = header.p != NULL;
    return q->key_given ? pkey_parse(&q->op, header, &q->partition) : OK;
}

const pkey *sql_header_key(const sql_request *q) {
    return q->key_given ? &q->partition : NULL;
}

/* "3", or "DJB7AI1lZHo=,3" with the container's rid in front, as some SDKs send it. */
err sql_range_id(sql_request *q, uint32_t *id_out) {
    slice text = sql_get(q, FIELD_RANGE_ID);
    const char *comma = memchr(text.p, ',', text.n);
    slice id = comma ? slice_skip(text, (size_t)(comma - text.p) + 1) : text;
    uint64_t number;
    if (!slice_to_u64(id, &number) || number > UINT32_MAX) {
        return op_fail(&q->op, E_BAD_REQUEST, "x-ms-documentdb-partitionkeyrangeid must be a range's id.");
    }
    *id_out = (uint32_t)number;
    return OK;
}

err sql_page_size(sql_request *q, size_t *size_out) {
    slice text = sql_get(q, FIELD_MAX_ITEM_COUNT);
    int64_t size = 0;
    if (text.n && (!slice_to_i64(text, &size) || size < -1)) {
        return op_fail(&q->op, E_BAD_REQUEST,
                       "The input PageSize %.*s is invalid. Ensure to provide a positive integer or -1 which means the server decides.",
                       slice_shown(text), text.p);
    }
    *size_out = size == 0 ? LIMIT_PAGE_ITEMS_DEFAULT : size < 0 || size > LIMIT_PAGE_ITEMS_MAX ? LIMIT_PAGE_ITEMS_MAX : (size_t)size;
    return OK;
}

/* ---- throughput ---- */

bool sql_whole(slice document, const doc_path *path, uint32_t *value_out) {
    bson_iter_t it;
    if (!doc_find(document, path, &it) || !BSON_ITER_HOLDS_NUMBER(&it)) {
        return false;
    }
    double value = bson_iter_as_double(&it);
    *value_out = value >= 0 && value <= UINT32_MAX && value == (double)(uint32_t)value ? (uint32_t)value : UINT32_MAX;
    return true;
}

bool sql_autopilot(slice settings, throughput_setting *setting_out) {
    doc_path most = {.steps = (slice[]){SLICE_LIT("maxThroughput")}, .steps_n = 1};
    doc_path increment = {.steps = (slice[]){SLICE_LIT("autoUpgradePolicy"), SLICE_LIT("throughputPolicy"), SLICE_LIT("incrementPercent")},
                          .steps_n = 3};
    *setting_out = (throughput_setting){.kind = THROUGHPUT_AUTOSCALE};
    setting_out->has_increment = sql_whole(settings, &increment, &setting_out->increment_percent);
    return sql_whole(settings, &most, &setting_out->value);
}

static err check_least(op *o, slice settings) {
    bson_iter_t it;
    double most = doc_find_key(settings, SLICE_LIT("maxThroughput"), &it) ? bson_iter_as_double(&it) : 0;
    return most >= AUTOSCALE_MIN
               ? OK
               : op_fail(o, E_BAD_REQUEST, "Requested throughput %.0f is less than required minimum throughput %d.", most, AUTOSCALE_MIN);
}

static err read_autopilot(sql_request *q, slice text, throughput_setting *setting_out) {
    buf bson = buf_init(64 * 1024);
    json_root root;
    bool found = json_to_bson(text, NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT && sql_autopilot(buf_view(&bson), setting_out);
    err code = found ? check_least(&q->op, buf_view(&bson))
                     : op_fail(&q->op, E_BAD_REQUEST, "x-ms-cosmos-offer-autopilot-settings must be like {\"maxThroughput\":4000}.");
    buf_free(&bson);
    return code;
}

/* Offer types from before throughput was a number: S1, S2, S3. */
static bool read_offer_type(slice type, throughput_setting *setting_out) {
    static const uint32_t values[] = {300, 1000, 2500};
    if (type.n != 2 || type.p[0] != 'S' || type.p[1] < '1' || type.p[1] > '3') {
        return false;
    }
    uint32_t value = values[type.p[1] - '1'];
    *setting_out = (throughput_setting){.kind = THROUGHPUT_MANUAL, .value = value < THROUGHPUT_MIN ? THROUGHPUT_MIN : value};
    return true;
}

err sql_throughput(sql_request *q, throughput_setting *setting_out) {
    slice manual = sql_get(q, FIELD_OFFER_THROUGHPUT), autopilot = sql_get(q, FIELD_OFFER_AUTOPILOT);
    uint64_t value;
    *setting_out = (throughput_setting){0};
    if (manual.n && autopilot.n) {
        return op_fail(&q->op, E_BAD_REQUEST,
                       "Throughput may be given by x-ms-offer-throughput or by x-ms-cosmos-offer-autopilot-settings, not both.");
    }
    if (autopilot.n) {
        return read_autopilot(q, autopilot, setting_out);
    }
    if (!manual.n) {
        read_offer_type(sql_get(q, FIELD_OFFER_TYPE), setting_out);
        return OK;
    }
    if (!slice_to_u64(manual, &value) || value > UINT32_MAX) {
        return op_fail(&q->op, E_BAD_REQUEST, "x-ms-offer-throughput must be a whole number of request units per second.");
    }
    *setting_out = (throughput_setting){.kind = THROUGHPUT_MANUAL, .value = (uint32_t)value};
    return OK;
}

/* ---- session tokens: {range}:{version}#{lsn}[#{region}={lsn}…], joined by commas ---- */

static bool token_part(slice part, uint64_t *range_out, uint64_t *lsn_out) {
    const char *colon = memchr(part.p, ':', part.n);
    if (!colon || !slice_to_u64(slice_of(part.p, (size_t)(colon - part.p)), range_out)) {
        return false;
    }
    slice rest = slice_skip(part, (size_t)(colon - part.p) + 1);
    const char *hash = memchr(rest.p, '#', rest.n);
    slice lsn = hash ? slice_skip(rest, (size_t)(hash - rest.p) + 1) : rest; /* old tokens are a bare lsn */
    const char *next = memchr(lsn.p, '#', lsn.n);
    return slice_to_u64(next ? slice_of(lsn.p, (size_t)(next - lsn.p)) : lsn, lsn_out);
}

err sql_seen(sql_request *q, call *c) {
    slice token = sql_get(q, FIELD_SESSION_TOKEN);
    size_t max = 1;
    for (size_t i = 0; i < token.n; i++) {
        max += token.p[i] == ',';
    }
    item_mark *seen = token.n ? arena_array(q->http->arena, item_mark, max) : NULL;
    c->seen = seen;
    while (token.n) {
        const char *comma = memchr(token.p, ',', token.n);
        slice part = slice_of(token.p, comma ? (size_t)(comma - token.p) : token.n);
        uint64_t id, lsn;
        token = slice_skip(token, part.n + (comma ? 1 : 0));
        if (!token_part(part, &id, &lsn)) {
            return op_fail(&q->op, E_BAD_REQUEST, "The session token provided '%.*s' is invalid.", slice_shown(part), part.p);
        }
        if (id <= UINT32_MAX) { /* no range has a larger id */
            seen[c->seen_n++] = (item_mark){.range_id = (uint32_t)id, .lsn = lsn};
        }
    }
    return OK;
}

/* ---- asking the core ---- */

static uint64_t tenant_of_database(const sql_request *q) {
    database *d;
    if (account_database(q->front->account, q->route.database, q->route.database_by_rid, &d) != OK) {
        return call_tenant_of_none();
    }
    uint64_t tenant = call_tenant_of_database(d);
    database_give(d);
    return tenant;
}

/* Names that do not exist share one tenant: otherwise a client could get more turns by inventing names. */
static uint64_t tenant_of_path(const sql_request *q) {
    const sql_route *r = &q->route;
    container *c;
    if (!r->container.n) {
        return r->database.n ? tenant_of_database(q) : call_tenant_of_none();
    }
    if (account_container(q->front->account, r->database, r->database_by_rid, r->container, r->container_by_rid, &c) != OK) {
        return call_tenant_of_none();
    }
    uint64_t tenant = call_tenant_of_container(c);
    container_give(c);
    return tenant;
}

void sql_call_init(sql_request *q, call *c, call_step done) {
    call_init(c, &q->front->core, q->http->client, &q->op, q->container, done);
    if (!q->container) {
        c->tenant = tenant_of_path(q);
    }
}

void sql_call_done(sql_request *q, const call *c) {
    if (c->marked) {
        q->mark = c->mark;
        q->marked = true;
    }
    q->fault = c->fault;
    q->substatus = c->substatus;
}

/* ---- changes of resources ---- */

static void changed(call *c) {
    sql_request *q = (sql_request *)((char *)c - offsetof(sql_request, changing));
    q->resume(q);
}

account_change *sql_begin_change(sql_request *q, size_t bytes) {
    q->change = arena_zero(q->http->arena, bytes);
    q->change->if_match = sql_get(q, FIELD_IF_MATCH);
    call_init(&q->changing, &q->front->core, q->http->client, &q->op, NULL, changed);
    call_await_change(&q->changing, q->change);
    return q->change;
}

void sql_await_change(sql_request *q, void (*resume)(sql_request *q)) {
    q->resume = resume;
}
