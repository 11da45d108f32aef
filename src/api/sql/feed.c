/* Items many at a time: the item feed (GET …/docs) and read-many (a query that names ids and keys). A page is made by a worker, not on the
 * loop, so that a point read never waits behind it. */
#include "api/sql/querytext.h"
#include "api/sql/target.h"
#include "net/work.h"

enum { STEPS_MAX = 50000 };

typedef struct feed {
    net_work work;
    sql_request *q;
    size_t max;
    buf body;
    size_t count;
    err code;

    /* read-many */
    item_key *keys;
    size_t keys_n;

    sql_target target;
    item_mark mark;
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
    return true;
}

static void make_page(net_work *work) {
    feed *f = (feed *)work;
    sql_request *q = f->q;
    if (f->target.cursor.n) {
        f->code = item_feed(account_items(q->front->account), &q->op, q->container, &f->target.cursor, STEPS_MAX, add_item, f, &f->mark);
    }
}

static void read_many(net_work *work) {
    feed *f = (feed *)work;
    sql_request *q = f->q;
    const items *items = account_items(q->front->account);
    f->code = item_admit_many(items, &q->op, q->container, f->keys, f->keys_n);
    for (size_t i = 0; i < f->keys_n && f->code == OK; i++) {
        item_found found;
        err code = item_read(items, &q->op, q->container, &f->keys[i], &found);
        if (code == OK) {
            if (!add_item(f, &found)) {
                f->code = op_fail(&q->op, E_BAD_REQUEST, "The items asked for do not fit one page: ask for fewer at a time.");
            }
            item_give(&found);
        } else if (code != E_NOT_FOUND) {
            f->code = code;
        }
    }
}

/* ---- answering ---- */

static void add_continuation(feed *f) {
    buf text = buf_init(BUF_NO_LIMIT);
    sql_continuation_write(&text, &f->target.scope, &f->target.cursor, f->count);
    sql_field_text(f->q, "x-ms-continuation", buf_view(&text));
    buf_free(&text);
}

static void answer(net_work *work) {
    feed *f = (feed *)work;
    sql_request *q = f->q;
    if (f->code != OK) {
        buf_free(&f->body);
        sql_fail(q, f->code);
        return;
    }
    rid in = sql_container_rid(q->container);
    sql_start(q, 200);
    sql_add_range(q, f->mark);
    buf_addf(sql_fields(q), "x-ms-item-count: %zu\r\n", f->count);
    buf_add_lit(sql_fields(q), "x-ms-cosmos-query-execution-info: {\"reverseRidEnabled\":false,\"reverseIndexScan\":false}\r\n");
    if (f->target.cursor.n && !f->keys) {
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
    f->body = buf_init(BUF_NO_LIMIT);
    return f;
}

static err prepare_list(feed *f) {
    sql_request *q = f->q;
    TRY(sql_page_size(q, &f->max));
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    TRY(sql_target_read(q, &f->target, sql_get(q, FIELD_CONTINUATION)));
    f->mark = item_mark_of(q->range);
    return OK;
}

void sql_item_list(sql_request *q) {
    if (sql_has(q, FIELD_A_IM)) {
        op_fail(&q->op, E_NOT_IMPLEMENTED, "The change feed is not supported yet.");
        sql_fail(q, E_NOT_IMPLEMENTED);
        return;
    }
    feed *f = make_feed(q);
    err code = prepare_list(f);
    code == OK ? net_work_start(q->http->loop, &f->work, make_page, answer) : sql_fail(q, code);
}

/* A query that names nothing but ids and whole partition keys, as SDKs write for read-many. */
static bool prepare_read_many(feed *f) {
    sql_request *q = f->q;
    query_filter filter;
    if (sql_flag(q, FIELD_IS_QUERY_PLAN) || sql_has(q, FIELD_CONTINUATION) || query_filter_read(q, &filter) != OK || !filter.root ||
        prepare_list(f) != OK) {
        return false;
    }
    f->max = LIMIT_PAGE_ITEMS_MAX * 4;
    return query_filter_keys(q, &filter, &f->keys, &f->keys_n) == OK;
}

void sql_item_query(sql_request *q) {
    feed *f = make_feed(q);
    if (prepare_read_many(f)) {
        net_work_start(q->http->loop, &f->work, read_many, answer);
        return;
    }
    q->op.detail_n = 0;
    if (q->container) {
        container_give(q->container);
        q->container = NULL;
    }
    sql_query(q);
}
