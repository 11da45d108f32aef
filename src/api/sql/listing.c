#include "api/sql/listing.h"

#include "throughput/charge.h"

enum { WAITING_MAX = 256 };

buf *sql_listing_add(sql_listing *l, uint32_t number) {
    if (l->over) {
        l->cut = l->waiting == WAITING_MAX;
        if (l->cut) {
            return NULL;
        }
        l->ends[l->waiting ? l->waiting - 1 : 0] = l->texts.n;
        l->numbers[l->waiting++] = number;
        return &l->texts;
    }
    if (l->count == l->max || l->body.n > LIMIT_RESPONSE_BYTES) {
        l->more = true;
        return NULL;
    }
    if (l->count++) {
        buf_add_byte(&l->body, ',');
    }
    l->last = number;
    return &l->body;
}

/* ---- by query, on a worker ---- */

/* Whether rows can be returned in the order of the resources, so that the continuation is a resource's number. */
static bool streams(const query *q) {
    return !q->aggregates && !q->select->order_n && !q->select->distinct && q->top < 0 && q->offset < 0 && q->limit < 0;
}

static err add_document(sql_listing *l, slice text) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    err code = json_to_bson(text, NULL, &bson, &root, NULL);
    code = code != OK ? code : query_over_add(l->over, buf_view(&bson));
    buf_free(&bson);
    return code;
}

/* *full_out: the page is full, and l->after is the last resource in it. */
static err add_documents(sql_listing *l, bool streaming, bool *full_out) {
    size_t from = 0;
    *full_out = false;
    for (size_t i = 0; i < l->waiting && !*full_out; i++) {
        TRY(add_document(l, slice_of(l->texts.p + from, l->ends[i] - from)));
        from = l->ends[i];
        l->after = l->numbers[i];
        *full_out = streaming && (query_over_rows(l->over) >= l->max || query_over_bytes(l->over) > LIMIT_RESPONSE_BYTES);
        l->more = *full_out && (l->cut || i + 1 < l->waiting);
    }
    return OK;
}

static err visit_all(sql_listing *l, bool streaming) {
    bool full;
    do {
        l->waiting = 0;
        l->cut = false;
        l->texts.n = 0;
        l->visit(l);
        if (l->waiting) {
            l->ends[l->waiting - 1] = l->texts.n;
        }
        TRY(add_documents(l, streaming, &full));
        TRY(op_check(&l->q->op));
    } while (l->cut && !full);
    return OK;
}

static err run_query(sql_listing *l) {
    sql_request *q = l->q;
    TRY(query_prepare(&q->op, q->http->arena, l->asked.text, l->asked.parameters, l->asked.parameters_n, NULL, &l->query));
    bool streaming = streams(&l->query), more;
    uint32_t given = streaming ? 0 : l->after;
    l->after = streaming ? l->after : 0;
    l->numbers = arena_array(q->http->arena, uint32_t, WAITING_MAX);
    l->ends = arena_array(q->http->arena, size_t, WAITING_MAX);
    l->over = query_over_new(&q->op, &l->query, q->op.now_s * 1000);
    TRY(visit_all(l, streaming));
    TRY(query_over_write(l->over, given, streaming ? SIZE_MAX : l->max, streaming ? SIZE_MAX : LIMIT_RESPONSE_BYTES, &l->body, &l->count,
                         &more));
    l->more = l->more || more;
    l->last = streaming ? l->after : given + (uint32_t)l->count;
    return OK;
}

static void work(call *c) {
    sql_listing *l = (sql_listing *)c;
    l->texts = buf_init(BUF_NO_LIMIT);
    l->code = run_query(l);
    buf_free(&l->texts);
    query_over_free(l->over);
}

/* ---- answering ---- */

static void answer(sql_listing *l) {
    sql_request *q = l->q;
    op_charge(&q->op, CHARGE_METADATA_READ);
    if (l->code != OK) {
        buf_free(&l->body);
        sql_fail(q, l->code);
        return;
    }
    sql_start(q, 200);
    sql_add_session_token(q);
    buf_addf(sql_fields(q), "x-ms-item-count: %zu\r\n", l->count);
    if (l->more) {
        sql_add_continuation_number(q, l->last);
    }
    buf *out = sql_start_body(q);
    sql_feed_open(out, &l->parent, l->name);
    buf_add_slice(out, buf_view(&l->body));
    sql_feed_close(out, l->count);
    buf_free(&l->body);
    sql_end(q);
}

static void worked(call *c) {
    sql_listing *l = (sql_listing *)c;
    l->code = c->code != OK ? c->code : l->code;
    answer(l);
}

static err open_listing(sql_listing *l, bool query) {
    TRY(sql_page_size(l->q, &l->max));
    TRY(sql_continuation_number(l->q, &l->after));
    return query ? sql_query_body_read(l->q, &l->asked) : OK;
}

void sql_listing_run(sql_request *q, const rid *parent, const char *name, void (*visit)(sql_listing *l)) {
    sql_listing *l = arena_new(q->http->arena, sql_listing);
    bool query = q->http->method == VERB_POST;
    l->q = q;
    l->visit = visit;
    l->parent = *parent;
    l->name = name;
    l->body = buf_init(BUF_NO_LIMIT);
    l->code = open_listing(l, query);
    if (l->code == OK && query) {
        sql_call_init(q, &l->call, worked);
        call_work(&l->call, NET_SHORT, work);
        return;
    }
    if (l->code == OK) {
        visit(l);
    }
    answer(l);
}
