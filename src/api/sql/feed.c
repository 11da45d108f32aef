/* Items many at a time: the item feed (GET …/docs) and read-many (a query that names ids and keys).
 *
 * A page is made by a worker, not on the loop, so that a point read never waits behind it. Its continuation is the service's form: a
 * backend token that names the last item, wrapped with the part of the hash space it belongs to when the feed spans ranges:
 *
 *   +RID:~{rid}#RT:1#TRC:{count}#ISV:2#IEO:65567#QCF:8           one range or partition key: items after that one
 *   {"token":"+RID:~…","range":{"min":"","max":"1FFF…"}}         … of this range, then all that follows it; token "": from its start
 *   [{"token":…,"range":…}, …]                                   … of each of these, and nothing else: a split came between */
#include "api/sql/querytext.h"
#include "net/work.h"

enum { STEPS_MAX = 50000, TOKEN_BYTES_MAX = 8192 };

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
    epk min, end; /* what is asked for: [min, end) */
    item_cursor cursor;
    item_key key;
    bool plain; /* the continuation need not name a part of the hash space */
    item_mark mark;
} feed;

/* ---- continuation ---- */

static bool read_token(slice token, const container *c, uint64_t *after_out) {
    rid r, in = sql_container_rid(c);
    *after_out = 0;
    if (token.n == 0) {
        return true;
    }
    if (!slice_starts(token, SLICE_LIT("+RID:~")) && !slice_starts(token, SLICE_LIT("-RID:~"))) {
        return false;
    }
    slice rest = slice_skip(token, 6);
    const char *hash = memchr(rest.p, '#', rest.n);
    if (rid_parse(slice_of(rest.p, hash ? (size_t)(hash - rest.p) : rest.n), &r) != RID_DOCUMENT) {
        return false;
    }
    rid of = rid_container_of(&r);
    *after_out = rid_number(&r);
    return rid_equal(&of, &in);
}

static bool read_bound(slice document, const char *name, epk *epk_out) {
    bson_iter_t it;
    doc_path path = {.steps = (slice[]){SLICE_LIT("range"), slice_str(name)}, .steps_n = 2};
    return doc_find(document, &path, &it) && BSON_ITER_HOLDS_UTF8(&it) && epk_parse(doc_text(&it), epk_out);
}

/* {"token":…,"range":{"min":…,"max":…}} */
static bool read_stretch(const feed *f, slice document, item_stretch *stretch) {
    bson_iter_t token;
    return doc_find_key(document, SLICE_LIT("token"), &token) && BSON_ITER_HOLDS_UTF8(&token) &&
           read_token(doc_text(&token), f->q->container, &stretch->after) && read_bound(document, "min", &stretch->min) &&
           read_bound(document, "max", &stretch->max) && epk_cmp(&stretch->min, &stretch->max) < 0;
}

/* Adds what the request asks for of a stretch. False: it is out of order, or there are too many. */
static bool add_stretch(feed *f, item_stretch stretch) {
    item_cursor *c = &f->cursor;
    stretch.min = epk_cmp(&stretch.min, &f->min) < 0 ? f->min : stretch.min;
    stretch.max = epk_cmp(&f->end, &stretch.max) < 0 ? f->end : stretch.max;
    if (epk_cmp(&stretch.min, &stretch.max) >= 0) {
        return true;
    }
    if (c->n == ITEM_STRETCHES_MAX || (c->n && epk_cmp(&stretch.min, &c->stretches[c->n - 1].max) < 0)) {
        return false;
    }
    c->stretches[c->n++] = stretch;
    return true;
}

static bool read_one(feed *f, slice document) {
    item_stretch stretch;
    if (!read_stretch(f, document, &stretch) || !add_stretch(f, stretch)) {
        return false;
    }
    return add_stretch(f, (item_stretch){.min = stretch.max, .max = f->end});
}

static bool read_list(feed *f, slice array) {
    bson_iter_t it;
    item_stretch stretch;
    bool good = bson_iter_init_from_data(&it, (const uint8_t *)array.p, array.n);
    while (good && bson_iter_next(&it)) {
        uint32_t n = 0;
        const uint8_t *p = NULL;
        if (BSON_ITER_HOLDS_DOCUMENT(&it)) {
            bson_iter_document(&it, &n, &p);
        }
        good = n && read_stretch(f, slice_of(p, n), &stretch) && add_stretch(f, stretch);
    }
    return good;
}

