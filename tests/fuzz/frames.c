/* Length-prefixed frames: the same bytes get the same answers, however they are divided into reads, within all limits; nothing is leaked.
 *
 * The input's first byte seeds the division. The rest is what a client sends: frames of a length (two bytes, little-endian, of the whole
 * frame), a verb and its argument. */
#include "net/frames.h"
#include "net/frames_int.h"
#include "wire.h"

enum { HEADER = 3, IN_FLIGHT = 5, HELD_MAX = 8 };

enum { UNTRUSTED_BYTES = 40, TRUSTED_BYTES = 20000 }; /* maximum size of a frame */

typedef struct state {
    frames_request *held[HELD_MAX];
    unsigned held_n;
    bool opened;
} state;

static void answer(frames_request *r, char verb) {
    buf *out = frames_out(r);
    buf_add_byte(out, verb);
    buf_add_slice(out, r->frame);
    frames_end(r);
}

static bool length(frames_conn *conn, const uint8_t *header, uint64_t *bytes_out) {
    (void)conn;
    *bytes_out = (uint64_t)header[0] | (uint64_t)header[1] << 8;
    return header[2] != 0xFF;
}

/* Ends the held requests, the last first. Each may admit another request, which is held until the next call. */
static void release(state *s) {
    state before = *s;
    s->held_n = 0;
    for (unsigned i = before.held_n; i-- > 0;) {
        answer(before.held[i], 'h');
    }
}

static bool flushed; /* partial answers were sent; their order depends on how the bytes were divided */

static void last_part(frames_request *r) {
    answer(r, 'l');
}

static void next_part(frames_request *r) {
    buf_add_lit(frames_out(r), "part");
    frames_flush(r, last_part);
}

static void push(frames_conn *conn) {
    frames_request *event = frames_begin(conn);
    if (event) {
        buf_add_lit(frames_out(event), "event");
        frames_end(event);
    }
}

static void handle(frames_request *r) {
    state *s = frames_state(r->conn);
    uint64_t most = frames_is_trusted(r->conn) ? TRUSTED_BYTES : UNTRUSTED_BYTES;
    uint64_t n = 0;
    check(s->opened, "opened first");
    check(r->frame.n >= HEADER && length(r->conn, (const uint8_t *)r->frame.p, &n) && n == r->frame.n, "a whole frame");
    check(n <= most, "frame past its limit");
    check(r->conn->live_n <= IN_FLIGHT + 1 && s->held_n <= IN_FLIGHT, "more in flight than may be"); /* + 1: an event */
    switch (r->frame.p[2]) {
    case 'h':
        s->held[s->held_n++] = r;
        break;
    case 'r':
        release(s);
        answer(r, 'r');
        break;
    case 't':
        frames_trust(r->conn);
        answer(r, 't');
        break;
    case 'q':
        frames_finish(r->conn);
        answer(r, 'q');
        break;
    case 'n':
        frames_end(r);
        break;
    case 'v':
        push(r->conn);
        answer(r, 'v');
        break;
    case 'a':
        buf_add_lit(frames_out(r), "forgotten");
        frames_abandon(r);
        answer(r, 'a');
        break;
    case 'f':
        flushed = true;
        buf_add_lit(frames_out(r), "first");
        frames_flush(r, next_part);
        break;
    default:
        answer(r, 'e');
    }
}

static void refuse(frames_request *r, err code) {
    buf_addf(frames_out(r), "!%s", err_lookup(code)->name);
    frames_end(r);
}

static void opened(frames_conn *conn) {
    ((state *)frames_state(conn))->opened = true;
}

static void closed(frames_conn *conn) {
    check(((state *)frames_state(conn))->held_n == 0 && conn->live_n == 0, "closed with requests in flight");
}

static frames_conn *last_conn; /* for ending requests that are still held */

static void opened_first(frames_conn *conn) {
    last_conn = conn;
    opened(conn);
}

static void closed_last(frames_conn *conn) {
    closed(conn);
    last_conn = NULL;
}

static const frames_front front = {
    .name = "fuzz",
    .header_bytes = HEADER,
    .length = length,
    .untrusted = {.frame_bytes = UNTRUSTED_BYTES, .in_flight = IN_FLIGHT, .in_flight_bytes = 100},
    .trusted = {.frame_bytes = TRUSTED_BYTES, .in_flight = IN_FLIGHT, .in_flight_bytes = 30000},
    .state_bytes = sizeof(state),
    .opened = opened_first,
    .closed = closed_last,
    .handle = handle,
    .refuse = refuse,
};

static buf run(const uint8_t *data, size_t n, random_source *cuts) {
    wire w = wire_open(&frames_protocol, (void *)(uintptr_t)&front);
    wire_send_cut(&w, data, n, cuts);
    wire_close(&w);
    while (last_conn && ((state *)frames_state(last_conn))->held_n) {
        release(frames_state(last_conn));
    }
    wire_expect_nothing();
    check(!last_conn, "not closed");
    return w.out;
}

static int by_value(const void *a, const void *b) {
    return *(const char *)a - *(const char *)b;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 1 || n > 60000) {
        return 0;
    }
    if (!wire_server) {
        wire_start();
    }
    random_source cuts;
    random_seed(&cuts, data[0]);
    flushed = false;
    buf whole = run(data + 1, n - 1, NULL), cut = run(data + 1, n - 1, &cuts);
    if (flushed && whole.n && cut.n) {
        qsort(whole.p, whole.n, 1, by_value);
        qsort(cut.p, cut.n, 1, by_value);
    }
    wire_expect_same(&whole, &cut);
    buf_free(&whole);
    buf_free(&cut);
    return 0;
}
