#include "tool/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "access/ring.h"
#include "doc/json.h"
#include "doc/path.h"
#include "tool/text.h"

enum { CONNECT_MS = 5000, ANSWER_S = 60, ANSWER_BYTES_MAX = 64 * 1024 * 1024 };

/* ---- where ---- */

static bool refuse_endpoint(const char *endpoint, const char *why) {
    fprintf(stderr, "tesela: --endpoint %s: %s\n", endpoint, why);
    return false;
}

/* http://host:port/, with or without the scheme, the port and the slash; [::1] in brackets. */
static bool read_endpoint(remote *r, const char *endpoint) {
    slice rest = slice_str(endpoint);
    if (slice_starts(rest, SLICE_LIT("https://"))) {
        return refuse_endpoint(endpoint, "the commands speak plain http; the server answers it on the same port");
    }
    rest = slice_starts(rest, SLICE_LIT("http://")) ? slice_skip(rest, 7) : rest;
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
    *r = (remote){.key = given->key};
    if (!good_key) {
        fprintf(stderr, "tesela: --key is not a base64 text.\n");
    }
    return good_key && read_endpoint(r, given->endpoint);
}

/* ---- connecting ---- */

static int connect_one(const struct addrinfo *address) {
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), failed = 0;
    socklen_t n = sizeof failed;
    struct timeval limit = {.tv_sec = ANSWER_S};
    if (fd < 0) {
        return -1;
    }
    int rc = connect(fd, address->ai_addr, address->ai_addrlen);
    if (rc != 0 && errno == EINPROGRESS) {
        struct pollfd writable = {.fd = fd, .events = POLLOUT};
        rc = poll(&writable, 1, CONNECT_MS) == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &n) == 0 && !failed ? 0 : -1;
        errno = failed ? failed : rc ? ETIMEDOUT : 0;
    }
    if (rc != 0) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return fd;
}

static int connect_any(const remote *r, char *why, size_t why_n) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int fd = -1, rc = getaddrinfo(r->host, r->port, &hints, &found);
    if (rc != 0) {
        snprintf(why, why_n, "%s is not known: %s", r->host, gai_strerror(rc));
        return -1;
    }
    for (struct addrinfo *each = found; each && fd < 0; each = each->ai_next) {
        fd = connect_one(each);
    }
    if (fd < 0) {
        snprintf(why, why_n, "no server at %s:%s (%s). Is 'tesela serve' running? --endpoint says where", r->host, r->port,
                 strerror(errno));
    }
    freeaddrinfo(found);
    return fd;
}

/* ---- asking ---- */

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

static bool send_request(int fd, const remote *r, const char *verb, slice path, slice body) {
    bool v6 = strchr(r->host, ':') != NULL;
    buf out = buf_init(BUF_NO_LIMIT);
    buf_addf(&out, "%s %.*s HTTP/1.1\r\nHost: %s%s%s:%s\r\nConnection: close\r\n", verb, (int)path.n, path.p, v6 ? "[" : "", r->host,
             v6 ? "]" : "", r->port);
    if (r->key) {
        add_signature(&out, r, verb);
    }
    if (body.n) {
        buf_addf(&out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", body.n);
    }
    buf_add_lit(&out, "\r\n");
    buf_add_slice(&out, body);
    size_t sent = 0;
    while (sent < out.n) {
        ssize_t n = send(fd, out.p + sent, out.n - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        sent += (size_t)n;
    }
    bool all = sent == out.n;
    buf_free(&out);
    return all;
}

static bool receive(int fd, buf *in) {
    char bytes[16384];
    for (;;) {
        ssize_t n = recv(fd, bytes, sizeof bytes, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n == 0 && buf_ok(in);
        }
        buf_add(in, bytes, (size_t)n);
        if (!buf_ok(in)) {
            return false;
        }
    }
}

/* The server sends the whole of it with a length; what is in between is not looked at. */
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
    buf in = buf_init(ANSWER_BYTES_MAX);
    *answer_out = (remote_answer){.body = buf_init(BUF_NO_LIMIT), .bson = buf_init((size_t)4 * ANSWER_BYTES_MAX)};
    int fd = connect_any(r, why, why_n);
    if (fd < 0) {
        return false;
    }
    bool good = send_request(fd, r, verb, path, body) && receive(fd, &in) && read_answer(&in, answer_out);
    if (!good) {
        snprintf(why, why_n, "what is at %s:%s gave no answer that a tesela server would give", r->host, r->port);
    }
    close(fd);
    buf_free(&in);
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

bool remote_command(const remote *r, const char *verb, slice path, slice body, remote_answer *answer_out) {
    char why[512];
    if (!remote_ask(r, verb, path, body, answer_out, why, sizeof why)) {
        fprintf(stderr, "tesela: %s.\n", why);
        return false;
    }
    if (answer_out->status < 200 || answer_out->status > 299) {
        tell_failure(answer_out);
        return false;
    }
    return true;
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
