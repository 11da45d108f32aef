/* Connections: first the context is negotiated, then frames are requests. Each carries its own signature. */
#include "api/direct/direct.h"

#include <stdlib.h>

#include "api/direct/carry.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"

struct direct_front {
    frames_front frames;
    const http_front *sql;
};

typedef struct direct_conn {
    bool negotiated;
    int64_t wait_until_ms; /* see http_told_to_wait */
} direct_conn;

enum {
    CONTEXT_BYTES_MAX = 4096,
    FRAME_BYTES_MAX = DIRECT_HEAD_BYTES_MAX + 4 + LIMIT_BODY_BYTES,
    IN_FLIGHT_MAX = 64, /* SDKs have at most 30 */
    IDLE_MS = 30 * 60 * 1000,
};

/* One request, in its frame's arena. */
typedef struct exchange {
    frames_request *frame;
    direct_request request;
} exchange;

/* ---- frames ---- */

static bool length_of(frames_conn *conn, const uint8_t *header, uint64_t *bytes_out) {
    const direct_conn *state = frames_state(conn);
    uint64_t most = state->negotiated ? DIRECT_HEAD_BYTES_MAX : CONTEXT_BYTES_MAX;
    *bytes_out = direct_load(header, 4);
    return *bytes_out >= DIRECT_HEADER_BYTES && *bytes_out <= most;
}

static bool extend(frames_conn *conn, slice begun, uint64_t *bytes_out) {
    const direct_conn *state = frames_state(conn);
    return !state->negotiated || direct_request_extend(begun, bytes_out);
}

/* ---- the context ---- */

enum {
    PROTOCOL_VERSION = 0x00,
    CLIENT_VERSION = 0x01,
    SERVER_AGENT = 0x02,
    SERVER_VERSION = 0x03,
    IDLE_S = 0x04,
    UNAUTHENTICATED_S = 0x05
};

static bool is_context(slice frame, slice *client_out) {
    slice rest = slice_skip(frame, DIRECT_HEADER_BYTES);
    direct_token t;
    bool version = false;
    *client_out = SLICE_EMPTY;
    if (direct_load(frame.p + 4, 4) != 0) { /* resource and operation of every other frame */
        return false;
    }
    while (rest.n) {
        if (!direct_token_take(&rest, &t)) {
            return false;
        }
        version |= t.id == PROTOCOL_VERSION && t.type == DIRECT_U32 && t.number == 1;
        *client_out = t.id == CLIENT_VERSION && t.type == DIRECT_TEXT8 ? t.value : *client_out;
    }
    return version;
}

/* Zero seconds: the client need not watch the time for us. */
static void add_context(buf *out, unsigned status, slice frame, slice client) {
    size_t at = out->n;
    direct_frame_begin(out, status, (const uint8_t *)frame.p + 8);
    direct_add_number(out, PROTOCOL_VERSION, DIRECT_U32, 1);
    direct_add_text(out, CLIENT_VERSION, DIRECT_TEXT8, client);
    direct_add_text(out, SERVER_AGENT, DIRECT_TEXT8, SLICE_LIT("tesela"));
    direct_add_text(out, SERVER_VERSION, DIRECT_TEXT8, SLICE_LIT(TESELA_VERSION));
    direct_add_number(out, IDLE_S, DIRECT_U32, 0);
    direct_add_number(out, UNAUTHENTICATED_S, DIRECT_U32, 0);
    direct_frame_end(out, at);
}

static void refuse_context(frames_request *r, err code) {
    const err_entry *entry = err_lookup(code);
    buf *out = frames_out(r);
    add_context(out, entry->http_status, r->frame, SLICE_EMPTY);
    slice message = arena_printf(
        r->arena, "{\"code\":\"%s\",\"message\":\"A connection begins with a context request of protocol version 1.\"}", entry->word);
    direct_put(out, message.n, 4);
    buf_add_slice(out, message);
    frames_finish(r->conn);
    frames_end(r);
}

static void negotiate(frames_request *r) {
    direct_conn *state = frames_state(r->conn);
    slice client;
    if (!is_context(r->frame, &client)) {
        refuse_context(r, E_BAD_REQUEST);
        return;
    }
    state->negotiated = true;
    frames_welcome(r->conn); /* SDKs open connections that they use much later, and lose the request that meets a close */
    add_context(frames_out(r), 200, r->frame, client);
    frames_end(r);
}

/* ---- requests ---- */

/* An answer with a field too long for its token overflows; frames.h then has it refused. */
static void answered(void *context, const http_answer *answer) {
    exchange *x = context;
    buf *out = frames_out(x->frame);
    direct_answer(out, &x->request, answer);
    frames_end(x->frame);
}

static void trust(void *context) {
    frames_trust(((exchange *)context)->frame->conn);
}

static int64_t *wait_until(void *context) {
    return &((direct_conn *)frames_state(((exchange *)context)->frame->conn))->wait_until_ms;
}

static const http_carrier carrier = {.name = "direct", .answered = answered, .trust = trust, .wait_until = wait_until};

static void handle(frames_request *r) {
    const direct_front *front = r->context;
    if (!((direct_conn *)frames_state(r->conn))->negotiated) {
        negotiate(r);
        return;
    }
    exchange *x = arena_new(r->arena, exchange);
    x->frame = r;
    err malformed = direct_request_read(r->arena, r->frame, &x->request);
    if (malformed != OK) {
        frames_finish(r->conn);
    }
    if (!x->request.identified) { /* no answer would find its request */
        frames_end(r);
        return;
    }
    http_request *http = http_carry(r, front->sql, &carrier, x);
    err code = malformed != OK ? malformed : direct_carry(&x->request, http);
    code == OK ? front->sql->handle(http) : front->sql->refuse(http, code);
}

static void refuse(frames_request *r, err code) {
    const direct_front *front = r->context;
    bool negotiated = ((direct_conn *)frames_state(r->conn))->negotiated, whole = r->frame.n >= DIRECT_HEADER_BYTES;
    if (whole && !negotiated) {
        refuse_context(r, code);
        return;
    }
    exchange *x = arena_new(r->arena, exchange);
    x->frame = r;
    if (!whole || !direct_request_find_id(r->frame, &x->request.id)) {
        frames_end(r);
        return;
    }
    memcpy(x->request.activity, r->frame.p + 8, DIRECT_ACTIVITY_BYTES);
    front->sql->refuse(http_carry(r, front->sql, &carrier, x), code);
}

/* ---- life ---- */

direct_front *direct_open(const http_front *sql) {
    direct_front *front = mem_zero(sizeof *front);
    *front = (direct_front){
        .frames =
            {
                .name = "direct",
                .header_bytes = DIRECT_HEADER_BYTES,
                .length = length_of,
                .extend = extend,
                .apart = true, /* azure-cosmos for Java (4.81) mixes up two answers that it reads from one record */
                .untrusted = {.frame_bytes = FRAME_BYTES_MAX, .in_flight = 1, .in_flight_bytes = FRAME_BYTES_MAX},
                .trusted = {.frame_bytes = FRAME_BYTES_MAX, .in_flight = IN_FLIGHT_MAX, .in_flight_bytes = 2 * FRAME_BYTES_MAX},
                .idle_timeout_ms = IDLE_MS,
                .state_bytes = sizeof(direct_conn),
                .handle = handle,
                .refuse = refuse,
            },
        .sql = sql,
    };
    front->frames.context = front;
    return front;
}

const frames_front *direct_frames(const direct_front *front) {
    return &front->frames;
}

void direct_close(direct_front *front) {
    free(front);
}
