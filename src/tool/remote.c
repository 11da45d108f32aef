#include "tool/remote.h"

#include <stdio.h>
#include <time.h>

#include "access/ring.h"
#include "doc/json.h"
#include "doc/path.h"
#include "tool/channel.h"
#include "tool/terminal.h"

enum { ANSWER_BYTES_MAX = 64 * 1024 * 1024 };

/* ---- endpoint ---- */

static bool refuse_endpoint(const char *endpoint, const char *why) {
    fprintf(stderr, "tesela: --endpoint %s: %s\n", endpoint, why);
    return false;
}

/* Reads https:// or http://; the default is http. Returns the rest. */
static slice read_scheme(remote *r, slice endpoint) {
    r->tls = slice_starts(endpoint, SLICE_LIT("https://"));
    return r->tls ? slice_skip(endpoint, 8) : slice_starts(endpoint, SLICE_LIT("http://")) ? slice_skip(endpoint, 7) : endpoint;
}

/* http://host:port/, with or without the scheme, the port and the slash; [::1] in brackets. */
static bool read_endpoint(remote *r, const char *endpoint) {
    slice rest = read_scheme(r, slice_str(endpoint));
    if (rest.n && rest.p[rest.n - 1] == '/') {
        rest.n--;
    }
    bool bracket = rest.n && rest.p[0] == '[';
    const char *end = bracket ? memchr(rest.p, ']', rest.n) : memchr(rest.p, ':', rest.n);
    slice host = !end ? rest : bracket ? slice_of(rest.p + 1, (size_t)(end - rest.p) - 1) : slice_of(rest.p, (size_t)(end - rest.p));
    slice port = end ? slice_skip(rest, (size_t)(end - rest.p) + bracket) : SLICE_EMPTY;
    uint64_t number = 8081;
    bool good = host.n && host.n < sizeof r->host && (!bracket || end) && !memchr(host.p, '/', host.n);
    good = good && (port.n == 0 || (port.p[0] == ':' && slice_to_u64(slice_skip(port, 1), &number) && number > 0 && number < 65536));
    if (!good) {
        return refuse_endpoint(endpoint, "it must be like " REMOTE_ENDPOINT);
    }
    snprintf(r->host, sizeof r->host, "%.*s", (int)host.n, host.p);
    snprintf(r->port, sizeof r->port, "%u", (unsigned)number);
    return true;
}

bool remote_open(remote *r, const remote_given *given) {
    access_ring *ring = access_ring_new();
    bool good_key = !given->key || access_ring_set(ring, ACCESS_KEY_PRIMARY, slice_str(given->key));
    access_ring_free(ring);
    *r = (remote){.key = given->key, .ca = given->ca};
    if (!good_key) {
        fprintf(stderr, "tesela: --key is not a base64 text.\n");
    }
    return good_key && read_endpoint(r, given->endpoint);
}

/* ---- requests ---- */

static void add_signature(buf *out, const remote *r, const char *verb) {
    char date[64];
    time_t now = time(NULL);
    struct tm utc;
    buf text = buf_init(BUF_NO_LIMIT), signature = buf_init(BUF_NO_LIMIT);
    access_ring *ring = access_ring_new();
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &utc);
    buf_addf(&text, "%s\n\n\n%s\n\n", verb, date);
    for (size_t i = 0; i < text.n; i++) {
        text.p[i] = (char)(text.p[i] >= 'A' && text.p[i] <= 'Z' ? text.p[i] | 0x20 : text.p[i]);
    }
    if (access_ring_set(ring, ACCESS_KEY_PRIMARY, slice_str(r->key)) &&
        access_ring_sign(ring, ACCESS_KEY_PRIMARY, buf_view(&text), &signature)) {
        buf_addf(out, "x-ms-date: %s\r\nAuthorization: type=master&ver=1.0&sig=%.*s\r\n", date, (int)signature.n, signature.p);
    }
    access_ring_free(ring);
    buf_free(&text);
    buf_free(&signature);
}

static void write_request(buf *out, const remote *r, const char *verb, slice path, slice body) {
    bool v6 = strchr(r->host, ':') != NULL;
    buf_addf(out, "%s %.*s HTTP/1.1\r\nHost: %s%s%s:%s\r\nConnection: close\r\n", verb, (int)path.n, path.p, v6 ? "[" : "", r->host,
             v6 ? "]" : "", r->port);
    if (r->key) {
        add_signature(out, r, verb);
    }
    if (body.n) {
        buf_addf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", body.n);
    }
    buf_add_lit(out, "\r\n");
    buf_add_slice(out, body);
}