static err read_wrapped(feed *f, slice text) {
    buf bson = buf_init(4 * TOKEN_BYTES_MAX);
    json_root root;
    bool good = json_to_bson(text, NULL, &bson, &root, NULL) == OK &&
                (root == JSON_OBJECT ? read_one(f, buf_view(&bson)) : read_list(f, buf_view(&bson)));
    buf_free(&bson);
    return good && f->cursor.n ? OK : E_BAD_CONTINUATION;
}

static err read_continuation(feed *f) {
    slice text = sql_get(f->q, FIELD_CONTINUATION);
    item_stretch all = {.min = f->min, .max = f->end};
    if (text.n > TOKEN_BYTES_MAX) {
        return E_BAD_CONTINUATION;
    }
    if (text.n && (text.p[0] == '{' || text.p[0] == '[') && !f->cursor.partition) {
        return read_wrapped(f, text);
    }
    if (!read_token(text, f->q->container, &all.after) || (text.n && !f->plain)) {
        return E_BAD_CONTINUATION;
    }
    f->cursor.stretches[0] = all;
    f->cursor.n = epk_cmp(&all.min, &all.max) < 0 || f->cursor.partition;
    return OK;
}

static void write_token(const feed *f, buf *out, uint64_t after) {
    if (after) {
        rid r = rid_child(sql_container_rid(f->q->container), RID_DOCUMENT, after);
        buf_add_lit(out, "+RID:~");
        rid_write(out, &r);
        buf_addf(out, "#RT:1#TRC:%zu#ISV:2#IEO:65567#QCF:8", f->count);
    }
}

static void write_stretch(const feed *f, buf *out, const item_stretch *stretch) {
    buf_add_lit(out, "{\"token\":\"");
    write_token(f, out, stretch->after);
    buf_add_lit(out, "\",\"range\":{\"min\":\"");
    epk_write(out, &stretch->min);
    buf_add_lit(out, "\",\"max\":\"");
    epk_write(out, &stretch->max);
    buf_add_lit(out, "\"}}");
}

/* One stretch, and behind it nothing or all that was asked for: what the shorter forms can say. */
static bool is_simple(const feed *f) {
    const item_cursor *c = &f->cursor;
    const item_stretch *first = c->stretches, *second = first + 1;
    bool rest = c->n == 2 && second->after == 0 && epk_cmp(&first->max, &second->min) == 0 && epk_cmp(&second->max, &f->end) == 0;
    return rest || (c->n == 1 && epk_cmp(&first->max, &f->end) == 0);
}

static void write_continuation(feed *f) {
    const item_cursor *c = &f->cursor;
    buf text = buf_init(BUF_NO_LIMIT);
    bool simple = is_simple(f);
    if (f->cursor.partition || (f->plain && simple && c->n == 1 && epk_cmp(&c->stretches[0].min, &f->min) == 0)) {
        write_token(f, &text, c->stretches[0].after);
    } else if (simple) {
        write_stretch(f, &text, &c->stretches[0]);
    } else {
        for (size_t i = 0; i < c->n; i++) {
            buf_add_byte(&text, i ? ',' : '[');
            write_stretch(f, &text, &c->stretches[i]);
        }
        buf_add_byte(&text, ']');
    }
    sql_field_text(f->q, "x-ms-continuation", buf_view(&text));
    buf_free(&text);
}

/* ---- which items ---- */

static void narrow(feed *f, const epk *min, const epk *end) {
    f->min = epk_cmp(&f->min, min) < 0 ? *min : f->min;
    f->end = epk_cmp(end, &f->end) < 0 ? *end : f->end;
}

static err scope_range(feed *f) {
    uint32_t id;
    TRY(sql_range_id(f->q, &id));
    const partition_range *range = partition_map_by_id(f->q->container->tiles->map, id);
    if (!range) {
        return E_RANGE_GONE;
    }
    narrow(f, &range->min, &range->max);
    f->plain = true;
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
    f->min = f->end = f->key.epk;
    f->plain = true;
    return OK;
}

static err read_scope(feed *f) {
    sql_request *q = f->q;
    f->min = epk_min();
    f->end = epk_max();
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
    f->code = item_feed(account_items(q->front->account), &q->op, q->container, &f->cursor, STEPS_MAX, add_item, f, &f->mark);
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
        write_continuation(f);
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
    TRY(read_continuation(f));
    q->range = container_route(q->container->tiles, &f->min);
    f->mark = item_mark_of(q->range);
    return sql_check_session(q, &f->min, &f->end);
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
