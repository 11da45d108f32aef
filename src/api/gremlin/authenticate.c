/* Authentication: SASL PLAIN. The user names the graph, the password is a key or a resource token.
 *
 * Drivers send requests at once, and authenticate when the server asks them to. The first request is answered with 407; it and all that
 * come before the authentication is done wait in the connection, and then run in their order. */
#include "access/plain.h"
#include "api/gremlin/gremlin_int.h"
#include "base/base64.h"

enum { HELD_BYTES_MAX = 512 * 1024, HELD_MS = 30 * 1000 };

/* ---- requests that wait ---- */

static size_t held_bytes(const gremlin_conn *c) {
    size_t bytes = 0;
    for (const gremlin_eval *q = c->held; q; q = q->next_held) {
        bytes += q->frame->frame.n;
    }
    return bytes;
}

/* The response to a request that waits; the request itself goes on living. */
static void ask_for_proof(gremlin_eval *q) {
    frames_request *event = frames_begin(q->frame->conn);
    if (event) {
        event->text = q->frame->text;
        gremlin_response_write(frames_out(event), &q->request, 407, SLICE_EMPTY, gremlin_null(), NULL);
        frames_end(event);
    }
}

static void unlink_held(gremlin_eval *q) {
    gremlin_eval **at = &q->conn->held;
    while (*at && *at != q) {
        at = &(*at)->next_held;
    }
    if (*at) {
        *at = q->next_held;
        q->conn->held_n--;
    }
}

static bool cancel_wait(net_wait *w) {
    return !w->woken;
}

static void refuse_one(gremlin_eval *q) {
    q->silent ? gremlin_discard(q) : gremlin_reply_status(q, 401, 401, SLICE_LIT("Unauthorized: Invalid credentials provided"));
}

static void wait_ended(net_wait *w) {
    gremlin_eval *q = (gremlin_eval *)((char *)w - offsetof(gremlin_eval, wait));
    if (w->woken && q->verdict == OK) {
        gremlin_dispatch(q);
        return;
    }
    unlink_held(q);
    refuse_one(q);
}

bool gremlin_hold(gremlin_eval *q) {
    gremlin_conn *c = q->conn;
    gremlin_eval **last = &c->held;
    if (c->held_n >= GREMLIN_HELD_MAX || (c->held_n && held_bytes(c) + q->frame->frame.n > HELD_BYTES_MAX)) {
        return false;
    }
    if (!c->held) {
        ask_for_proof(q);
    }
    while (*last) {
        last = &(*last)->next_held;
    }
    *last = q;
    c->held_n++;
    net_wait_init(&q->wait, &q->frame->client, cancel_wait, wait_ended);
    net_wait_start(&q->wait, HELD_MS);
    return true;
}

/* Those that wait go on, in their order. */
static void release(gremlin_conn *c, err verdict) {
    while (c->held) {
        gremlin_eval *q = c->held;
        unlink_held(q);
        q->verdict = verdict;
        net_wait_wake(&q->wait);
    }
}

/* ---- the message ---- */

static err malformed_user(op *o) {
    return op_fail(o, E_UNAUTHORIZED, "Unauthorized: the user name must be /dbs/{database}/colls/{graph}.");
}

static bool cut(slice *rest, const char *word, slice *name_out) {
    slice prefix = slice_str(word);
    if (!slice_starts(*rest, prefix)) {
        return false;
    }
    *rest = slice_skip(*rest, prefix.n);
    const char *slash = rest->n ? memchr(rest->p, '/', rest->n) : NULL;
    *name_out = slice_of(rest->p, slash ? (size_t)(slash - rest->p) : rest->n);
    *rest = slice_skip(*rest, name_out->n);
    return name_out->n > 0 && name_out->n <= GREMLIN_NAME_BYTES;
}

static void keep(char into[static GREMLIN_NAME_BYTES + 1], slice name) {
    memcpy(into, name.p, name.n);
    into[name.n] = 0;
}

static err read_user(gremlin_eval *q, slice user) {
    slice database, container;
    if (!cut(&user, "/dbs/", &database) || !cut(&user, "/colls/", &container) || (user.n && !slice_eq(user, SLICE_LIT("/")))) {
        return malformed_user(&q->op);
    }
    keep(q->conn->database, database);
    keep(q->conn->container, container);
    return OK;
}

/* GraphSON carries the message as base64, GraphBinary mostly too; it begins with a zero byte if it is bare. */
static err read_sasl(gremlin_eval *q, buf *room, slice *message_out) {
    slice sasl = q->request.sasl;
    *message_out = sasl;
    if (sasl.n && memchr(sasl.p, '\0', sasl.n)) {
        return OK;
    }
    if (!sasl.n || sasl.n > 2 * LIMIT_SASL_BYTES || !base64_decode(room, sasl)) {
        return op_fail(&q->op, E_UNAUTHORIZED, "Unauthorized: sasl must be a PLAIN message in base64.");
    }
    *message_out = buf_view(room);
    return OK;
}

static err check(gremlin_eval *q, buf *room) {
    access_reach reach = {0};
    slice message, user;
    bool named = q->request.sasl_mechanism.n > 0;
    if (!frames_is_tls(q->frame->conn) && !frames_peer_is_local(q->frame->conn)) {
        return op_fail(&q->op, E_UNAUTHORIZED, "Unauthorized: PLAIN sends the key in clear; connect over TLS (wss://).");
    }
    if (named && !slice_eq_nocase(q->request.sasl_mechanism, SLICE_LIT("PLAIN"))) {
        return op_fail(&q->op, E_UNAUTHORIZED, "Unauthorized: the SASL mechanism must be PLAIN.");
    }
    TRY(read_sasl(q, room, &message));
    TRY(access_plain_check(&q->op, access_keys_ring(q->front->keys), q->front->core.account, message, &user, &reach));
    err code = read_user(q, user);
    if (code != OK) {
        access_reach_end(&reach);
        return code;
    }
    access_reach_end(&q->conn->reach);
    q->conn->reach = reach;
    return OK;
}

/* ---- the result ---- */

static void refuse(gremlin_eval *q, err code) {
    uint8_t address[16];
    frames_peer_address(q->frame->conn, address);
    access_attempts_note(q->front->attempts, address, code);
    slice message = q->op.detail_n ? arena_copy(q->frame->arena, slice_of(q->op.detail, q->op.detail_n))
                                   : SLICE_LIT("Unauthorized: Invalid credentials provided");
    for (gremlin_eval *held = q->conn->held; held; held = held->next_held) {
        held->silent = memcmp(held->request.id, q->request.id, sizeof held->request.id) == 0; /* it gets this answer */
    }
    release(q->conn, code);
    gremlin_reply_status(q, 401, 401, message);
}

/* The authentication has the id of the request that was answered with 407, whose results come instead of an answer of its own. */
static void accept(gremlin_eval *q) {
    gremlin_conn *c = q->conn;
    frames_trust(q->frame->conn);
    c->held ? gremlin_discard(q) : gremlin_reply_status(q, 204, 200, SLICE_EMPTY);
    release(c, OK);
}

void gremlin_authenticate(gremlin_eval *q) {
    buf room = buf_init(2 * LIMIT_SASL_BYTES);
    err code = check(q, &room);
    buf_free(&room);
    code == OK ? accept(q) : refuse(q, code);
}

void gremlin_conn_end(gremlin_conn *c) {
    access_reach_end(&c->reach);
}
