/* framing_client.h — the loop of net/http.c around framing, without a connection: bytes go in; a text that shows each request and refusal
 * comes out. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "net/framing.h"

static const char *const framing_fields[] = {"authorization", "x-ms-date", "content-type", "host", "if-match", "x"};
enum { FRAMING_FIELDS = sizeof framing_fields / sizeof *framing_fields };

/* Small limits, so that short inputs reach them. */
static inline http_limits framing_limits(bool small, bool parser_only) {
    http_limits limits = http_limits_default;
    if (small) {
        limits = (http_limits){.head_bytes = 300, .url_bytes = 60, .fields = 6, .body_bytes = 40, .discard_bytes = 200};
    }
    limits.parser_only = parser_only;
    return limits;
}

typedef struct framing_result {
    buf log;   /* the same for every division into reads */
    buf reads; /* what depends on the division: "100 Continue", bytes used */
    unsigned requests;
    unsigned ordinary; /* requests whose heads http-parser has not seen */
} framing_result;

typedef struct framing_client {
    http_framing framing;
    net_input in;
    const http_limits *limits;
    const http_names *names;
    framing_result result;
    bool reading;
    bool over;
} framing_client;

static inline void framing_check(bool ok, const char *what) {
    if (!ok) {
        fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

static inline void framing_log_span(buf *log, const net_input *in, http_span s) {
    framing_check((size_t)s.at + s.n <= in->n, "span outside the input");
    buf_addf(log, "%u+%u:", s.at, s.n);
    buf_add(log, in->p + s.at, s.n);
    buf_add_byte(log, '|');
}

static inline void framing_log_request(framing_result *r, const http_framing *f, const net_input *in) {
    buf *log = &r->log;
    framing_check(f->used <= in->n, "used more than there is");
    framing_check(f->body.n <= f->limits->body_bytes, "body past its limit");
    framing_check(f->found_n <= HTTP_FOUND_MAX && f->fields <= f->limits->fields, "fields past their limit");
    framing_check(!(f->ordinary && f->limits->parser_only), "http-parser was not asked");
    buf_addf(log, "request %u keep=%d 1.0=%d websocket=%d large=%d abandon=%d fields=%u ", f->method, f->keep_alive, f->http10,
             f->websocket, f->body_too_large, f->abandon, f->fields);
    framing_log_span(log, in, f->url);
    framing_log_span(log, in, f->host);
    buf_addf(log, "%d", f->origin_seen);
    framing_log_span(log, in, f->origin);
    framing_log_span(log, in, f->body);
    for (unsigned i = 0; i < f->found_n; i++) {
        framing_check(f->found[i].field < FRAMING_FIELDS, "field unknown");
        buf_addf(log, "%u=", f->found[i].field);
        framing_log_span(log, in, f->found[i].value);
    }
    buf_add_byte(log, '\n');
    buf_addf(&r->reads, "used %u\n", f->used);
    r->requests++;
    r->ordinary += f->ordinary;
}

/* Alternates between the two ways to continue after a request. */
static inline void framing_skip_request(framing_client *c) {
    if (c->framing.used % 2 && c->in.own.n && c->in.p == c->in.own.p) {
        buf taken;
        net_input_take(&c->in, c->framing.used, &taken);
        buf_free(&taken);
    } else {
        net_input_skip(&c->in, c->framing.used);
    }
}

/* One step. False: more bytes are needed, or reading is over. */
static inline bool framing_step(framing_client *c) {
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
        buf_add_lit(&c->result.reads, "continue\n");
        return true;
    case HTTP_WHOLE:
        framing_log_request(&c->result, &c->framing, &c->in);
        c->over = c->framing.abandon;
        framing_skip_request(c);
        c->reading = false;
        return true;
    default:
        buf_addf(&c->result.log, "refused %s\n", err_lookup(c->framing.refusal)->name);
        c->over = true;
        return false;
    }
}

static inline void framing_feed(framing_client *c, const char *data, size_t n) {
    char *lent = malloc(n ? n : 1); /* exact size, and freed afterwards, so that the sanitizer detects any access outside */
    framing_check(lent != NULL, "memory");
    memcpy(lent, data, n);
    net_input_give(&c->in, lent, n);
    while (framing_step(c)) {
    }
    net_input_keep(&c->in);
    free(lent);
    framing_check(c->over || c->in.own.n <= (size_t)c->limits->head_bytes + c->limits->body_bytes + n, "kept more than a request");
}

/* Reads all of the bytes: in one piece, or in random ones that `cuts` chooses. */
static inline framing_result framing_run(slice bytes, const http_names *names, const http_limits *limits, random_source *cuts) {
    framing_client c = {.names = names, .limits = limits, .in.own = buf_init(BUF_NO_LIMIT)};
    c.result = (framing_result){.log = buf_init(BUF_NO_LIMIT), .reads = buf_init(BUF_NO_LIMIT)};
    while (bytes.n && !c.over) {
        size_t k = cuts ? 1 + random_below(cuts, random_below(cuts, 4) ? 8 : 200) : bytes.n;
        k = k < bytes.n ? k : bytes.n;
        framing_feed(&c, bytes.p, k);
        bytes = slice_skip(bytes, k);
    }
    net_input_free(&c.in);
    return c.result;
}

static inline void framing_result_free(framing_result *r) {
    buf_free(&r->log);
    buf_free(&r->reads);
}

static inline void framing_must_agree(const buf *a, const buf *b, const char *what) {
    if (!slice_eq(buf_view(a), buf_view(b))) {
        fprintf(stderr, "%s\n%.*s\n----\n%.*s\n", what, (int)a->n, a->p, (int)b->n, b->p);
        abort();
    }
}

/* Each ends the program if head.c makes a difference. */

/* In one piece. Returns how the bytes were read. */
static inline framing_result framing_compare_whole(slice bytes, const http_names *names, bool small) {
    http_limits with = framing_limits(small, false), without = framing_limits(small, true);
    framing_result whole = framing_run(bytes, names, &with, NULL);
    framing_result parsed = framing_run(bytes, names, &without, NULL);
    framing_must_agree(&whole.log, &parsed.log, "in one piece, with head.c and by http-parser:");
    framing_must_agree(&whole.reads, &parsed.reads, "in one piece, with head.c and by http-parser:");
    framing_result_free(&parsed);
    return whole;
}

/* Also in the pieces that the seed chooses; the pieces must make no difference either. */
static inline framing_result framing_compare(slice bytes, const http_names *names, bool small, uint64_t seed) {
    http_limits with = framing_limits(small, false), without = framing_limits(small, true);
    random_source cuts, same;
    random_seed(&cuts, seed);
    random_seed(&same, seed);
    framing_result whole = framing_compare_whole(bytes, names, small);
    framing_result cut = framing_run(bytes, names, &with, &cuts);
    framing_result parsed = framing_run(bytes, names, &without, &same);
    framing_must_agree(&whole.log, &cut.log, "in one piece, and in pieces:");
    framing_must_agree(&cut.log, &parsed.log, "in pieces, with head.c and by http-parser:");
    framing_must_agree(&cut.reads, &parsed.reads, "in pieces, with head.c and by http-parser:");
    framing_result_free(&cut);
    framing_result_free(&parsed);
    return whole;
}
