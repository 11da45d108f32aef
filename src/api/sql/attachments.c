/* Attachments of an item (item/attach.h): create, upsert, read, list, replace, delete. Only their metadata and links are stored, not the
 * media that they link to. Also the feed of conflicts, which is always empty: there is one write region. */
#include "api/sql/sql_int.h"
#include "item/attach.h"
#include "throughput/charge.h"

typedef struct reading {
    call_attachments call; /* must be first */
    sql_request *q;
    uint32_t after; /* for a list: only attachments with greater numbers */
    size_t max;     /* for a list: at most this many attachments */
} reading;

typedef struct writing {
    call_attach call; /* must be first */
    sql_request *q;
} writing;

/* ---- decoding ---- */

/* Finds an item by its rid, as sql_item_read does, in the partition that the header names. */
static err id_of_rid(sql_request *q, const item_key *key, const rid *r, slice *id) {
    slice found;
    err code = item_row_of_number(account_items(q->front->account), &q->op, q->container, key, rid_number(r), &found);
    *id = code == OK ? found : *id;
    return code == E_NOT_FOUND ? OK : code; /* not a rid then: a name that looks like one */
}

static err find_owner(sql_request *q, item_key *key_out) {
    bool one = q->route.kind == SQL_ATTACHMENT;
    slice id = one ? q->route.owner : q->route.child;
    bool by_rid = one ? q->route.owner_by_rid : q->route.child_by_rid;
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    TRY(item_check_key(&q->op, q->container, sql_header_key(q), id, key_out));
    q->mark = range_mark_at(q->container, &key_out->epk);
    q->marked = true;
    if (by_rid) {
        TRY(id_of_rid(q, key_out, one ? &q->route.owner_rid : &q->route.child_rid, &id));
        key_out->row = id;
    }
    return OK;
}

static err refuse_media(sql_request *q) {
    return op_fail(&q->op, E_BAD_REQUEST,
                   "Media cannot be uploaded here. Keep the bytes elsewhere and create the attachment with a JSON body: "
                   "{\"id\":…,\"contentType\":…,\"media\":\"the link to them\"}.");
}

static err check_text(sql_request *q, slice body, const char *name) {
    bson_iter_t it;
    if (!doc_find_key(body, slice_str(name), &it) || !BSON_ITER_HOLDS_UTF8(&it) || doc_text(&it).n == 0) {
        return op_fail(&q->op, E_BAD_REQUEST, "An attachment needs '%s', a string.", name);
    }
    return OK;
}

static err read_body(sql_request *q, attach_write *w) {
    bson_iter_t it;
    slice type = sql_get(q, FIELD_CONTENT_TYPE);
    if (type.n && !slice_starts(type, SLICE_LIT("application/json"))) {
        return refuse_media(q);
    }
    TRY(sql_body(q, JSON_OBJECT, &w->body));
    TRY(check_text(q, w->body, "id"));
    TRY(check_text(q, w->body, "contentType"));
    TRY(check_text(q, w->body, "media"));
    bool found = doc_find_key(w->body, SLICE_LIT("id"), &it);
    w->id = found ? doc_text(&it) : SLICE_EMPTY;
    return row_check_id(&q->op, w->id);
}

/* ---- answering ---- */

static void write_one(buf *out, const container *c, uint64_t item_number, const attachment *a) {
    char etag[ITEM_ETAG_BYTES + 1];
    rid in = sql_container_rid(c), database = rid_database_of(&in);
    rid item = rid_child(in, RID_DOCUMENT, item_number), self = rid_attachment(item, a->number);
    json_from_bson_open(out, a->body);
    buf_add_lit(out, ",\"_rid\":\"");
    rid_write(out, &self);
    buf_add_lit(out, "\",\"_self\":\"dbs/");
    rid_write(out, &database);
    buf_add_lit(out, "/colls/");
    rid_write(out, &in);
    buf_add_lit(out, "/docs/");
    rid_write(out, &item);
    buf_add_lit(out, "/attachments/");
    rid_write(out, &self);
    buf_add_lit(out, "/\",\"_etag\":\"\\");
    item_etag(etag, a->lsn, a->ts);
    buf_add(out, etag, ITEM_ETAG_BYTES - 1);
    buf_add_lit(out, "\\\"\",\"_ts\":");
    buf_add_u64(out, a->ts);
    buf_add_byte(out, '}');
}

