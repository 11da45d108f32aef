/* Entities one at a time: get, insert, replace, merge, delete. */
#include "api/table/merge.h"
#include "api/table/table_int.h"

/* ---- get ---- */

static err read_select(table_request *q, entity_view *view) {
    slice text;
    TRY(table_query_text(q, "$select", &text));
    return table_refuse(q, table_select(q->http->arena, text, view));
}

static void answer_found(table_request *q, const entity_view *view) {
    const item_found *found = &q->call.read.found;
    uint64_t version = item_version(&found->head);
    if (q->alone) {
        table_answer_alone(q, view, found->body, &found->head);
    } else {
        table_start(q, 200);
        table_add_etag(table_fields(q), found->body, version, found->head.ts);
        entity_write(table_json(q, q->metadata), view, found->body, version, found->head.ts);
    }
    call_read_give(&q->call.read);
    table_end(q);
}

static void was_read(call *c) {
    table_request *q = (table_request *)c;
    entity_view view = table_view(q, q->metadata);
    view.element = true;
    q->fault = c->fault;
    err code = c->code;
    if (code == OK && (code = read_select(q, &view)) != OK) {
        call_read_give(&q->call.read);
    }
    code == OK ? answer_found(q, &view) : table_fail(q, code);
}

static err prepare_read(table_request *q) {
    const table_route *r = &q->route;
    TRY(table_allow_entity(q, ACCESS_READ, r->table, r->partition, r->row));
    TRY(table_find(q, r->table));
    TRY(table_refuse(q, entity_check_key(r->partition)));
    TRY(table_refuse(q, entity_check_key(r->row)));
    call_read_init(&q->call.read, &q->front->core, q->http->client, &q->op, q->container, was_read);
    return table_key_of(&q->op, q->container, r->partition, r->row, &q->call.read.key);
}

void table_entity_read(table_request *q) {
    err code = prepare_read(q);
    code == OK ? call_read_submit(&q->call.read) : table_fail(q, code);
}

/* ---- what a write asks for ---- */

static err decode_write(table_request *q, table_write *w) {
    entity_ask ask = {.json = w->json, .partition = w->partition, .row = w->row, .now_ms = q->now_ms};
    entity e;
    if (w->verb == TABLE_DELETE) {
        TRY(table_refuse(q, entity_check_key(w->partition)));
        return table_refuse(q, entity_check_key(w->row));
    }
    TRY(table_refuse(q, entity_read(&q->op, &ask, &e)));
    w->partition = e.partition;
    w->row = e.row;
    w->body = e.body;
    return OK;
}

static bool verb_of(slice word, table_verb *verb_out) {
    *verb_out = slice_eq(word, SLICE_LIT("POST"))     ? TABLE_INSERT
                : slice_eq(word, SLICE_LIT("PUT"))    ? TABLE_REPLACE
                : slice_eq(word, SLICE_LIT("DELETE")) ? TABLE_DELETE
                                                      : TABLE_MERGE;
    return *verb_out != TABLE_MERGE || slice_eq(word, SLICE_LIT("MERGE")) || slice_eq(word, SLICE_LIT("PATCH"));
}

err table_write_of(table_request *q, const table_ask *ask, const table_route *r, table_write *w) {
    *w = (table_write){
        .json = ask->body,
        .partition = r->partition,
        .row = r->row,
        .if_match = ask->if_match,
        .table = r->table,
        .content_id = ask->content_id,
        .wants_content = table_prefers(ask->prefer, "return-content"),
        .no_content = table_prefers(ask->prefer, "return-no-content"),
        .metadata = table_metadata_of(ask->accept),
    };
    bool addressed = r->kind == TABLE_ENTITY;
    if (!verb_of(ask->verb, &w->verb) || (w->verb == TABLE_INSERT) == addressed || (!addressed && r->kind != TABLE_ENTITIES)) {
        return E_METHOD;
    }
    return decode_write(q, w);
}

err table_decode_entity(table_request *q) {
    table_ask ask = {
        .verb = table_verb_of(q),
        .body = q->http->body,
        .if_match = table_get(q, TABLE_FIELD_IF_MATCH),
        .prefer = table_get(q, TABLE_FIELD_PREFER),
        .accept = table_get(q, TABLE_FIELD_ACCEPT),
    };
    q->writes = arena_new(q->http->arena, table_write);
    q->writes_n = 1;
    return table_write_of(q, &ask, &q->route, q->writes);
}

/* ---- the operation ---- */

static unsigned verbs_of(const table_write *w) {
    switch (w->verb) {
    case TABLE_INSERT:
        return ACCESS_INSERT;
    case TABLE_DELETE:
        return ACCESS_DELETE;
    default:
        return w->if_match.p ? ACCESS_UPDATE : ACCESS_UPDATE | ACCESS_INSERT;
    }
}

static item_kind kind_of(const table_write *w) {
    switch (w->verb) {
    case TABLE_INSERT:
        return ITEM_CREATE;
    case TABLE_REPLACE:
        return w->if_match.p ? ITEM_REPLACE : ITEM_UPSERT;
    case TABLE_MERGE:
        return ITEM_EDIT;
    default:
        return ITEM_DELETE;
    }
}

