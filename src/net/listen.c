#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 1024,
    FREE_PORT_TRIES = 50,
    UNSENT_BYTES = 256 * 1024, /* unsent bytes the kernel buffers for a slow client; the rest waits in our memory, where it is counted */
};

typedef struct address {
    struct sockaddr_storage at;
    socklen_t n;
    bool optional; /* skipped if the machine lacks its address family */
} address;

static void set_port(address *a, uint16_t port) {
    if (a->at.ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)&a->at)->sin6_port = htons(port);
    } else {
        ((struct sockaddr_in *)&a->at)->sin_port = htons(port);
    }
}

static address literal4(in_addr_t ip) {
    address a = {.n = sizeof(struct sockaddr_in)};
    *(struct sockaddr_in *)&a.at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(ip)};
    return a;
}

static address literal6(struct in6_addr ip, bool optional) {
    address a = {.n = sizeof(struct sockaddr_in6), .optional = optional};
    *(struct sockaddr_in6 *)&a.at = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = ip};
    return a;
}

/* Resolves a host name to addresses; returns 0 and sets `why` on failure. */
static unsigned find_addresses(const char *host, address into[static NET_LISTEN_MAX], char *why, size_t why_n) {
    if (strcmp(host, "localhost") == 0) {
        into[0] = literal4(INADDR_LOOPBACK);
        into[1] = literal6(in6addr_loopback, true);
        return 2;
    }
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    int rc = getaddrinfo(host, NULL, &hints, &found);
    if (rc != 0) {
        snprintf(why, why_n, "cannot listen on \"%s\": %s", host, gai_strerror(rc));
        return 0;
    }
    unsigned n = 0;
    for (struct addrinfo *a = found; a && n < NET_LISTEN_MAX; a = a->ai_next) {
        into[n] = (address){.n = a->ai_addrlen};
        memcpy(&into[n].at, a->ai_addr, a->ai_addrlen);
        n++;
    }
    freeaddrinfo(found);
    return n;
}

/* Returns a listening socket, or -1 and errno. Two servers on one port are a mistake, hence no SO_REUSEPORT; SO_REUSEADDR only lets a new
 * server start while the last connections of the previous one are in TIME_WAIT. */
static int listen_at(const address *a) {
    int fd = socket(a->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    int on = 1, any6 = a->at.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)&a->at)->sin6_addr);
    int v6only = !any6; /* "::" serves both families */
    int unsent = UNSENT_BYTES;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent); /* accepted sockets inherit it */
    if (a->at.ss_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof v6only);
    }
    if (bind(fd, (const struct sockaddr *)&a->at, a->n) != 0 || listen(fd, BACKLOG) != 0) {
        int reason = errno;
        close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}

static uint16_t port_of(int fd) {
    struct sockaddr_storage at = {0};
    socklen_t n = sizeof at;
    getsockname(fd, (struct sockaddr *)&at, &n);
    return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port : ((struct sockaddr_in *)&at)->sin_port);
}

static bool family_is_missing(int reason) {
    return reason == EAFNOSUPPORT || reason == EADDRNOTAVAIL || reason == EPROTONOSUPPORT;
}

static void close_all(net_sockets *s) {
    while (s->n) {
        close(s->fd[--s->n]);
    }
}

/* Listens at all addresses on one port; returns 0 or errno. */
static int listen_all(address *addresses, unsigned n, uint16_t port, net_sockets *out) {
    *out = (net_sockets){.port = port};
    for (unsigned i = 0; i < n; i++) {
        set_port(&addresses[i], out->port);
        int fd = listen_at(&addresses[i]);
        if (fd < 0) {
            int reason = errno;
            if (addresses[i].optional && family_is_missing(reason)) {
                continue;
            }
            close_all(out);
            return reason;
        }
        out->fd[out->n++] = fd;
        out->port = port_of(fd);
    }
    return 0;
}

static void explain(int reason, const char *host, uint16_t port, char *why, size_t why_n) {
    if (reason == EADDRINUSE) {
        snprintf(why, why_n, "port %u of %s is in use: another server runs there. Stop it, or choose another port", port, host);
    } else if (reason == EACCES) {
        snprintf(why, why_n, "port %u of %s needs privileges this process does not have: choose one above 1023", port, host);
    } else if (reason == EADDRNOTAVAIL) {
        snprintf(why, why_n, "cannot listen on %s: this machine has no such address", host);
    } else {
        snprintf(why, why_n, "cannot listen on %s port %u: %s", host, port, strerror(reason));
    }
}

err net_listen_sockets(const char *host, uint16_t port, net_sockets *sockets_out, char *why, size_t why_n) {
    address addresses[NET_LISTEN_MAX];
    unsigned n = find_addresses(host, addresses, why, why_n);
    if (n == 0) {
        return E_INTERNAL;
    }
    int reason = 0;
    for (int i = 0; i < (port ? 1 : FREE_PORT_TRIES); i++) { /* a port free in one family may be taken in the other */
        reason = listen_all(addresses, n, port, sockets_out);
        if (reason != EADDRINUSE) {
            break;
        }
    }
    if (reason != 0) {
        explain(reason, host, port, why, why_n);
        return E_INTERNAL;
    }
    return OK;
}
