/* Many item operations in one request: a transactional batch (one partition key, all or nothing) or bulk (one range, independent
 * operations). */
#include "api/sql/batch.h"
#include "api/sql/itembody.h"
#include "api/sql/triggers.h"
#include "throughput/charge.h"

enum { ANSWER_BYTES_MAX = 32 * 1024 * 1024 };

static void written(call *c);

static err read_target(sql_request *q) {
    uint32_t range;
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    sql_call_prepare(q, call_commit_init, &q->commit, written);
    q->commit.atomic = sql_flag(q, FIELD_BATCH_ATOMIC);
    q->commit.stops_at_failure = sql_has(q, FIELD_BATCH_CONTINUE) && !sql_flag(q, FIELD_BATCH_CONTINUE);
    if (q->commit.atomic) {
        if (!q->key_given && q->container->key.n) {
            return op_fail(&q->op, E_BAD_REQUEST, "PartitionKey value must be supplied for this operation.");
        }
        return q->container->key.n ? pkey_check_whole(&q->op, &q->container->key, &q->partition) : OK;
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

static void write_result(buf *out, const container *c, const item_op *item, bool minimal) {
    const err_entry *entry = err_lookup(item->code);
    buf_addf(out, "{\"statusCode\":%u", sql_item_status(item));
    if (entry->http_substatus) {
        buf_addf(out, ",\"subStatusCode\":%u", entry->http_substatus);
    }
    if (item->code == E_THROTTLED) {
        buf_addf(out, ",\"retryAfterMilliseconds\":%u", item->op.retry_after_ms);
    }
    buf_add_lit(out, ",\"requestCharge\":");
    sql_write_charge(out, item->op.charge_ru);
    if (item->code == OK && item->kind != ITEM_DELETE) {
        char etag[ITEM_ETAG_BYTES + 1];
        item_etag(etag, item_version(&item->after), item->after.ts);
        buf_add_lit(out, ",\"eTag\":");
        json_add_string(out, slice_of(etag, ITEM_ETAG_BYTES));
        if (!minimal || item->kind == ITEM_READ) {
            buf_add_lit(out, ",\"resourceBody\":");
            sql_write_item(out, c, item->result, &item->after);
        }
    } else if (item->code != OK && item->code != E_FAILED_DEPENDENCY && item->code != E_NOT_MODIFIED) {
        buf_add_lit(out, ",\"message\":");
        json_add_string(out, item->op.detail_n ? slice_of(item->op.detail, item->op.detail_n) : slice_str(entry->sentence));
    }
    buf_add_byte(out, '}');
}

static void write_results(sql_request *q, buf *out) {
    bool minimal = sql_wants_minimal(q);
    buf_add_byte(out, '[');
    for (size_t i = 0; i < q->commit.n && buf_ok(out); i++) {
        if (i) {
            buf_add_byte(out, ',');
        }
        write_result(out, q->container, &q->commit.ops[i], minimal);
    }
    buf_add_byte(out, ']');
}

/* Runs on a worker. Items within the limit as BSON may be several times as long as JSON. */
static void write_answer(call *c) {
    sql_request *q = request_of(c);
    q->written = buf_init_counted(ANSWER_BYTES_MAX, q->op.budget);
    write_results(q, &q->written);
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
        write_results(q, out);
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
    buf_add_lit(sql_start_body(q), "[]");
    sql_end(q);
}

void sql_item_batch(sql_request *q) {
    slice list;
    err code = read_target(q);
    code = code != OK ? code : sql_triggers_none(q, "A batch");
    code = code != OK ? code : sql_body(q, JSON_ARRAY, &list);
    if (code == OK) {
        sql_batch_target target = {.container = q->container, .key = sql_header_key(q), .atomic = q->commit.atomic};
        code = sql_batch_read(&q->op, &target, list, &q->commit.ops, &q->commit.n);
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
