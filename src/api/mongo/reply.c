/* Replies: the document, errors, ending the request, and its statistics for getLastRequestStatistics. */
#include <stdlib.h>

#include "api/mongo/mongo_int.h"
#include "api/mongo/transaction.h"
#include "api/mongo/work.h"
#include "base/request_log.h"

/* ---- adding members ---- */

void mongo_add_int(mql_builder *b, const char *key, int32_t number) {
    char bytes[4];
    doc_store_i32(bytes, number);
    mql_add(b, slice_str(key), (mql_value){BSON_TYPE_INT32, slice_of(bytes, sizeof bytes)});
}

void mongo_add_long(mql_builder *b, const char *key, int64_t number) {
    char bytes[8];
    doc_store_i64(bytes, number);
    mql_add(b, slice_str(key), (mql_value){BSON_TYPE_INT64, slice_of(bytes, sizeof bytes)});
}

void mongo_add_double(mql_builder *b, const char *key, double number) {
    char bytes[8];
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    doc_store_i64(bytes, bits);
    mql_add(b, slice_str(key), (mql_value){BSON_TYPE_DOUBLE, slice_of(bytes, sizeof bytes)});
}

void mongo_add_bool(mql_builder *b, const char *key, bool truth) {
    mql_add(b, slice_str(key), mql_bool(truth));
}

/* The bytes of a string are its length, itself and a zero byte; the builder takes values whole, so the text is appended in two steps. */
void mongo_add_text(mql_builder *b, const char *key, slice text) {
    enum { ROOM = 512 };
    char room[ROOM], *bytes = text.n + 5 <= ROOM ? room : malloc(text.n + 5);
    if (!bytes) {
        abort();
    }
    doc_store_i32(bytes, (int32_t)text.n + 1);
    memcpy(bytes + 4, text.n ? text.p : "", text.n);
    bytes[4 + text.n] = 0;
    mql_add(b, slice_str(key), (mql_value){BSON_TYPE_UTF8, slice_of(bytes, text.n + 5)});
    if (bytes != room) {
        free(bytes);
    }
}

void mongo_add_date(mql_builder *b, const char *key, int64_t ms) {
    char bytes[8];
    doc_store_i64(bytes, ms);
    mql_add(b, slice_str(key), (mql_value){BSON_TYPE_DATE_TIME, slice_of(bytes, sizeof bytes)});
}

void mongo_add_document(mql_builder *b, const char *key, slice document) {
    mql_add(b, slice_str(key), mql_document(document));
}

void mongo_add_array(mql_builder *b, const char *key, slice array) {
    mql_add(b, slice_str(key), mql_array(array));
}

void mongo_add_object_id(mql_builder *b, const char *key, const uint8_t bytes[static 12]) {
    mql_add(b, slice_str(key), (mql_value){BSON_TYPE_OID, slice_of(bytes, 12)});
}

void mongo_add_binary(mql_builder *b, const char *key, uint8_t subtype, slice bytes) {
    enum { HEAD = 5, ROOM = 1024 };
    char room[HEAD + ROOM];
    size_t n = bytes.n <= ROOM ? bytes.n : ROOM; /* payloads and UUIDs, which are short */
    doc_store_i32(room, (int32_t)n);
    room[4] = (char)subtype;
    memcpy(room + HEAD, n ? bytes.p : "", n);
    mql_add(b, slice_str(key), (mql_value){BSON_TYPE_BINARY, slice_of(room, HEAD + n)});
}

void mongo_open_document(mql_builder *b, const char *key) {
    mql_open(b, slice_str(key), BSON_TYPE_DOCUMENT);
}

void mongo_open_array(mql_builder *b, const char *key) {
    mql_open(b, slice_str(key), BSON_TYPE_ARRAY);
}

slice mongo_built_copy(arena *a, mql_builder *b, buf *out) {
    slice document = mql_built(b), copy = buf_ok(out) && arena_fits(a, document.n) ? arena_copy(a, document) : SLICE_EMPTY;
    buf_free(out);
    return copy;
}

/* ---- ids ---- */

