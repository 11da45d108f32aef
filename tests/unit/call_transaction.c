/* Transactions that a client keeps open, tested through a small front end: a line protocol over a real socket, one transaction per
 * connection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>

#include "call/call.h"
#include "item_harness.h"
#include "net/frames.h"

enum { HEADER = 4, FRAME_MAX = 4096 };

static harness h;
static container *c;
static call_core core;
static net_server *server;
static pthread_t thread;
static uint16_t port;
static call_transaction *_Atomic left;

/* ---- the front end: a letter and its arguments. "wID N" upserts, "pID N" patches, "rID" reads, "gID" reads with a guard, "W N" upserts
 * the items 1 to N, "D N" deletes them, "R N" reads them, "f N" finds those whose n is at least N; "s" leaves the connection's transaction
 * for any other one, which takes it by "t" ---- */

typedef struct line {
    union {
        call_within within; /* must be first */
        call_find find;
    };
    frames_request *request;
    op op;
    item_op item;
    buf rows;
} line;

static call_transaction **opened(frames_conn *conn) {
    return frames_state(conn);
}

static void say(frames_request *r, const char *text) {
    buf *out = frames_out(r);
    buf_add_be32(out, (uint32_t)(HEADER + strlen(text)));
    buf_add_slice(out, slice_str(text));
    frames_end(r);
}

static void answer(call *done) {
    line *l = (line *)done;
    char text[FRAME_MAX];
    bson_iter_t it;
    snprintf(text, sizeof text, "%s", err_lookup(done->code)->name);
    if (done->code == OK && l->within.found.body.n && doc_find_key(l->within.found.body, SLICE_LIT("n"), &it)) {
        snprintf(text, sizeof text, "%ld", (long)bson_iter_as_int64(&it));
    } else if (done->code == OK && l->rows.n) {
        snprintf(text, sizeof text, "%.*s", (int)l->rows.n, l->rows.p);
    }
    buf_free(&l->rows);
    call_within_give(&l->within);
    say(l->request, text);
}

static bool add_row(void *context, const item_found *found) {
    bson_iter_t it;
    assert_true(doc_find_key(found->body, SLICE_LIT("n"), &it));
    buf_addf(context, "%ld ", (long)bson_iter_as_int64(&it));
    return true;
}

static slice bson_text(arena *a, slice json) {
    buf b = buf_init(BUF_NO_LIMIT);
    json_root root;
    assert_int_equal(json_to_bson(json, NULL, &b, &root, NULL), OK);
    slice copy = arena_copy(a, buf_view(&b));
    buf_free(&b);
    return copy;
}

/* From 1000 on `n` makes an item so large that its index terms are listed by a worker. */
static slice text_of_item(arena *a, const char *id, int n) {
    return n < 1000 ? arena_printf(a, "{\"id\":\"%s\",\"pk\":\"a\",\"n\":%d}", id, n)
                    : arena_printf(a, "{\"id\":\"%s\",\"pk\":\"a\",\"n\":%d,\"zeros\":\"%0*d\"}", id, n, LIMIT_LISTED_BYTES, 0);
}

static void write_item(line *l, const char *id, int n, bool patches) {
    arena *a = l->request->arena;
    slice json = patches ? arena_printf(a, "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":%d}]", n) : text_of_item(a, id, n);
    item_op *item = &l->item;
    *item = (item_op){.kind = patches ? ITEM_EDIT : ITEM_UPSERT, .key = l->within.key};
    op_init(&item->op, l->request->arena, l->op.now_s);
    slice body = bson_text(l->request->arena, json);
    if (patches) {
        item->edit = (item_edit){.kind = ITEM_EDIT_PATCH, .argument = body};
    } else {
        item->body = body;
        assert_int_equal(item_check_body(&l->op, c, NULL, item), OK);
    }
    l->within.op = item;
    call_within_write(&l->within);
}

/* ---- several in one call ---- */

static item_key key_of(line *l, size_t i) {
    item_key key;
    pkey header = {.n = 1, .values = {{.type = PKEY_STRING, .text = SLICE_LIT("a")}}};
    assert_int_equal(item_check_key(&l->op, c, &header, arena_printf(l->request->arena, "%zu", i + 1), &key), OK);
    return key;
}

static err note_write(void *context, size_t i, err code) {
    line *l = context;
    buf_addf(&l->rows, "%zu:%s ", i + 1, err_lookup(code)->name);
    return code == E_NOT_FOUND ? OK : code;
}

