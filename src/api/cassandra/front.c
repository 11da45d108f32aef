/* From a frame to the handler of its message. */
#include <stdlib.h>

#include "api/cassandra/adopt.h"
#include "api/cassandra/cassandra_int.h"
#include "api/cassandra/edit_kind.h"
#include "api/cassandra/prepared.h"
#include "api/cassandra/system.h"
#include "api/cassandra/trace.h"
#include "base/memory.h"

enum {
    LARGE_BYTES = 64 * 1024, /* a larger message is decoded by a worker, so that it does not block other clients of the loop */
    UNTRUSTED_FRAME_BYTES = 64 * 1024,
    IN_FLIGHT = 4096,
    IN_FLIGHT_BYTES = 64 * 1024 * 1024,
    IDLE_MS = 30 * 60 * 1000, /* pools of drivers keep connections for long */
    PARTIAL_BYTES = CASS_BODY_MAX + CASS_ENVELOPE_HEAD + CASS_SEGMENT_MAX,
    PARTIALS_BYTES = 256 * 1024 * 1024, /* of all connections */
};

/* ---- requests ---- */

cass_request *cass_request_new(frames_request *frame, const cass_envelope *envelope) {
    cass_request *q = arena_alloc(frame->arena, sizeof *q); /* most of it are calls, which are cleared when they begin */
    q->call.any = (call){0};
    memset((char *)q + sizeof q->call, 0, sizeof *q - sizeof q->call);
    net_loop *loop = frame->client.loop;
    q->frame = frame;
    q->front = frame->context;
    q->conn = frames_state(frame->conn);
    q->envelope = *envelope;
    q->version = q->conn->version ? q->conn->version : envelope->version & 0x7F;
    q->started_us = clock_monotonic_us(net_loop_clock(loop));
    q->now_us = net_loop_wall_ms(loop) * 1000;
    q->keyspace = arena_copy(frame->arena, slice_str(q->conn->keyspace)); /* a later USE must not change it */
    op_init(&q->op, frame->arena, q->now_us / 1000000);
    q->op.arrived_us = q->started_us;
    random_source *random = arena_new(frame->arena, random_source); /* its own: workers evaluate uuid() while the loop does */
    random_fork(net_loop_random(loop), random);
    q->run = (cql_run){.now_us = q->now_us, .random = random};
    return q;
}

static err check_access(cass_request *q) {
    if (q->conn->reach.proof == ACCESS_NOBODY) {
        return op_fail_as(&q->op, E_UNAUTHORIZED, CASS_CODE_CREDENTIALS, "You have not logged in.");
    }
    err code = access_reach_holds(&q->op, &q->conn->reach, access_keys_ring(q->front->keys), q->front->core.account);
    if (code != OK) {
        q->op.protocol_code = CASS_CODE_CREDENTIALS;
    }
    return code;
}

static err run(cass_request *q) {
    switch (q->envelope.opcode) {
    case CASS_OPTIONS:
        return cass_options_message(q);
    case CASS_STARTUP:
        return cass_startup_message(q);
    case CASS_AUTH_RESPONSE:
        return cass_auth_message(q);
    default:
        break;
    }
    TRY(check_access(q));
    q->charged = true;
    if (q->envelope.flags & CASS_FLAG_TRACING) {
        cass_trace_begin(q);
    }
    switch (q->envelope.opcode) {
    case CASS_REGISTER:
        return cass_register_message(q);
    case CASS_QUERY:
        return cass_query_message(q);
    case CASS_PREPARE:
        return cass_prepare_message(q);
    case CASS_EXECUTE:
        return cass_execute_message(q);
    default:
        return cass_batch_message(q);
    }
}

/* ---- decoding: pure, on the loop or on a worker ---- */

