#include "net/wait.h"

#include <stddef.h>

#include "net/loop_int.h"

static void end_wait(net_task *task) {
    net_wait *w = (net_wait *)((char *)task - offsetof(net_wait, task));
    if (w->started) {
        w->client->waiting = NULL;
    }
    if (w->timed) {
        net_delay_stop(&w->delay);
    }
    w->ended(w);
}

void net_wait_init(net_wait *w, net_client *client, bool (*cancel)(net_wait *), void (*ended)(net_wait *)) {
    *w = (net_wait){.cancel = cancel, .ended = ended, .client = client, .task = {.run = end_wait}};
}

void net_wait_wake(net_wait *w) {
    w->woken = true;
    net_post(w->client->loop, &w->task);
}

/* Posted rather than called: the caller may be iterating over a list of clients that the wait's owner is in. */
void net__wait_end(net_wait *w) {
    bool first = !w->ending;
    w->ending = true;
    if (first && w->cancel(w)) {
        net_post(w->client->loop, &w->task);
    }
}

static void time_out(net_delay *delay) {
    net_wait *w = (net_wait *)((char *)delay - offsetof(net_wait, delay));
    w->timed = false;
    net__wait_end(w);
}

void net_wait_start(net_wait *w, unsigned ms) {
    w->started = true;
    if (w->client->left) {
        net__wait_end(w);
        return;
    }
    w->client->waiting = w;
    w->timed = true;
    net_delay_start(w->client->loop, &w->delay, ms, time_out);
}
