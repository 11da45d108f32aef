/* WebSockets as a codec of frames.c. wslay decodes the frames. This file finds where each frame ends and gives wslay one frame at a time:
 * otherwise wslay would read ahead, past the in-flight limits. A binary message that came whole, in one frame and one read, is unmasked
 * here, since wslay takes ten instructions for each byte. */
#include "net/websocket.h"

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <wslay/wslay.h>

#include "base/memory.h"
#include "net/frames_int.h"
#include "net/http_int.h"

enum {
    ANSWER_HEADER = 4,      /* room for the header; most answers have this size, for others the payload is moved */
    REASON_BYTES = 123,     /* max. reason in a close frame, after its code */
    WSLAY_BYTES = 9 * 1024, /* size of wslay's context: two buffers of 4 KB */
    ACCEPT_BYTES = 28,      /* size of Sec-WebSocket-Accept: base64 of SHA-1 */
    KEY_BYTES = 24,         /* size of Sec-WebSocket-Key: base64 of 16 bytes */
};

typedef struct websocket {
    frames_conn *f;
    wslay_event_context_ptr wslay;
    const char *feed; /* input for wslay: one frame, or a part of it */
    size_t feed_n;
    uint64_t left; /* bytes of the frame that wslay has yet to see */
    bool whole;    /* `collected` is a whole message */
    bool text;
    bool in_message; /* the frame is part of a message, not a control frame */
    bool in_parts;   /* the next frame of a message continues it */
    bool pinged;     /* a ping was sent, and nothing has come since */
    bool closed;     /* our close frame has been written */
    uint16_t code;   /* status code to close with; 0: the default */
    uint8_t reason_n;
    uint8_t reason[REASON_BYTES];
} websocket;

/* ---- closing ---- */

static void write_pending(websocket *w) {
    if (wslay_event_want_write(w->wslay)) {
        wslay_event_send(w->wslay);
    }
    w->closed = wslay_event_get_close_sent(w->wslay);
}

static void say_close(websocket *w, uint16_t code, const uint8_t *reason, size_t reason_n) {
    if (!w->closed) {
        wslay_event_queue_close(w->wslay, code, reason, reason_n);
        write_pending(w);
    }
}

/* Sends a close frame and stops answering: no answer may follow a close frame. */
static bool end_with(websocket *w, uint16_t code) {
    say_close(w, code, NULL, 0);
    frames__leave(w->f);
    return true;
}

static void refuse(frames_conn *f, slice head, err code) {
    (void)head;
    end_with(f->codec_state, code == E_TIMEOUT     ? WSLAY_CODE_POLICY_VIOLATION
                             : code == E_TOO_LARGE ? WSLAY_CODE_MESSAGE_TOO_BIG
                                                   : 1013); /* "Try Again Later" in IANA's registry */
}

static void goodbye(frames_conn *f) {
    websocket *w = f->codec_state;
    uint16_t usual = f->stopped || w->pinged ? WSLAY_CODE_GOING_AWAY : WSLAY_CODE_NORMAL_CLOSURE;
    say_close(w, w->code ? w->code : usual, w->reason, w->reason_n);
    f->linger = true; /* to receive the client's close frame */
}

void websocket_close(frames_conn *f, uint16_t code, slice reason) {
    websocket *w = f->codec_state;
    w->code = code;
    w->reason_n = (uint8_t)(reason.n < REASON_BYTES ? reason.n : REASON_BYTES);
    if (w->reason_n) {
        memcpy(w->reason, reason.p, w->reason_n);
    }
    frames_finish(f);
}

/* ---- reading ---- */

typedef struct frame_head {
    uint64_t payload;
    size_t header_n;
    bool control;
    bool good; /* valid, apart from what wslay checks: reserved bits, opcodes, and their order */
} frame_head;