/* Takes the body after the header fields, which are ignored: the server closes the connection after it. */
static bool read_answer(const buf *in, remote_answer *a) {
    static const char start[] = "HTTP/1.1 ";
    uint64_t status;
    const char *end = in->n ? memmem(in->p, in->n, "\r\n\r\n", 4) : NULL;
    if (!end || in->n < sizeof start + 2 || memcmp(in->p, start, sizeof start - 1) != 0 ||
        !slice_to_u64(slice_of(in->p + sizeof start - 1, 3), &status)) {
        return false;
    }
    json_root root;
    a->status = (unsigned)status;
    buf_add_slice(&a->body, slice_skip(buf_view(in), (size_t)(end + 4 - in->p)));
    if (json_to_bson(buf_view(&a->body), NULL, &a->bson, &root, NULL) != OK || root != JSON_OBJECT) {
        buf_clear(&a->bson);
    }
    return true;
}

bool remote_ask(const remote *r, const char *verb, slice path, slice body, remote_answer *answer_out, char *why, size_t why_n) {
    buf in = buf_init(ANSWER_BYTES_MAX), out = buf_init(BUF_NO_LIMIT);
    *answer_out = (remote_answer){.body = buf_init(BUF_NO_LIMIT), .bson = buf_init((size_t)4 * ANSWER_BYTES_MAX)};
    channel c;
    if (!channel_open(&c, r, why, why_n)) {
        return false;
    }
    write_request(&out, r, verb, path, body);
    bool good = channel_send(&c, buf_view(&out)) && channel_receive(&c, &in) && read_answer(&in, answer_out);
    if (!good) {
        snprintf(why, why_n, "what is at %s:%s gave no answer that a tesela server would give", r->host, r->port);
    }
    channel_close(&c);
    buf_free(&in);
    buf_free(&out);
    return good;
}

void remote_answer_free(remote_answer *a) {
    buf_free(&a->body);
    buf_free(&a->bson);
}

/* ---- commands ---- */

static void tell_failure(const remote_answer *a) {
    bson_iter_t it;
    slice message = a->bson.n && doc_find_key(buf_view(&a->bson), SLICE_LIT("message"), &it) && BSON_ITER_HOLDS_UTF8(&it)
                        ? doc_text(&it)
                        : SLICE_LIT("the server gave no reason");
    buf shown = buf_init(BUF_NO_LIMIT);
    text_add(&shown, message, SIZE_MAX);
    fprintf(stderr, "tesela: %.*s (%u)\n", (int)shown.n, shown.p, a->status);
    buf_free(&shown);
    if (a->status == 401) {
        fprintf(stderr, "tesela: --key, or TESELA_KEY, is one of the server's keys.\n");
    }
}

bool remote_succeeded(bool answered, const remote_answer *a, const char *why) {
    bool good = answered && a->status >= 200 && a->status <= 299;
    if (!answered) {
        fprintf(stderr, "tesela: %s.\n", why);
    } else if (!good) {
        tell_failure(a);
    }
    return good;
}

bool remote_command(const remote *r, const char *verb, slice path, slice body, remote_answer *answer_out) {
    char why[REMOTE_WHY_BYTES] = "";
    return remote_succeeded(remote_ask(r, verb, path, body, answer_out, why, sizeof why), answer_out, why);
}

bool remote_names(const char *text, bool database_alone, slice *database_out, slice *container_out) {
    const char *slash = strchr(text, '/');
    *database_out = slash ? slice_of(text, (size_t)(slash - text)) : slice_str(text);
    *container_out = slash ? slice_str(slash + 1) : SLICE_EMPTY;
    bool good = database_out->n && (container_out->n || (database_alone && !slash)) && !(slash && strchr(slash + 1, '/'));
    if (!good) {
        fprintf(stderr, "tesela: '%s' is not %sDATABASE/CONTAINER.\n", text, database_alone ? "DATABASE or " : "");
    }
    return good;
}

void remote_add_param(buf *path, const char *name, slice value) {
    if (value.n == 0) {
        return;
    }
    buf_addf(path, "%c%s=", memchr(path->p, '?', path->n) ? '&' : '?', name);
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
        if (plain) {
            buf_add_byte(path, c);
        } else {
            buf_add_byte(path, '%');
            buf_add_hex(path, slice_of(&value.p[i], 1));
        }
    }
}