/* Seconds, five bytes of this process, a counter that begins at random. Any thread. */
void mongo_make_object_id(mongo_request *q, uint8_t bytes[static 12]) {
    uint32_t seconds = (uint32_t)(q->now_ms / 1000);
    for (int i = 0; i < 4; i++) {
        bytes[i] = (uint8_t)(seconds >> (24 - 8 * i));
    }
    memcpy(bytes + 4, q->front->process_id + 4, 5);
    uint32_t n = (uint32_t)atomic_fetch_add(&q->front->object_ids, 1);
    for (int i = 0; i < 3; i++) {
        bytes[9 + i] = (uint8_t)(n >> (16 - 8 * i));
    }
}

void mongo_make_uuid(mongo_request *q, uint8_t bytes[static 16]) {
    random_bytes(net_loop_random(q->frame->client.loop), bytes, 16);
    bytes[6] = (uint8_t)((bytes[6] & 0x0F) | 0x40); /* a random UUID, RFC 4122 */
    bytes[8] = (uint8_t)((bytes[8] & 0x3F) | 0x80);
}

/* ---- the end of a request ---- */

static void remember(mongo_request *q, int64_t us) {
    mongo_conn *c = q->conn;
    if (!q->command || q->command->flags & MONGO_SILENT) {
        return;
    }
    c->last_command = q->command;
    c->last_charge_ru = q->op.charge_ru;
    c->last_ms = (double)us / 1000;
}

static void log_request(const mongo_request *q, int64_t us, int32_t status) {
    unsigned wanted = request_log_wants(us, status != 0);
    if (wanted) {
        request_log_write(wanted, &(request_log_entry){.api = "mongo",
                                                       .verb = slice_str(q->command ? q->command->name : "?"),
                                                       .path = mongo_namespace(q->frame->arena, q->database, q->collection),
                                                       .status = (unsigned)status,
                                                       .charge_ru = q->op.charge_ru,
                                                       .us = us,
                                                       .failed = status != 0,
                                                       .range = q->call.any.marked ? (int64_t)q->call.any.mark.range_id : -1});
    }
}

/* Everything that the request holds is released before its frame, which has its memory. */
static void finish(mongo_request *q, int32_t status) {
    int64_t us = clock_monotonic_us(net_loop_clock(q->frame->client.loop)) - q->started_us;
    remember(q, us);
    log_request(q, us, status);
    mongo_operation_end(q, us);
    mongo_transaction_leave(q, status != 0);
    if (q->clean) {
        q->clean(q);
    }
    if (q->container) {
        container_give(q->container);
    }
    if (q->message.more_to_come) {
        frames_abandon(q->frame);
    }
    if (q->streams) {
        mongo_exhaust_go_on(q);
        return;
    }
    mongo_conn *conn = q->conn;
    bool holds = q->holds, others = holds && conn->waiting_n; /* the connection lives as long as one of its requests */
    if (holds && !others) {
        conn->held = false;
    }
    frames_end(q->frame);
    if (others) {
        mongo_release(conn);
    }
}

static bool is_compressed(const mongo_request *q) {
    return q->message.compressor && q->command && !(q->command->flags & MONGO_READABLE);
}

static void close_reply(mongo_request *q, double ok) {
    mongo_add_double(&q->reply, "ok", ok);
    mql_built(&q->reply);
}

static err compress(mongo_request *q) {
    wire_end(frames_out(q->frame), q->reply_start, &q->message, false);
    return OK;
}

/* If no worker could do it, the reply is sent as it is. */
static void compressed(mongo_request *q, err code) {
    if (code != OK) {
        q->op.detail_n = 0;
        wire_end(frames_out(q->frame), q->reply_start, &q->message, true);
    }
    finish(q, 0);
}

buf *mongo_answer_bytes(mongo_request *q) {
    buf *out = frames_out(q->frame);
    q->reply_start = wire_begin(out, &q->message, q->streams != 0);
    q->replying = true;
    return out;
}

mql_builder *mongo_answer(mongo_request *q) {
    mql_begin(&q->reply, mongo_answer_bytes(q));
    return &q->reply;
}