/* RFC 6455, 5.2. False: bytes are missing. */
static bool read_head(const unsigned char *p, size_t n, frame_head *out) {
    if (n < 2) {
        return false;
    }
    unsigned length = p[1] & 0x7F, more = length == 127 ? 8 : length == 126 ? 2 : 0;
    bool masked = p[1] & 0x80, fin = p[0] & 0x80;
    out->header_n = 2 + more + 4;
    out->control = p[0] & 0x08;
    out->payload = more ? 0 : length;
    if (n < out->header_n) {
        out->good = masked && !(out->control && (more || !fin));
        return !out->good; /* a header that is already invalid need not be complete */
    }
    for (unsigned i = 0; i < more; i++) {
        out->payload = out->payload << 8 | p[2 + i];
    }
    bool shortest = more == 0 || out->payload >= (more == 2 ? 126 : 65536);
    out->good = masked && shortest && !(out->control && (more || !fin));
    return true;
}

static ssize_t give_bytes(wslay_event_context_ptr wslay, uint8_t *into, size_t n, int flags, void *context) {
    websocket *w = context;
    (void)flags;
    if (w->feed_n == 0) {
        wslay_event_set_error(wslay, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    n = n < w->feed_n ? n : w->feed_n;
    memcpy(into, w->feed, n);
    w->feed += n;
    w->feed_n -= n;
    return (ssize_t)n;
}

static ssize_t take_bytes(wslay_event_context_ptr wslay, const uint8_t *p, size_t n, int flags, void *context) {
    websocket *w = context;
    (void)wslay, (void)flags;
    buf_add(frames__control(w->f), p, n);
    return (ssize_t)n;
}

static void on_frame(wslay_event_context_ptr wslay, const struct wslay_event_on_frame_recv_start_arg *arg, void *context) {
    websocket *w = context;
    (void)wslay;
    if (arg->opcode == WSLAY_TEXT_FRAME || arg->opcode == WSLAY_BINARY_FRAME) {
        w->text = arg->opcode == WSLAY_TEXT_FRAME;
    }
    w->in_message = !wslay_is_ctrl_frame(arg->opcode);
    w->in_parts = w->in_message ? !arg->fin : w->in_parts;
}

static void on_chunk(wslay_event_context_ptr wslay, const struct wslay_event_on_frame_recv_chunk_arg *arg, void *context) {
    websocket *w = context;
    (void)wslay;
    if (w->in_message) {
        buf_add(&w->f->collected, arg->data, arg->data_length);
    }
}

static void on_message(wslay_event_context_ptr wslay, const struct wslay_event_on_msg_recv_arg *arg, void *context) {
    websocket *w = context;
    (void)wslay;
    w->whole = !wslay_is_ctrl_frame(arg->opcode);
}

/* Reads the header of the next frame. False: bytes are missing. */
static bool next_frame(frames_conn *f, websocket *w, frame_head *head) {
    if (!read_head((const unsigned char *)f->in.p, f->in.n, head)) {
        return false;
    }
    if (!head->good) {
        return end_with(w, WSLAY_CODE_PROTOCOL_ERROR);
    }
    uint64_t most = frames__limits(f)->frame_bytes;
    if (!head->control && (head->payload > most || head->payload + f->collected.n > most)) {
        return end_with(w, WSLAY_CODE_MESSAGE_TOO_BIG);
    }
    if (head->control && f->in.n < head->header_n + head->payload) { /* wslay needs all of a close frame's code at once */
        return false;
    }
    w->left = head->header_n + head->payload;
    f->frame_n = w->left;
    return true;
}

/* A whole binary message: the final bit, no reserved bits, all of it here. A larger one keeps the memory that wslay collects it in. */
static bool is_plain(const frames_conn *f, const websocket *w, const frame_head *head) {
    return (uint8_t)f->in.p[0] == (0x80 | WSLAY_BINARY_FRAME) && !w->in_parts && head->payload <= NET_TAKE_OVER_BYTES &&
           f->in.n >= head->header_n + head->payload;
}

static void unmask(char *to, const char *from, size_t n, const char key[4]) {
    uint64_t word, keys;
    size_t i = 0;
    memcpy(&keys, key, 4);
    memcpy((char *)&keys + 4, key, 4);
    for (; i + sizeof word <= n; i += sizeof word) {
        memcpy(&word, from + i, sizeof word);
        word ^= keys;
        memcpy(to + i, &word, sizeof word);
    }
    for (; i < n; i++) {
        to[i] = (char)(from[i] ^ key[i % 4]);
    }
}

static void take_plain(frames_conn *f, websocket *w, const frame_head *head) {
    frames_exchange *x = frames__take(f);
    size_t n = (size_t)head->payload;
    const char *from = f->in.p + head->header_n;
    char *bytes = arena_alloc_aligned(&frames__serving(x)->arena, n ? n : 1, 1);
    unmask(bytes, from, n, from - 4);
    net_input_skip(&f->in, head->header_n + n);
    w->left = 0;
    frames__hand_over(x, slice_of(bytes, n), false);
}

static bool step(frames_conn *f) {
    websocket *w = f->codec_state;
    w->pinged = false;
    if (w->left == 0) {
        frame_head head;
        if (!next_frame(f, w, &head) || w->closed) {
            return w->closed;
        }
        if (is_plain(f, w, &head)) {
            take_plain(f, w, &head);
            return true;
        }
    }
    size_t n = f->in.n < w->left ? f->in.n : (size_t)w->left;
    w->feed = f->in.p;
    w->feed_n = n;
    int rc = wslay_event_recv(w->wslay);
    net_input_skip(&f->in, n);
    w->left -= n;
    f->frame_n = w->left;
    write_pending(w);
    if (rc != 0 || w->closed) {
        return end_with(w, WSLAY_CODE_PROTOCOL_ERROR); /* the code is ignored if wslay has sent a close frame already */
    }
    if (w->whole) {
        frames_exchange *x = frames__take(f);
        w->whole = false;
        frames__hand_over(x, net_serving_take(frames__serving(x), f->loop, &f->collected), w->text);
    }
    return true;
}

/* ---- writing ---- */

static void begin(buf *out) {
    buf_add(out, "\0\0\0\0", ANSWER_HEADER);
}

static bool wrap(const frames_request *r, buf *out) {
    uint64_t n = out->n - ANSWER_HEADER;
    size_t header_n = n < 126 ? 2 : n < 65536 ? 4 : 10;
    if (header_n > ANSWER_HEADER && !buf_reserve(out, header_n - ANSWER_HEADER)) {
        return false;
    }
    if (header_n != ANSWER_HEADER) {
        memmove(out->p + header_n, out->p + ANSWER_HEADER, (size_t)n);
        out->n = header_n + (size_t)n;
    }
    out->p[0] = (char)(0x80 | (r->text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME));
    out->p[1] = (char)(n < 126 ? n : n < 65536 ? 126 : 127);
    for (size_t i = header_n; i > 2; n >>= 8) {
        out->p[--i] = (char)(n & 0xFF);
    }
    return true;
}

static bool idle(frames_conn *f) {
    websocket *w = f->codec_state;
    if (w->pinged) {
        return false;
    }
    wslay_event_queue_msg(w->wslay, &(struct wslay_event_msg){.opcode = WSLAY_PING});
    write_pending(w);
    w->pinged = true;
    return true;
}

/* ---- life ---- */

static void ended(frames_conn *f) {
    websocket *w = f->codec_state;
    wslay_event_context_free(w->wslay);
    budget_give(&f->loop->memory, WSLAY_BYTES);
    free(w);
}

static const frames_codec codec = {
    .step = step,
    .begin = begin,
    .wrap = wrap,
    .refuse = refuse,
    .goodbye = goodbye,
    .idle = idle,
    .ended = ended,
};

static void attach(frames_conn *f) {
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = give_bytes,
        .send_callback = take_bytes,
        .on_frame_recv_start_callback = on_frame,
        .on_frame_recv_chunk_callback = on_chunk,
        .on_msg_recv_callback = on_message,
    };
    websocket *w = mem_zero(sizeof *w);
    w->f = f;
    if (wslay_event_context_server_init(&w->wslay, &callbacks, w) != 0) {
        abort(); /* out of memory: see base/memory.h */
    }
    wslay_event_config_set_no_buffering(w->wslay, 1);
    budget_force(&f->loop->memory, WSLAY_BYTES);
    f->codec_state = w;
}

/* Kept between websocket_accept and the end of HTTP on the connection. */
typedef struct accepted {
    http_switch to; /* must be first */
    const frames_front *front;
    char state[];
} accepted;

static void switch_over(http_switch *to, net_conn *c) {
    accepted *a = (accepted *)to;
    frames_conn *f = frames__make(c, a->front, &codec);
    memcpy(frames_state(f), a->state, a->front->state_bytes);
    attach(f);
    frames__start(f);
}

/* ---- the handshake: RFC 6455, 4.2 ---- */

bool websocket_wanted(const http_request *r) {
    return ((const http_exchange *)r)->framing.websocket;
}

bool websocket_offers(const http_request *r, slice subprotocol) {
    slice list = http_websocket_field(r, HTTP_WEBSOCKET_PROTOCOL);
    while (list.n) {
        const char *comma = memchr(list.p, ',', list.n);
        size_t n = comma ? (size_t)(comma - list.p) : list.n;
        slice one = slice_trim(slice_of(list.p, n));
        if (slice_eq(one, subprotocol)) {
            return true;
        }
        n += comma != NULL;
        list = slice_of(list.p + n, list.n - n);
    }
    return false;
}

static bool is_proper(const http_request *r) {
    slice key = http_websocket_field(r, HTTP_WEBSOCKET_KEY);
    unsigned char bytes[KEY_BYTES];
    return r->method == VERB_GET && !((const http_exchange *)r)->framing.http10 && r->body.n == 0 && key.n == KEY_BYTES &&
           key.p[KEY_BYTES - 2] == '=' && key.p[KEY_BYTES - 1] == '=' && key.p[KEY_BYTES - 3] != '=' &&
           EVP_DecodeBlock(bytes, (const unsigned char *)key.p, KEY_BYTES) == KEY_BYTES / 4 * 3;
}

static void accept_text(slice key, char into[static ACCEPT_BYTES + 1]) {
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    unsigned char text[KEY_BYTES + sizeof guid - 1], hash[SHA_DIGEST_LENGTH];
    memcpy(text, key.p, KEY_BYTES);
    memcpy(text + KEY_BYTES, guid, sizeof guid - 1);
    SHA1(text, sizeof text, hash);
    EVP_EncodeBlock((unsigned char *)into, hash, sizeof hash);
}

void websocket_accept(http_request *r, const frames_front *front, const char *subprotocol, const void *state) {
    assert(websocket_wanted(r));
    bool version = slice_eq(http_websocket_field(r, HTTP_WEBSOCKET_VERSION), SLICE_LIT("13"));
    if (!version || !is_proper(r)) {
        http_reply_start(r, version ? 400 : 426);
        http_reply_field(r, "Sec-WebSocket-Version", SLICE_LIT("13"));
        http_reply_end(r);
        return;
    }
    accepted *a = mem_zero(sizeof *a + front->state_bytes);
    a->to = (http_switch){.protocol = &frames_protocol, .begin = switch_over};
    a->front = front;
    if (state) {
        memcpy(a->state, state, front->state_bytes);
    }
    char accept[ACCEPT_BYTES + 1];
    accept_text(http_websocket_field(r, HTTP_WEBSOCKET_KEY), accept);
    http_switch_start(r, &a->to);
    http_reply_field(r, "Upgrade", SLICE_LIT("websocket"));
    http_reply_field(r, "Connection", SLICE_LIT("Upgrade"));
    http_reply_field(r, "Sec-WebSocket-Accept", slice_of(accept, ACCEPT_BYTES));
    if (subprotocol) {
        http_reply_field(r, "Sec-WebSocket-Protocol", slice_str(subprotocol));
    }
    http_reply_end(r);
}
