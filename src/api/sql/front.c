/* From an HTTP request to its handler: probes, route, signature, consistency, then a table of kinds and verbs. */
#include <ctype.h>
#include <stdlib.h>

#include "api/sql/auth.h"
#include "api/sql/authorization.h"
#include "base/memory.h"
#include "net/websocket.h"
#include "query/condition.h"

enum { UUID_TEXT = 36 };

#define ARRAY_N(a) (sizeof(a) / sizeof *(a))

static const char *const field_names[] = {
#define SQL_FIELD_TEXT(name, text) text,
    SQL_FIELDS(SQL_FIELD_TEXT)
#undef SQL_FIELD_TEXT
};

const char *const sql_consistency_names[SQL_CONSISTENCY_COUNT] = {"Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"};

bool sql_consistency_parse(slice word, sql_consistency *level_out) {
    for (unsigned i = 0; i < SQL_CONSISTENCY_COUNT; i++) {
        if (slice_eq_nocase(word, slice_str(sql_consistency_names[i])) ||
            (i == SQL_BOUNDED_STALENESS && slice_eq_nocase(word, SLICE_LIT("Bounded")))) {
            *level_out = (sql_consistency)i;
            return true;
        }
    }
    return false;
}

/* ---- the table ---- */

typedef struct operation {
    sql_kind kind;
    http_method method;
    sql_handler handle;
    bool reads; /* a read-only key suffices */
} operation;

static void database_post(sql_request *q);
static void container_post(sql_request *q);
static void conflict_post(sql_request *q);
static void script_post(sql_request *q);
static void user_post(sql_request *q);
static void permission_post(sql_request *q);
static void encryption_key_post(sql_request *q);

static const operation operations[] = {
    {SQL_ACCOUNT, VERB_GET, sql_account_read, true},
    {SQL_ADDRESSES, VERB_GET, sql_address_list, true},
    {SQL_DATABASES, VERB_GET, sql_database_list, true},
    {SQL_DATABASES, VERB_HEAD, sql_database_head, true},
    {SQL_DATABASES, VERB_POST, database_post, false},
    {SQL_DATABASE, VERB_GET, sql_database_read, true},
    {SQL_DATABASE, VERB_DELETE, sql_database_delete, false},
    {SQL_CONTAINERS, VERB_GET, sql_container_list, true},
    {SQL_CONTAINERS, VERB_POST, container_post, false},
    {SQL_CONTAINER, VERB_GET, sql_container_read, true},
    {SQL_CONTAINER, VERB_HEAD, sql_container_head, true},
    {SQL_CONTAINER, VERB_PUT, sql_container_replace, false},
    {SQL_CONTAINER, VERB_DELETE, sql_container_delete, false},
    {SQL_PKRANGES, VERB_GET, sql_range_list, true},
    {SQL_PKRANGE, VERB_GET, sql_range_read, true},
    {SQL_ITEMS, VERB_GET, sql_item_list, true},
    {SQL_ITEMS, VERB_POST, sql_item_post, false},
    {SQL_ITEM, VERB_GET, sql_item_read, true},
    {SQL_ITEM, VERB_PUT, sql_item_replace, false},
    {SQL_ITEM, VERB_PATCH, sql_item_patch, false},
    {SQL_ITEM, VERB_DELETE, sql_item_delete, false},
    {SQL_PARTITION_KEY_DELETE, VERB_POST, sql_partition_delete, false},
    {SQL_SPROCS, VERB_GET, sql_script_list, true},
    {SQL_SPROCS, VERB_POST, script_post, false},
    {SQL_SPROC, VERB_GET, sql_script_read, true},
    {SQL_SPROC, VERB_POST, sql_script_execute, false},
    {SQL_SPROC, VERB_PUT, sql_script_replace, false},
    {SQL_SPROC, VERB_DELETE, sql_script_delete, false},
    {SQL_TRIGGERS, VERB_GET, sql_script_list, true},
    {SQL_TRIGGERS, VERB_POST, script_post, false},
    {SQL_TRIGGER, VERB_GET, sql_script_read, true},
    {SQL_TRIGGER, VERB_PUT, sql_script_replace, false},
    {SQL_TRIGGER, VERB_DELETE, sql_script_delete, false},
    {SQL_UDFS, VERB_GET, sql_script_list, true},
    {SQL_UDFS, VERB_POST, script_post, false},
    {SQL_UDF, VERB_GET, sql_script_read, true},
    {SQL_UDF, VERB_PUT, sql_script_replace, false},
    {SQL_UDF, VERB_DELETE, sql_script_delete, false},
    {SQL_ATTACHMENTS, VERB_GET, sql_attachment_list, true},
    {SQL_ATTACHMENTS, VERB_POST, sql_attachment_post, false},
    {SQL_ATTACHMENT, VERB_GET, sql_attachment_read, true},
    {SQL_ATTACHMENT, VERB_PUT, sql_attachment_replace, false},
    {SQL_ATTACHMENT, VERB_DELETE, sql_attachment_delete, false},
    {SQL_CONFLICTS, VERB_GET, sql_conflict_list, true},
    {SQL_CONFLICTS, VERB_POST, conflict_post, true},
    {SQL_CONFLICT, VERB_GET, sql_conflict_none, true},
    {SQL_CONFLICT, VERB_DELETE, sql_conflict_none, false},
    {SQL_USERS, VERB_GET, sql_user_list, true},
    {SQL_USERS, VERB_POST, user_post, false},
    {SQL_USER, VERB_GET, sql_user_read, true},
    {SQL_USER, VERB_PUT, sql_user_replace, false},
    {SQL_USER, VERB_DELETE, sql_user_delete, false},
    {SQL_PERMISSIONS, VERB_GET, sql_permission_list, true},
    {SQL_PERMISSIONS, VERB_POST, permission_post, false},
    {SQL_PERMISSION, VERB_GET, sql_permission_read, true},
    {SQL_PERMISSION, VERB_PUT, sql_permission_replace, false},
    {SQL_PERMISSION, VERB_DELETE, sql_permission_delete, false},
    {SQL_CLIENT_ENCRYPTION_KEYS, VERB_GET, sql_encryption_key_list, true},
    {SQL_CLIENT_ENCRYPTION_KEYS, VERB_POST, encryption_key_post, false},
    {SQL_CLIENT_ENCRYPTION_KEY, VERB_GET, sql_encryption_key_read, true},
    {SQL_CLIENT_ENCRYPTION_KEY, VERB_PUT, sql_encryption_key_replace, false},
    {SQL_OFFERS, VERB_GET, sql_offer_list, true},
    {SQL_OFFERS, VERB_POST, sql_offer_list, true},
    {SQL_OFFER, VERB_GET, sql_offer_read, true},
    {SQL_OFFER, VERB_PUT, sql_offer_replace, false},
};

