/* guard.h — refuses requests that a web page sent from a browser on this machine.
 *
 * While the server accepts the emulator's well-known key, a page of any site could use it. A page can reach us in two ways. Both show in
 * header fields that a page cannot set. With DNS rebinding, the page's own host name resolves to our address, and Host is that name. With a
 * cross-origin request, Origin is not ours. So Host must be a name that no site can have: localhost, an address of this machine, the
 * machine's name if it resolves to us, or a name allowed by configuration. Origin, if present, must be of the same host.
 *
 * Every protocol that browsers speak checks this first: HTTP does so for each request, whatever its path. */
#pragma once

#include <stdatomic.h>

#include "base/slice.h"

enum { NET_NAME_BYTES = 256 };

typedef struct net_guard {
    atomic_bool on;               /* any thread may turn it on and off */
    const char *allowed;          /* comma-separated host names or addresses; NULL: none */
    char machine[NET_NAME_BYTES]; /* the machine's name, if it resolves to us; otherwise empty */
} net_guard;

/* The parts of a request that the guard checks. */
typedef struct net_caller {
    slice host;   /* the Host field as sent: name or address, perhaps with a port; empty: none was sent */
    slice origin; /* the Origin field; p NULL: none was sent */
    bool tls;
    void (*local_address)(const void *context, uint8_t into[static 16]); /* local address of the connection, in IPv6 form */
    const void *context;
} net_caller;

/* Always true while the guard is off. */
bool net_guard_allows(const net_guard *g, const net_caller *caller);

/* Called at start-up for each listening socket: checks whether the machine's name resolves to its address. Does not use DNS. */
void net_guard_listens(net_guard *g, int fd);

/* Whether `list` is valid for `allowed`: names and addresses, without ports. */
bool net_guard_list_good(slice list);

/* Addresses in IPv6 form: IPv4 is mapped to ::ffff:a.b.c.d. */
void net_address_map(bool ipv6, const uint8_t *address, uint8_t into[static 16]);
bool net_address_is_loopback(const uint8_t address[static 16]);