static err read_message(cass_request *q) {
    slice body = q->envelope.body;
    switch (q->envelope.opcode) {
    case CASS_QUERY:
        return cass_query_read(&q->op, body, q->version, &q->query);
    case CASS_PREPARE:
        return cass_prepare_read(&q->op, body, q->version, &q->query);
    case CASS_EXECUTE:
        return cass_execute_read(&q->op, body, q->version, &q->query);
    case CASS_BATCH:
        return cass_batch_read(&q->op, body, q->version, &q->batch);
    case CASS_OPTIONS:
    case CASS_STARTUP:
    case CASS_AUTH_RESPONSE:
    case CASS_REGISTER:
        return OK;
    default:
        return op_fail(&q->op, E_BAD_REQUEST, "Unknown opcode %u", q->envelope.opcode);
    }
}

static err parse_texts(cass_request *q) {
    if (q->conn->reach.proof == ACCESS_NOBODY) { /* it is refused before its text counts */
        return OK;
    }
    if (q->envelope.opcode == CASS_QUERY || q->envelope.opcode == CASS_PREPARE) {
        return cql_parse(&q->op, q->query.text, &q->tree);
    }
    for (uint32_t i = 0; i < q->batch.n; i++) {
        cass_batch_part *part = &q->batch.parts[i];
        if (!part->id.n) {
            TRY(cql_parse(&q->op, part->text, &part->tree));
        }
    }
    return OK;
}

static err decode(cass_request *q) {
    err code = OK;
    if (q->envelope.flags & CASS_FLAG_COMPRESSED && q->version < CASS_VERSION_SEGMENTS) {
        bool unknown = q->conn->reach.proof == ACCESS_NOBODY;
        if (unknown && cass_expanded_bytes(q->conn->compression, q->envelope.body) > UNTRUSTED_FRAME_BYTES) {
            return op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_PROTOCOL, "The message is too large before authentication.");
        }
        code = cass_expand(&q->op, q->conn->compression, q->envelope.body, &q->envelope.body);
    }
    if (code == OK && q->envelope.flags & CASS_FLAG_PAYLOAD && q->version >= 4) {
        code = cass_payload_read(&q->op, &q->envelope.body, &q->payload);
    }
    if (code == OK) {
        code = read_message(q);
    }
    if (code == E_BAD_REQUEST && !q->op.protocol_code) {
        q->op.protocol_code = CASS_CODE_PROTOCOL;
    }
    TRY(code);
    return parse_texts(q);
}

static void go_on(cass_request *q, err code) {
    code = code == OK ? run(q) : code;
    if (code != OK) {
        cass_fail(q, code);
    }
}

static void decode_on_worker(call *c) {
    c->code = decode((cass_request *)c);
}

static void decoded(call *c) {
    go_on((cass_request *)c, c->code);
}

/* A version that we do not speak is answered in the highest that we do; drivers then step down to it. */
static err check_version(cass_request *q) {
    unsigned version = q->envelope.version;
    if (version < CASS_VERSION_MIN || version > CASS_VERSION_MAX) {
        q->version = q->conn->version ? q->conn->version : CASS_VERSION_MAX;
        return op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_PROTOCOL,
                          "Invalid or unsupported protocol version (%u); supported versions are (3/v3, 4/v4, 5/v5)", version & 0x7F);
    }
    if (q->conn->version && q->conn->version != version) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_PROTOCOL,
                          "Invalid message version. Got %u/v%u but previous messages on this connection had version %u/v%u", version,
                          version, q->conn->version, q->conn->version);
    }
    if (q->envelope.opcode == CASS_STARTUP) {
        q->conn->version = (uint8_t)version;
    }
    return OK;
}

void cass_serve(cass_request *q) {
    err code = check_version(q);
    if (code != OK) {
        frames_finish(q->frame->conn);
        cass_fail(q, code);
        return;
    }
    bool compressed = q->envelope.flags & CASS_FLAG_COMPRESSED && q->version < CASS_VERSION_SEGMENTS;
    size_t bytes = compressed ? cass_expanded_bytes(q->conn->compression, q->envelope.body) : q->envelope.body.n;
    if (bytes <= LARGE_BYTES || q->conn->reach.proof == ACCESS_NOBODY) {
        go_on(q, decode(q));
        return;
    }
    call_init(&q->call.any, &q->front->core, &q->frame->client, &q->op, NULL, decoded);
    q->call.any.tenant = call_tenant_of_none();
    call_work(&q->call.any, NET_BODIES, decode_on_worker);
}

