/* tls.h — the TLS side of a connection, and the server's certificate. Private to this folder.
 *
 * A session decrypts the bytes it is given, and writes to its loop's `cipher` buffer; it never touches the socket. */
#pragma once

#include "net/loop_int.h"

/* Makes a server context from PEM files. On E_INTERNAL, `why` has the reason. */
MUST_CHECK err net_tls_context(const char *cert_path, const char *key_path, const clock_source *clock, SSL_CTX **context_out, char *why,
                               size_t why_n);

/* Makes cert_path and key_path, unless they are a matching pair that is valid for another 30 days. */
typedef struct net_certificate {
    const char *cert_path, *key_path;
    const char *names; /* names besides those of the machine, comma-separated; NULL: none */
} net_certificate;
MUST_CHECK err net_tls_make_certificate(const net_certificate *wanted, int64_t now_s, char *why, size_t why_n);

/* Whether the first bytes of a connection begin a TLS handshake. Another protocol may look like TLS at first: a MongoDB message of 278
 * bytes begins with 16 01, one of 66,326 with 16 03 01. Eleven bytes decide: a handshake record of a possible length, with a ClientHello in
 * it whose length and version are possible too (RFC 8446, 4.1.2 and 5.1). */
typedef enum net_tls_guess { NET_TLS_NO, NET_TLS_UNSURE, NET_TLS_YES } net_tls_guess;
enum { NET_TLS_HELLO_BYTES = 11 };

net_tls_guess net_tls_guess_of(const char *p, size_t n); /* UNSURE only for fewer than NET_TLS_HELLO_BYTES */

typedef struct net_tls_session net_tls_session;

/* `alpn`: the protocols to choose from by ALPN, the best first, each behind its length; NULL: none. It outlives the session. */
net_tls_session *net_tls_new(SSL_CTX *context, net_loop *loop, const char *alpn);
void net_tls_free(net_tls_session *s);

typedef enum net_tls_state { NET_TLS_OK, NET_TLS_ENDED, NET_TLS_FAILED } net_tls_state;

/* Consumes all n bytes, and decrypts them to the loop's plain_bytes (plain_n bytes). ENDED: the peer then sent close_notify. */
net_tls_state net_tls_input(net_tls_session *s, const char *p, size_t n, size_t *plain_n);
bool net_tls_output(net_tls_session *s, const char *p, size_t n); /* false: the session is broken */
bool net_tls_ready(const net_tls_session *s);                     /* the handshake is over */
slice net_tls_server_name(const net_tls_session *s);              /* the host name that the client has asked for (SNI); empty: none */
slice net_tls_chosen(const net_tls_session *s);                   /* the protocol chosen by ALPN; empty: none */
void net_tls_goodbye(net_tls_session *s);                         /* sends close_notify */
