/* Batches: writes of one partition, all or nothing; or one read. */
#include "api/table/multipart.h"
#include "api/table/table_int.h"

enum { UUID_ROOM = 37 };

/* ---- reading ---- */

/* A part's request, as a write. The verb may be in X-HTTP-Method here too. */
static err read_write(table_request *q, const multipart_request *r, table_write *w) {
    table_route route;
    bool tunnelled = r->method.n && slice_eq(r->verb, SLICE_LIT("POST"));
    table_ask ask = {.verb = tunnelled ? r->method : r->verb,
                     .body = r->body,
                     .if_match = r->if_match,
                     .prefer = r->prefer,
                     .accept = r->accept,
                     .content_id = r->content_id};
    TRY(table_refuse(q, table_route_parse(q->http->arena, table_path_of_url(r->url), false, &route)));
    return table_write_of(q, &ask, &route, w);
}

static err check_together(table_request *q, const table_write *w, size_t i) {
    const table_write *first = q->writes;
    if (!slice_eq_nocase(w->table, first->table) || !slice_eq(w->partition, first->partition)) {
        return table_refuse(q, TABLE_PARTITIONS);
    }
    for (size_t k = 0; k < i; k++) {
        if (slice_eq(w->row, q->writes[k].row)) {
            return table_refuse(q, TABLE_DUPLICATE_ROW);
        }
    }
    return OK;
}

static err read_writes(table_request *q, const multipart_request *requests, size_t n) {
    q->writes = arena_array(q->http->arena, table_write, n);
    for (size_t i = 0; i < n; i++) {
        q->failed = i + 1;
        TRY(read_write(q, &requests[i], &q->writes[i]));
        TRY(check_together(q, &q->writes[i], i));
        q->writes_n++;
    }
    q->failed = 0;
    return OK;
}

/* A read stands alone, outside a changeset. */
static err read_alone(table_request *q, const multipart_request *r) {
    if (!slice_eq(r->verb, SLICE_LIT("GET"))) {
        op_fail(&q->op, E_BAD_REQUEST, "Writes of a batch must be in a changeset.");
        return table_refuse(q, TABLE_INVALID_INPUT);
    }
    TRY(table_refuse(q, table_route_parse(q->http->arena, table_path_of_url(r->url), false, &q->route)));
    q->metadata = table_metadata_of(r->accept);
    return q->route.kind == TABLE_ENTITY ? OK : E_NOT_IMPLEMENTED;
}

static err decode(table_request *q) {
    multipart_request *requests = arena_array(q->http->arena, multipart_request, LIMIT_BATCH_OPERATIONS);
    slice boundary = multipart_boundary(table_get(q, TABLE_FIELD_CONTENT_TYPE));
    size_t n;
    bool changes;
    if (!boundary.n) {
        op_fail(&q->op, E_BAD_REQUEST, "The Content-Type of a batch must be multipart/mixed, with a boundary.");
        return table_refuse(q, TABLE_INVALID_INPUT);
    }
    TRY(table_refuse(q, multipart_read(&q->op, q->http->body, boundary, requests, LIMIT_BATCH_OPERATIONS, &n, &changes)));
    return changes ? read_writes(q, requests, n) : read_alone(q, requests);
}

/* An operation that is wrong is answered within the batch, with its index. */
err table_decode_batch(table_request *q) {
    err code = decode(q);
    q->refused = q->failed ? code : OK;
    return q->failed ? OK : code;
}

/* ---- answering ---- */

static void begin_part(buf *out, const char *boundary) {
    buf_addf(out, "--%s\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n", boundary);
}

static void add_content_id(buf *out, slice id) {
    if (id.n && id.n < 100) {
        buf_addf(out, "Content-ID: %.*s\r\n", (int)id.n, id.p);
    }
}

static void add_content_type(buf *out, entity_metadata metadata) {
    static const char *const names[] = {"nometadata", "minimalmetadata", "fullmetadata"};
    buf_addf(out, "Content-Type: application/json;odata=%s;streaming=true;charset=utf-8\r\n", names[metadata]);
}

static void write_part(table_request *q, const table_write *w, const item_op *o, const char *boundary) {
    buf *out = &q->rows;
    bool content = table_returns_content(w);
    begin_part(out, boundary);
    buf_add_slice(out, content ? SLICE_LIT("HTTP/1.1 201 Created\r\n") : SLICE_LIT("HTTP/1.1 204 No Content\r\n"));
    add_content_id(out, w->content_id);
    buf_add_lit(out, "X-Content-Type-Options: nosniff\r\nDataServiceVersion: 3.0;\r\n");
    table_add_written(q, w, o, out);
    if (content) {
        add_content_type(out, w->metadata);
        buf_add_lit(out, "\r\n");
        table_write_entity(q, w, o, out);
    }
    buf_add_lit(out, "\r\n\r\n");
}