bool sql_is_query(const sql_request *q) {
    slice type = sql_get(q, FIELD_CONTENT_TYPE);
    bool says = sql_flag(q, FIELD_IS_QUERY) || sql_flag(q, FIELD_IS_QUERY_PLAN) ||
                slice_starts(type, SLICE_LIT("application/query+json")) || slice_starts(type, SLICE_LIT("application/sql"));
    return says && q->http->method == VERB_POST && !sql_flag(q, FIELD_IS_BATCH);
}

static void database_post(sql_request *q) {
    sql_is_query(q) ? sql_database_list(q) : sql_database_create(q);
}

static void container_post(sql_request *q) {
    sql_is_query(q) ? sql_container_list(q) : sql_container_create(q);
}

static void script_post(sql_request *q) {
    sql_is_query(q) ? sql_script_list(q) : sql_script_create(q);
}

/* Conflicts cannot be created; a query of them finds nothing. */
static void conflict_post(sql_request *q) {
    sql_is_query(q) ? sql_conflict_query(q) : sql_fail(q, E_METHOD);
}

static void user_post(sql_request *q) {
    sql_is_query(q) ? sql_user_list(q) : sql_user_create(q);
}

static void permission_post(sql_request *q) {
    sql_is_query(q) ? sql_permission_list(q) : sql_permission_create(q);
}

static void encryption_key_post(sql_request *q) {
    sql_is_query(q) ? sql_encryption_key_list(q) : sql_encryption_key_create(q);
}

static const operation *find_operation(sql_kind kind, http_method method) {
    for (size_t i = 0; i < ARRAY_N(operations); i++) {
        if (operations[i].kind == kind && operations[i].method == method) {
            return &operations[i];
        }
    }
    return NULL;
}

/* ---- checks that all requests share ---- */

