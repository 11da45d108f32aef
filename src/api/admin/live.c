/* GET /_tesela/live, upgraded to a WebSocket: what the server does, a message a second.
 *
 * The client's messages are JSON objects. The first one authenticates, as {"authorization":"Bearer KEY"}, unless requests need no key; a
 * browser cannot set the field of a WebSocket's request. Each message also chooses what to watch: with "database" and "container" the
 * ranges of that container, with "requests" the last requests.
 *
 * Each message of the server is made on a worker, and the next one a second after it was sent, so a slow client or server has fewer of
 * them. A client that does not read is disconnected, as is one whose key has changed. */
#include <stdlib.h>

#include "api/admin/admin_int.h"
#include "base/memory.h"
#include "base/request_recent.h"
#include "doc/json.h"
#include "doc/walk.h"
#include "net/delay.h"
#include "net/websocket.h"

enum {
    LIVE_MS = 1000,
    LIVE_CONTAINERS_MAX = 500, /* in one message */
    LIVE_RANGES_MAX = 1000,
    LIVE_REQUESTS_MAX = 200,
    LIVE_MESSAGE_BYTES = 4096, /* from the client */
    LIVE_CODE_UNAUTHORIZED = 4401,
    LIVE_CODE_BAD = 4400,
    LIVE_CODE_BUSY = 4429,
};

/* A connection's state, in its frames_conn. */
typedef struct live {
    net_delay delay;
    frames_conn *conn;
    bool delayed;    /* the delay is running */
    bool watching;   /* the client has authenticated; messages are sent */
    bool requests;   /* the client wants the last requests */
    access_key key;  /* ACCESS_KEY_COUNT: none was needed */
    uint64_t serial; /* of that key's value */
    uint64_t seen;   /* number of the last request that was sent */
    char database[LIMIT_NAME_BYTES + 1], container[LIMIT_NAME_BYTES + 1];
} live;

/* One message of the server. */
typedef struct live_message {
    call call; /* must be first */
    frames_request *frame;
    live *live;
    admin *admin;
    op op;
    bool begun;
    uint64_t seen;
    bool requests;
    char database[LIMIT_NAME_BYTES + 1], container[LIMIT_NAME_BYTES + 1];
    buf body;
} live_message;

static void wait_for_next(live *l);

/* ---- a message of the server ---- */

static void add_containers(live_message *m, const report *all) {
    buf *out = &m->body;
    buf_add_lit(out, ",\"containers\":[");
    for (size_t i = 0; i < all->n && i < LIVE_CONTAINERS_MAX; i++) {
        buf_add(out, ",", i > 0);
        admin_add_container(out, &all->list[i], false);
    }
    buf_add_byte(out, ']');
    admin_add(out, "containersTotal", all->n);
}

static void add_ranges(live_message *m, const report *all) {
    slice database = slice_str(m->database), name = slice_str(m->container);
    buf_add_lit(&m->body, ",\"ranges\":[");
    for (size_t i = 0; i < all->n; i++) {
        container *c = all->list[i].container;
        if (!name.n || !slice_eq(c->id, name) || !slice_eq(c->database_id, database)) {
            continue;
        }
        for (size_t j = 0; j < range_count(c) && j < LIVE_RANGES_MAX; j++) {
            buf_add(&m->body, ",", j > 0);
            admin_add_range(m->admin, &m->body, c, j);
        }
    }
    buf_add_byte(&m->body, ']');
}

static void add_server(live_message *m) {
    account_event newest;
    admin_process process = admin_process_read();
    buf *out = &m->body;
    buf_addf(out, "{\"now\":%ld", (long)clock_wall_ms(account_items(m->admin->account)->clock));
    admin_add(out, "event", account_events(m->admin->account, &newest, 1) ? newest.number : 0);
    admin_add(out, "connections", net_server_connections(m->admin->server));
    admin_add(out, "memoryBytes", process.resident_bytes);
    admin_add_decimal(out, "cpuSeconds", process.cpu_s, 2);
}

static void add_request(buf *out, const recent_request *r) {
    buf_addf(out, "{\"number\":%lu", (unsigned long)r->number);
    admin_add(out, "time", (uint64_t)r->ts_ms);
    admin_add_text(out, "api", slice_str(r->api));
    admin_add_text(out, "verb", slice_str(r->verb));
    admin_add_text(out, "path", slice_str(r->path));
    admin_add(out, "status", r->status);
    admin_add(out, "substatus", r->substatus);
    admin_add_decimal(out, "ru", r->charge_ru, 2);
    admin_add(out, "us", (uint64_t)r->us);
    r->range < 0 ? buf_add_lit(out, ",\"range\":null") : admin_add_id(out, "range", (uint32_t)r->range);
    buf_addf(out, ",\"failed\":%s}", r->failed ? "true" : "false");
}

