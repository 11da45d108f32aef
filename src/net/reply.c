/* Writes answers: head, fields and body go into one buffer; the length is filled in at the end. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "net/http_int.h"

enum { LENGTH_PLACES = 10 };
#define LENGTH_LINE "Content-Length:           \r\n" /* a blank, and room for ten digits */

static http_exchange *exchange_of(http_request *r) {
    return (http_exchange *)r;
}

static bool status_has_body(unsigned status) {
    return status >= 200 && status != 204 && status != 304;
}

static const char *reason(unsigned status) {
    const char *text = http_status_str((enum http_status)status);
    return status == 449 ? "Retry With" : text[0] == '<' ? "Unknown" : text; /* 449 is not a standard status: the service defines it */
}

slice http__date(net_loop *loop) {
    int64_t second = loop->wall_ms / 1000;
    if (loop->date.second != second || !loop->date.n) {
        time_t t = (time_t)second;
        struct tm utc;
        gmtime_r(&t, &utc);
        /* English names: the process stays in the C locale */
        loop->date.n = strftime(loop->date.text, sizeof loop->date.text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
        loop->date.second = second;
    }
    return slice_of(loop->date.text, loop->date.n);
}

/* Status line and Date, followed by room for the length; cached, since they are the same for all answers of one status and second. */
static slice reply_head(net_loop *loop, unsigned status) {
    int64_t second = loop->wall_ms / 1000;
    if (loop->reply_head.second != second || loop->reply_head.status != status) {
        slice date = http__date(loop);
        int n = snprintf(loop->reply_head.text, sizeof loop->reply_head.text, "HTTP/1.1 %u %s\r\nDate: %.*s\r\n%s", status, reason(status),
                         (int)date.n, date.p, status_has_body(status) ? LENGTH_LINE : "");
        loop->reply_head.n = (size_t)n;
        loop->reply_head.second = second;
        loop->reply_head.status = status;
    }
    return slice_of(loop->reply_head.text, loop->reply_head.n);
}

static buf *output(http_exchange *x) {
    http_conn *h = x->conn;
    if (!h) {
        return net_loop_take_out(x->request.client->loop);
    }
    if (!h->out) {
        h->out = net_loop_take_out(x->request.client->loop);
    }
    return h->out;
}

static inline void start(http_exchange *x, unsigned status) {
    x->out = output(x);
    x->reply_at = x->out->n;
    x->status = status;
    x->body_at = 0;
    x->length_at = 0;
    if (!x->carrier) {
        buf_add_slice(x->out, reply_head(x->request.client->loop, status));
        x->length_at = status_has_body(status) ? x->out->n - 2 - LENGTH_PLACES : 0;
    }
}

void http_switch_start(http_request *r, http_switch *to) {
    http_exchange *x = exchange_of(r);
    assert(!x->out && !x->to);
    start(x, 101);
    x->to = to;
}

void http_reply_start(http_request *r, unsigned status) {
    http_exchange *x = exchange_of(r);
    assert(!x->out && status >= 200 && status <= 599);
    start(x, status);
    if (x->carrier) {
        return;
    }
    x->last |= r->client->loop->draining;
    if (x->last) {
        buf_add_lit(x->out, "Connection: close\r\n");
    } else if (x->framing.http10) {
        buf_add_lit(x->out, "Connection: keep-alive\r\n");
    }
}

buf *http_reply_fields(http_request *r) {
    http_exchange *x = exchange_of(r);
    assert(x->out && !x->body_at);
    return x->out;
}

void http_reply_field(http_request *r, const char *name, slice value) {
    buf *out = http_reply_fields(r);
    buf_add(out, name, strlen(name));
    buf_add_lit(out, ": ");
    for (size_t i = 0; i < value.n;) {
        size_t n = i;
        while (n < value.n && value.p[n] != '\r' && value.p[n] != '\n' && value.p[n] != '\0') {
            n++;
        }
        buf_add(out, value.p + i, n - i);
        i = n + 1;
    }
    buf_add_lit(out, "\r\n");
}

buf *http_reply_body(http_request *r) {
    http_exchange *x = exchange_of(r);
    assert(x->out);
    if (!x->body_at) {
        buf_add_lit(x->out, "\r\n");
        x->body_at = x->out->n;
    }
    return x->out;
}

slice http_reply_written(http_request *r) {
    const http_exchange *x = exchange_of(r);
    return x->body_at && buf_ok(x->out) ? slice_of(x->out->p + x->body_at, x->out->n - x->body_at) : SLICE_EMPTY;
}

void http_reply_rewrite(http_request *r) {
    http_exchange *x = exchange_of(r);
    assert(x->out && x->body_at);
    x->out->n = x->body_at;
}

void http_reply_abandon(http_request *r) {
    http_exchange *x = exchange_of(r);
    if (x->out) {
        x->out->n = x->reply_at;
        x->out->overflow = false;
        if (!x->conn) {
            net_loop_give_out(r->client->loop, x->out);
        }
        x->out = NULL;
    }
    free(x->to);
    x->to = NULL;
}

static void patch_length(http_exchange *x) {
    char *at = x->out->p + x->length_at + LENGTH_PLACES;
    size_t n = x->out->n - x->body_at;
    do {
        *--at = (char)('0' + n % 10);
        n /= 10;
    } while (n);
}

static void fail_oversized(http_exchange *x) {
    log_error("net", "answer larger than any may be", "front=%s bytes_max=%d", x->front->name, NET_REPLY_BYTES_MAX);
    http_reply_abandon(&x->request);
    http_reply_start(&x->request, 500);
    http_reply_body(&x->request);
}

/* Earlier answers may fill the buffer: they are sent first, so that the refusal gets a buffer of its own, with enough room. */
static void refuse_starved(http_exchange *x) {
    http_reply_abandon(&x->request);
    if (!x->starved) {
        x->starved = true;
        http_send_answered(x);
        x->front->refuse(&x->request, net_count_starved(x->request.client->loop));
        return;
    }
    if (x->carrier) { /* even the refusal did not fit: nothing more can be sent */
        x->carrier->answered(x->carrier_context, &(http_answer){.status = 503});
        return;
    }
    if (x->conn) {
        net_conn_close(net_conn_of(x->conn));
    }
    http_answered(x);
}

/* Takes the buffer from the exchange first: the carrier's callback frees the exchange. */
static void end_carried(http_exchange *x) {
    net_loop *loop = x->request.client->loop;
    buf *out = x->out;
    bool has_body = status_has_body(x->status) && x->request.method != VERB_HEAD;
    http_answer answer = {
        .status = x->status,
        .fields = slice_of(out->p, x->body_at - 2),
        .body = has_body ? slice_of(out->p + x->body_at, out->n - x->body_at) : SLICE_EMPTY,
        .length = status_has_body(x->status) ? out->n - x->body_at : 0,
        .bytes = &out,
    };
    x->out = NULL;
    x->carrier->answered(x->carrier_context, &answer);
    if (out) {
        net_loop_give_out(loop, out);
    }
}

void http_reply_end(http_request *r) {
    http_exchange *x = exchange_of(r);
    http_reply_body(r);
    if (!buf_ok(x->out) && net_answer_starved(r->client->loop)) {
        refuse_starved(x);
        return;
    }
    if (!buf_ok(x->out)) {
        fail_oversized(x);
    }
    if (x->carrier) {
        end_carried(x);
        return;
    }
    if (x->length_at) {
        patch_length(x);
    }
    if (!x->length_at || x->framing.method == HTTP_HEAD) {
        x->out->n = x->body_at;
    }
    if (!x->conn) {
        net_loop_give_out(r->client->loop, x->out);
    }
    x->out = NULL;
    http_answered(x);
}
