#include "api/mongo/index_uses.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "partition/murmur.h"

enum { ROOM_FIRST = 64 };

typedef struct used {
    uint64_t name;  /* hash of the container's number and the index's name */
    uint64_t times; /* 0: a free place */
} used;

/* Open addressing, half full at most. */
struct mongo_index_uses {
    pthread_mutex_t lock;
    used *list;
    size_t n, room;
};

mongo_index_uses *mongo_index_uses_new(void) {
    mongo_index_uses *u = mem_zero(sizeof *u);
    pthread_mutex_init(&u->lock, NULL);
    u->room = ROOM_FIRST;
    u->list = mem_zero(u->room * sizeof *u->list);
    return u;
}

void mongo_index_uses_free(mongo_index_uses *u) {
    pthread_mutex_destroy(&u->lock);
    free(u->list);
    free(u);
}

static uint64_t hash_of(uint32_t container, slice name) {
    hash128 h = hash_murmur3_128(name);
    return h.h1 ^ (container * 0x9E3779B97F4A7C15u);
}

static used *place_of(used *list, size_t room, uint64_t name) {
    size_t at = name & (room - 1);
    while (list[at].times && list[at].name != name) {
        at = (at + 1) & (room - 1);
    }
    return &list[at];
}

static void grow(mongo_index_uses *u) {
    bool full = u->room >= 2 * INDEX_USES_MAX;
    size_t room = full ? ROOM_FIRST : 2 * u->room;
    used *more = mem_zero(room * sizeof *more);
    for (size_t i = 0; i < u->room && !full; i++) {
        if (u->list[i].times) {
            *place_of(more, room, u->list[i].name) = u->list[i];
        }
    }
    free(u->list);
    u->list = more;
    u->room = room;
    u->n = full ? 0 : u->n;
}

void mongo_index_uses_add(mongo_index_uses *u, uint32_t container, slice name) {
    if (!name.n) {
        return;
    }
    uint64_t hash = hash_of(container, name);
    pthread_mutex_lock(&u->lock);
    used *x = place_of(u->list, u->room, hash);
    if (!x->times && 2 * (u->n + 1) > u->room) {
        grow(u);
        x = place_of(u->list, u->room, hash);
    }
    u->n += !x->times;
    x->name = hash;
    x->times++;
    pthread_mutex_unlock(&u->lock);
}

uint64_t mongo_index_uses_of(mongo_index_uses *u, uint32_t container, slice name) {
    pthread_mutex_lock(&u->lock);
    uint64_t times = place_of(u->list, u->room, hash_of(container, name))->times;
    pthread_mutex_unlock(&u->lock);
    return times;
}