/* ---- reading ---- */

static bool is_asked_for(const sql_request *q, const attachment *a) {
    return slice_eq(a->id, q->route.child) || (q->route.child_by_rid && a->number == rid_number(&q->route.child_rid));
}

static void answer_one(reading *r, const attachment *a) {
    sql_request *q = r->q;
    slice known = sql_get(q, FIELD_IF_NONE_MATCH);
    bool same = known.n && item_etag_matches(known, a->lsn, a->ts);
    call_attachments_charge(&r->call, a->body.n);
    sql_start(q, same ? 304 : 200);
    sql_add_etag(q, a->lsn, a->ts);
    sql_add_range(q, q->mark);
    buf *out = sql_start_body(q);
    if (!same) {
        write_one(out, q->container, r->call.list.item_number, a);
    }
    call_attachments_give(&r->call);
    sql_end(q);
}

static void was_read(call *c) {
    reading *r = (reading *)c;
    sql_request *q = r->q;
    attachment each;
    sql_call_done(q, c);
    if (c->code != OK) {
        sql_fail(q, c->code);
        return;
    }
    while (attach_next(&r->call.list, &each)) {
        if (is_asked_for(q, &each)) {
            answer_one(r, &each);
            return;
        }
    }
    call_attachments_give(&r->call);
    sql_fail(q, E_NOT_FOUND);
}

static err prepare_read(reading *r, call_step done) {
    item_key item;
    TRY(find_owner(r->q, &item));
    sql_call_prepare(r->q, call_attachments_init, &r->call, done);
    r->call.item = item;
    return sql_seen(r->q, &r->call.call);
}

void sql_attachment_read(sql_request *q) {
    reading *r = arena_new(q->http->arena, reading);
    r->q = q;
    err code = prepare_read(r, was_read);
    code == OK ? call_attachments_submit(&r->call) : sql_fail(q, code);
}

/* Writes a page: attachments with numbers above `after`. *last_out: the last number written if more follow, else 0. */
static size_t add_page(buf *out, const container *c, attach_list *list, uint32_t after, size_t max, uint32_t *last_out) {
    attachment each;
    size_t n = 0;
    uint32_t last = 0;
    *last_out = 0;
    while (attach_next(list, &each)) {
        if (each.number <= after) {
            continue;
        }
        if (n == max) {
            *last_out = last;
            break;
        }
        buf_add(out, ",", n++ > 0);
        write_one(out, c, list->item_number, &each);
        last = each.number;
    }
    return n;
}

static void answer_list(reading *r) {
    sql_request *q = r->q;
    attach_list *list = &r->call.list;
    uint32_t last;
    buf page = buf_init(BUF_NO_LIMIT);
    rid in = sql_container_rid(q->container), item = rid_child(in, RID_DOCUMENT, list->item_number);
    size_t n = add_page(&page, q->container, list, r->after, r->max, &last);
    call_attachments_charge(&r->call, page.n);
    sql_start(q, 200);
    sql_add_range(q, q->mark);
    buf_addf(sql_fields(q), "x-ms-item-count: %zu\r\n", n);
    if (last) {
        sql_add_continuation_number(q, last);
    }
    buf *out = sql_start_body(q);
    sql_feed_open(out, &item, "Attachments");
    buf_add_slice(out, buf_view(&page));
    sql_feed_close(out, n);
    buf_free(&page);
    call_attachments_give(&r->call);
    sql_end(q);
}

static void was_listed(call *c) {
    reading *r = (reading *)c;
    sql_call_done(r->q, c);
    c->code == OK ? answer_list(r) : sql_fail(r->q, c->code);
}

