#include "tool/channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECT_MS = 5000, ANSWER_S = 60, PIECE_BYTES = 16384 };

/* ---- TCP ---- */

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

/* ---- TLS ---- */

static const char *openssl_reason(void) {
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason ? reason : "unreadable";
}

/* Trusts the file's certificates, or the system's. */
static bool trust(SSL_CTX *context, const char *ca, char *why, size_t why_n) {
    if (ca && SSL_CTX_load_verify_file(context, ca) != 1) {
        snprintf(why, why_n, "--ca %s cannot be used: %s", ca, access(ca, R_OK) != 0 ? strerror(errno) : openssl_reason());
        return false;
    }
    if (!ca) {
        SSL_CTX_set_default_verify_paths(context);
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    return true;
}

/* The certificate must be for this name, or address. */
static bool expect_host(SSL *ssl, const char *host) {
    struct in6_addr address;
    char name[256]; /* OpenSSL's macro needs a non-const pointer */
    snprintf(name, sizeof name, "%s", host);
    bool is_address = inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
    return is_address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1
                      : SSL_set_tlsext_host_name(ssl, name) == 1 && SSL_set1_host(ssl, host) == 1;
}

static void tell_handshake(const channel *c, const remote *r, char *why, size_t why_n) {
    long verified = SSL_get_verify_result(c->ssl);
    if (verified != X509_V_OK) {
        snprintf(
            why, why_n,
            "the certificate of %s:%s is not trusted (%s). --ca FILE names one to trust: of a server with its own, the tls-cert.pem in "
            "its data folder",
            r->host, r->port, X509_verify_cert_error_string(verified));
    } else {
        snprintf(why, why_n, "%s:%s does not speak https (%s)", r->host, r->port, openssl_reason());
    }
}

static bool shake_hands(channel *c, const remote *r, char *why, size_t why_n) {
    ERR_clear_error();
    signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
    c->context = SSL_CTX_new(TLS_client_method());
    if (!c->context || !trust(c->context, r->ca, why, why_n)) {
        return false;
    }
    c->ssl = SSL_new(c->context);
    if (c->ssl && SSL_set_fd(c->ssl, c->fd) == 1 && expect_host(c->ssl, r->host) && SSL_connect(c->ssl) == 1) {
        return true;
    }
    tell_handshake(c, r, why, why_n);
    return false;
}

/* ---- both ---- */

bool channel_open(channel *c, const remote *r, char *why, size_t why_n) {
    *c = (channel){.fd = connect_any(r, why, why_n)};
    if (c->fd < 0) {
        return false;
    }
    if (r->tls && !shake_hands(c, r, why, why_n)) {
        channel_close(c);
        return false;
    }
    return true;
}

static ssize_t send_some(channel *c, slice bytes) {
    size_t sent = 0;
    if (c->ssl) {
        return SSL_write_ex(c->ssl, bytes.p, bytes.n, &sent) == 1 ? (ssize_t)sent : -1;
    }
    return send(c->fd, bytes.p, bytes.n, MSG_NOSIGNAL);
}

bool channel_send(channel *c, slice bytes) {
    while (bytes.n) {
        ssize_t n = send_some(c, bytes);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        bytes = slice_skip(bytes, (size_t)n);
    }
    return true;
}

/* 0: the server has closed. */
static ssize_t receive_some(channel *c, char *into, size_t n) {
    size_t got = 0;
    if (!c->ssl) {
        return recv(c->fd, into, n, 0);
    }
    if (SSL_read_ex(c->ssl, into, n, &got) == 1) {
        return (ssize_t)got;
    }
    return SSL_get_error(c->ssl, 0) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

bool channel_receive(channel *c, buf *in) {
    char bytes[PIECE_BYTES];
    for (;;) {
        ssize_t n = receive_some(c, bytes, sizeof bytes);
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

void channel_close(channel *c) {
    SSL_free(c->ssl);
    SSL_CTX_free(c->context);
    close(c->fd);
}
