/* From an HTTP request to its handler: route, signature, then a table of kinds and verbs. */
#include <stdlib.h>

#include "api/table/adopt.h"
#include "api/table/merge.h"
#include "api/table/table_int.h"
#include "base/memory.h"

enum { LARGE_BYTES = 64 * 1024 }; /* a larger body is decoded by a worker, so that it does not block other clients of the loop */

#define ARRAY_N(a) (sizeof(a) / sizeof *(a))

static const char *const field_names[] = {
#define TABLE_FIELD_TEXT(name, text) text,
    TABLE_FIELDS(TABLE_FIELD_TEXT)
#undef TABLE_FIELD_TEXT
};

/* ---- the table ---- */

typedef struct operation {
    table_kind kind;
    const char *verb;
    const char *comp; /* the parameter of this name; "": none */
    err (*decode)(table_request *q);
    table_handler handle;
} operation;

static const operation operations[] = {
    {TABLE_TABLES, "GET", "", NULL, table_list},
    {TABLE_TABLES, "POST", "", NULL, table_create},
    {TABLE_TABLE, "GET", "", NULL, table_list},
    {TABLE_TABLE, "DELETE", "", NULL, table_delete},
    {TABLE_ENTITIES, "GET", "", NULL, table_entities_query},
    {TABLE_ENTITIES, "POST", "", table_decode_entity, table_entity_write},
    {TABLE_ENTITY, "GET", "", NULL, table_entity_read},
    {TABLE_ENTITY, "PUT", "", table_decode_entity, table_entity_write},
    {TABLE_ENTITY, "PATCH", "", table_decode_entity, table_entity_write},
    {TABLE_ENTITY, "MERGE", "", table_decode_entity, table_entity_write},
    {TABLE_ENTITY, "DELETE", "", table_decode_entity, table_entity_write},
    {TABLE_ENTITIES, "GET", "acl", NULL, table_acl_read},
    {TABLE_ENTITIES, "PUT", "acl", NULL, table_acl_replace},
    {TABLE_SERVICE, "GET", "properties", NULL, table_service_read},
    {TABLE_SERVICE, "PUT", "properties", NULL, table_service_replace},
    {TABLE_SERVICE, "GET", "stats", NULL, table_service_stats},
    {TABLE_BATCH, "POST", "", table_decode_batch, table_batch},
};

static const operation *find_operation(table_kind kind, slice verb, slice comp) {
    for (size_t i = 0; i < ARRAY_N(operations); i++) {
        const operation *o = &operations[i];
        if (o->kind == kind && slice_eq(verb, slice_str(o->verb)) && slice_eq_nocase(comp, slice_str(o->comp))) {
            return o;
        }
    }
    return NULL;
}

/* ---- checks that all requests share ---- */

/* Clients that cannot send a verb send POST, and the verb in a field. */
slice table_verb_of(const table_request *q) {
    slice tunnelled = table_get(q, TABLE_FIELD_METHOD);
    return tunnelled.n && q->http->method == VERB_POST ? tunnelled : q->http->verb;
}

static err check_form(table_request *q) {
    slice type = table_get(q, TABLE_FIELD_CONTENT_TYPE), accept = table_get(q, TABLE_FIELD_ACCEPT), format;
    if (slice_starts(type, SLICE_LIT("application/atom+xml")) || slice_starts(accept, SLICE_LIT("application/atom+xml"))) {
        return table_refuse(q, TABLE_ATOM);
    }
    TRY(table_query_text(q, "$format", &format));
    q->metadata = table_metadata_of(format.n ? format : accept);
    return q->http->body_too_large ? table_refuse(q, TABLE_BODY) : OK;
}

static err read_priority(table_request *q) {
    slice priority = table_get(q, TABLE_FIELD_PRIORITY);
    q->op.low_priority = slice_eq_nocase(priority, SLICE_LIT("Low"));
    bool good = !priority.n || q->op.low_priority || slice_eq_nocase(priority, SLICE_LIT("High"));
    return good ? OK : table_refuse(q, TABLE_INVALID_HEADER);
}

static err authenticate(table_request *q) {
    err code = table_authenticate(q);
    if (code != OK) {
        uint8_t address[16];
        http_peer_address(q->http, address);
        access_attempts_note(q->front->attempts, address, code);
    } else {
        http_trust(q->http);
    }
    return code;
}

static err find_handler(table_request *q, const operation **operation_out) {
    slice restype, comp;
    TRY(table_query_text(q, "restype", &restype));
    TRY(table_query_text(q, "comp", &comp));
    TRY(table_refuse(q, table_route_parse(q->http->arena, q->http->path, slice_eq_nocase(restype, SLICE_LIT("service")), &q->route)));
    if (q->http->method == VERB_OPTIONS) {
        static const operation preflight = {.handle = table_preflight}; /* browsers sign nothing before they may */
        *operation_out = &preflight;
        return OK;
    }
    TRY(authenticate(q));
    TRY(check_form(q));
    TRY(read_priority(q));
    *operation_out = find_operation(q->route.kind, table_verb_of(q), comp);
    return *operation_out ? OK : E_METHOD;
}

/* ---- requests ---- */

static table_request *make_request(http_request *http) {
    table_request *q = arena_new(http->arena, table_request);
    q->http = http;
    q->front = http->context;
    q->started_us = clock_monotonic_us(net_loop_clock(http->client->loop));
    q->metadata = ENTITY_MINIMAL_METADATA;
    q->now_ms = net_loop_wall_ms(http->client->loop);
    op_init(&q->op, http->arena, q->now_ms / 1000);
    q->op.arrived_us = q->started_us;
    q->rows = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
    item_commit_init(&q->call.commit.commit);
    table_make_guid(q, q->id);
    return q;
}

static void decode_on_worker(call *c) {
    table_request *q = (table_request *)c;
    c->code = q->decode(q);
}

static void decoded(call *c) {
    table_request *q = (table_request *)c;
    c->code == OK ? q->next(q) : table_fail(q, c->code);
}

static void start(table_request *q, const operation *o) {
    q->decode = o->decode;
    q->next = o->handle;
    if (o->decode && q->http->body.n > LARGE_BYTES) {
        call_init(&q->call.any, &q->front->core, q->http->client, &q->op, NULL, decoded);
        q->call.any.tenant = call_tenant_of_none();
        call_work(&q->call.any, NET_BODIES, decode_on_worker);
        return;
    }
    err code = o->decode ? o->decode(q) : OK;
    code == OK ? q->next(q) : table_fail(q, code);
}

static void handle(http_request *http) {
    table_request *q = make_request(http);
    const operation *o = NULL;
    err code = find_handler(q, &o);
    code == OK ? start(q, o) : table_fail(q, code);
}

static void refuse(http_request *http, err code) {
    table_fail(make_request(http), code);
}

/* ---- life ---- */

table_front *table_open(const table_options *options) {
    table_front *front = mem_zero(sizeof *front);
    merge_register();
    adopt_register();
    filter_register();
    *front = (table_front){
        .http = {.name = "table", .fields = field_names, .fields_n = TABLE_FIELD_COUNT, .handle = handle, .refuse = refuse},
        .core = {.account = options->account, .scripts = options->scripts, .faults = options->faults},
        .keys = options->keys,
        .attempts = options->attempts,
    };
    front->http.context = front;
    return front;
}

const http_front *table_http(const table_front *front) {
    return &front->http;
}

void table_close(table_front *front) {
    free(front);
}