/* The request's priority and throughput bucket, used when throughput is short. */
static err read_class(sql_request *q) {
    slice priority = sql_get(q, FIELD_PRIORITY), bucket = sql_get(q, FIELD_THROUGHPUT_BUCKET);
    uint64_t number = 0;
    q->op.low_priority = slice_eq_nocase(priority, SLICE_LIT("Low"));
    if (priority.n && !q->op.low_priority && !slice_eq_nocase(priority, SLICE_LIT("High"))) {
        return op_fail(&q->op, E_BAD_REQUEST, "x-ms-cosmos-priority-level must be Low or High.");
    }
    if (bucket.n && (!slice_to_u64(bucket, &number) || number < 1 || number > THROUGHPUT_BUCKETS)) {
        return op_fail(&q->op, E_BAD_REQUEST, "x-ms-cosmos-throughput-bucket must be a number from 1 to %d.", THROUGHPUT_BUCKETS);
    }
    q->op.throughput_bucket = (uint8_t)number;
    return OK;
}

static err check_consistency(sql_request *q) {
    slice word = sql_get(q, FIELD_CONSISTENCY);
    sql_consistency level = q->front->consistency;
    if (word.n == 0) {
        q->op.strong = level <= SQL_BOUNDED_STALENESS;
        return OK;
    }
    if (!sql_consistency_parse(word, &level)) {
        return op_fail(&q->op, E_BAD_REQUEST,
                       "The consistency level '%.*s' is not one of Strong, BoundedStaleness, Session, ConsistentPrefix, Eventual.",
                       slice_shown(word), word.p);
    }
    if (level < q->front->consistency) {
        return op_fail(
            &q->op, E_BAD_REQUEST,
            "ConsistencyLevel %s specified in the request is invalid when service is configured with consistency level %s. Ensure the "
            "request consistency level is not stronger than the service consistency level.",
            sql_consistency_names[level], sql_consistency_names[q->front->consistency]);
    }
    q->op.strong = level <= SQL_BOUNDED_STALENESS;
    return OK;
}

static err check_size(const sql_request *q) {
    return q->http->body_too_large || q->http->body.n > LIMIT_REQUEST_BYTES ? E_TOO_LARGE : OK;
}

static err authenticate(sql_request *q) {
    err code = sql_access_authenticate(q);
    if (code != OK) {
        uint8_t address[16];
        http_peer_address(q->http, address);
        access_attempts_note(q->front->attempts, address, code);
    } else {
        http_trust(q->http);
    }
    return code;
}

slice sql_authorization_of(const http_request *request) {
    return request->field[FIELD_AUTHORIZATION];
}

slice sql_field_of(const http_request *request, const char *name) {
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (strcmp(field_names[i], name) == 0) {
            return request->field[i];
        }
    }
    return SLICE_EMPTY;
}

err sql_check_signature(op *o, const access_ring *ring, const http_request *request, access_key *key_out) {
    static const sql_route nothing = {.type = {"", 0}, .link = {"", 0}};
    sql_auth_request what = {request->verb, &nothing, request->field[FIELD_X_MS_DATE], request->field[FIELD_DATE]};
    return sql_auth_check(o, ring, &what, sql_authorization_of(request), key_out);
}

/* SDKs send a '?' in the id of an item as it is. Requests of items have no query parameters, so what follows it belongs to the id. */
static err read_route(sql_request *q) {
    const http_request *r = q->http;
    err code = sql_route_parse(r->arena, r->path, &q->route);
    bool marked = r->query.p && r->query.p == r->path.p + r->path.n + 1;
    if (code != OK || !marked || q->route.kind != SQL_ITEM) {
        return code;
    }
    return sql_route_parse(r->arena, slice_of(r->path.p, r->path.n + 1 + r->query.n), &q->route);
}

static err find_handler(sql_request *q, sql_handler *handler_out) {
    TRY(read_route(q));
    TRY(q->route.kind == SQL_ADDRESSES ? sql_address_route(q) : OK);
    TRY(authenticate(q));
    const operation *operation = find_operation(q->route.kind, q->http->method);
    if (!operation) {
        return E_METHOD;
    }
    TRY(sql_access_check(q, operation->reads));
    TRY(check_size(q));
    TRY(check_consistency(q));
    TRY(read_class(q));
    *handler_out = operation->handle;
    return OK;
}

/* ---- requests ---- */

static bool is_dash(size_t at) {
    return at == 8 || at == 13 || at == 18 || at == 23;
}

static bool is_uuid(slice text) {
    bool good = text.n == UUID_TEXT;
    for (size_t i = 0; good && i < UUID_TEXT; i++) {
        good = is_dash(i) ? text.p[i] == '-' : isxdigit((unsigned char)text.p[i]) != 0;
    }
    return good;
}

