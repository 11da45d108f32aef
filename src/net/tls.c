#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "net/tickets.h"

struct net_tls_session {
    SSL *ssl;
    net_loop *loop;
    const char *alpn;
    const char *in; /* input that OpenSSL has not read yet */
    size_t in_n;
    bool ready;
};

/* ---- between OpenSSL and our buffers ---- */

static int bio_read(BIO *bio, char *into, size_t n, size_t *n_out) {
    net_tls_session *s = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    *n_out = n < s->in_n ? n : s->in_n;
    if (*n_out == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(into, s->in, *n_out);
    s->in += *n_out;
    s->in_n -= *n_out;
    return 1;
}

static int bio_write(BIO *bio, const char *p, size_t n, size_t *n_out) {
    net_tls_session *s = BIO_get_data(bio);
    buf_add(&s->loop->cipher, p, n);
    *n_out = n;
    return 1;
}

static long bio_control(BIO *bio, int command, long number, void *pointer) {
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *bio) {
    BIO_set_init(bio, 1);
    return 1;
}

static BIO_METHOD *bio_method;

static void make_bio_method(void) {
    bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tesela connection");
    BIO_meth_set_read_ex(bio_method, bio_read);
    BIO_meth_set_write_ex(bio_method, bio_write);
    BIO_meth_set_ctrl(bio_method, bio_control);
    BIO_meth_set_create(bio_method, bio_create);
}

/* ---- TLS or another protocol ---- */

enum {
    RECORD_BYTES_MAX = 16384 + 256,
    HELLO_BYTES_MIN = 41,          /* version, random, no session ID, one cipher, one compression method */
    HELLO_BYTES_MAX = 0x10000 * 2, /* OpenSSL accepts no longer one */
};

/*  0     1..2        3..4      5           6..8      9..10
 *  16    03 00..04   length    01          length    03 00..03
 *  type  version     record    ClientHello message   version */
static bool hello_is_possible(const unsigned char *p, size_t i) {
    switch (i) {
    case 0:
        return p[0] == 0x16;
    case 1:
    case 9:
        return p[i] == 3;
    case 2:
    case 10:
        return p[i] <= 4;
    case 4: {
        unsigned n = (unsigned)p[3] << 8 | p[4];
        return n >= NET_TLS_HELLO_BYTES - 5 && n <= RECORD_BYTES_MAX;
    }
    case 5:
        return p[5] == 1;
    case 8: {
        unsigned n = (unsigned)p[6] << 16 | (unsigned)p[7] << 8 | p[8];
        return n >= HELLO_BYTES_MIN && n <= HELLO_BYTES_MAX;
    }
    default:
        return true;
    }
}

net_tls_guess net_tls_guess_of(const char *p, size_t n) {
    for (size_t i = 0; i < NET_TLS_HELLO_BYTES; i++) {
        if (i == n) {
            return NET_TLS_UNSURE;
        }
        if (!hello_is_possible((const unsigned char *)p, i)) {
            return NET_TLS_NO;
        }
    }
    return NET_TLS_YES;
}

/* ---- sessions ---- */

net_tls_session *net_tls_new(SSL_CTX *context, net_loop *loop, const char *alpn) {
    net_tls_session *s = mem_zero(sizeof *s);
    BIO *bio = BIO_new(bio_method);
    s->loop = loop;
    s->alpn = alpn;
    s->ssl = SSL_new(context);
    if (!s->ssl || !bio) {
        abort(); /* out of memory: see base/memory.h */
    }
    BIO_set_data(bio, s);
    SSL_set_app_data(s->ssl, s);
    SSL_set_bio(s->ssl, bio, bio);
    SSL_set_accept_state(s->ssl);
    if (!loop->plain_bytes) {
        loop->plain_bytes = mem_alloc(NET_PLAIN_BYTES);
    }
    return s;
}

void net_tls_free(net_tls_session *s) {
    if (s) {
        SSL_free(s->ssl);
        free(s);
    }
}

bool net_tls_ready(const net_tls_session *s) {
    return s->ready;
}

slice net_tls_server_name(const net_tls_session *s) {
    const char *name = SSL_get_servername(s->ssl, TLSEXT_NAMETYPE_host_name);
    return name ? slice_str(name) : SLICE_EMPTY;
}

slice net_tls_chosen(const net_tls_session *s) {
    const unsigned char *p;
    unsigned n;
    SSL_get0_alpn_selected(s->ssl, &p, &n);
    return slice_of((const char *)p, n);
}

static net_tls_state shake_hands(net_tls_session *s) {
    int rc = SSL_do_handshake(s->ssl);
    if (rc == 1) {
        s->ready = true;
        return NET_TLS_OK;
    }
    if (SSL_get_error(s->ssl, rc) == SSL_ERROR_WANT_READ) {
        return NET_TLS_OK;
    }
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    log_debug("net", "TLS handshake failed", "reason=\"%s\"", reason ? reason : "unknown");
    return NET_TLS_FAILED;
}

/* Reads until OpenSSL wants more input: it then holds less than one record. */
net_tls_state net_tls_input(net_tls_session *s, const char *p, size_t n, size_t *plain_n) {
    *plain_n = 0;
    s->in = p;
    s->in_n = n;
    ERR_clear_error();
    if (!s->ready) {
        net_tls_state state = shake_hands(s);
        if (state != NET_TLS_OK || !s->ready) {
            return state;
        }
    }
    while (*plain_n < NET_PLAIN_BYTES) {
        size_t k = 0;
        if (SSL_read_ex(s->ssl, s->loop->plain_bytes + *plain_n, NET_PLAIN_BYTES - *plain_n, &k) == 1) {
            *plain_n += k;
            continue;
        }
        switch (SSL_get_error(s->ssl, 0)) {
        case SSL_ERROR_WANT_READ:
            return NET_TLS_OK;
        case SSL_ERROR_ZERO_RETURN:
            return NET_TLS_ENDED;
        default:
            return NET_TLS_FAILED;
        }
    }
    return NET_TLS_FAILED; /* cannot happen: more plain text than the input can hold */
}

bool net_tls_output(net_tls_session *s, const char *p, size_t n) {
    size_t written;
    ERR_clear_error();
    return SSL_write_ex(s->ssl, p, n, &written) == 1 && written == n;
}

void net_tls_goodbye(net_tls_session *s) {
    ERR_clear_error();
    if (s->ready) {
        SSL_shutdown(s->ssl);
    }
}

/* ---- the context ---- */

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_n, const unsigned char *in, unsigned in_n,
                           void *unused) {
    (void)unused;
    const net_tls_session *s = SSL_get_app_data(ssl);
    const unsigned char *ours = (const unsigned char *)s->alpn;
    unsigned char *chosen;
    if (!ours || SSL_select_next_proto(&chosen, out_n, ours, (unsigned)strlen(s->alpn), in, in_n) != OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_NOACK;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* Without this callback, OpenSSL would ask for a key's password on the terminal. */
static int no_password(char *into, int n, int writing, void *unused) {
    (void)into, (void)n, (void)writing, (void)unused;
    return -1;
}

static void configure(SSL_CTX *context) {
    char groups[] = "X25519:P-256:P-384"; /* clients could choose groups that cost us up to a hundred times as much */
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20"); /* for TLS 1.2; all ciphers of 1.3 are fine */
    SSL_CTX_set1_groups_list(context, groups);
    SSL_CTX_set_options(context,
                        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF); /* tickets resume sessions without memory of ours */
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
}

err net_tls_context(const char *cert_path, const char *key_path, const clock_source *clock, SSL_CTX **context_out, char *why,
                    size_t why_n) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_bio_method);
    *context_out = NULL;
    ERR_clear_error();
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    const char *failing = NULL;
    if (context) {
        SSL_CTX_set_default_passwd_cb(context, no_password);
    }
    if (!context) {
        failing = "OpenSSL";
    } else if (SSL_CTX_use_certificate_chain_file(context, cert_path) != 1) {
        failing = cert_path;
    } else if (SSL_CTX_use_PrivateKey_file(context, key_path, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(context) != 1) {
        failing = key_path;
    } else if (!net_tickets_use(context, clock)) {
        failing = "session tickets";
    }
    if (failing) {
        const char *reason = ERR_reason_error_string(ERR_peek_last_error());
        snprintf(why, why_n, "TLS cannot use %s: %s", failing, reason ? reason : "unreadable");
        SSL_CTX_free(context);
        return E_INTERNAL;
    }
    configure(context);
    *context_out = context;
    return OK;
}

void net_tls_prepare(void) {
    SSL_CTX_free(SSL_CTX_new(TLS_server_method()));
}