static void write_failure(table_request *q, err code, const char *boundary) {
    buf *out = &q->rows;
    table_refusal refusal = table_refusal_for(q, code);
    begin_part(out, boundary);
    buf_addf(out, "HTTP/1.1 %u %s\r\n", refusal.status, refusal.code);
    add_content_id(out, q->failed && q->failed <= q->writes_n ? q->writes[q->failed - 1].content_id : SLICE_EMPTY);
    add_content_type(out, ENTITY_MINIMAL_METADATA);
    buf_add_lit(out, "\r\n");
    table_write_error(out, q, code);
    buf_add_lit(out, "\r\n");
}

/* Boundaries are named as SDKs look for them: some split the text at "--changesetresponse_". */
static void answer(table_request *q, err code) {
    char batch[UUID_ROOM], set[UUID_ROOM], boundary[64];
    table_make_guid(q, batch);
    table_make_guid(q, set);
    snprintf(boundary, sizeof boundary, "changesetresponse_%s", set);
    buf_clear(&q->rows);
    buf_addf(&q->rows, "--batchresponse_%s\r\nContent-Type: multipart/mixed; boundary=%s\r\n\r\n", batch, boundary);
    if (code != OK) {
        write_failure(q, code, boundary);
    }
    for (size_t i = 0; code == OK && i < q->writes_n; i++) {
        write_part(q, &q->writes[i], &q->ops[i], boundary);
    }
    buf_addf(&q->rows, "--%s--\r\n--batchresponse_%s--\r\n", boundary, batch);
    call_commit_give(&q->call.commit);
    if (!buf_ok(&q->rows)) {
        table_fail(q, budget_error(q->op.budget));
        return;
    }
    table_start(q, 202);
    buf_addf(table_fields(q), "Content-Type: multipart/mixed; boundary=batchresponse_%s\r\n", batch);
    buf_add_slice(http_reply_body(q->http), buf_view(&q->rows));
    table_end(q);
}

/* The answer of a read has no changeset around it. The status line and the fields are those that a request of its own gets. */
void table_answer_alone(table_request *q, const entity_view *view, slice body, const item_head *head) {
    char batch[UUID_ROOM], boundary[64];
    uint64_t version = item_version(head);
    table_make_guid(q, batch);
    snprintf(boundary, sizeof boundary, "batchresponse_%s", batch);
    table_start(q, 202);
    buf_addf(table_fields(q), "Content-Type: multipart/mixed; boundary=%s\r\n", boundary);
    buf *out = http_reply_body(q->http);
    begin_part(out, boundary);
    buf_add_lit(out, "HTTP/1.1 200 OK\r\n");
    add_content_type(out, view->metadata);
    table_add_etag(out, body, version, head->ts);
    buf_add_lit(out, "\r\n");
    entity_write(out, view, body, version, head->ts);
    buf_addf(out, "\r\n--%s--\r\n", boundary);
}

/* The operation that made the batch fail; the others were undone or not tried. */
static err find_failure(table_request *q) {
    if (q->call.commit.call.code != OK) {
        return q->call.commit.call.code;
    }
    for (size_t i = 0; i < q->writes_n; i++) {
        if (q->ops[i].code != OK && q->ops[i].code != E_FAILED_DEPENDENCY) {
            q->failed = i + 1;
            return table_result_of(q, &q->ops[i]);
        }
    }
    return OK;
}

static void committed(call *c) {
    table_request *q = (table_request *)c;
    q->fault = c->fault;
    err code = find_failure(q);
    if (c->code != OK) { /* not decided: throttled, for one, which clients look for in the status */
        call_commit_give(&q->call.commit);
        table_fail(q, code);
        return;
    }
    answer(q, code);
}

static err prepare(table_request *q) {
    TRY(table_find(q, q->writes->table));
    for (size_t i = 0; i < q->writes_n; i++) {
        q->failed = i + 1;
        TRY(table_prepare_write(q, &q->writes[i], &q->ops[i]));
    }
    q->failed = 0;
    return OK;
}

void table_batch(table_request *q) {
    if (q->refused != OK) {
        answer(q, q->refused);
        return;
    }
    if (!q->writes_n) {
        q->alone = true;
        table_entity_read(q);
        return;
    }
    q->ops = arena_array(q->http->arena, item_op, q->writes_n);
    err code = prepare(q);
    if (code != OK) {
        answer(q, code);
        return;
    }
    call_commit_init(&q->call.commit, &q->front->core, q->http->client, &q->op, q->container, committed);
    q->call.commit.ops = q->ops;
    q->call.commit.n = q->writes_n;
    q->call.commit.atomic = true;
    call_commit_submit(&q->call.commit);
}
