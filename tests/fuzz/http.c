/* HTTP framing: the same bytes give the same requests and rejections, however they are divided into reads.
 *
 * The input's first byte seeds the division, its second chooses the limits (small ones, so that short inputs reach them). The rest is what
 * a client sends. */
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "net/framing.h"

static const http_limits small_limits = {.head_bytes = 300, .url_bytes = 60, .fields = 6, .body_bytes = 40, .discard_bytes = 200};
static const char *const fields[] = {"authorization", "x-ms-date", "content-type", "host", "if-match", "x"};

static void check(bool ok, const char *what) {
    if (!ok) {
        fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

static void log_span(buf *log, const char *base, http_span s, size_t n) {
    check((size_t)s.at + s.n <= n, "span outside the input");
    buf_add(log, base + s.at, s.n);
    buf_add_byte(log, '|');
}

static void log_request(buf *log, const http_framing *f, const net_input *in) {
    check(f->used <= in->n, "used more than there is");
    check(f->body.n <= f->limits->body_bytes, "body past its limit");
    check(f->found_n <= HTTP_FOUND_MAX && f->fields <= f->limits->fields, "fields past their limit");
    buf_addf(log, "request %u keep=%d 1.0=%d large=%d abandon=%d ", f->method, f->keep_alive, f->http10, f->body_too_large, f->abandon);
    log_span(log, in->p, f->url, in->n);
    log_span(log, in->p, f->host, in->n);
    buf_addf(log, "%d", f->origin_seen);
    log_span(log, in->p, f->origin, in->n);
    log_span(log, in->p, f->body, in->n);
    for (unsigned i = 0; i < f->found_n; i++) {
        check(f->found[i].field < sizeof fields / sizeof *fields, "field unknown");
        buf_addf(log, "%u=", f->found[i].field);
        log_span(log, in->p, f->found[i].value, in->n);
    }
    buf_add_byte(log, '\n');
}

typedef struct client {
    http_framing framing;
    net_input in;
    const http_limits *limits;
    http_names *names;
    buf log;
    bool reading;
    bool over;
} client;

/* One step of the loop in net/http.c, without a connection. False: more bytes are needed, or reading is over. */
static bool step(client *c) {
    while (c->in.n && !c->reading && (c->in.p[0] == '\r' || c->in.p[0] == '\n')) {
        net_input_skip(&c->in, 1);
    }
    if (c->in.n == 0 || c->over) {
        return false;
    }
    if (!c->reading) {
        http_framing_start(&c->framing, c->names, c->limits);
        c->reading = true;
    }
    switch (http_framing_next(&c->framing, &c->in)) {
    case HTTP_MORE:
        return false;
    case HTTP_CONTINUE:
        return true;
    case HTTP_WHOLE:
        log_request(&c->log, &c->framing, &c->in);
        c->over = c->framing.abandon;
        if (c->framing.used % 2 && c->in.own.n && c->in.p == c->in.own.p) { /* alternate between the two ways to continue after a request */
            buf taken;
            net_input_take(&c->in, c->framing.used, &taken);
            buf_free(&taken);
        } else {
            net_input_skip(&c->in, c->framing.used);
        }
        c->reading = false;
        return true;
    default:
        buf_addf(&c->log, "refused %s\n", err_lookup(c->framing.refusal)->name);
        c->over = true;
        return false;
    }
}

static void feed(client *c, const uint8_t *data, size_t n) {
    char *lent = malloc(n ? n : 1); /* exact size, and freed afterwards, so that the sanitizer detects any access outside */
    check(lent != NULL, "memory");
    memcpy(lent, data, n);
    net_input_give(&c->in, lent, n);
    while (step(c)) {
    }
    net_input_keep(&c->in);
    free(lent);
    check(c->over || c->in.own.n <= (size_t)c->limits->head_bytes + c->limits->body_bytes + n, "kept more than a request");
}

static buf run(const uint8_t *data, size_t n, http_names *names, const http_limits *limits, random_source *cuts) {
    client c = {.names = names, .limits = limits, .log = buf_init(BUF_NO_LIMIT), .in.own = buf_init(BUF_NO_LIMIT)};
    while (n && !c.over) {
        size_t k = cuts ? 1 + random_below(cuts, random_below(cuts, 4) ? 8 : 200) : n;
        k = k < n ? k : n;
        feed(&c, data, k);
        data += k;
        n -= k;
    }
    net_input_free(&c.in);
    return c.log;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 2) {
        return 0;
    }
    static http_names *names;
    if (!names) {
        names = http_names_new(fields, sizeof fields / sizeof *fields);
    }
    const http_limits *limits = data[1] & 1 ? &small_limits : &http_limits_default;
    random_source cuts;
    random_seed(&cuts, data[0]);
    buf whole = run(data + 2, n - 2, names, limits, NULL);
    buf cut = run(data + 2, n - 2, names, limits, &cuts);
    if (!slice_eq(buf_view(&whole), buf_view(&cut))) {
        fprintf(stderr, "in one piece:\n%.*s\nin pieces:\n%.*s\n", (int)whole.n, whole.p, (int)cut.n, cut.p);
        abort();
    }
    buf_free(&whole);
    buf_free(&cut);
    return 0;
}
