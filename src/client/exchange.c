/* One logical request: built once, signed and sent for each attempt. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/date.h"
#include "base/memory.h"
#include "client/client_int.h"
#include "client/json.h"
#include "client/routing.h"
#include "client/sign.h"

enum { FIELDS_BYTES_MAX = 128 * 1024 };

int64_t client__now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void client__sleep_us(int64_t us) {
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    while (us > 0 && nanosleep(&t, &t) != 0) {
    }
}

/* splitmix64's last step: every bit of the result depends on every bit of x. */
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* A random UUID in form. It only names the request in logs, so it is made of the client's random numbers and a count. */
static void make_uuid(tesela_client *c, char text[40]) {
    static const char digits[] = "0123456789abcdef";
    uint64_t n = atomic_fetch_add_explicit(&c->activities, 1, memory_order_relaxed) * 0x9E3779B97F4A7C15u;
    uint64_t halves[2] = {mix(c->activity_seed[0] + n), mix(c->activity_seed[1] ^ n)};
    halves[0] = (halves[0] & ~(uint64_t)0xF000) | 0x4000;
    halves[1] = (halves[1] & ~((uint64_t)3 << 62)) | (uint64_t)1 << 63;
    char *p = text;
    for (unsigned i = 0; i < 32; i++) {
        if (i == 8 || i == 12 || i == 16 || i == 20) {
            *p++ = '-';
        }
        *p++ = digits[halves[i / 16] >> (60 - 4 * (i % 16)) & 15];
    }
    *p = 0;
}

/* ---- building ---- */

exchange *client__exchange_new(tesela_client *c, const char *verb, const char *type, bool read) {
    exchange *x = mem_zero(sizeof *x);
    x->client = c;
    x->verb = verb;
    x->type = type;
    x->read = read;
    x->path = buf_init(CLIENT_PATH_BYTES_MAX);
    x->link = buf_init(CLIENT_PATH_BYTES_MAX);
    x->fields = buf_init(FIELDS_BYTES_MAX);
    x->body = buf_init(CLIENT_REQUEST_BYTES_MAX);
    make_uuid(c, x->activity_id);
    return x;
}

void client__exchange_free(exchange *x) {
    if (x) {
        if (x->lane) {
            client__lane_give(x->client, x->lane);
        }
        buf_free(&x->path);
        buf_free(&x->link);
        buf_free(&x->fields);
        buf_free(&x->body);
        tesela_response_free(x->response);
        free(x);
    }
}

void client__exchange_segment(exchange *x, slice name) {
    buf_add_byte(&x->path, '/');
    client__percent(&x->path, name);
    if (x->link.n) {
        buf_add_byte(&x->link, '/');
    }
    buf_add_slice(&x->link, name);
}

void client__exchange_field(exchange *x, const char *name, slice value) {
    if (value.n && !memchr(value.p, '\n', value.n) && !memchr(value.p, '\r', value.n) && !memchr(value.p, 0, value.n)) {
        buf_add_slice(&x->fields, slice_str(name));
        buf_add_lit(&x->fields, ": ");
        buf_add_slice(&x->fields, value);
        buf_add_byte(&x->fields, 0);
    }
}

void client__exchange_text(exchange *x, const char *name, const char *text) {
    if (text) {
        client__exchange_field(x, name, slice_str(text));
    }
}

void client__exchange_number(exchange *x, const char *name, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    client__exchange_field(x, name, slice_str(text));
}

/* ---- an attempt ---- */

/* Fields that every request has; `into` also holds their texts until the attempt ends. */
static void add_common(exchange *x, buf *into) {
    const tesela_client *c = x->client;
    char date[DATE_TEXT_BYTES];
    date_http((int64_t)time(NULL), date);
    buf_add_lit(into, "x-ms-date: ");
    buf_add(into, date, strlen(date) + 1);
    buf_add_lit(into, "authorization: ");
    if (c->resource_token) {
        client__percent(into, slice_str(c->resource_token));
    } else {
        client__sign(c->key, x->verb, x->type, buf_view(&x->link), slice_str(date), into);
    }
    buf_add_byte(into, 0);
    buf_add_lit(into, "x-ms-activity-id: ");
    buf_add(into, x->activity_id, strlen(x->activity_id) + 1);
    if (x->owner.n && !x->own_session && !(x->plain_write && c->one_writer)) {
        size_t before = into->n;
        buf_add_lit(into, "x-ms-session-token: ");
        size_t empty = into->n;
        client__sessions_write(x->client->sessions, x->owner, into);
        if (into->n == empty || !buf_ok(into)) { /* none, or too long: the read may be of before its own writes */
            into->n = before;
            into->overflow = false;
        } else {
            buf_add_byte(into, 0);
        }
    }
}

/* libcurl takes a linked list of texts; these are made of the lane's array, so nothing is copied. */
static struct curl_slist *list_fields(lane *l, char *const *texts, size_t n) {
    for (size_t i = 0; i < n; i++) {
        l->list[i] = (struct curl_slist){.data = texts[i], .next = i + 1 < n ? &l->list[i + 1] : NULL};
    }
    return l->list;
}

