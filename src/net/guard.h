/* guard.h — tells a program's request from one that a web page sent from a browser on this machine.
 *
 * While the server takes the emulator's key, which everybody knows, a page of any site could use it. The page reaches us in two ways, and
 * browsers tell which, in fields that a page cannot set: by DNS rebinding, where the page's own name leads to our address, and Host is that
 * name; or across origins, where Origin is not ours. So Host must be a name that no site can have: localhost, an address of this machine,
 * the machine's name where it leads to us, or a name that was allowed at the start. Origin, if there is one, must be of the same host.
 *
 * Every protocol that browsers speak asks here before anything else is done: HTTP does so for each request, whatever its path. */
#pragma once

#include <stdatomic.h>

#include "base/slice.h"

enum { NET_NAME_BYTES = 256 };

typedef struct net_guard {
    atomic_bool on;               /* any thread may turn it on and off */
    const char *allowed;          /* host names or addresses with commas between; NULL: none */
    char machine[NET_NAME_BYTES]; /* the machine's name, if it leads to us; otherwise empty */
} net_guard;

/* Who asks. */
typedef struct net_caller {
    slice host;   /* as sent: a name or an address, and a port if it is not the scheme's own; empty: none was sent */
    slice origin; /* p NULL: there is none */
    bool tls;
    void (*local_address)(const void *context, uint8_t into[static 16]); /* our end of the connection, as IPv6 has it */
    const void *context;
} net_caller;

/* Says yes to everybody while it is off. */
bool net_guard_allows(const net_guard *g, const net_caller *caller);

/* At the start, for each socket that listens: whether the machine's name leads to it. Asks no name server. */
void net_guard_listens(net_guard *g, int fd);

/* Whether it is such a list as `allowed` is: of names and addresses, without ports. */
bool net_guard_list_good(slice list);

/* Addresses as IPv6 has them: IPv4's as ::ffff:a.b.c.d. */
void net_address_map(bool ipv6, const uint8_t *address, uint8_t into[static 16]);
bool net_address_is_loopback(const uint8_t address[static 16]);
