/* From an HTTP upgrade to the handler of a message. */
#include "api/gremlin/edit_kind.h"
#include "api/gremlin/gremlin_int.h"
#include "base/memory.h"
#include "net/websocket.h"

#include <stdlib.h>

enum {
    UNTRUSTED_MESSAGE_BYTES = 64 * 1024,
    UNTRUSTED_BYTES = 512 * 1024, /* of messages that wait for authentication */
    IN_FLIGHT = 64,
    IDLE_MS = 60 * 60 * 1000,
};

/* ---- WebSockets ---- */

static void answer(http_request *http, unsigned status, const char *text) {
    http_reply_start(http, status);
    http_reply_field(http, "Content-Type", SLICE_LIT("text/plain; charset=utf-8"));
    buf_add_slice(http_reply_body(http), slice_str(text));
    http_reply_end(http);
}

static void upgrade(http_request *http) {
    gremlin_front *front = http->context;
    if (!slice_eq(http->path, SLICE_LIT("/")) && !slice_eq(http->path, SLICE_LIT("/gremlin"))) {
        answer(http, 404, "The Gremlin API is at / and /gremlin.\n");
    } else if (!websocket_wanted(http)) {
        answer(http, 200, "This is the Gremlin API of tesela: connect by WebSocket.\n");
    } else {
        websocket_accept(http, &front->frames, NULL, NULL);
    }
}

static void refuse_http(http_request *http, err code) {
    answer(http, err_lookup(code)->http_status, err_lookup(code)->sentence);
}

/* ---- messages ---- */

/* The calls have room for the largest kind, which zeroing for each request would cost more than reading a vertex. */
static gremlin_eval *make_eval(frames_request *frame) {
    gremlin_eval *q = arena_alloc(frame->arena, sizeof *q);
    memset((char *)q + sizeof q->call, 0, sizeof *q - sizeof q->call);
    q->call.any.marked = false;
    net_loop *loop = frame->client.loop;
    q->frame = frame;
    q->front = frame->context;
    q->conn = frames_state(frame->conn);
    q->started_us = q->sent_us = clock_monotonic_us(net_loop_clock(loop));
    op_init(&q->op, frame->arena, net_loop_wall_ms(loop) / 1000);
    q->op.arrived_us = q->started_us;
    q->request.format = GREMLIN_GRAPHSON_3;
    random_fork(net_loop_random(loop), &q->random);
    edit_guid(&q->random, q->activity);
    return q;
}

static bool is_authenticated(gremlin_eval *q) {
    return q->conn->reach.proof != ACCESS_NOBODY;
}

static bool op_is(const gremlin_eval *q, const char *name) {
    return slice_eq(q->request.op, slice_str(name));
}

static void refuse_session(gremlin_eval *q) {
    if (op_is(q, "close")) {
        gremlin_reply_status(q, 204, 200, SLICE_EMPTY);
        return;
    }
    gremlin_reply_status(q, 499, 1004,
                         SLICE_LIT("Invalid OpProcessor requested [session]: there are no sessions; send scripts without one."));
}

void gremlin_dispatch(gremlin_eval *q) {
    if (q->malformed != OK) {
        gremlin_fail(q, q->malformed);
    } else if (slice_eq(q->request.processor, SLICE_LIT("session"))) {
        refuse_session(q);
    } else if (op_is(q, "eval") || op_is(q, "bytecode")) {
        gremlin_eval_start(q);
    } else {
        gremlin_reply_status(q, 498, 1004,
                             arena_printf(q->frame->arena,
                                          "Message could not be parsed: the op '%.*s' is not eval, bytecode, authentication or close.",
                                          slice_shown(q->request.op), q->request.op.p));
    }
}

static void message_read(gremlin_eval *q) {
    if (q->malformed == OK && op_is(q, "authentication")) {
        gremlin_authenticate(q);
    } else if (is_authenticated(q)) {
        gremlin_dispatch(q);
    } else if (!q->request.has_id) {
        gremlin_fail(q, q->malformed);
    } else if (!gremlin_hold(q)) {
        gremlin_reply_status(q, 401, 401, SLICE_LIT("Unauthorized: too many requests wait for authentication; authenticate first."));
    }
}

/* Bytecode of sources that this server does not run is refused when it is read: 597, not 498. */
static err read_message(gremlin_eval *q) {
    static const gremlin_limits limits = {.script_bytes = 64 * 1024, .steps = 400, .depth = 100};
    return gremlin_request_read(&q->op, &limits, q->frame->frame, q->frame->text, &q->request);
}

static void read_on_worker(call *c) {
    gremlin_eval *q = (gremlin_eval *)c;
    q->malformed = read_message(q);
}

static void was_read(call *c) {
    gremlin_eval *q = (gremlin_eval *)c;
    c->code == OK ? message_read(q) : gremlin_fail(q, c->code);
}

static void handle(frames_request *frame) {
    gremlin_eval *q = make_eval(frame);
    if (frame->frame.n <= GREMLIN_LARGE_BYTES) {
        q->malformed = read_message(q);
        message_read(q);
        return;
    }
    call_init(&q->call.any, &q->front->core, &frame->client, &q->op, NULL, was_read);
    q->call.any.tenant = call_tenant_of_none();
    call_work(&q->call.any, NET_BODIES, read_on_worker);
}

/* The client knows its request by the id. */
static gremlin_eval *make_refused(frames_request *frame) {
    gremlin_eval *q = make_eval(frame);
    if (frame->frame.n <= GREMLIN_LARGE_BYTES && read_message(q) != OK) {
        q->op.detail_n = 0;
        q->op.protocol_code = 0;
    }
    return q;
}

/* A message that cannot be taken, or a response that cannot be sent: of a request that has ended, or, after frames_flush, of one that goes
 * on. */
static void refuse(frames_request *frame, err code) {
    void *front = frames_context(frame->conn);
    gremlin_eval *q = frame->context == front ? make_refused(frame) : frame->context;
    frame->context = front;
    gremlin_fail(q, code);
}

static void closed(frames_conn *conn) {
    gremlin_conn_end(frames_state(conn));
}

/* ---- life ---- */

gremlin_front *gremlin_open(const gremlin_options *options) {
    gremlin_front *front = mem_zero(sizeof *front);
    *front = (gremlin_front){
        .http = {.name = "gremlin", .websockets = true, .handle = upgrade, .refuse = refuse_http},
        .frames = {.name = "gremlin",
                   .untrusted = {.frame_bytes = UNTRUSTED_MESSAGE_BYTES,
                                 .in_flight = GREMLIN_HELD_MAX + 8,
                                 .in_flight_bytes = UNTRUSTED_BYTES + UNTRUSTED_MESSAGE_BYTES},
                   .trusted = {.frame_bytes = GREMLIN_MESSAGE_BYTES,
                               .in_flight = IN_FLIGHT,
                               .in_flight_bytes = 2 * (size_t)GREMLIN_MESSAGE_BYTES},
                   .idle_timeout_ms = IDLE_MS,
                   .state_bytes = sizeof(gremlin_conn),
                   .closed = closed,
                   .handle = handle,
                   .refuse = refuse},
        .core = {.account = options->account, .scripts = options->scripts, .faults = options->faults},
        .keys = options->keys,
        .attempts = options->attempts,
    };
    front->http.context = front;
    front->frames.context = front;
    edit_register();
    return front;
}

const http_front *gremlin_http(const gremlin_front *front) {
    return &front->http;
}

void gremlin_close(gremlin_front *front) {
    free(front);
}
