/* look.h — whether a loop looks at its sockets once more before it sleeps.
 *
 * A client on the same machine that sends one request after the other wakes the loop with the first, and often loses its processor to it.
 * If the loop then slept at once, each request would cost two thread switches. So after a turn with requests the loop gives way, that is,
 * lets threads run that wait for its processor, and then polls without waiting: the requests that were sent meanwhile come in one turn.
 *
 * Giving way is of no use if nobody waits for the processor: after a look that found nothing, some turns go without (1, 3, 7, … 63). And it
 * is slow if somebody else keeps the processor: after a slow look there is none for 200 times as long, so that at most half a percent of
 * the time is lost to them. One thread. Uses neither sockets nor clocks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { NET_LOOK_SLOW_US = 500, NET_LOOK_REST = 200, NET_LOOK_APART_MAX = 63 };

typedef struct net_look {
    bool looking;     /* the turn that ends began with a look */
    unsigned apart;   /* turns between two looks */
    unsigned skipped; /* turns since the last look */
    int64_t rests_until_ms;
} net_look;

/* At the end of a turn in which `reads` connections had bytes: whether to give way and look. */
bool net_look_again(net_look *l, unsigned reads, int64_t now_ms);

/* The loop has given way for so long. */
void net_look_took(net_look *l, int64_t us, int64_t now_ms);
