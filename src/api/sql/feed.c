/* Items many at a time: the item feed (GET …/docs) and read-many (a query that names ids and keys). A page is made by a worker, not on the
 * loop, so that a point read never waits behind it. */
#include "api/sql/continuation.h"
#include "api/sql/querytext.h"
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

    /* the feed */
    sql_scope scope;
    item_cursor cursor;
    item_key key;
    item_mark mark;
} feed;

/* ---- which items ---- */

static void narrow(feed *f, const epk *min, const epk *end) {
    sql_scope *s = &f->scope;
    s->min = epk_cmp(&s->min, min) < 0 ? *min : s->min;
    s->end = epk_cmp(end, &s->end) < 0 ? *end : s->end;
}

static err scope_range(feed *f) {
    uint32_t id;
    TRY(sql_range_id(f->q, &id));
    const partition_range *range = partition_map_by_id(f->q->container->tiles->map, id);
    if (!range) {
        return E_RANGE_GONE;
    }
    narrow(f, &range->min, &range->max);
    f->scope.plain = true;
    return OK;
}

static err scope_epk(feed *f, slice from, slice to) {
    epk min, end;
    if (!epk_parse(from, &min) || !epk_parse(to, &end) || epk_cmp(&min, &end) >= 0) {
        return op_fail(&f->q->op, E_BAD_REQUEST, "x-ms-start-epk and x-ms-end-epk must be hexadecimal, the first below the second.");
    }
    narrow(f, &min, &end);
    return OK;
}

/* A whole key is one logical partition; a prefix of a hierarchical key is a part of the hash space. */
static err scope_key(feed *f) {
    sql_request *q = f->q;
    const container *c = q->container;
    if (q->partition.n < c->key.n && c->key.kind == PKEY_MULTI_HASH) {
        epk min, end;
        epk_prefix_range(&c->key, &q->partition, &min, &end);
        narrow(f, &min, &end);
        return OK;
    }
    TRY(item_check_key(&q->op, c, &q->partition, SLICE_EMPTY, &f->key));
    f->cursor.partition = &f->key;
    f->scope.min = f->scope.end = f->key.epk;
    f->scope.plain = true;
    return OK;
}

static err read_scope(feed *f) {
    sql_request *q = f->q;
    f->scope = (sql_scope){.container = sql_container_rid(q->container), .min = epk_min(), .end = epk_max()};
    if (sql_has(q, FIELD_RANGE_ID)) {
        TRY(scope_range(f));
    }
    if (sql_has(q, FIELD_START_EPK) || sql_has(q, FIELD_END_EPK)) {
        TRY(scope_epk(f, sql_get(q, FIELD_START_EPK), sql_get(q, FIELD_END_EPK)));
    }
    return q->key_given ? scope_key(f) : OK;
}

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
    if (f->cursor.n) {
        f->code = item_feed(account_items(q->front->account), &q->op, q->container, &f->cursor, STEPS_MAX, add_item, f, &f->mark);
    }
}

static void read_many(net_work *work) {
    feed *f = (feed *)work;
    sql_request *q = f->q;
    for (size_t i = 0; i < f->keys_n && f->code == OK; i++) {
        item_found found;
        err code = item_read(account_items(q->front->account), &q->op, q->container, &f->keys[i], &found);
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
    sql_continuation_write(&text, &f->scope, &f->cursor, f->count);
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
    if (f->cursor.n && !f->keys) {
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
    TRY(read_scope(f));
    TRY(sql_continuation_read(sql_get(q, FIELD_CONTINUATION), &f->scope, &f->cursor));
    q->range = container_route(q->container->tiles, &f->scope.min);
    f->mark = item_mark_of(q->range);
    return sql_check_session(q, &f->scope.min, &f->scope.end);
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

static err prepare_query(feed *f, bool *whole_out) {
    sql_request *q = f->q;
    query_filter filter;
    if (sql_flag(q, FIELD_IS_QUERY_PLAN)) {
        return op_fail(&q->op, E_BAD_REQUEST, "Query plans are not supported until the query language is there.");
    }
    TRY(query_filter_read(q, &filter));
    *whole_out = filter.root == NULL;
    TRY(prepare_list(f));
    if (*whole_out) {
        return OK;
    }
    f->max = LIMIT_PAGE_ITEMS_MAX * 4;
    return query_filter_keys(q, &filter, &f->keys, &f->keys_n);
}

/* SELECT * FROM c is the feed; conditions that name ids and keys are read-many. */
void sql_item_query(sql_request *q) {
    feed *f = make_feed(q);
    bool whole = false;
    err code = prepare_query(f, &whole);
    code == OK ? net_work_start(q->http->loop, &f->work, whole ? make_page : read_many, answer) : sql_fail(q, code);
}
