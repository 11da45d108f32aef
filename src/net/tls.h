/* tls.h — the TLS side of a connection, and the server's certificate. For the files of this folder.
 *
 * A session reads from the bytes it is given and writes to its loop's `cipher` buffer; it never touches the socket. */
#pragma once

#include "net/loop_int.h"

/* A server context from PEM text files, or E_INTERNAL and why. */
MUST_CHECK err net_tls_context(const char *cert_path, const char *key_path, const clock_source *clock, SSL_CTX **context_out, char *why,
                               size_t why_n);

/* Makes cert_path and key_path unless a matching pair is there that lasts another 30 days. */
MUST_CHECK err net_tls_make_certificate(const char *cert_path, const char *key_path, int64_t now_s, char *why, size_t why_n);

typedef struct net_tls_session net_tls_session;

net_tls_session *net_tls_new(SSL_CTX *context, net_loop *loop);
void net_tls_free(net_tls_session *s);

typedef enum net_tls_state { NET_TLS_OK, NET_TLS_ENDED, NET_TLS_FAILED } net_tls_state;

/* Takes all n bytes. What they decrypt to is in the loop's plain_bytes, plain_n of them; ENDED: the peer sent close_notify after those. */
net_tls_state net_tls_input(net_tls_session *s, const char *p, size_t n, size_t *plain_n);
bool net_tls_output(net_tls_session *s, const char *p, size_t n); /* false: the session is broken */
bool net_tls_ready(const net_tls_session *s);                     /* the handshake is over */
void net_tls_goodbye(net_tls_session *s);                         /* close_notify */
