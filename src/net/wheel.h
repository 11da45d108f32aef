/* wheel.h — many deadlines, one coarse timer.
 *
 * A ring of slots, one per tick. Moving a deadline to a later time, which a busy connection does with every request, is one store: it stays
 * in its slot, and moves to the right one when that slot is visited. A deadline fires up to one tick late, never early. One thread. Uses
 * neither sockets nor clocks. */
#pragma once

#include <stdint.h>

#define NET_NEVER INT64_MAX

typedef struct net_deadline net_deadline;
struct net_deadline {
    net_deadline *next; /* NULL: in no slot */
    net_deadline *prev;
    int64_t due_ms;
    int64_t visit_ms; /* when its slot is visited */
};

enum { NET_WHEEL_SLOTS = 256 };

typedef struct net_wheel {
    int64_t tick_ms;
    int64_t turned; /* the last tick processed */
    net_deadline slots[NET_WHEEL_SLOTS];
} net_wheel;

void net_wheel_init(net_wheel *w, int64_t tick_ms, int64_t now_ms);

/* NET_NEVER disarms. A zeroed net_deadline is valid. */
void net_wheel_move(net_wheel *w, net_deadline *d);
static inline void net_wheel_set(net_wheel *w, net_deadline *d, int64_t due_ms) {
    d->due_ms = due_ms;
    if (due_ms != NET_NEVER && (!d->next || d->visit_ms > due_ms + w->tick_ms)) {
        net_wheel_move(w, d);
    }
}

void net_wheel_remove(net_deadline *d); /* call before freeing the deadline */

/* Calls `expired` for each deadline that has passed at now_ms. The deadline is disarmed first; the callback may set it again or free it. */
void net_wheel_turn(net_wheel *w, int64_t now_ms, void (*expired)(net_deadline *d));
