/* Items many at a time: the item feed (GET …/docs) and read-many (a query that names ids and keys).
 *
 * A page is made by a worker, not on the loop, so that a point read never waits behind it. Its continuation is the service's form: a
 * backend token that names the last item, wrapped with the range it belongs to when the feed spans ranges:
 *
 *   +RID:~{rid}#RT:1#TRC:{count}#ISV:2#IEO:65567#QCF:8
 *   {"token":"+RID:~…","range":{"min":"","max":"1FFF…"}}       token "" is the start of the range */
#include "api/sql/querytext.h"
#include "net/work.h"

enum { STEPS_MAX = 50000, TOKEN_BYTES_MAX = 4096 };

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

    /* the feed: ranges [at, end) of the map, the first from `after` on */
    size_t at, end;
    uint64_t after;
    const epk *min, *max_epk;  /* only this part of the hash space, or NULL */
    const item_key *partition; /* only this logical partition, or NULL */
    epk bounds[2];
    item_key key;
    bool wrapped; /* the continuation names its range */
    bool more;
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

static err read_wrapped(feed *f, slice text) {
    const container *c = f->q->container;
    buf bson = buf_init(64 * 1024);
    json_root root;
    bson_iter_t token, min;
    epk from;
    doc_path path = {.steps = (slice[]){SLICE_LIT("range"), SLICE_LIT("min")}, .steps_n = 2};
    bool good = json_to_bson(text, NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT &&
                doc_find_key(buf_view(&bson), SLICE_LIT("token"), &token) && BSON_ITER_HOLDS_UTF8(&token) &&
                doc_find(buf_view(&bson), &path, &min) && BSON_ITER_HOLDS_UTF8(&min) && epk_parse(doc_text(&min), &from) &&
                read_token(doc_text(&token), c, &f->after);
    buf_free(&bson);
    if (!good) {
        return E_BAD_CONTINUATION;
    }
    size_t at = (size_t)(partition_map_find(c->space->map, &from) - c->space->map->ranges);
    if (at < f->at || at >= f->end) {
        return E_BAD_CONTINUATION;
    }
    f->at = at;
    return OK;
}

static err read_continuation(feed *f) {
    slice text = sql_get(f->q, FIELD_CONTINUATION);
    if (text.n == 0) {
        return OK;
    }
    if (text.n > TOKEN_BYTES_MAX) {
        return E_BAD_CONTINUATION;
    }
    if (f->wrapped) {
        return read_wrapped(f, text);
    }
    return read_token(text, f->q->container, &f->after) ? OK : E_BAD_CONTINUATION;
}

static void write_continuation(feed *f) {
    const container *c = f->q->container;
    buf token = buf_init(TOKEN_BYTES_MAX);
    if (f->after) {
        rid r = rid_child(sql_container_rid(c), RID_DOCUMENT, f->after);
        buf_add_lit(&token, "+RID:~");
        rid_write(&token, &r);
        buf_addf(&token, "#RT:1#TRC:%zu#ISV:2#IEO:65567#QCF:8", f->count);
    }
    buf text = buf_init(2 * TOKEN_BYTES_MAX);
    if (f->wrapped) {
        const partition_range *range = &c->space->map->ranges[f->at];
        buf_add_lit(&text, "{\"token\":");
        json_add_string(&text, buf_view(&token));
        buf_add_lit(&text, ",\"range\":{\"min\":\"");
        epk_write(&text, &range->min);
        buf_add_lit(&text, "\",\"max\":\"");
        epk_write(&text, &range->max);
        buf_add_lit(&text, "\"}}");
    }
    sql_field_text(f->q, "x-ms-continuation", f->wrapped ? buf_view(&text) : buf_view(&token));
    buf_free(&text);
    buf_free(&token);
}

/* ---- which items ---- */

static err scope_range(feed *f) {
    const partition_map *map = f->q->container->space->map;
    uint32_t id;
    TRY(sql_range_id(f->q, &id));
    const partition_range *range = partition_map_by_id(map, id);
    if (!range) {
        return E_RANGE_GONE;
    }
    f->at = (size_t)(range - map->ranges);
    f->end = f->at + 1;
    return OK;
}

static err scope_epk(feed *f, slice from, slice to) {
    if (!epk_parse(from, &f->bounds[0]) || !epk_parse(to, &f->bounds[1]) || epk_cmp(&f->bounds[0], &f->bounds[1]) >= 0) {
        return op_fail(&f->q->op, E_BAD_REQUEST, "x-ms-start-epk and x-ms-end-epk must be hexadecimal, the first below the second.");
    }
    f->min = &f->bounds[0];
    f->max_epk = &f->bounds[1];
    return OK;
}

/* A whole key is one logical partition; a prefix of a hierarchical key is a part of the hash space. */
static err scope_key(feed *f) {
    sql_request *q = f->q;
    const container *c = q->container;
    if (q->partition.n < c->key.n && c->key.kind == PKEY_MULTI_HASH) {
        epk_prefix_range(&c->key, &q->partition, &f->bounds[0], &f->bounds[1]);
        f->min = &f->bounds[0];
        f->max_epk = &f->bounds[1];
        return OK;
    }
    TRY(item_check_key(&q->op, c, &q->partition, SLICE_EMPTY, &f->key));
    f->partition = &f->key;
    f->at = (size_t)(partition_map_find(c->space->map, &f->key.epk) - c->space->map->ranges);
    f->end = f->at + 1;
    return OK;
}

static void narrow(feed *f) {
    const partition_map *map = f->q->container->space->map;
    const partition_range *first;
    if (f->min && f->end - f->at > 1) {
        size_t n = partition_map_overlap(map, f->min, f->max_epk, &first);
        f->at = (size_t)(first - map->ranges);
        f->end = f->at + n;
    }
}

static err read_scope(feed *f) {
    sql_request *q = f->q;
    f->end = q->container->space->map->n;
    f->wrapped = true;
    if (sql_has(q, FIELD_RANGE_ID)) {
        TRY(scope_range(f));
        f->wrapped = false;
    }
    if (sql_has(q, FIELD_START_EPK) || sql_has(q, FIELD_END_EPK)) {
        TRY(scope_epk(f, sql_get(q, FIELD_START_EPK), sql_get(q, FIELD_END_EPK)));
    }
    if (q->key_given) {
        TRY(scope_key(f));
        f->wrapped = f->partition == NULL;
    }
    narrow(f);
    return OK;
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
    while (f->at < f->end && f->code == OK && !f->more) {
        item_scope scope = {&q->container->space->ranges[f->at], f->min, f->max_epk, f->partition};
        f->code = item_feed(account_items(q->front->account), &q->op, q->container, &scope, &f->after, STEPS_MAX, add_item, f, &f->more);
        if (!f->more && f->code == OK) {
            f->at++;
            f->after = 0;
            f->more = f->at < f->end && f->count == f->max;
        }
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

static void answer(net_work *work) {
    feed *f = (feed *)work;
    sql_request *q = f->q;
    if (f->code != OK) {
        buf_free(&f->body);
        sql_fail(q, f->code);
        return;
    }
    if (q->op.charge_ru < 1) {
        op_charge(&q->op, 1 - q->op.charge_ru);
    }
    const container_range *range = &q->container->space->ranges[f->at < f->end ? f->at : f->end - 1];
    rid in = sql_container_rid(q->container);
    sql_start(q, 200);
    sql_add_range(q, range, atomic_load_explicit(&range->lsn, memory_order_acquire));
    buf_addf(sql_fields(q), "x-ms-item-count: %zu\r\n", f->count);
    buf_add_lit(sql_fields(q), "x-ms-cosmos-query-execution-info: {\"reverseRidEnabled\":false,\"reverseIndexScan\":false}\r\n");
    if (f->more) {
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
    if (f->at == f->end) {
        return OK;
    }
    q->range = &q->container->space->ranges[f->at];
    return sql_check_session(q, q->range);
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