/* ---- frames and segments ---- */

static void refuse_with(frames_request *frame, err code, int32_t protocol_code) {
    cass_envelope e = {0};
    slice bytes = frame->frame;
    cass_conn *c = frames_state(frame->conn);
    if (!c->segments && bytes.n >= CASS_ENVELOPE_HEAD) {
        e.version = (uint8_t)bytes.p[0];
        e.stream = (int16_t)(uint16_t)((uint8_t)bytes.p[2] << 8 | (uint8_t)bytes.p[3]);
    }
    cass_request *q = cass_request_new(frame, &e);
    if (q->version < CASS_VERSION_MIN || q->version > CASS_VERSION_MAX) {
        q->version = CASS_VERSION_MAX;
    }
    q->op.protocol_code = protocol_code;
    cass_fail(q, code);
}

static void refuse(frames_request *frame, err code) {
    refuse_with(frame, code, code == E_BAD_REQUEST || code == E_TOO_LARGE ? CASS_CODE_PROTOCOL : 0);
}

/* After a damaged segment nothing that follows can be trusted. */
static void refuse_segment(frames_request *frame, op *o) {
    cass_conn *c = frames_state(frame->conn);
    cass_envelope none = {.version = c->version};
    cass_request *q = cass_request_new(frame, &none);
    frames_finish(frame->conn);
    q->op.protocol_code = CASS_CODE_PROTOCOL;
    memcpy(q->op.detail, o->detail, o->detail_n);
    q->op.detail_n = o->detail_n;
    cass_fail(q, E_BAD_REQUEST);
}

/* An envelope of several segments: kept until it is whole. */
static void collect(frames_request *frame, op *o, slice part) {
    cass_conn *c = frames_state(frame->conn);
    uint64_t n = 0;
    bool untrusted = c->reach.proof == ACCESS_NOBODY && c->partial.n + part.n > UNTRUSTED_FRAME_BYTES;
    if (!untrusted) {
        buf_add_slice(&c->partial, part);
    }
    bool headed = buf_ok(&c->partial) && c->partial.n >= CASS_ENVELOPE_HEAD;
    if (untrusted || !buf_ok(&c->partial) || (headed && !cass_envelope_length((const uint8_t *)c->partial.p, &n))) {
        op_fail(o, E_BAD_REQUEST, "The message is too large.");
        refuse_segment(frame, o);
        return;
    }
    if (!headed || c->partial.n < n) {
        frames_end(frame);
        return;
    }
    if (c->partial.n > n || !arena_fits(frame->arena, n)) {
        op_fail(o, E_BAD_REQUEST, c->partial.n > n ? "A frame has more than the rest of its message." : "The message is too large.");
        refuse_segment(frame, o);
        return;
    }
    cass_envelope e;
    slice whole = arena_copy(frame->arena, buf_view(&c->partial));
    buf_free(&c->partial);
    cass_envelope_take(&whole, &e);
    cass_serve(cass_request_new(frame, &e));
}

/* The first envelope of a segment is served by the frame's own request, which keeps the bytes: so it is served last. */
static void serve_segment(frames_request *frame, op *o, slice payload) {
    cass_envelope first, e;
    if (!cass_envelope_take(&payload, &first)) {
        op_fail(o, E_BAD_REQUEST, "A self-contained frame has no whole message.");
        refuse_segment(frame, o);
        return;
    }
    while (payload.n && cass_envelope_take(&payload, &e)) {
        frames_request *more = frames_begin(frame->conn);
        if (!more) { /* the connection closes, or the client does not read */
            frames_finish(frame->conn);
            break;
        }
        e.body = arena_copy(more->arena, e.body);
        cass_serve(cass_request_new(more, &e));
    }
    cass_serve(cass_request_new(frame, &first));
}

