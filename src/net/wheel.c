#include "net/wheel.h"

#include <stddef.h>

static void list_init(net_deadline *head) {
    head->next = head;
    head->prev = head;
}

static void list_add(net_deadline *head, net_deadline *d) {
    d->next = head;
    d->prev = head->prev;
    head->prev->next = d;
    head->prev = d;
}

void net_wheel_remove(net_deadline *d) {
    if (d->next) {
        d->next->prev = d->prev;
        d->prev->next = d->next;
        d->next = NULL;
        d->prev = NULL;
    }
}

void net_wheel_init(net_wheel *w, int64_t tick_ms, int64_t now_ms) {
    w->tick_ms = tick_ms;
    w->turned = now_ms / tick_ms;
    for (unsigned i = 0; i < NET_WHEEL_SLOTS; i++) {
        list_init(&w->slots[i]);
    }
}

void net_wheel_move(net_wheel *w, net_deadline *d) {
    int64_t visit = d->due_ms / w->tick_ms + 1;
    if (visit <= w->turned) {
        visit = w->turned + 1;
    }
    if (visit >= w->turned + NET_WHEEL_SLOTS) { /* beyond the ring: visited once per round */
        visit = w->turned + NET_WHEEL_SLOTS - 1;
    }
    net_wheel_remove(d);
    d->visit_ms = visit * w->tick_ms;
    list_add(&w->slots[visit % NET_WHEEL_SLOTS], d);
}

static void turn_slot(net_wheel *w, net_deadline *slot, int64_t now_ms, void (*expired)(net_deadline *d)) {
    net_deadline due; /* moved here first, since a visit may put deadlines back into the slot */
    list_init(&due);
    while (slot->next != slot) {
        net_deadline *d = slot->next;
        net_wheel_remove(d);
        list_add(&due, d);
    }
    while (due.next != &due) {
        net_deadline *d = due.next;
        net_wheel_remove(d);
        if (d->due_ms <= now_ms) {
            d->due_ms = NET_NEVER;
            expired(d);
        } else if (d->due_ms != NET_NEVER) {
            net_wheel_move(w, d);
        }
    }
}

void net_wheel_turn(net_wheel *w, int64_t now_ms, void (*expired)(net_deadline *d)) {
    int64_t now = now_ms / w->tick_ms;
    if (now - w->turned > NET_WHEEL_SLOTS) { /* after a long sleep one round visits every slot */
        w->turned = now - NET_WHEEL_SLOTS;
    }
    while (w->turned < now) {
        w->turned++;
        turn_slot(w, &w->slots[w->turned % NET_WHEEL_SLOTS], now_ms, expired);
    }
}