/* The requests since the last message. */
static void add_requests(live_message *m) {
    recent_request *found = mem_alloc(LIVE_REQUESTS_MAX * sizeof *found);
    size_t n = request_recent(m->seen, found, LIVE_REQUESTS_MAX);
    buf_add_lit(&m->body, ",\"requests\":[");
    for (size_t i = 0; i < n; i++) {
        buf_add(&m->body, ",", i > 0);
        add_request(&m->body, &found[i]);
        m->seen = found[i].number;
    }
    buf_add_byte(&m->body, ']');
    free(found);
}

static void write_message(live_message *m) {
    report all;
    add_server(m);
    if (account_report(m->admin->account, SLICE_EMPTY, SLICE_EMPTY, &all) == OK) {
        add_containers(m, &all);
        add_ranges(m, &all);
        report_free(&all);
    }
    if (m->requests) {
        add_requests(m);
    }
    buf_add_byte(&m->body, '}');
}

static void on_worker(call *c) {
    live_message *m = (live_message *)c;
    m->begun = true;
    if (admin_is_stopping(m->admin)) {
        c->code = E_UNAVAILABLE;
    } else {
        write_message(m);
    }
    admin_leave_work(m->admin);
}

static void message_done(call *c) {
    live_message *m = (live_message *)c;
    live *l = m->live;
    if (!m->begun) {
        admin_leave_work(m->admin);
    }
    bool whole = c->code == OK && buf_ok(&m->body);
    if (whole) {
        buf_add_slice(frames_out(m->frame), buf_view(&m->body));
        l->seen = m->seen;
    }
    buf_free(&m->body);
    wait_for_next(l);
    frames_end(m->frame);
}

static void send_message(live *l, frames_request *frame) {
    live_message *m = arena_new(frame->arena, live_message);
    m->frame = frame;
    m->live = l;
    m->admin = frame->context;
    m->seen = l->seen;
    m->requests = l->requests;
    memcpy(m->database, l->database, sizeof m->database);
    memcpy(m->container, l->container, sizeof m->container);
    frame->text = true;
    op_init(&m->op, frame->arena, 0);
    m->body = buf_init_counted(BUF_NO_LIMIT, m->op.budget);
    admin_enter_work(m->admin);
    call_init(&m->call, &m->admin->core, &frame->client, &m->op, NULL, message_done);
    call_work(&m->call, NET_ADMIN, on_worker);
}

/* ---- turns ---- */

static bool key_holds(const live *l, const admin *a) {
    const access_ring *ring = access_keys_ring(a->keys);
    return l->key == ACCESS_KEY_COUNT ? admin_is_open(a) : access_ring_serial(ring, l->key) == l->serial;
}

static void on_time(net_delay *delay) {
    live *l = (live *)((char *)delay - offsetof(live, delay));
    admin *a = frames_context(l->conn);
    l->delayed = false;
    if (admin_is_stopping(a)) {
        return;
    }
    if (!key_holds(l, a)) {
        websocket_close(l->conn, LIVE_CODE_UNAUTHORIZED, SLICE_LIT("The key has changed."));
        return;
    }
    frames_request *frame = frames_begin(l->conn);
    if (frame) {
        send_message(l, frame);
    } else { /* the server stops, or the client has not read the last message: it connects again when it reads on */
        websocket_close(l->conn, LIVE_CODE_BUSY, SLICE_LIT("Messages were not read."));
    }
}

static void wait_for_next(live *l) {
    if (!l->delayed) {
        l->delayed = true;
        net_delay_start(frames_loop(l->conn), &l->delay, LIVE_MS, on_time);
    }
}

/* ---- messages of the client ---- */

static bool read_name(slice bson, const char *name, char into[static LIMIT_NAME_BYTES + 1]) {
    bson_iter_t it;
    into[0] = '\0';
    if (!doc_find_key(bson, slice_str(name), &it)) {
        return true;
    }
    slice text = BSON_ITER_HOLDS_UTF8(&it) ? doc_text(&it) : SLICE_EMPTY;
    if (!BSON_ITER_HOLDS_UTF8(&it) || text.n > LIMIT_NAME_BYTES || memchr(text.p, 0, text.n)) {
        return false;
    }
    memcpy(into, text.p, text.n);
    into[text.n] = '\0';
    return true;
}