static void make_activity(sql_request *q) {
    slice given = sql_get(q, FIELD_ACTIVITY_ID);
    if (is_uuid(given)) {
        memcpy(q->activity, given.p, UUID_TEXT);
        return;
    }
    static const char digits[] = "0123456789abcdef";
    uint64_t bits[2] = {random_u64(net_loop_random(q->http->client->loop)), random_u64(net_loop_random(q->http->client->loop))};
    for (unsigned i = 0, d = 0; i < UUID_TEXT; i++) {
        if (is_dash(i)) {
            q->activity[i] = '-';
        } else {
            q->activity[i] = digits[bits[d / 16] >> (4 * (d % 16)) & 15];
            d++;
        }
    }
    q->activity[14] = '4'; /* a random UUID, RFC 4122 */
    q->activity[19] = digits[8 | (bits[0] >> 60 & 3)];
}

static sql_request *make_request(http_request *http) {
    sql_request *q = arena_alloc(http->arena, sizeof *q);
    memset(q, 0, offsetof(sql_request, read)); /* the members from `read` on are initialised by their users */
    q->http = http;
    q->front = http->context;
    q->started_us = clock_monotonic_us(net_loop_clock(http->client->loop));
    item_commit_init(&q->commit.commit);
    q->commit.commit.parts = NULL;
    op_init(&q->op, http->arena, net_loop_wall_ms(http->client->loop) / 1000);
    q->op.arrived_us = q->started_us;
    make_activity(q);
    return q;
}

/* Liveness, readiness and the certificate need no signature. extra_handler checks its own requests. */
static bool answer_extra(http_request *http) {
    sql_front *front = http->context;
    bool probe = slice_eq(http->path, SLICE_LIT("/alive")) || slice_eq(http->path, SLICE_LIT("/ready"));
    bool certificate = slice_eq(http->path, SLICE_LIT("/_explorer/emulator.pem"));
    if (http->method != VERB_GET || !(probe || certificate)) {
        return front->extra_handler && front->extra_handler(front->extra_context, http);
    }
    http_reply_start(http, 200);
    buf_add_lit(http_reply_fields(http), "Cache-Control: no-store\r\n");
    if (probe) {
        http_reply_field(http, "Content-Type", SLICE_LIT("application/json"));
        buf_add_lit(http_reply_body(http), "{\"status\":\"ok\"}\n");
    } else {
        http_reply_field(http, "Content-Type", SLICE_LIT("application/x-pem-file"));
        buf_add_slice(http_reply_body(http), net_tls_certificate(front->server));
    }
    http_reply_end(http);
    return true;
}

/* Paths of the SQL API are `/` and those that begin with 'd', except a few; clients of it do not accept HTML. */
static bool is_extra(const http_request *http) {
    return http->path.n > 1 ? http->path.p[1] != 'd' : http->field[FIELD_ACCEPT].n > 0;
}

static void handle(http_request *http) {
    sql_handler handler = NULL;
    if (is_extra(http) && answer_extra(http)) {
        return;
    }
    sql_request *q = make_request(http);
    err code = websocket_wanted(http) ? E_BAD_REQUEST : find_handler(q, &handler);
    if (code != OK) {
        sql_fail(q, code);
    } else {
        sql_handle_decoded(q, handler);
    }
}

static void refuse(http_request *http, err code) {
    sql_fail(make_request(http), code);
}

/* ---- life ---- */

sql_front *sql_open(const sql_options *options) {
    query_condition_register();
    sql_front *front = mem_zero(sizeof *front);
    unsigned loops = net_server_loops(options->server);
    *front = (sql_front){
        .http = {.name = "sql", .fields = field_names, .fields_n = FIELD_COUNT, .websockets = true, .handle = handle, .refuse = refuse},
        .account = options->account,
        .core = {.account = options->account, .scripts = options->scripts, .faults = options->faults},
        .keys = options->keys,
        .aad = options->aad,
        .attempts = options->attempts,
        .consistency = options->consistency,
        .token_seconds_min = options->token_seconds_min ? options->token_seconds_min : 600,
        .server = options->server,
        .extra_handler = options->extra_handler,
        .extra_context = options->extra_context,
        .loops = mem_zero(loops * sizeof(sql_loop)),
        .loops_n = loops,
    };
    front->http.context = front;
    for (unsigned i = 0; i < loops; i++) {
        front->loops[i].scratch = buf_init(BUF_NO_LIMIT);
    }
    return front;
}

const http_front *sql_http(const sql_front *front) {
    return &front->http;
}

void sql_set_direct_port(sql_front *front, uint16_t port) {
    front->direct_port = port;
}

void sql_close(sql_front *front) {
    for (unsigned i = 0; i < front->loops_n; i++) {
        buf_free(&front->loops[i].scratch);
    }
    free(front->loops);
    free(front);
}
