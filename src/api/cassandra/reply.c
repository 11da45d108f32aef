/* Answers: their envelope, its prefix of warnings and payload, errors with their extra bodies, and the end of a request. */
#include "api/cassandra/cassandra_int.h"
#include "api/cassandra/prepared.h"
#include "api/cassandra/schema.h"
#include "api/cassandra/trace.h"
#include "base/request_log.h"

/* ---- the envelope ---- */

/* The prefix of the body, in the order of the specification: the trace, warnings, the custom payload. */
static void put_prefix(cass_request *q, buf *out, uint8_t flags) {
    if (flags & CASS_FLAG_TRACING) {
        buf_add(out, q->trace->id, sizeof q->trace->id);
    }
    if (flags & CASS_FLAG_WARNING) {
        cass_put_short(out, 1);
        cass_put_string(out, q->warning);
    }
    if (flags & CASS_FLAG_PAYLOAD) {
        uint64_t bits;
        memcpy(&bits, &q->op.charge_ru, sizeof bits);
        cass_put_short(out, 1);
        cass_put_string(out, SLICE_LIT("RequestCharge"));
        cass_put_int(out, 8);
        cass_put_long(out, (int64_t)bits);
    }
}

buf *cass_answer(cass_request *q, cass_opcode opcode) {
    buf *out = frames_out(q->frame);
    bool result = opcode == CASS_RESULT || opcode == CASS_ERROR, prefixes = q->version >= 4 && result;
    uint8_t flags = (uint8_t)((prefixes && q->warning.n ? CASS_FLAG_WARNING : 0) | (prefixes && q->charged ? CASS_FLAG_PAYLOAD : 0) |
                              (result && q->trace ? CASS_FLAG_TRACING : 0));
    q->begun = cass_envelope_begin(out, q->version, flags, q->envelope.stream, opcode);
    q->answering = true;
    put_prefix(q, out, flags);
    return out;
}

static const char *verb_of(const cass_request *q) {
    static const char *const names[] = {
        [CASS_STARTUP] = "STARTUP", [CASS_OPTIONS] = "OPTIONS",   [CASS_QUERY] = "QUERY", [CASS_PREPARE] = "PREPARE",
        [CASS_EXECUTE] = "EXECUTE", [CASS_REGISTER] = "REGISTER", [CASS_BATCH] = "BATCH", [CASS_AUTH_RESPONSE] = "AUTH"};
    return q->envelope.opcode < sizeof names / sizeof *names && names[q->envelope.opcode] ? names[q->envelope.opcode] : "?";
}

static uint16_t consistency_of(const cass_request *q) {
    return q->envelope.opcode == CASS_BATCH ? q->batch.params.consistency : q->query.params.consistency;
}

static void log_request(const cass_request *q, int32_t status) {
    int64_t us = clock_monotonic_us(net_loop_clock(q->frame->client.loop)) - q->started_us;
    unsigned wanted = request_log_wants(us, status != 0);
    if (wanted) {
        request_log_write(wanted, &(request_log_entry){.api = "cassandra",
                                                       .verb = slice_str(verb_of(q)),
                                                       .path = q->container ? q->container->id : q->keyspace,
                                                       .status = (unsigned)status,
                                                       .charge_ru = q->op.charge_ru,
                                                       .us = us,
                                                       .failed = status != 0,
                                                       .range = q->call.any.marked ? (int64_t)q->call.any.mark.range_id : -1});
    }
}

/* ---- traces ---- */

static uint32_t elapsed_us(const cass_request *q) {
    return (uint32_t)(clock_monotonic_us(net_loop_clock(q->frame->client.loop)) - q->started_us);
}

void cass_trace_begin(cass_request *q) {
    cass_trace *t = q->trace = arena_new(q->frame->arena, cass_trace);
    *t = (cass_trace){.started_us = q->now_us,
                      .decoded_us = elapsed_us(q),
                      .message_bytes = q->envelope.body.n,
                      .page_size = q->query.params.page_size,
                      .consistency = consistency_of(q),
                      .verb = verb_of(q)};
    cql_timeuuid_make(q->run.random, q->now_us, t->id);
    frames_peer_address(q->frame->conn, t->client);
}

