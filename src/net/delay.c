#include "net/delay.h"

#include "net/loop_int.h"

static int64_t now_ms(void) {
    return (int64_t)(uv_hrtime() / 1000000);
}

static void unlink_delay(net_delay *d) {
    d->prev->next = d->next;
    d->next->prev = d->prev;
}

/* Inserts in order of time. Searches from the end, since most delays are as long as the one before. */
static void link_delay(net_loop *loop, net_delay *d) {
    net_delay *before = loop->delays.prev;
    while (before != &loop->delays && before->due_ms > d->due_ms) {
        before = before->prev;
    }
    d->prev = before;
    d->next = before->next;
    d->next->prev = d;
    before->next = d;
}

static void on_timer(uv_timer_t *timer);

static void set_timer(net_loop *loop) {
    const net_delay *first = loop->delays.next;
    int64_t wait = first->due_ms - now_ms();
    if (first != &loop->delays) {
        uv_timer_start(&loop->delay_timer, on_timer, wait > 0 ? (uint64_t)wait : 0, 0);
    }
}

static void run_until(net_loop *loop, int64_t time_ms) {
    for (net_delay *d = loop->delays.next; d != &loop->delays && d->due_ms <= time_ms; d = loop->delays.next) {
        unlink_delay(d);
        d->run(d);
    }
}

static void on_timer(uv_timer_t *timer) {
    net_loop *loop = timer->data;
    net_loop_refresh(loop);
    run_until(loop, now_ms());
    set_timer(loop);
}

void net_delay_start(net_loop *loop, net_delay *delay, unsigned ms, void (*run)(net_delay *)) {
    delay->run = run;
    if (loop->draining) {
        run(delay);
        return;
    }
    delay->due_ms = now_ms() + ms + 1; /* + 1: the current millisecond is partly over */
    link_delay(loop, delay);
    set_timer(loop);
}

void net_delay_stop(net_delay *delay) {
    unlink_delay(delay); /* the timer may then fire with nothing due */
}

void net_delays_init(net_loop *loop) {
    loop->delays.next = loop->delays.prev = &loop->delays;
    uv_timer_init(&loop->uv, &loop->delay_timer);
    loop->delay_timer.data = loop;
}

void net_delays_end(net_loop *loop) {
    run_until(loop, INT64_MAX);
}