static void add_condition(arena *a, const table_write *w, item_op *o) {
    bool any = !w->if_match.p || slice_eq(w->if_match, SLICE_LIT("*")) || w->verb == TABLE_INSERT;
    if (!any) {
        o->conditions = arena_new(a, item_condition);
        *o->conditions = merge_condition(a, w->if_match);
        o->conditions_n = 1;
    }
}

err table_prepare_write(table_request *q, const table_write *w, item_op *o) {
    arena *a = q->http->arena;
    *o = (item_op){.kind = kind_of(w), .body = w->body};
    op_init(&o->op, a, q->op.now_s);
    TRY(table_allow_entity(q, verbs_of(w), w->table, w->partition, w->row));
    if (w->verb == TABLE_DELETE && !w->if_match.p) {
        return table_refuse(q, TABLE_NO_HEADER);
    }
    if (w->if_match.p && !bson_utf8_validate(w->if_match.p, w->if_match.n, false)) {
        return table_refuse(q, TABLE_INVALID_HEADER);
    }
    if (w->verb != TABLE_DELETE) {
        TRY(table_refuse(q, entity_check_limits(w->body, q->large)));
    }
    add_condition(a, w, o);
    TRY(table_key_of(&q->op, q->container, w->partition, w->row, &o->key));
    if (w->verb == TABLE_MERGE) {
        o->edit = merge_edit(a, w->body, w->if_match.p != NULL, q->large);
        return OK;
    }
    return w->verb == TABLE_DELETE ? OK : item_check_body(&q->op, q->container, NULL, o);
}

err table_result_of(table_request *q, const item_op *o) {
    err code = q->call.commit.call.code != OK ? q->call.commit.call.code : o->code;
    bool merged = o->kind == ITEM_EDIT && (code == E_BAD_REQUEST || code == E_TOO_LARGE);
    if (merged) { /* the merged entity exceeds a limit */
        return table_refuse(q, code == E_TOO_LARGE ? TABLE_ENTITY_TOO_LARGE : TABLE_TOO_MANY_PROPERTIES);
    }
    return code;
}

/* ---- writing ---- */

void table_write_entity(table_request *q, const table_write *w, const item_op *o, buf *out) {
    entity_view view = table_view(q, w->metadata);
    view.element = true;
    entity_write(out, &view, o->result, item_version(&o->after), o->after.ts);
}

bool table_returns_content(const table_write *w) {
    return w->verb == TABLE_INSERT && !w->no_content;
}

/* The fields of an answer to a write: the etag; for an insert where the entity is, and which preference was met. */
void table_add_written(table_request *q, const table_write *w, const item_op *o, buf *out) {
    if (w->verb == TABLE_DELETE) {
        return;
    }
    table_add_etag(out, o->result, item_version(&o->after), o->after.ts);
    if (w->verb == TABLE_INSERT) {
        slice base = table_base(q);
        buf_add_lit(out, "Location: ");
        buf_add_slice(out, base);
        buf_add_byte(out, '/');
        entity_link(out, q->container->id, w->partition, w->row);
        buf_add_lit(out, "\r\n");
        if (w->no_content || w->wants_content) {
            w->no_content ? buf_add_lit(out, "Preference-Applied: return-no-content\r\n")
                          : buf_add_lit(out, "Preference-Applied: return-content\r\n");
        }
    }
}

static void write_on_worker(call *c) {
    table_request *q = (table_request *)c;
    if (q->ops->code == OK && table_returns_content(q->writes)) {
        table_write_entity(q, q->writes, q->ops, &q->rows);
    }
    q->written = true;
}

static void answer_written(table_request *q) {
    const table_write *w = q->writes;
    table_start(q, table_returns_content(w) ? 201 : 204);
    table_add_written(q, w, q->ops, table_fields(q));
    if (table_returns_content(w)) {
        buf_add_slice(table_json(q, w->metadata), buf_view(&q->rows));
    } else {
        http_reply_body(q->http);
    }
}

static void was_written(call *c) {
    table_request *q = (table_request *)c;
    q->fault = c->fault;
    err code = table_result_of(q, q->ops);
    if (code == OK && !q->written) {
        write_on_worker(c);
    }
    code = code == OK && !buf_ok(&q->rows) ? budget_error(q->op.budget) : code;
    if (code == OK) {
        answer_written(q);
    }
    call_commit_give(&q->call.commit);
    code == OK ? table_end(q) : table_fail(q, code);
}

void table_entity_write(table_request *q) {
    q->ops = arena_new(q->http->arena, item_op);
    err code = table_find(q, q->route.table);
    code = code != OK ? code : table_prepare_write(q, q->writes, q->ops);
    if (code != OK) {
        table_fail(q, code);
        return;
    }
    call_commit_init(&q->call.commit, &q->front->core, q->http->client, &q->op, q->container, was_written);
    q->call.commit.ops = q->ops;
    q->call.commit.n = 1;
    q->call.commit.atomic = true;
    q->call.commit.write = write_on_worker;
    call_commit_submit(&q->call.commit);
}