static size_t collect(buf *fields, char **texts, size_t n) {
    for (size_t at = 0; at < fields->n && n < CLIENT_FIELDS_MAX; at += strlen(fields->p + at) + 1) {
        texts[n++] = fields->p + at;
    }
    return n;
}

static char constant_fields[][48] = {
    "Accept: application/json",
    "x-ms-version: 2020-07-15",
    "x-ms-cosmos-sdk-supportedcapabilities: 1",
    "Cache-Control: no-cache",
    "Expect:",
};

static void set_body(exchange *x, CURL *e) {
    slice body = x->body_view.n ? x->body_view : buf_view(&x->body);
    curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, NULL);
    if (x->has_body) {
        curl_easy_setopt(e, CURLOPT_POST, 1L);
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, body.n ? body.p : "");
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n);
    } else {
        curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
    }
    if (strcmp(x->verb, x->has_body ? "POST" : "GET") != 0) {
        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, x->verb);
    }
}

void client__exchange_prepare(exchange *x) {
    tesela_client *c = x->client;
    lane *l = x->lane ? x->lane : (x->lane = client__lane_take(c));
    char *texts[CLIENT_FIELDS_MAX];
    size_t n = 0;
    l->exchange = x;
    l->limit = NULL;
    buf_clear(&l->body);
    buf_clear(&l->fields);
    l->header_n = 0;
    x->endpoint = x->no_account ? c->endpoint : client__endpoint(c, x->read, x->endpoint_n);
    x->attempts++;

    size_t mark = x->fields.n; /* this attempt's fields follow; client__exchange_judge removes them */
    add_common(x, &x->fields);
    x->own_fields_n = mark;
    for (size_t i = 0; i < sizeof constant_fields / sizeof *constant_fields; i++) {
        texts[n++] = constant_fields[i];
    }
    n = collect(&x->fields, texts, n);
    buf url = buf_init(CLIENT_PATH_BYTES_MAX * 2);
    buf_add_slice(&url, slice_str(x->endpoint));
    buf_add_slice(&url, buf_view(&x->path));
    buf_add_byte(&url, 0);
    curl_easy_setopt(l->easy, CURLOPT_URL, url.p);
    curl_easy_setopt(l->easy, CURLOPT_HTTPHEADER, list_fields(l, texts, n));
    set_body(x, l->easy);
    buf_free(&url);
}

/* ---- its end ---- */