static void write_all(line *l, size_t n, bool deletes) {
    arena *a = l->request->arena;
    l->within.op = arena_array(a, item_op, n);
    l->within.n = n;
    l->within.wrote = note_write;
    l->within.context = l;
    for (size_t i = 0; i < n; i++) {
        item_op *item = &l->within.op[i];
        *item = (item_op){.kind = deletes ? ITEM_DELETE : ITEM_UPSERT, .key = key_of(l, i)};
        op_init(&item->op, a, l->op.now_s);
        if (!deletes) {
            item->body = bson_text(a, arena_printf(a, "{\"id\":\"%zu\",\"pk\":\"a\",\"n\":%zu}", i + 1, 10 * (i + 1)));
            assert_int_equal(item_check_body(&l->op, c, NULL, item), OK);
        }
    }
    call_within_write_all(&l->within);
}

static void note_read(void *context, size_t i, const item_found *found) {
    line *l = context;
    buf_addf(&l->rows, "%zu:", i + 1);
    add_row(&l->rows, found);
}

static void read_all(line *l, size_t n) {
    item_key *keys = arena_array(l->request->arena, item_key, n);
    for (size_t i = 0; i < n; i++) {
        keys[i] = key_of(l, i);
    }
    l->within.keys = keys;
    l->within.n = n;
    l->within.read = note_read;
    l->within.context = l;
    call_within_read_all(&l->within);
}

static void found(call *done) {
    line *l = (line *)done;
    char text[FRAME_MAX];
    snprintf(text, sizeof text, "%s", done->code == OK ? "nothing" : err_lookup(done->code)->name);
    if (done->code == OK && l->rows.n) {
        snprintf(text, sizeof text, "%.*s", (int)l->rows.n, l->rows.p);
    }
    buf_free(&l->rows);
    say(l->request, text);
}

static bool note_found(void *context, const query_found *row) {
    line *l = context;
    bson_iter_t it;
    assert_true(doc_find_key(row->body, SLICE_LIT("n"), &it));
    buf_addf(&l->rows, "%ld ", (long)bson_iter_as_int64(&it));
    return true;
}

static void find(line *l, call_transaction *t, int n) {
    arena *a = l->request->arena;
    item_key *partition = arena_new(a, item_key);
    *partition = key_of(l, 0);
    call_find_init(&l->find, &core, &l->request->client, &l->op, c, found);
    l->find.find.where = bson_text(a, arena_printf(a, "{\"at\":[\"n\"],\"ge\":%d}", n));
    l->find.find.scope = query_scope_partition(partition);
    l->find.within = t;
    l->find.sink = note_found;
    l->find.context = l;
    call_find_submit(&l->find);
}

static void ask(line *l, char what, char *id, int n) {
    pkey header = {.n = 1, .values = {{.type = PKEY_STRING, .text = SLICE_LIT("a")}}};
    assert_int_equal(item_check_key(&l->op, c, &header, arena_copy(l->request->arena, slice_str(id)), &l->within.key), OK);
    if (what == 'w' || what == 'p') {
        write_item(l, id, n, what == 'p');
    } else if (what == 'c') {
        call_within_commit(&l->within);
    } else if (what == 'l') {
        l->within.rows = item_rows_ask_partition(&l->within.key);
        l->within.sink = add_row;
        l->within.context = &l->rows;
        call_within_rows(&l->within);
    } else {
        l->within.guarded = what == 'g';
        call_within_read(&l->within);
    }
}

static void handle(frames_request *r) {
    call_transaction **t = opened(r->conn);
    char text[FRAME_MAX] = "", id[32] = "";
    int n = 0;
    memcpy(text, r->frame.p + HEADER, r->frame.n - HEADER);
    if (text[0] == 'b') {
        *t = call_transaction_begin(&core, frames_loop(r->conn));
        say(r, "OK");
        return;
    }
    if (text[0] == 's') {
        left = *t;
        *t = NULL;
        say(r, "OK");
        return;
    }
    if (text[0] == 't') {
        *t = left;
        say(r, "OK");
        return;
    }
    if (text[0] == 'e') {
        call_transaction_end(*t);
        *t = NULL;
        say(r, "OK");
        return;
    }
    line *l = arena_new(r->arena, line);
    l->request = r;
    l->rows = buf_init(BUF_NO_LIMIT);
    sscanf(text + 1, "%31s %d", id, &n);
    op_init(&l->op, r->arena, harness_now_s(&h));
    call_within_init(&l->within, *t, &core, &r->client, &l->op, c, answer);
    if (text[0] == 'W' || text[0] == 'D' || text[0] == 'R') {
        size_t items = (size_t)atoi(text + 1);
        text[0] == 'R' ? read_all(l, items) : write_all(l, items, text[0] == 'D');
        return;
    }
    if (text[0] == 'f') {
        find(l, *t, atoi(text + 1));
        return;
    }
    ask(l, text[0], id, n);
}

static void refuse(frames_request *r, err code) {
    say(r, err_lookup(code)->name);
}

