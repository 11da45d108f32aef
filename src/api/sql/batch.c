/* Many item operations in one request: a transactional batch (one partition key, all or nothing) or bulk (one range, independent
 * operations). */
#include "api/sql/batch.h"
#include "api/sql/batch_rows.h"
#include "api/sql/itembody.h"
#include "api/sql/triggers.h"
#include "throughput/charge.h"

#include <math.h>

enum { ANSWER_BYTES_MAX = 32 * 1024 * 1024 };

static void written(call *c);

static err check_key(sql_request *q) {
    if (!q->key_given && q->container->key.n) {
        return op_fail(&q->op, E_BAD_REQUEST, "PartitionKey value must be supplied for this operation.");
    }
    err code = q->container->key.n ? pkey_check_whole(&q->op, &q->container->key, &q->partition) : OK;
    return code == OK ? OK
                      : op_fail(&q->op, code,
                                "Partition key provided either doesn't correspond to definition in the collection or doesn't match "
                                "partition key field values specified in the document.");
}

static err read_target(sql_request *q) {
    uint32_t range;
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    sql_call_prepare(q, call_commit_init, &q->commit, written);
    q->commit.atomic = sql_flag(q, FIELD_BATCH_ATOMIC);
    q->commit.stops_at_failure = sql_has(q, FIELD_BATCH_CONTINUE) && !sql_flag(q, FIELD_BATCH_CONTINUE);
    if (q->commit.atomic) {
        return check_key(q);
    }
    if (sql_has(q, FIELD_RANGE_ID)) {
        TRY(sql_range_id(q, &range));
        q->commit.range_id = range;
    }
    return OK;
}

/* ---- answering ---- */

static sql_request *request_of(call *c) {
    return (sql_request *)((char *)c - offsetof(sql_request, commit));
}

static bool has_etag(const item_op *item) {
    return item->code == OK && item->kind != ITEM_DELETE;
}

static bool has_message(const item_op *item) {
    return item->code != OK && item->code != E_FAILED_DEPENDENCY && item->code != E_NOT_MODIFIED;
}

static slice message_of(const item_op *item) {
    return item->op.detail_n ? slice_of(item->op.detail, item->op.detail_n) : slice_str(err_lookup(item->code)->sentence);
}

static slice etag_of(const item_op *item, char text[ITEM_ETAG_BYTES + 1]) {
    item_etag(text, item_version(&item->after), item->after.ts);
    return slice_of(text, ITEM_ETAG_BYTES);
}

static void write_result(buf *out, const container *c, const item_op *item, bool body) {
    const err_entry *entry = err_lookup(item->code);
    char etag[ITEM_ETAG_BYTES + 1];
    buf_addf(out, "{\"statusCode\":%u", sql_item_status(item));
    if (entry->http_substatus) {
        buf_addf(out, ",\"subStatusCode\":%u", entry->http_substatus);
    }
    if (item->code == E_THROTTLED) {
        buf_addf(out, ",\"retryAfterMilliseconds\":%u", item->op.retry_after_ms);
    }
    buf_add_lit(out, ",\"requestCharge\":");
    sql_write_charge(out, item->op.charge_ru);
    if (has_etag(item)) {
        buf_add_lit(out, ",\"eTag\":");
        json_add_string(out, etag_of(item, etag));
    }
    if (has_etag(item) && body) {
        buf_add_lit(out, ",\"resourceBody\":");
        sql_write_item(out, c, item->result, &item->after);
    }
    if (has_message(item)) {
        buf_add_lit(out, ",\"message\":");
        json_add_string(out, message_of(item));
    }
    buf_add_byte(out, '}');
}

/* The same as a HybridRow. `scratch` takes the item, or the error as REST answers it. */
static void write_row(buf *out, const container *c, const item_op *item, bool body, buf *scratch) {
    const err_entry *entry = err_lookup(item->code);
    char etag[ITEM_ETAG_BYTES + 1];
    buf_clear(scratch);
    if (has_etag(item) && body) {
        sql_write_item(scratch, c, item->result, &item->after);
    } else if (has_message(item)) {
        buf_addf(scratch, "{\"code\":\"%s\",\"message\":", entry->word);
        json_add_string(scratch, message_of(item));
        buf_add_byte(scratch, '}');
    }
    sql_rows_add(out, &(sql_row_result){
                          .status = sql_item_status(item),
                          .substatus = entry->http_substatus,
                          .charge_ru = round(item->op.charge_ru * 100) / 100,
                          .throttled = item->code == E_THROTTLED,
                          .retry_after_ms = item->op.retry_after_ms,
                          .etag = has_etag(item) ? etag_of(item, etag) : SLICE_EMPTY,
                          .body = buf_view(scratch),
                      });
    out->overflow = out->overflow || !buf_ok(scratch);
}

