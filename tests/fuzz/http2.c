/* HTTP/2: the same frames make the same requests, however they are cut into reads. Bodies are within their limit, and nothing is left
 * behind, whatever state the streams were in.
 *
 * The input's first byte seeds the cuts. The rest is what a client sends behind the preface. */
#include "base/limits.h"
#include "net/http_int.h"
#include "wire.h"

enum { HELD_MAX = 16, COMPARED_MAX = 90 }; /* with more streams, the choice of those that are refused depends on timing */

static http_request *held[HELD_MAX];
static unsigned held_n, handled_n;
static buf requests; /* a line each */

static void answer(http_request *r) {
    http_reply_start(r, 200);
    http_reply_field(r, "X-Echo", r->field[0]);
    buf_add_slice(http_reply_body(r), r->body);
    http_reply_end(r);
}

static void release(void) {
    while (held_n) {
        answer(held[--held_n]);
    }
}

static void handle(http_request *r) {
    handled_n++;
    check(r->body.n <= LIMIT_BODY_BYTES, "body past its limit");
    check(r->path.n && (r->path.p[0] == '/' || r->path.p[0] == '*'), "a path");
    check(r->host.p != NULL, "a host");
    buf_addf(&requests, "%.*s %.*s?%.*s %.*s x=%.*s ", (int)r->verb.n, r->verb.p, (int)r->path.n, r->path.p, (int)r->query.n,
             r->query.p ? r->query.p : "", (int)r->host.n, r->host.p, (int)r->field[0].n, r->field[0].p ? r->field[0].p : "");
    buf_add_slice(&requests, r->body);
    buf_add_byte(&requests, '\n');
    if (slice_eq(r->path, SLICE_LIT("/hold")) && held_n < HELD_MAX) {
        held[held_n++] = r;
        return;
    }
    if (slice_eq(r->path, SLICE_LIT("/trust"))) {
        http_trust(r);
    }
    answer(r);
}

static void refuse(http_request *r, err code) {
    buf_addf(&requests, "!%s\n", err_lookup(code)->name);
    http_reply_start(r, err_lookup(code)->http_status);
    http_reply_end(r);
}

static const char *const fields[] = {"x"};
static const http_front front = {.name = "fuzz", .fields = fields, .fields_n = 1, .handle = handle, .refuse = refuse};

static buf run(const uint8_t *data, size_t n, random_source *cuts) {
    static http_service *service;
    if (!service) {
        service = http_service_new(&front);
    }
    requests = buf_init(BUF_NO_LIMIT);
    wire w = wire_open(&http_protocol, service);
    wire_send(&w, HTTP2_PREFACE "\0\0\0\4\0\0\0\0\0", HTTP2_PREFACE_BYTES + 9);
    check(w.out.n > 9 && w.out.p[3] == 4, "settings");
    wire_send_cut(&w, data, n, cuts);
    if (n % 2) { /* answers come before the client goes, or after */
        release();
        wire_run(&w);
    }
    wire_close(&w);
    release();
    wire_expect_nothing();
    buf_free(&w.out);
    return requests;
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
    handled_n = 0;
    buf whole = run(data + 1, n - 1, NULL), cut = run(data + 1, n - 1, &cuts);
    if (handled_n <= COMPARED_MAX) {
        wire_expect_same(&whole, &cut);
    }
    buf_free(&whole);
    buf_free(&cut);
    return 0;
}
