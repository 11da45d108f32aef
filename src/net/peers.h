/* peers.h — counts connections per address. IPv6 is counted by /64 network, since a client can use any address of its network.
 *
 * Any thread. The table is allocated once, with two slots per possible connection. */
#pragma once

#include "net/loop_int.h"

typedef struct net_peer { /* copied into objects that outlive the connection */
    uint8_t address[16];
    uint16_t port;
    bool ipv6;
} net_peer;

typedef struct net_peers net_peers;

net_peers *net_peers_new(unsigned connections_max, unsigned per_address_max, bool spare_loopback);
void net_peers_free(net_peers *peers);

/* Counts one more connection; false: the address has reached its limit. Pass the same address to net_peers_give. */
bool net_peers_take(net_peers *peers, const net_peer *peer);
void net_peers_give(net_peers *peers, const net_peer *peer);