/* Successful requests are recorded only while somebody watches. */
static void watch_requests(live *l, bool on) {
    if (on != l->requests) {
        request_recent_watch(on);
        l->requests = on;
    }
}

static bool read_choice(live *l, slice bson) {
    bson_iter_t it;
    watch_requests(l, doc_find_key(bson, SLICE_LIT("requests"), &it) && bson_iter_as_bool(&it));
    return read_name(bson, "database", l->database) && read_name(bson, "container", l->container);
}

static bool authenticate(live *l, admin *a, slice bson) {
    bson_iter_t it;
    const access_ring *ring = access_keys_ring(a->keys);
    slice given = doc_find_key(bson, SLICE_LIT("authorization"), &it) && BSON_ITER_HOLDS_UTF8(&it) ? doc_text(&it) : SLICE_EMPTY;
    l->key = ACCESS_KEY_COUNT;
    if (!given.n) {
        return admin_is_open(a);
    }
    if (!slice_starts(given, SLICE_LIT("Bearer ")) || !access_ring_find(ring, slice_skip(given, 7), &l->key)) {
        return false;
    }
    l->serial = access_ring_serial(ring, l->key);
    return true;
}

static void note_attempt(const live *l, admin *a) {
    uint8_t address[16];
    frames_peer_address(l->conn, address);
    access_attempts_note(a->attempts, address, E_UNAUTHORIZED);
}

static void take_message(live *l, admin *a, slice bson) {
    if (!l->watching && !authenticate(l, a, bson)) {
        note_attempt(l, a);
        websocket_close(l->conn, LIVE_CODE_UNAUTHORIZED, SLICE_LIT("Send {\"authorization\":\"Bearer KEY\"} first."));
    } else if (!read_choice(l, bson)) {
        websocket_close(l->conn, LIVE_CODE_BAD, SLICE_LIT("'database' and 'container' are names."));
    } else {
        frames_trust(l->conn);
        l->watching = true;
    }
}

/* A message that is understood is answered at once with the state, unless an answer is being made already. */
static void handle(frames_request *frame) {
    live *l = frames_state(frame->conn);
    admin *a = frame->context;
    json_options options = {.depth_max = 2};
    json_error why;
    json_root root;
    buf bson = buf_init(2 * LIVE_MESSAGE_BYTES);
    bool good = json_to_bson(frame->frame, &options, &bson, &root, &why) == OK && root == JSON_OBJECT;
    if (good) {
        take_message(l, a, buf_view(&bson));
    } else {
        websocket_close(l->conn, LIVE_CODE_BAD, SLICE_LIT("A message is a JSON object."));
    }
    buf_free(&bson);
    if (good && l->watching && !admin_is_stopping(a)) {
        if (l->delayed) {
            net_delay_stop(&l->delay);
            l->delayed = false;
        }
        send_message(l, frame);
    } else {
        frames_end(frame);
    }
}

static void refuse(frames_request *frame, err code) {
    (void)code;
    frames_end(frame);
}

static void opened(frames_conn *conn) {
    live *l = frames_state(conn);
    admin *a = frames_context(conn);
    l->conn = conn;
    if (atomic_fetch_add(&a->live_n, 1) >= ADMIN_LIVE_MAX) {
        websocket_close(conn, LIVE_CODE_BUSY, SLICE_LIT("Too many portals are open."));
    }
}

static void closed(frames_conn *conn) {
    live *l = frames_state(conn);
    admin *a = frames_context(conn);
    if (l->delayed) {
        net_delay_stop(&l->delay);
    }
    watch_requests(l, false);
    atomic_fetch_sub(&a->live_n, 1);
}

void admin_live_init(admin *a) {
    frames_limits limits = {.frame_bytes = LIVE_MESSAGE_BYTES, .in_flight = 2, .in_flight_bytes = 2 * LIVE_MESSAGE_BYTES};
    a->live = (frames_front){
        .name = "live",
        .untrusted = limits,
        .trusted = limits,
        .state_bytes = sizeof(live),
        .opened = opened,
        .closed = closed,
        .handle = handle,
        .refuse = refuse,
        .context = a,
    };
}

void admin_live_accept(admin *a, http_request *http) {
    websocket_accept(http, &a->live, NULL, NULL);
}
