/* wait.h — a client waits, without a thread, for an event signalled by another thread. For calls such as the next page of changes.
 *
 * A wait ends once: when it is woken, at its timeout, when the client leaves, or when the server stops. Its lifecycle:
 *
 *     net_wait_init(w, client, cancel, ended);
 *     …                       // arrange for another thread to call net_wait_wake(w)
 *     net_wait_start(w, ms);
 *
 * All calls are on the client's loop, except net_wait_wake. The caller keeps the memory valid until `ended`. A client has one wait at a
 * time. */
#pragma once

#include "net/delay.h"
#include "net/work.h"

struct net_wait {
    /* Called when the wait ends other than by a wake. True: net_wait_wake was not and will not be called. False: it was, or is about to
     * be. */
    bool (*cancel)(net_wait *wait);
    void (*ended)(net_wait *wait); /* called from the loop, never from within net_wait_start */
    bool woken;                    /* for `ended`: true if net_wait_wake ended the wait */

    /* Private to wait.c. */
    net_client *client;
    net_delay delay;
    net_task task;
    bool started; /* net_wait_start was called */
    bool timed;   /* the timeout is pending */
    bool ending;  /* `cancel` was called */
};

void net_wait_init(net_wait *w, net_client *client, bool (*cancel)(net_wait *), void (*ended)(net_wait *));

/* Ends the wait at once if the client has left or the server is stopping. */
void net_wait_start(net_wait *w, unsigned ms);

/* Any thread; once, any time after net_wait_init. The wait's owner may have freed it when this returns. */
void net_wait_wake(net_wait *w);
