/* wait.h — a client waits, without a thread, for something that another thread will tell. For calls such as the next page of changes.
 *
 * A wait ends once: when it is woken, at its time-out, when the client leaves, or when the server stops. Its life:
 *
 *     net_wait_init(w, client, cancel, ended);
 *     …                       // tell whoever will know to call net_wait_wake(w)
 *     net_wait_start(w, ms);
 *
 * All on the client's loop, but for net_wait_wake. The memory is the caller's until `ended`. A client has one wait at a time. */
#pragma once

#include "net/delay.h"
#include "net/work.h"

struct net_wait {
    /* For ends other than a wake. True: net_wait_wake was not called and will not be. False: it was, or will be in a moment. */
    bool (*cancel)(net_wait *wait);
    void (*ended)(net_wait *wait); /* from the loop, never from within net_wait_start */
    bool woken;                    /* for `ended`: by net_wait_wake, and nothing else */

    /* wait.c's own */
    net_client *client;
    net_delay delay;
    net_task task;
    bool started; /* it is the client's wait */
    bool timed;   /* the time-out is still to come */
    bool ending;  /* `cancel` was asked */
};

void net_wait_init(net_wait *w, net_client *client, bool (*cancel)(net_wait *), void (*ended)(net_wait *));

/* A client that has left, or a server that stops, ends the wait at once. */
void net_wait_start(net_wait *w, unsigned ms);

/* Any thread, once, from net_wait_init on. The wait's owner may have freed it when this returns. */
void net_wait_wake(net_wait *w);