/* The trace is kept before its request is answered, so that the client finds it. */
static void keep_trace(cass_request *q, int32_t status) {
    cass_trace *t = q->trace;
    slice text = q->query.text.n || !q->prepared ? q->query.text : q->prepared->text;
    slice shown = bson_utf8_validate(text.n ? text.p : "", text.n, true) ? slice_cut(text, CASS_TRACE_TEXT_MAX) : SLICE_EMPTY;
    t->duration_us = elapsed_us(q);
    t->charge_ru = q->op.charge_ru;
    t->status = status;
    t->text_n = (uint16_t)shown.n;
    memcpy(t->text, shown.n ? shown.p : "", shown.n);
    cass_traces_keep(q->front->traces, t);
}

static void free_rows(cass_request *q) {
    if (q->rows) {
        pieces_free(q->rows);
        q->rows = NULL;
    }
}

/* Everything that the request holds is released before its frame, which has its memory. */
static void finish(cass_request *q, int32_t status) {
    log_request(q, status);
    if (q->trace) {
        keep_trace(q, status);
    }
    if (q->clean) {
        q->clean(q);
    }
    free_rows(q);
    for (cass_held *h = q->held; h; h = h->next) {
        if (h->prepared) {
            cass_prepared_give(h->prepared);
        }
        if (h->table) {
            cass_table_give(h->table);
        }
        if (h->container) {
            container_give(h->container);
        }
    }
    if (q->table) {
        cass_table_give(q->table);
    }
    if (q->prepared) {
        cass_prepared_give(q->prepared);
    }
    if (q->container) {
        container_give(q->container);
    }
    frames_end(q->frame);
}

static bool is_wrapped(const cass_request *q) {
    return !q->bare && (q->conn->segments || (q->version < CASS_VERSION_SEGMENTS && q->conn->compression != CASS_PLAIN));
}

/* STARTUP is answered as it came, before compression and segments. */
static void wrap(cass_request *q) {
    enum { FEW_BYTES = 16 * 1024 }; /* cost less to copy than to send apart */
    buf *out = frames_out(q->frame);
    size_t more = q->rows ? pieces_bytes(q->rows) : 0;
    bool wrapped = is_wrapped(q), apart = more > FEW_BYTES && !wrapped;
    if (more && !apart && buf_reserve(out, more)) {
        pieces_copy(q->rows, out);
    }
    cass_envelope_end(out, q->begun, apart ? more : 0);
    if (apart) {
        frames_attach(q->frame, q->rows);
    } else if (wrapped && q->conn->segments) {
        cass_segments_write(out, q->begun, q->conn->compression == CASS_LZ4);
    } else if (wrapped) {
        cass_envelope_compress(out, q->begun, q->conn->compression);
        cass_envelope_end(out, q->begun, 0);
    }
}

static void end_as(cass_request *q, int32_t status) {
    wrap(q);
    finish(q, status);
}

void cass_end(cass_request *q) {
    end_as(q, 0);
}

err cass_answer_empty(cass_request *q, cass_opcode opcode) {
    cass_answer(q, opcode);
    cass_end(q);
    return OK;
}

err cass_answer_void(cass_request *q) {
    cass_put_int(cass_answer(q, CASS_RESULT), CASS_RESULT_VOID);
    cass_end(q);
    return OK;
}

err cass_answer_keyspace(cass_request *q, slice name) {
    buf *out = cass_answer(q, CASS_RESULT);
    cass_put_int(out, CASS_RESULT_KEYSPACE);
    cass_put_string(out, name);
    cass_end(q);
    return OK;
}

err cass_answer_change(cass_request *q, cass_change change) {
    buf *out = cass_answer(q, CASS_RESULT);
    cass_put_int(out, CASS_RESULT_SCHEMA);
    cass_put_string(out, slice_str(change.change));
    cass_put_string(out, slice_str(change.target));
    cass_put_string(out, change.keyspace);
    if (change.name.n) {
        cass_put_string(out, change.name);
    }
    cass_tell(q->front, change);
    cass_end(q);
    return OK;
}

/* ---- errors ---- */