void mongo_end(mongo_request *q) {
    close_reply(q, 1);
    mongo_end_bytes(q);
}

void mongo_end_bytes(mongo_request *q) {
    if (is_compressed(q)) {
        mongo_work(q, frames_out(q->frame)->n - q->reply_start > MONGO_LARGE_BYTES, compress, compressed);
        return;
    }
    wire_end(frames_out(q->frame), q->reply_start, &q->message, true);
    finish(q, 0);
}

err mongo_ok(mongo_request *q) {
    mongo_answer(q);
    mongo_end(q);
    return OK;
}

/* ---- errors ---- */

static slice throttled_message(const op *o, arena *a, slice reason) {
    return arena_printf(a,
                        "Error=16500, RetryAfterMs=%u, Details='Response status code does not indicate success: TooManyRequests (429); "
                        "Substatus: 3200; Reason: (%.*s)'",
                        o->retry_after_ms ? o->retry_after_ms : 10u, slice_shown(reason), reason.p);
}

void mongo_error_of(const op *o, arena *a, err code, mongo_error *e) {
    const err_entry *entry = err_lookup(code);
    e->code = o->protocol_code ? o->protocol_code : entry->mongo_code;
    e->message = o->detail_n ? slice_of(o->detail, o->detail_n) : slice_str(entry->sentence);
    if (e->code == CODE_TOO_MANY_REQUESTS) {
        e->message = throttled_message(o, a, e->message);
    }
    e->name = mongo_code_name(e->code, e->room);
}

void mongo_error_of_kill(const mongo_request *q, err code, mongo_error *e) {
    int by = atomic_load(&q->operation.killed_by);
    if (by && code == E_CANCELLED) {
        e->code = by;
        e->message = by == CODE_INTERRUPTED ? SLICE_LIT("operation was interrupted") : SLICE_LIT("operation exceeded time limit");
        e->name = mongo_code_name(by, e->room);
    }
}

/* Error labels: they tell drivers that the same write, or the whole transaction, may succeed if it is repeated. */
static void add_labels(const mongo_request *q, mql_builder *b, int32_t code) {
    bool elsewhere = code == CODE_SHUTDOWN_IN_PROGRESS || code == CODE_NOT_WRITABLE_PRIMARY;
    bool later = code == CODE_WRITE_CONFLICT || code == CODE_NO_SUCH_TRANSACTION || code == CODE_TOO_MANY_REQUESTS;
    const char *label = q->session.in_transaction && (elsewhere || later) ? "TransientTransactionError"
                        : q->session.retryable && elsewhere               ? "RetryableWriteError"
                                                                          : NULL;
    if (label) {
        mongo_open_array(b, "errorLabels");
        mql_add_next(b, mql_text(q->frame->arena, slice_str(label)));
        mql_close(b);
    }
}

void mongo_fail(mongo_request *q, err code) {
    mongo_error e;
    mongo_error_of(&q->op, q->frame->arena, code, &e);
    mongo_error_of_kill(q, code, &e);
    q->streams = 0;
    if (q->replying) {
        frames_abandon(q->frame);
    }
    mql_builder *b = mongo_answer(q);
    mongo_add_text(b, "errmsg", e.message);
    mongo_add_int(b, "code", e.code);
    mongo_add_text(b, "codeName", slice_str(e.name));
    add_labels(q, b, e.code);
    close_reply(q, 0);
    wire_end(frames_out(q->frame), q->reply_start, &q->message, !is_compressed(q));
    finish(q, e.code);
}

/* ---- changes ---- */

account_change *mongo_begin_change(mongo_request *q, size_t bytes) {
    q->change = arena_zero(q->frame->arena, bytes);
    return q->change;
}

static void decided(call *c) {
    mongo_request *q = (mongo_request *)c;
    err code = q->next(q);
    if (code != OK) {
        mongo_fail(q, code);
    }
}

void mongo_await_change(mongo_request *q, mongo_handler next) {
    q->next = next;
    call_init(&q->call.any, &q->front->core, &q->frame->client, &q->op, NULL, decided);
    call_await_change(&q->call.any, q->change);
}
