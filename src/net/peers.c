/* Open addressing with linear probing. Removing an entry moves displaced ones back into its slot, so there are no tombstones. */
#include "net/peers.h"

#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "net/guard.h"

typedef struct slot {
    uint8_t network[16];
    unsigned connections; /* 0: free */
} slot;

struct net_peers {
    pthread_mutex_t lock;
    uint64_t seed; /* prevents clients from choosing networks that collide */
    unsigned max;  /* 0: no limit, nothing is counted */
    bool spare_loopback;
    size_t mask;
    slot slots[];
};

enum { IN_FLIGHT = 1024 }; /* connections accepted above the limit that a loop has yet to close */

net_peers *net_peers_new(unsigned connections_max, unsigned per_address_max, bool spare_loopback) {
    size_t n = 1;
    while (per_address_max && n < 2 * ((size_t)connections_max + IN_FLIGHT)) {
        n *= 2;
    }
    net_peers *p = mem_zero(sizeof *p + n * sizeof *p->slots);
    random_source random;
    random_seed_system(&random);
    p->seed = random_u64(&random);
    p->max = per_address_max;
    p->spare_loopback = spare_loopback;
    p->mask = n - 1;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void net_peers_free(net_peers *p) {
    if (p) {
        pthread_mutex_destroy(&p->lock);
        free(p);
    }
}

static void network_of(const net_peer *peer, uint8_t network[static 16]) {
    struct in6_addr address;
    net_address_map(peer->ipv6, peer->address, address.s6_addr);
    memcpy(network, address.s6_addr, 16);
    if (!IN6_IS_ADDR_V4MAPPED(&address)) {
        memset(network + 8, 0, 8);
    }
}

static size_t home(const net_peers *p, const uint8_t network[static 16]) {
    uint64_t halves[2];
    memcpy(halves, network, sizeof halves);
    uint64_t h = (p->seed ^ halves[0]) * 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 32 ^ halves[1] ^ p->seed >> 7) * 0xD6E8FEB86659FD93u;
    return (size_t)(h ^ h >> 32) & p->mask;
}

/* The network's slot, or the free one where it belongs. At most half of the slots are used, so there is always a free one. */
static size_t find(const net_peers *p, const uint8_t network[static 16]) {
    size_t at = home(p, network);
    while (p->slots[at].connections && memcmp(p->slots[at].network, network, 16) != 0) {
        at = (at + 1) & p->mask;
    }
    return at;
}

static void remove_slot(net_peers *p, size_t hole) {
    p->slots[hole].connections = 0;
    for (size_t at = (hole + 1) & p->mask; p->slots[at].connections; at = (at + 1) & p->mask) {
        size_t from_home = (at - home(p, p->slots[at].network)) & p->mask;
        if (from_home >= ((at - hole) & p->mask)) { /* the hole is between its home and here: a lookup would stop there */
            p->slots[hole] = p->slots[at];
            p->slots[at].connections = 0;
            hole = at;
        }
    }
}

static bool is_counted(const net_peers *p, const net_peer *peer) {
    uint8_t address[16];
    net_address_map(peer->ipv6, peer->address, address);
    return p->max && !(p->spare_loopback && net_address_is_loopback(address));
}

bool net_peers_take(net_peers *p, const net_peer *peer) {
    uint8_t network[16];
    if (!is_counted(p, peer)) {
        return true;
    }
    network_of(peer, network);
    pthread_mutex_lock(&p->lock);
    slot *s = &p->slots[find(p, network)];
    bool fits = s->connections < p->max;
    if (fits) {
        memcpy(s->network, network, 16);
        s->connections++;
    }
    pthread_mutex_unlock(&p->lock);
    return fits;
}

void net_peers_give(net_peers *p, const net_peer *peer) {
    uint8_t network[16];
    if (!is_counted(p, peer)) {
        return;
    }
    network_of(peer, network);
    pthread_mutex_lock(&p->lock);
    size_t at = find(p, network);
    assert(p->slots[at].connections);
    if (--p->slots[at].connections == 0) {
        remove_slot(p, at);
    }
    pthread_mutex_unlock(&p->lock);
}