/* False: the client wants no body, by its header or by the operation. */
static bool wants_body(const sql_request *q, bson_iter_t *operations, const item_op *item) {
    bson_iter_t operation;
    bool found = bson_iter_next(operations) && bson_iter_recurse(operations, &operation) &&
                 bson_iter_find(&operation, "minimalReturnPreference") && bson_iter_as_bool(&operation);
    return item->kind == ITEM_READ || !(found || sql_wants_minimal(q));
}

static void write_results(sql_request *q, buf *out) {
    bson_iter_t operations;
    buf scratch = buf_init_counted(ANSWER_BYTES_MAX, q->op.budget);
    bson_iter_init_from_data(&operations, (const uint8_t *)q->operations.p, q->operations.n);
    for (size_t i = 0; i < q->commit.n && buf_ok(out); i++) {
        const item_op *item = &q->commit.ops[i];
        bool body = wants_body(q, &operations, item);
        if (q->rows) {
            write_row(out, q->container, item, body, &scratch);
        } else {
            buf_add_byte(out, i ? ',' : '[');
            write_result(out, q->container, item, body);
        }
    }
    buf_free(&scratch);
}

/* In the format of the request. */
static void write_body(sql_request *q, buf *out) {
    if (q->rows) {
        sql_rows_start(out);
        write_results(q, out);
    } else {
        write_results(q, out);
        buf_add_slice(out, q->commit.n ? SLICE_LIT("]") : SLICE_LIT("[]"));
    }
}

/* Runs on a worker. Items within the limit as BSON may be several times as long as JSON. */
static void write_answer(call *c) {
    sql_request *q = request_of(c);
    q->written = buf_init_counted(ANSWER_BYTES_MAX, q->op.budget);
    write_body(q, &q->written);
}

static bool all_have(const sql_request *q, err code) {
    bool all = true;
    for (size_t i = 0; i < q->commit.n; i++) {
        all = all && q->commit.ops[i].code == code;
    }
    return all;
}

static void answer(sql_request *q, err code) {
    (void)code; /* each operation has its own */
    sql_start(q, all_have(q, OK) ? 200 : 207);
    sql_add_range(q, q->marked ? q->mark : range_mark_at(q->container, &q->commit.ops[0].key.epk));
    buf *out = sql_start_body(q);
    if (q->written.n) {
        buf_add_slice(out, buf_view(&q->written));
        buf_free(&q->written);
    } else {
        write_body(q, out);
    }
    sql_end(q);
}

static err failure_of(const sql_request *q) {
    err memory = q->op.budget ? budget_error(q->op.budget) : OK;
    return q->commit.call.code != OK ? q->commit.call.code : buf_ok(&q->written) ? OK : memory != OK ? memory : E_TOO_LARGE;
}

static void written(call *c) {
    sql_request *q = request_of(c);
    err code = failure_of(q);
    sql_call_done(q, c);
    if (code == OK && all_have(q, E_THROTTLED)) {
        q->op.retry_after_ms = q->commit.ops[0].op.retry_after_ms;
        sql_refuse(q, OK, answer);
    } else if (code == OK) {
        answer(q, OK);
    } else {
        buf_free(&q->written);
        sql_fail(q, code);
    }
}

/* A transactional batch that contains an invalid operation is rejected without trying any of it. */
static bool refused_before(sql_request *q) {
    size_t bad = q->commit.n;
    for (size_t i = 0; i < q->commit.n && bad == q->commit.n; i++) {
        bad = q->commit.ops[i].code != OK ? i : bad;
    }
    if (!q->commit.atomic || bad == q->commit.n) {
        return false;
    }
    for (size_t i = 0; i < q->commit.n; i++) {
        q->commit.ops[i].code = i == bad ? q->commit.ops[i].code : E_FAILED_DEPENDENCY;
    }
    return true;
}

/* Bulk without operations: after a split the JavaScript SDK sends a request to every child of the old range, even if none of its operations
 * belongs there. */
static void answer_nothing(sql_request *q) {
    sql_start(q, 200);
    sql_add_container_paths(q, q->container);
    write_body(q, sql_start_body(q));
    sql_end(q);
}

void sql_item_batch(sql_request *q) {
    q->rows = sql_rows_has(q->http->body);
    err code = read_target(q);
    code = code != OK ? code : sql_triggers_none(q, "A batch");
    code = code != OK ? code : sql_body(q, JSON_ARRAY, &q->operations);
    if (code == OK) {
        sql_batch_target target = {
            .container = q->container, .key = sql_header_key(q), .atomic = q->commit.atomic, .foreign_ms = sql_foreign_ms(q)};
        code = sql_batch_read(&q->op, &target, q->operations, &q->commit.ops, &q->commit.n);
    }
    if (code != OK) {
        sql_fail(q, code);
    } else if (q->commit.n == 0) {
        answer_nothing(q);
    } else if (refused_before(q)) {
        op_charge(&q->op, CHARGE_FAILED);
        answer(q, OK);
    } else {
        q->commit.write = write_answer;
        call_commit_submit(&q->commit);
    }
}
