/* Lanes: easy handles with their connections, kept for the next request. */
#include <stdlib.h>

#include "base/memory.h"
#include "client/client_int.h"

static size_t on_body(char *p, size_t size, size_t n, void *context) {
    lane *l = context;
    buf_add(&l->body, p, size * n);
    if (!buf_ok(&l->body) || l->body.n > l->exchange->client->response_bytes) {
        l->limit = "The response is larger than the client's limit (response_bytes).";
        return 0;
    }
    return size * n;
}

/* A line of the header: "Name: value\r\n", a status line, or the empty one. A status line begins anew (after "100 Continue"); what came
 * before it counts as well, or answers "100 Continue" would come for ever. */
static size_t on_field(char *p, size_t size, size_t n, void *context) {
    lane *l = context;
    slice line = slice_trim(slice_of(p, size * n));
    l->header_n += size * n;
    const char *colon = line.n ? memchr(line.p, ':', line.n) : NULL;
    if (slice_starts(line, SLICE_LIT("HTTP/"))) {
        buf_clear(&l->fields);
    } else if (colon && !memchr(line.p, 0, line.n)) {
        size_t at = l->fields.n;
        buf_add_slice(&l->fields, slice_of(line.p, (size_t)(colon - line.p)));
        for (char *c = l->fields.p + at; c < l->fields.p + l->fields.n; c++) {
            *c = *c >= 'A' && *c <= 'Z' ? (char)(*c | 0x20) : *c;
        }
        buf_add_byte(&l->fields, 0);
        buf_add_slice(&l->fields, slice_trim(slice_of(colon + 1, line.n - (size_t)(colon + 1 - line.p))));
        buf_add_byte(&l->fields, 0);
    }
    if (!buf_ok(&l->fields) || l->header_n > CLIENT_HEADER_BYTES_MAX) {
        l->limit = CLIENT_HEADER_TOO_LONG;
        return 0;
    }
    return size * n;
}

static void set_up(const tesela_client *c, lane *l) {
    CURL *e = l->easy;
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_USERAGENT, c->agent);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, c->connect_timeout_ms);
    curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, c->request_timeout_ms);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, l);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_field);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, l);
    curl_easy_setopt(e, CURLOPT_PRIVATE, l);
    if (c->ca_file) {
        curl_easy_setopt(e, CURLOPT_CAINFO, c->ca_file);
    }
}

lane *client__lane_take(tesela_client *c) {
    pthread_mutex_lock(&c->pool_lock);
    lane *l = c->lanes;
    if (l) {
        c->lanes = l->next;
        c->lanes_n--;
    }
    pthread_mutex_unlock(&c->pool_lock);
    if (!l) {
        l = mem_zero(sizeof *l);
        l->easy = curl_easy_init();
        if (!l->easy) {
            abort(); /* out of memory: see tesela/base.h */
        }
        l->body = buf_init(c->response_bytes + 1); /* with the zero byte after it */
        l->fields = buf_init(CLIENT_HEADER_BYTES_MAX);
        set_up(c, l);
    }
    l->limit = NULL;
    return l;
}

static void lane_free(lane *l) {
    curl_easy_cleanup(l->easy);
    buf_free(&l->body);
    buf_free(&l->fields);
    free(l);
}

void client__lane_give(tesela_client *c, lane *l) {
    l->exchange = NULL;
    if (l->body.cap > 1 << 20) {
        buf_free(&l->body);
    }
    pthread_mutex_lock(&c->pool_lock);
    bool keep = c->lanes_n < c->lanes_max;
    if (keep) {
        l->next = c->lanes;
        c->lanes = l;
        c->lanes_n++;
    }
    pthread_mutex_unlock(&c->pool_lock);
    if (!keep) {
        lane_free(l);
    }
}

CURLM *client__multi_take(tesela_client *c) {
    CURLM *m = NULL;
    pthread_mutex_lock(&c->pool_lock);
    if (c->multis_n) {
        m = c->multis[--c->multis_n];
    }
    pthread_mutex_unlock(&c->pool_lock);
    if (!m && !(m = curl_multi_init())) {
        abort();
    }
    curl_multi_setopt(m, CURLMOPT_MAXCONNECTS, (long)c->lanes_max);
    return m;
}

void client__multi_give(tesela_client *c, CURLM *m) {
    pthread_mutex_lock(&c->pool_lock);
    bool keep = c->multis_n < sizeof c->multis / sizeof *c->multis;
    if (keep) {
        c->multis[c->multis_n++] = m;
    }
    pthread_mutex_unlock(&c->pool_lock);
    if (!keep) {
        curl_multi_cleanup(m);
    }
}

void client__lanes_free(tesela_client *c) {
    for (lane *l = c->lanes, *next; l; l = next) {
        next = l->next;
        lane_free(l);
    }
    for (unsigned i = 0; i < c->multis_n; i++) {
        curl_multi_cleanup(c->multis[i]);
    }
}
