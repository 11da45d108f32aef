/* Large bodies, kept off the loops: decoding one and counting its index terms takes tens of milliseconds, in which other clients of the
 * loop would wait. A body is decoded by a worker before its handler is called; a write is priced by a worker before it is answered. Long
 * edits are kept off the committer likewise. */
#include "api/sql/itembody.h"
#include "api/sql/sql_int.h"

enum { BODY_BSON_MAX = 32 * 1024 * 1024, SCRATCH_KEPT = 1024 * 1024, LARGE_BYTES = 64 * 1024 };

struct sql_decoded {
    err code;
    json_error why;
    json_root root;
    slice bson;
};

/* ---- bodies ---- */

static void decode(sql_request *q, buf *scratch, sql_decoded *d) {
    json_options options = {.drop = item_system_properties, .drop_n = ITEM_SYSTEM_PROPERTIES};
    *d = (sql_decoded){0};
    d->code = json_to_bson(q->http->body, &options, scratch, &d->root, &d->why);
    if (d->code == OK && arena_fits(q->http->arena, scratch->n)) {
        d->bson = arena_copy(q->http->arena, buf_view(scratch));
    }
    if (q->op.budget && q->op.budget->exceeded) {
        d->code = budget_error(q->op.budget);
    }
}

static void decode_on_loop(sql_request *q, sql_decoded *d) {
    buf *scratch = &q->front->loops[net_loop_index(q->http->client.loop)].scratch;
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
    return d->code;
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
    net_work work; /* first */
    sql_request *q;
    sql_handler handler;
    sql_decoded decoded;
} decoding;

static void decode_on_worker(net_work *work) {
    decoding *d = (decoding *)work;
    buf scratch = buf_init_counted(BODY_BSON_MAX, d->q->op.budget);
    decode(d->q, &scratch, &d->decoded);
    buf_free(&scratch);
}

static void go_on(net_work *work) {
    decoding *d = (decoding *)work;
    sql_request *q = d->q;
    q->decoded = &d->decoded;
    net_work_code(work) == OK ? d->handler(q) : sql_fail(q, net_work_code(work));
}

void sql_handle_decoded(sql_request *q, sql_handler handler) {
    if (q->http->body.n <= LARGE_BYTES) {
        handler(q);
        return;
    }
    decoding *d = arena_new(q->http->arena, decoding);
    d->q = q;
    d->handler = handler;
    sql_work(q, NET_BODIES, &d->work, decode_on_worker, go_on);
}

/* ---- writes, prepared and priced by a worker ---- */

typedef struct writing {
    net_work work; /* first */
    sql_request *q;
} writing;

static void start_work(sql_request *q, void (*run)(net_work *), void (*done)(net_work *)) {
    writing *w = arena_new(q->http->arena, writing);
    w->q = q;
    sql_work(q, NET_ANSWERS, &w->work, run, done);
}

static void prepare(net_work *work) {
    item_commit_prepare(&((writing *)work)->q->commit);
}

static void submit_again(net_work *work) {
    sql_request *q = ((writing *)work)->q;
    q->commit.prepares = net_work_code(work) == OK; /* the server stops, or has no thread: the committer does all of it */
    err code = item_commit_submit(&q->commit);
    if (code != OK) {
        sql_fail(q, code);
    }
}

static bool is_large(const item_commit *c) {
    size_t bytes = 0;
    for (size_t i = 0; i < c->n; i++) {
        bytes += c->ops[i].result.n + c->ops[i].before_body.n;
    }
    return bytes > LARGE_BYTES;
}

static void price(net_work *work) {
    sql_request *q = ((writing *)work)->q;
    item_commit_charge(&q->commit);
    if (q->write) {
        q->write(q);
    }
}

static void answer(net_work *work) {
    sql_request *q = ((writing *)work)->q;
    if (net_work_code(work) != OK) { /* the server stops, or has no thread; it was written, and is paid for */
        price(work);
    }
    q->resume(q);
}

void sql_price_items(sql_request *q) {
    if (item_commit_is_long(&q->commit)) {
        start_work(q, prepare, submit_again);
    } else if (is_large(&q->commit)) {
        start_work(q, price, answer);
    } else {
        item_commit_charge(&q->commit);
        q->resume(q);
    }
}