static retry_broken broken_by(const exchange *x, CURLcode how) {
    switch (how) {
    case CURLE_OK:
        return RETRY_ANSWERED;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        return RETRY_UNSENT;
    case CURLE_OPERATION_TIMEDOUT: {
        curl_off_t connected = 0;
        curl_easy_getinfo(x->lane->easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
        return connected == 0 ? RETRY_UNSENT : RETRY_TIMEOUT;
    }
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
        return RETRY_BROKEN;
    default:
        return RETRY_NEVER;
    }
}

static tesela_status status_of_curl(const exchange *x, CURLcode how) {
    switch (how) {
    case CURLE_OPERATION_TIMEDOUT:
        return TESELA_TIMEOUT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
        return TESELA_TLS;
    case CURLE_WRITE_ERROR:
        return x->lane->limit ? TESELA_LIMIT : TESELA_BAD_RESPONSE;
    case CURLE_OUT_OF_MEMORY: /* what libcurl calls a line of the header that is longer than its own limit */
        return TESELA_LIMIT;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_BAD_CONTENT_ENCODING:
        return TESELA_BAD_RESPONSE;
    case CURLE_URL_MALFORMAT:
        return TESELA_BAD_ARGUMENT;
    default:
        return TESELA_NO_CONNECTION;
    }
}

static double number_of(slice text) {
    char copy[64];
    size_t n = text.n < sizeof copy - 1 ? text.n : sizeof copy - 1;
    memcpy(copy, text.n ? text.p : "", n);
    copy[n] = 0;
    return strtod(copy, NULL);
}

static uint32_t whole_of(slice text) {
    double value = number_of(text);
    return value > 0 && value < 4e9 ? (uint32_t)value : 0;
}

static void take_response(exchange *x) {
    lane *l = x->lane;
    tesela_response *r = mem_zero(sizeof *r);
    long status = 0;
    curl_easy_getinfo(l->easy, CURLINFO_RESPONSE_CODE, &status);
    r->status = (int)status;
    r->fields_n = l->fields.n;
    r->fields = mem_text(l->fields.p ? l->fields.p : "", l->fields.n);
    r->body_n = l->body.n;
    if (l->body.n > 65536) { /* a large one is handed over, not copied */
        buf_add_byte(&l->body, 0);
        r->body = buf_take(&l->body, &(size_t){0});
        l->body = buf_init(x->client->response_bytes + 1);
    } else {
        r->body = mem_text(l->body.p ? l->body.p : "", l->body.n);
    }
    r->substatus = (int)whole_of(client__response_field(r, "x-ms-substatus"));
    r->retry_after_ms = whole_of(client__response_field(r, "x-ms-retry-after-ms"));
    x->charge += number_of(client__response_field(r, "x-ms-request-charge"));
    r->charge = x->charge;
    r->retries = x->attempts - 1;
    slice id = client__response_field(r, "x-ms-activity-id");
    snprintf(r->activity_id, sizeof r->activity_id, "%.*s", (int)id.n, id.n ? id.p : "");
    tesela_response_free(x->response);
    x->response = r;
    slice token = client__response_field(r, "x-ms-session-token");
    if (x->owner.n && token.n && (r->status < 400 || r->status == 404 || r->status == 409 || r->status == 412) && r->substatus != 1002) {
        client__sessions_merge(x->client->sessions, x->owner, client__response_field(r, "x-ms-content-path"), token);
    }
}

static void describe_curl(exchange *x, CURLcode how) {
    const char *remedy = how == CURLE_PEER_FAILED_VERIFICATION ? " Give its certificate as ca_file." : "";
    const char *what = x->lane->limit ? x->lane->limit : how == CURLE_OUT_OF_MEMORY ? CLIENT_HEADER_TOO_LONG : curl_easy_strerror(how);
    snprintf(x->why, sizeof x->why, "%s: %s%s%s", x->endpoint, what, what[strlen(what) - 1] == '.' ? "" : ".", remedy);
}

static void refresh(exchange *x, const retry_answer *next) {
    if (next->refresh_account && !x->no_account) { /* the request that reads the account holds its lock */
        client__account_refresh(x->client);
    }
    if (next->refresh_ranges && x->container) {
        client__routing_stale(x->container);
    }
    if (next->next_endpoint) {
        x->endpoint_n++;
    }
}

bool client__exchange_judge(exchange *x, CURLcode how) {
    x->fields.n = x->own_fields_n;
    x->fields.overflow = false;
    retry_fact fact = {.broken = broken_by(x, how), .read = x->read, .routed = x->routed};
    if (how == CURLE_OK) {
        take_response(x);
        x->status = client__status_of_http(x->response->status);
        fact.status = x->response->status;
        fact.substatus = x->response->substatus;
        fact.retry_after_ms = x->response->retry_after_ms;
    } else {
        x->status = status_of_curl(x, how);
        describe_curl(x, how);
        tesela_response_free(x->response);
        x->response = NULL;
    }
    if (x->status == TESELA_OK || x->status == TESELA_NOT_MODIFIED) {
        return true;
    }
    retry_answer next = client__retry_decide(&x->retries, &x->client->limits, &fact);
    refresh(x, &next);
    x->not_before_us = client__now_us() + (int64_t)next.wait_ms * 1000;
    return !next.again;
}

/* The message of the service's error JSON, or the whole body. */
static void add_message(buf *out, slice body) {
    if (!json_text(json_member(body, "message"), out)) {
        buf_add_slice(out, body);
    }
    if (!out->n) {
        buf_add_lit(out, "The server gave no reason.");
    }
}

tesela_status client__exchange_error(const exchange *x, tesela_error *error) {
    const tesela_response *r = x->response;
    if (!error || x->status == TESELA_OK || x->status == TESELA_NOT_MODIFIED) {
        return x->status;
    }
    if (!r) {
        client__fail(error, x->status, "%s", x->why);
        error->charge = x->charge;
        return x->status;
    }
    buf message = buf_init(CLIENT_REQUEST_BYTES_MAX);
    add_message(&message, client__response_body(r));
    client__fail(error, x->status, "%.*s", (int)(message.n > sizeof error->message ? sizeof error->message : message.n), message.p);
    buf_free(&message);
    error->http_status = r->status;
    error->http_substatus = r->substatus;
    error->retry_after_ms = r->retry_after_ms;
    error->charge = x->charge;
    snprintf(error->activity_id, sizeof error->activity_id, "%s", r->activity_id);
    return x->status;
}

/* ---- a run on this thread alone ---- */

tesela_status client__exchange_run(exchange *x, tesela_error *error) {
    if (!buf_ok(&x->path) || !buf_ok(&x->fields) || !buf_ok(&x->body)) {
        return x->status = client__fail(error, TESELA_TOO_LARGE, "The request is too large: its name, options or body exceed the limits.");
    }
    for (;;) {
        client__exchange_prepare(x);
        if (client__exchange_judge(x, curl_easy_perform(x->lane->easy))) {
            break;
        }
        client__sleep_us(x->not_before_us - client__now_us());
    }
    client__lane_give(x->client, x->lane);
    x->lane = NULL;
    return client__exchange_error(x, error);
}

tesela_status client__exchange_finish(exchange *x, tesela_response **response_out, tesela_error *error) {
    tesela_status status = client__exchange_run(x, error);
    if (response_out) {
        *response_out = status == TESELA_OK || status == TESELA_NOT_MODIFIED ? x->response : NULL;
        if (*response_out) {
            x->response = NULL;
        }
    }
    client__exchange_free(x);
    return status;
}
