/* listen.h — listening sockets, from a host name and a port. Private to this folder. Blocks during name lookups. */
#pragma once

#include "base/err.h"
#include "base/slice.h"

enum { NET_LISTEN_MAX = 8 };

typedef struct net_sockets {
    int fd[NET_LISTEN_MAX];
    unsigned n;
    uint16_t port; /* the same for all */
} net_sockets;

/* See net_listen. After a failure no socket stays open. */
MUST_CHECK err net_listen_sockets(const char *host, uint16_t port, net_sockets *sockets_out, char *why, size_t why_n);
