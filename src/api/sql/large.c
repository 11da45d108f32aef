/* Decoding of bodies. A large body takes tens of milliseconds, which would block other clients of the loop, so a worker decodes it before
 * the handler is called. */
#include "api/sql/batch_rows.h"
#include "api/sql/binary.h"
#include "api/sql/itembody.h"
#include "api/sql/sql_int.h"
#include "query/typed_body.h"

enum { BODY_BSON_MAX = 32 * 1024 * 1024, SCRATCH_KEPT = 1024 * 1024, LARGE_BYTES = 64 * 1024 };

struct sql_decoded {
    err code;
    json_error why;
    json_root root;
    slice bson;
};

/* ---- bodies ---- */

static err decode_json(sql_request *q, buf *out, sql_decoded *d) {
    json_options options = {.drop = item_system_properties, .drop_n = ITEM_SYSTEM_PROPERTIES};
    TRY(sql_binary_read(q, LIMIT_REQUEST_BYTES, &d->why));
    return json_to_bson(q->http->body, &options, out, &d->root, &d->why);
}

static void decode(sql_request *q, buf *scratch, sql_decoded *d) {
    bool rows = sql_rows_has(q->http->body) && sql_flag(q, FIELD_IS_BATCH);
    *d = (sql_decoded){.root = JSON_ARRAY};
    d->code = rows ? sql_rows_read(q->http->body, scratch, &d->why) : decode_json(q, scratch, d);
    if (d->code == OK && arena_fits(q->http->arena, scratch->n)) {
        d->bson = arena_copy(q->http->arena, buf_view(scratch));
    }
    if (q->op.budget && q->op.budget->exceeded) {
        d->code = budget_error(q->op.budget);
    }
}

static void decode_on_loop(sql_request *q, sql_decoded *d) {
    buf *scratch = &q->front->loops[net_loop_index(q->http->client->loop)].scratch;
    buf_clear(scratch);
    scratch->max = BODY_BSON_MAX;
    decode(q, scratch, d);
    if (scratch->cap > SCRATCH_KEPT) {
        buf_free(scratch);
    }
}

err sql_body_any(sql_request *q, json_root *root_out, slice *bson_out) {
    sql_decoded here, *d = q->decoded ? q->decoded : &here;
    if (!q->decoded) {
        decode_on_loop(q, d);
    }
    if (d->code == E_BAD_JSON) {
        op_fail(&q->op, d->code, "%s (%s at byte %zu of the body)", err_lookup(E_BAD_JSON)->sentence,
                d->why.reason ? d->why.reason : "bad JSON", d->why.offset);
    }
    *root_out = d->root;
    *bson_out = d->bson;
    return d->code == OK && q->container && sql_foreign_ms(q) ? query_typed_body(&q->op, d->bson, bson_out) : d->code;
}

err sql_body(sql_request *q, json_root root, slice *bson_out) {
    json_root found;
    TRY(sql_body_any(q, &found, bson_out));
    if (found != root) {
        return op_fail(&q->op, E_BAD_JSON, "%s The body must be %s.", err_lookup(E_BAD_JSON)->sentence,
                       root == JSON_OBJECT ? "an object" : "an array");
    }
    return OK;
}

/* ---- decoded by a worker ---- */

typedef struct decoding {
    call call; /* must be first */
    sql_request *q;
    sql_handler handler;
    sql_decoded decoded;
} decoding;

static void decode_on_worker(call *c) {
    decoding *d = (decoding *)c;
    buf scratch = buf_init_counted(BODY_BSON_MAX, d->q->op.budget);
    decode(d->q, &scratch, &d->decoded);
    buf_free(&scratch);
}

static void go_on(call *c) {
    decoding *d = (decoding *)c;
    d->q->decoded = &d->decoded;
    c->code == OK ? d->handler(d->q) : sql_fail(d->q, c->code);
}

/* A small body in binary JSON may expand to a long text. Malformed bodies are refused later, when they are decoded. */
static bool is_large(sql_request *q) {
    return q->http->body.n > LARGE_BYTES || sql_binary_read(q, LARGE_BYTES, NULL) == E_TOO_LARGE;
}

void sql_handle_decoded(sql_request *q, sql_handler handler) {
    if (!is_large(q)) {
        handler(q);
        return;
    }
    decoding *d = arena_new(q->http->arena, decoding);
    d->q = q;
    d->handler = handler;
    sql_call_init(q, &d->call, go_on);
    call_work(&d->call, NET_BODIES, decode_on_worker);
}