static void closed(frames_conn *conn) {
    if (*opened(conn)) {
        call_transaction_end(*opened(conn));
    }
}

static bool length(frames_conn *conn, const uint8_t *header, uint64_t *bytes_out) {
    (void)conn;
    *bytes_out = (uint64_t)header[2] << 8 | header[3];
    return *bytes_out >= HEADER;
}

static const frames_front front = {.name = "lines",
                                   .header_bytes = HEADER,
                                   .length = length,
                                   .untrusted = {FRAME_MAX, 8, 8 * FRAME_MAX},
                                   .trusted = {FRAME_MAX, 8, 8 * FRAME_MAX},
                                   .state_bytes = sizeof(call_transaction *),
                                   .closed = closed,
                                   .handle = handle,
                                   .refuse = refuse};

/* ---- the server and its clients ---- */

static void *run_server(void *unused) {
    (void)unused;
    net_run(server);
    return NULL;
}

static int set_up(void **state) {
    (void)state;
    net_options options = net_defaults;
    char why[200] = "";
    options.loops = 2;
    log_set_level(LOG_ERROR);
    harness_open(&h);
    c = harness_container(&h, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}", 2000);
    core = (call_core){.account = h.account};
    assert_int_equal(net_open(&options, &server), OK);
    assert_int_equal(net_listen_frames(server, "127.0.0.1", 0, &front, &port, why, sizeof why), OK);
    assert_int_equal(pthread_create(&thread, NULL, run_server, NULL), 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    net_stop(server);
    pthread_join(thread, NULL);
    net_close(server);
    harness_check(&h, c);
    container_give(c);
    harness_close(&h);
    return 0;
}

static int open_client(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void send_line(int fd, const char *text) {
    char frame[FRAME_MAX];
    size_t n = HEADER + strlen(text);
    memcpy(frame, (char[]){0, 0, (char)(n >> 8), (char)n}, HEADER);
    memcpy(frame + HEADER, text, n - HEADER);
    assert_int_equal(send(fd, frame, n, MSG_NOSIGNAL), n);
}

static void receive(int fd, void *into, size_t n) {
    assert_int_equal(recv(fd, into, n, MSG_WAITALL), n);
}

static const char *hear(int fd) {
    static char text[FRAME_MAX];
    unsigned char header[HEADER];
    receive(fd, header, HEADER);
    size_t n = (size_t)(header[2] << 8 | header[3]) - HEADER;
    receive(fd, text, n);
    text[n] = 0;
    return text;
}

static void says(int fd, const char *text, const char *expected) {
    send_line(fd, text);
    assert_string_equal(hear(fd), expected);
}

/* ---- tests ---- */

/* Eight connections, spread over two loops, take turns at one transaction. */
static void a_transaction_moves_between_loops(void **state) {
    (void)state;
    int clients[8];
    for (int i = 0; i < 8; i++) {
        clients[i] = open_client();
    }
    says(clients[0], "b", "OK");
    says(clients[0], "w1 0", "OK");
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 8; i++) {
            says(clients[i], i == 0 && round == 0 ? "r1" : "t", i == 0 && round == 0 ? "0" : "OK");
            says(clients[i], "p1 1", "OK");
            says(clients[i], "s", "OK");
        }
    }
    says(clients[3], "t", "OK");
    says(clients[3], "r1", "160");
    says(clients[3], "c", "OK");
    says(clients[3], "e", "OK");
    for (int i = 0; i < 8; i++) {
        close(clients[i]);
    }
}

static void a_client_reads_writes_and_commits(void **state) {
    (void)state;
    int one = open_client(), two = open_client();
    says(one, "b", "OK");
    says(one, "w1 10", "OK");
    says(one, "w2 20", "OK");
    says(one, "p1 5", "OK"); /* on a worker */
    says(one, "r1", "15");
    says(one, "r9", "E_NOT_FOUND");
    says(one, "p9 1", "E_NOT_FOUND");
    says(one, "l", "15 20 ");
    says(two, "b", "OK");
    says(two, "r1", "E_NOT_FOUND");
    says(one, "c", "OK");
    says(one, "e", "OK");
    says(two, "r1", "E_NOT_FOUND"); /* its snapshot is older */
    says(two, "w1 1", "OK");
    says(two, "c", "E_RETRY_WITH");
    says(two, "e", "OK");
    says(two, "b", "OK");
    says(two, "g1", "15");
    says(two, "w3 3", "OK");
    says(two, "c", "OK");
    says(two, "e", "OK");
    close(one);
    close(two);
    assert_string_equal(harness_read(&h, c, "[\"a\"]", "1"), "{\"id\":\"1\",\"pk\":\"a\",\"n\":15}");
    assert_int_equal(harness_count(c), 3);
}