/* The text that the service's own retry policies read: RetryAfterMs=, between commas. */
static slice throttled_text(cass_request *q, slice reason) {
    return arena_printf(
        q->frame->arena,
        "Request rate is large: ActivityID=00000000-0000-0000-0000-000000000000, RetryAfterMs=%u, Additional details='%.*s'",
        q->op.retry_after_ms ? q->op.retry_after_ms : 10u, slice_shown(reason), reason.p);
}

/* The protocol's code; failures are known since version 4. */
static int32_t code_of(const cass_request *q, err code) {
    int32_t number = q->op.protocol_code ? q->op.protocol_code : err_cql(code, q->reads);
    bool failure = number == CASS_CODE_WRITE_FAILURE || number == CASS_CODE_READ_FAILURE || number == CASS_CODE_FUNCTION;
    return failure && q->version < 4 ? 0 : number;
}

/* What follows the message. One server answers for the quorum that the client asked for. */
static void put_extra(cass_request *q, buf *out, int32_t code) {
    bool failure = code == CASS_CODE_READ_FAILURE || code == CASS_CODE_WRITE_FAILURE;
    bool reads = code == CASS_CODE_READ_TIMEOUT || code == CASS_CODE_READ_FAILURE;
    switch (code) {
    case CASS_CODE_UNAVAILABLE:
        cass_put_short(out, consistency_of(q));
        cass_put_int(out, 1);
        cass_put_int(out, 0);
        return;
    case CASS_CODE_WRITE_TIMEOUT:
    case CASS_CODE_READ_TIMEOUT:
    case CASS_CODE_WRITE_FAILURE:
    case CASS_CODE_READ_FAILURE:
        cass_put_short(out, consistency_of(q));
        cass_put_int(out, 0);
        cass_put_int(out, 1);
        if (failure) {
            cass_put_int(out, q->version >= 5 ? 0 : 1); /* version 5: a list of reasons by address */
        }
        if (reads) {
            buf_add_byte(out, 0);
        } else {
            cass_put_string(out, q->envelope.opcode == CASS_BATCH ? SLICE_LIT("BATCH") : SLICE_LIT("SIMPLE"));
        }
        return;
    case CASS_CODE_FUNCTION:
        cass_put_string(out, q->keyspace);
        cass_put_string(out, SLICE_LIT("?"));
        cass_put_short(out, 0);
        return;
    case CASS_CODE_EXISTS:
        cass_put_string(out, q->error_keyspace);
        cass_put_string(out, q->error_table);
        return;
    case CASS_CODE_UNPREPARED:
        cass_put_string(out, q->unprepared);
        return;
    default:
        return;
    }
}

void cass_fail(cass_request *q, err code) {
    int32_t number = code_of(q, code);
    slice message = q->op.detail_n ? slice_of(q->op.detail, q->op.detail_n) : slice_str(err_lookup(code)->sentence);
    if (number == CASS_CODE_OVERLOADED) {
        message = throttled_text(q, message);
    }
    if (q->answering) {
        frames_abandon(q->frame);
    }
    free_rows(q);
    buf *out = cass_answer(q, CASS_ERROR);
    cass_put_int(out, number);
    cass_put_string(out, message);
    put_extra(q, out, number);
    end_as(q, number ? number : 500);
}

/* ---- changes ---- */

account_change *cass_begin_change(cass_request *q, size_t bytes) {
    q->change = arena_zero(q->frame->arena, bytes);
    return q->change;
}

static void decided(call *c) {
    cass_request *q = (cass_request *)c;
    err code = q->next(q);
    if (code != OK) {
        cass_fail(q, code);
    }
}

void cass_await_change(cass_request *q, cass_handler next) {
    q->next = next;
    call_init(&q->call.any, &q->front->core, &q->frame->client, &q->op, NULL, decided);
    call_await_change(&q->call.any, q->change);
}

/* ---- access ---- */

err cass_allow(cass_request *q, unsigned verbs, const container *c) {
    static const char refused[] = "The key of this connection does not permit this.";
    return access_allows(&q->conn->reach, verbs, c, NULL) ? OK : op_fail_as(&q->op, E_FORBIDDEN, CASS_CODE_UNAUTHORIZED, "%s", refused);
}
