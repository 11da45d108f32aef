/* listen.h — sockets that listen, from a host's name and a port. For the files of this folder. Blocking: name look-ups are. */
#pragma once

#include "base/err.h"
#include "base/slice.h"

enum { NET_LISTEN_MAX = 8 };

typedef struct net_sockets {
    int fd[NET_LISTEN_MAX];
    unsigned n;
    uint16_t port; /* the same for all */
} net_sockets;

/* See net_listen. Nothing stays open after a failure. */
MUST_CHECK err net_listen_sockets(const char *host, uint16_t port, net_sockets *sockets_out, char *why, size_t why_n);