static void handle(frames_request *frame) {
    cass_conn *c = frames_state(frame->conn);
    cass_envelope e;
    cass_segment segment;
    op o;
    if (!c->segments) {
        slice rest = frame->frame;
        cass_envelope_take(&rest, &e); /* whole, by its length */
        cass_serve(cass_request_new(frame, &e));
        return;
    }
    op_init(&o, frame->arena, 0);
    if (cass_segment_read(&o, frame->frame, c->compression == CASS_LZ4, &segment) != OK) {
        refuse_segment(frame, &o);
    } else if (c->partial.n || !segment.self_contained) {
        collect(frame, &o, segment.payload);
    } else {
        serve_segment(frame, &o, segment.payload);
    }
}

static bool length(frames_conn *conn, const uint8_t *header, uint64_t *bytes_out) {
    const cass_conn *c = frames_state(conn);
    return c->segments ? cass_segment_length(header, c->compression == CASS_LZ4, bytes_out) : cass_envelope_length(header, bytes_out);
}

static void opened(frames_conn *conn) {
    cass_front *front = frames_context(conn);
    cass_conn *c = frames_state(conn);
    c->frames = conn;
    c->budget = budget_init(&front->partials, PARTIAL_BYTES);
    c->partial = buf_init_counted(PARTIAL_BYTES, &c->budget);
}

static void closed(frames_conn *conn) {
    cass_conn *c = frames_state(conn);
    cass_unwatch(c);
    access_reach_end(&c->reach);
    buf_free(&c->partial);
    budget_end(&c->budget);
}

/* ---- life ---- */

cass_front *cass_open(const cass_options *options) {
    cass_front *front = mem_zero(sizeof *front);
    random_source random;
    *front = (cass_front){
        .frames = {.name = "cassandra",
                   .header_bytes = CASS_ENVELOPE_HEAD,
                   .length = length,
                   .untrusted = {.frame_bytes = UNTRUSTED_FRAME_BYTES, .in_flight = 4, .in_flight_bytes = 2 * UNTRUSTED_FRAME_BYTES},
                   .trusted = {.frame_bytes = CASS_BODY_MAX + CASS_ENVELOPE_HEAD,
                               .in_flight = IN_FLIGHT,
                               .in_flight_bytes = IN_FLIGHT_BYTES},
                   .idle_timeout_ms = IDLE_MS,
                   .state_bytes = sizeof(cass_conn),
                   .opened = opened,
                   .closed = closed,
                   .handle = handle,
                   .refuse = refuse},
        .core = {.account = options->account, .scripts = options->scripts, .faults = options->faults},
        .keys = options->keys,
        .attempts = options->attempts,
        .server = options->server,
        .schemas = cass_schemas_new(),
        .prepares = cass_prepares_new(),
        .traces = cass_traces_new(),
        .partials = {.max = PARTIALS_BYTES},
    };
    front->frames.context = front;
    for (size_t i = 0; i < CASS_RANGE_SLOTS; i++) {
        atomic_init(&front->ranges_us[i], clock_wall_ms(&clock_system) * 1000);
    }
    pthread_mutex_init(&front->lock, NULL);
    random_seed_system(&random);
    random_bytes(&random, front->host_id, sizeof front->host_id);
    front->host_id[6] = (uint8_t)((front->host_id[6] & 0x0F) | 0x40); /* a random UUID, RFC 4122 */
    front->host_id[8] = (uint8_t)((front->host_id[8] & 0x3F) | 0x80);
    cass_edit_register();
    cass_adopt_register();
    cass_system_init();
    return front;
}

const frames_front *cass_frames(const cass_front *front) {
    return &front->frames;
}

void cass_close(cass_front *front) {
    cass_prepares_free(front->prepares);
    cass_traces_free(front->traces);
    cass_schemas_free(front->schemas);
    pthread_mutex_destroy(&front->lock);
    free(front);
}