void sql_attachment_list(sql_request *q) {
    reading *r = arena_new(q->http->arena, reading);
    r->q = q;
    err code = sql_page_size(q, &r->max);
    code = code != OK ? code : sql_continuation_number(q, &r->after);
    code = code != OK ? code : prepare_read(r, was_listed);
    code == OK ? call_attachments_submit(&r->call) : sql_fail(q, code);
}

/* ---- writing ---- */

static void answer_write(sql_request *q, const attach_write *w) {
    bool deleted = w->kind == ATTACH_DELETE;
    sql_start(q, deleted ? 204 : w->created ? 201 : 200);
    if (!deleted) {
        sql_add_etag(q, w->now.lsn, w->now.ts);
    }
    sql_add_range(q, q->mark);
    buf *out = sql_start_body(q);
    if (!deleted) {
        write_one(out, q->container, w->item_number, &w->now);
    }
    sql_end(q);
}

static void written(call *c) {
    writing *w = (writing *)c;
    sql_request *q = w->q;
    sql_call_done(q, c);
    call_attach_give(&w->call);
    c->code == OK ? answer_write(q, &w->call.write) : sql_fail(q, c->code);
}

static err prepare_write(writing *made, attach_kind kind) {
    sql_request *q = made->q;
    attach_write asked = {.kind = kind, .if_match = sql_get(q, FIELD_IF_MATCH)};
    TRY(find_owner(q, &asked.item));
    if (kind != ATTACH_DELETE) {
        TRY(read_body(q, &asked));
    }
    if (q->route.kind == SQL_ATTACHMENT) {
        asked.id = q->route.child;
        asked.number = q->route.child_by_rid ? (uint32_t)rid_number(&q->route.child_rid) : 0;
    }
    sql_call_prepare(q, call_attach_init, &made->call, written);
    made->call.write = asked;
    return sql_seen(q, &made->call.call);
}

static void submit(sql_request *q, attach_kind kind) {
    writing *w = arena_new(q->http->arena, writing);
    w->q = q;
    err code = prepare_write(w, kind);
    code == OK ? call_attach_submit(&w->call) : sql_fail(q, code);
}

void sql_attachment_post(sql_request *q) {
    if (sql_is_query(q)) {
        op_fail(&q->op, E_NOT_IMPLEMENTED, "Attachments cannot be queried: read the feed of the item's attachments.");
        sql_fail(q, E_NOT_IMPLEMENTED);
    } else {
        submit(q, sql_flag(q, FIELD_IS_UPSERT) ? ATTACH_UPSERT : ATTACH_CREATE);
    }
}

void sql_attachment_replace(sql_request *q) {
    submit(q, ATTACH_REPLACE);
}

void sql_attachment_delete(sql_request *q) {
    submit(q, ATTACH_DELETE);
}

/* ---- conflicts ---- */

static void answer_conflicts(sql_request *q, err code) {
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    rid in = sql_container_rid(q->container);
    op_charge(&q->op, CHARGE_FEED_MIN);
    sql_start(q, 200);
    sql_add_range(q, range_mark_first(q->container));
    buf_add_lit(sql_fields(q), "x-ms-item-count: 0\r\n");
    buf *out = sql_start_body(q);
    sql_feed_open(out, &in, "Conflicts");
    sql_feed_close(out, 0);
    sql_end(q);
}

void sql_conflict_list(sql_request *q) {
    answer_conflicts(q, sql_find_container(q));
}

void sql_conflict_query(sql_request *q) {
    err code = sql_find_container(q);
    code = code == OK ? sql_partition_key(q) : code;
    answer_conflicts(q, code == OK ? sql_check_cross_partition(q) : code);
}

void sql_conflict_none(sql_request *q) {
    err code = sql_find_container(q);
    op_charge(&q->op, CHARGE_FAILED);
    sql_fail(q, code != OK ? code : E_NOT_FOUND);
}
