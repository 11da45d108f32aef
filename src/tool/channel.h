/* channel.h — a blocking connection to a server, plain or TLS, for the commands. */
#pragma once

#include <openssl/types.h>

#include "base/slice.h"
#include "tool/remote.h"

typedef struct channel {
    int fd;
    SSL_CTX *context; /* NULL: plain */
    SSL *ssl;
} channel;

/* On failure false, with the reason and the remedy in `why`: no server, or an untrusted certificate. */
bool channel_open(channel *c, const remote *r, char *why, size_t why_n);
bool channel_send(channel *c, slice bytes);
bool channel_receive(channel *c, buf *in); /* everything until the server closes */
void channel_close(channel *c);
