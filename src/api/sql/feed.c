/* The item feed (GET …/docs). A worker makes the page, so that point reads on the loop never wait for it. */
#include "api/sql/target.h"

typedef struct feed {
    call_feed call; /* must be first */
    sql_request *q;
    size_t max;
    buf body;
    size_t count;
    sql_target *target;
} feed;

/* ---- making the page, on a worker ---- */

static bool add_item(void *context, const item_found *found) {
    feed *f = context;
    if (f->count == f->max || (f->count && f->body.n + found->body.n > LIMIT_RESPONSE_BYTES)) {
        return false;
    }
    if (f->count++) {
        buf_add_byte(&f->body, ',');
    }
    sql_write_item(&f->body, f->q->container, found->body, &found->head);
    return buf_ok(&f->body);
}

/* ---- answering ---- */

static void add_continuation(feed *f) {
    buf text = buf_init(BUF_NO_LIMIT);
    sql_continuation_write(&text, &f->target->scope, &f->target->cursor, f->count);
    sql_field_text(f->q, "x-ms-continuation", buf_view(&text));
    buf_free(&text);
}

static void answer(call *c) {
    feed *f = (feed *)c;
    sql_request *q = f->q;
    err code = c->code == OK && !buf_ok(&f->body) ? budget_error(q->op.budget) : c->code;
    sql_call_done(q, c);
    if (code != OK) {
        buf_free(&f->body);
        sql_fail(q, code);
        return;
    }
    rid in = sql_container_rid(q->container);
    sql_start(q, 200);
    sql_add_range(q, q->mark);
    buf_addf(sql_fields(q), "x-ms-item-count: %zu\r\n", f->count);
    buf_add_lit(sql_fields(q), "x-ms-cosmos-query-execution-info: {\"reverseRidEnabled\":false,\"reverseIndexScan\":false}\r\n");
    if (f->target->cursor.n) {
        add_continuation(f);
    }
    buf *out = sql_start_body(q);
    sql_feed_open(out, &in, "Documents");
    buf_add_slice(out, buf_view(&f->body));
    sql_feed_close(out, f->count);
    buf_free(&f->body);
    sql_end(q);
}

static feed *make_feed(sql_request *q) {
    feed *f = arena_new(q->http->arena, feed);
    f->q = q;
    f->body = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
    return f;
}

static err prepare_list(feed *f) {
    sql_request *q = f->q;
    TRY(sql_page_size(q, &f->max));
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    TRY(sql_target_read(q, sql_get(q, FIELD_CONTINUATION), &f->target));
    sql_call_prepare(q, call_feed_init, &f->call, answer);
    f->call.cursor = &f->target->cursor;
    f->call.sink = add_item;
    f->call.context = f;
    return sql_seen(q, &f->call.call);
}

void sql_item_list(sql_request *q) {
    if (sql_has(q, FIELD_A_IM)) {
        sql_changes_list(q);
        return;
    }
    feed *f = make_feed(q);
    err code = prepare_list(f);
    code == OK ? call_feed_submit(&f->call) : sql_fail(q, code);
}
