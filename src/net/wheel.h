/* wheel.h — many deadlines, one coarse timer.
 *
 * A ring of slots, one per tick. Moving a deadline later, which a busy connection does with every request, is one store: the slot it
 * sits in is visited earlier than needed and puts it into the right one then. A deadline passes up to one tick late, never early.
 * One thread. Knows neither sockets nor clocks. */
#pragma once

#include <stdint.h>

#define NET_NEVER INT64_MAX

typedef struct net_deadline net_deadline;
struct net_deadline {
    net_deadline *next; /* NULL: in no slot */
    net_deadline *prev;
    int64_t due_ms;
    int64_t visit_ms; /* when its slot is looked at */
};

enum { NET_WHEEL_SLOTS = 256 };

typedef struct net_wheel {
    int64_t tick_ms;
    int64_t turned; /* the last tick looked at */
    net_deadline slots[NET_WHEEL_SLOTS];
} net_wheel;

void net_wheel_init(net_wheel *w, int64_t tick_ms, int64_t now_ms);

/* NET_NEVER disarms. A zeroed net_deadline may be set. */
void net_wheel_move(net_wheel *w, net_deadline *d);
static inline void net_wheel_set(net_wheel *w, net_deadline *d, int64_t due_ms) {
    d->due_ms = due_ms;
    if (due_ms != NET_NEVER && (!d->next || d->visit_ms > due_ms + w->tick_ms)) {
        net_wheel_move(w, d);
    }
}

void net_wheel_remove(net_deadline *d); /* before its memory goes */

/* Calls `expired` for each deadline passed by now_ms, which is disarmed first and may be set again or freed by the call. */
void net_wheel_turn(net_wheel *w, int64_t now_ms, void (*expired)(net_deadline *d));
