/* Attachments of an item (item/attach.h): create, upsert, read, list, replace, delete. Their metadata and links are kept; the bytes they
 * lead to are not ours. And the feed of conflicts, which has nothing in it: there is one region to write to. */
#include "api/sql/sql_int.h"
#include "item/attach.h"
#include "throughput/charge.h"

/* A write on its way to the committer and back. */
typedef struct attaching {
    attach_write write; /* first */
    call call;
    sql_request *q;
} attaching;

/* ---- what is asked for ---- */

static const items *items_of(const sql_request *q) {
    return account_items(q->front->account);
}

/* The item by its rid: as sql_item_read does, with the partition that the header names. */
static err id_of_rid(sql_request *q, const item_key *key, const rid *r, slice *id) {
    slice found;
    err code = item_id_of(items_of(q), &q->op, q->container, key, rid_number(r), &found);
    *id = code == OK ? found : *id;
    return code == E_NOT_FOUND ? OK : code; /* then it may be a name that looks like one */
}

/* Attachments are read where they are asked for. */
static err check_session(sql_request *q, const epk *at) {
    call asked;
    sql_call_init(q, &asked, NULL);
    TRY(sql_seen(q, &asked));
    for (size_t i = 0; i < asked.seen_n; i++) {
        if (!range_has_reached(q->container, &asked.seen[i], at, at)) {
            return E_SESSION_NOT_AVAILABLE;
        }
    }
    return OK;
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
    TRY(check_session(q, &key_out->epk));
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

static void answer_one(sql_request *q, attach_list *list, const attachment *a) {
    slice known = sql_get(q, FIELD_IF_NONE_MATCH);
    bool same = known.n && item_etag_matches(known, a->lsn, a->ts);
    attach_charge(items_of(q), &q->op, list, a->body.n);
    sql_start(q, same ? 304 : 200);
    sql_add_etag(q, a->lsn, a->ts);
    sql_add_range(q, q->mark);
    buf *out = sql_start_body(q);
    if (!same) {
        write_one(out, q->container, list->item_number, a);
    }
    attach_close(list);
    sql_end(q);
}

void sql_attachment_read(sql_request *q) {
    item_key key;
    attach_list list;
    attachment each;
    err code = find_owner(q, &key);
    code = code != OK ? code : attach_open(items_of(q), &q->op, q->container, &key, &list);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    while (attach_next(&list, &each)) {
        if (is_asked_for(q, &each)) {
            answer_one(q, &list, &each);
            return;
        }
    }
    attach_close(&list);
    sql_fail(q, E_NOT_FOUND);
}

/* What a page has: those after a number. *last_out: the number it ends at, 0 if nothing is left. */
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

void sql_attachment_list(sql_request *q) {
    item_key key;
    attach_list list;
    uint32_t after = 0, last;
    size_t max = 0;
    err code = sql_page_size(q, &max);
    code = code != OK ? code : sql_continuation_number(q, &after);
    code = code != OK ? code : find_owner(q, &key);
    code = code != OK ? code : attach_open(items_of(q), &q->op, q->container, &key, &list);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    buf page = buf_init(BUF_NO_LIMIT);
    rid in = sql_container_rid(q->container), item = rid_child(in, RID_DOCUMENT, list.item_number);
    size_t n = add_page(&page, q->container, &list, after, max, &last);
    attach_charge(items_of(q), &q->op, &list, page.n);
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
    attach_close(&list);
    sql_end(q);
}

/* ---- writing ---- */

static void answer_write(sql_request *q, attach_write *w) {
    bool deleted = w->kind == ATTACH_DELETE;
    sql_start(q, deleted ? 204 : w->created ? 201 : 200);
    if (!deleted) {
        sql_add_etag(q, w->now.lsn, w->now.ts);
    }
    sql_add_range(q, attach_write_mark(w));
    buf *out = sql_start_body(q);
    if (!deleted) {
        write_one(out, q->container, w->item_number, &w->now);
    }
    attach_write_give(w);
    sql_end(q);
}

static void written(call *c) {
    attaching *a = (attaching *)((char *)c - offsetof(attaching, call));
    sql_request *q = a->q;
    err code = c->code;
    attach_write_charge(&a->write);
    if (code == OK) {
        answer_write(q, &a->write);
    } else {
        attach_write_give(&a->write);
        sql_fail(q, code);
    }
}

static void is_done(attach_write *w) {
    call_complete(&((attaching *)w)->call, w->base.code);
}

static err prepare(sql_request *q, attach_write *w) {
    TRY(find_owner(q, &w->item));
    if (w->kind != ATTACH_DELETE) {
        TRY(read_body(q, w));
    }
    if (q->route.kind == SQL_ATTACHMENT) {
        w->id = q->route.child;
        w->number = q->route.child_by_rid ? (uint32_t)rid_number(&q->route.child_rid) : 0;
    }
    return OK;
}

static void submit(sql_request *q, attach_kind kind) {
    attaching *a = arena_new(q->http->arena, attaching);
    *a = (attaching){
        .write = {.items = items_of(q), .op = &q->op, .kind = kind, .if_match = sql_get(q, FIELD_IF_MATCH), .done = is_done},
        .q = q,
    };
    err code = prepare(q, &a->write);
    sql_call_init(q, &a->call, written);
    if (code == OK) {
        a->write.container = q->container;
        code = attach_submit(&a->write);
    }
    if (code != OK) {
        sql_fail(q, code);
    }
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

void sql_conflict_list(sql_request *q) {
    err code = sql_find_container(q);
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

void sql_conflict_none(sql_request *q) {
    err code = sql_find_container(q);
    op_charge(&q->op, CHARGE_FAILED);
    sql_fail(q, code != OK ? code : E_NOT_FOUND);
}