static void one_call_reads_or_writes_several(void **state) {
    (void)state;
    int one = open_client(), two = open_client();
    says(one, "b", "OK");
    says(one, "W 3", "1:OK 2:OK 3:OK ");
    says(one, "w5 50", "OK");
    says(one, "R 5", "1:10 2:20 3:30 5:50 ");
    says(one, "f 20", "20 30 50 ");
    says(two, "b", "OK");
    says(two, "f 0", "nothing");
    says(one, "c", "OK");
    says(one, "e", "OK");
    says(two, "f 0", "nothing"); /* its snapshot is older */
    says(two, "e", "OK");
    says(two, "b", "OK");
    says(two, "p2 100", "OK");
    says(two, "f 25", "120 30 50 ");
    says(two, "D 4", "1:OK 2:OK 3:OK 4:E_NOT_FOUND ");
    says(two, "f 0", "50 ");
    says(two, "R 5", "5:50 ");
    says(two, "c", "OK");
    says(two, "e", "OK");
    close(one);
    close(two);
    assert_int_equal(harness_count(c), 1);
}

/* The terms of large items are listed by a worker, before the commit. */
static void large_items_are_committed(void **state) {
    (void)state;
    int one = open_client();
    says(one, "b", "OK");
    says(one, "w1 1000", "OK");
    says(one, "w2 2", "OK");
    says(one, "w3 3000", "OK");
    says(one, "c", "OK");
    says(one, "e", "OK");
    says(one, "b", "OK");
    says(one, "l", "1000 2 3000 ");
    says(one, "w3 1", "OK");
    says(one, "p1 1", "OK");
    says(one, "c", "OK");
    says(one, "e", "OK");
    close(one);
    assert_int_equal(harness_count(c), 3);
}

/* If a client disconnects, its writes are discarded, even if a call was in progress. */
static void the_committer_does_not_wait_for_a_slow_disk(void **state) {
    (void)state;
    int fd = open_client();
    h.plan.disk_cached = true;
    h.plan.disk_ms = 1;
    says(fd, "b", "OK");
    says(fd, "w1 10", "OK");
    says(fd, "w2 20", "OK");
    says(fd, "c", "OK");
    says(fd, "e", "OK");
    h.plan.disk_ms = 0;
    assert_int_equal(h.plan.disk_held, 0);
    assert_string_equal(harness_read(&h, c, "[\"a\"]", "2"), "{\"id\":\"2\",\"pk\":\"a\",\"n\":20}");
    close(fd);
}

static void a_client_that_leaves_leaves_nothing(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) {
        int fd = open_client();
        says(fd, "b", "OK");
        says(fd, "w1 1", "OK");
        send_line(fd, i % 2 ? "p1 1" : "l");
        close(fd);
    }
    assert_int_equal(harness_count(c), 0);
}

/* Calls sent concurrently are either executed or rejected; the transaction continues. */
static void calls_come_one_after_the_other(void **state) {
    (void)state;
    int fd = open_client(), worked = 0;
    says(fd, "b", "OK");
    says(fd, "w1 0", "OK");
    for (int i = 0; i < 6; i++) {
        send_line(fd, "p1 1");
    }
    for (int i = 0; i < 6; i++) {
        const char *said = hear(fd);
        worked += strcmp(said, "OK") == 0;
        assert_true(strcmp(said, "OK") == 0 || strcmp(said, "E_BAD_REQUEST") == 0);
    }
    char expected[16];
    snprintf(expected, sizeof expected, "%d", worked);
    says(fd, "r1", expected);
    says(fd, "c", "OK");
    says(fd, "e", "OK");
    close(fd);
}

static void a_transaction_that_is_too_old_is_gone(void **state) {
    (void)state;
    int fd = open_client();
    says(fd, "b", "OK");
    says(fd, "w1 1", "OK");
    clock_manual_advance(&h.clock, LIMIT_TRANSACTION_SECONDS * 1000);
    says(fd, "r1", "E_TRANSACTION_EXPIRED");
    says(fd, "c", "E_TRANSACTION_EXPIRED");
    says(fd, "e", "OK");
    close(fd);
    assert_int_equal(harness_count(c), 0);
}

/* A server that stops does not wait for open transactions. */
static void a_server_that_stops_gives_them_up(void **state) {
    (void)state;
    int fd = open_client();
    says(fd, "b", "OK");
    says(fd, "w1 1", "OK");
    tear_down(NULL);
    close(fd);
    set_up(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_transaction_moves_between_loops, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_client_reads_writes_and_commits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_call_reads_or_writes_several, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_items_are_committed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_committer_does_not_wait_for_a_slow_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_client_that_leaves_leaves_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(calls_come_one_after_the_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_transaction_that_is_too_old_is_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_stops_gives_them_up, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
