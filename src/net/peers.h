/* peers.h — how many connections each address has. IPv6 is counted by network (/64), since a client has all addresses of its network.
 *
 * Any thread. The table is allocated once, with twice as many slots as there may be connections. */
#pragma once

#include "net/loop_int.h"

typedef struct net_peer { /* small enough to copy into whatever outlives the connection */
    uint8_t address[16];
    uint16_t port;
    bool ipv6;
} net_peer;

typedef struct net_peers net_peers;

net_peers *net_peers_new(unsigned connections_max, unsigned per_address_max, bool spare_loopback);
void net_peers_free(net_peers *peers);

/* Counts one more; false: the address has as many as it may have. What was taken is given back with the same address. */
bool net_peers_take(net_peers *peers, const net_peer *peer);
void net_peers_give(net_peers *peers, const net_peer *peer);
