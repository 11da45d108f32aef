#include "net/loop_int.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/pieces.h"
#include "net/conn.h"
#include "net/frames_int.h"
#include "net/http_int.h"

enum { HOLD_US = 250 };

/* ---- tasks from other threads ---- */

static void push(net_loop *loop, net_task *task) {
    net_task *head = atomic_load_explicit(&loop->posted, memory_order_relaxed);
    do {
        task->next = head;
    } while (!atomic_compare_exchange_weak(&loop->posted, &head, task));
}

/* The loop takes the whole list at once, so one wake-up is enough. */
static void wake(net_loop *loop) {
    if (!atomic_exchange(&loop->woken, true)) {
        uint64_t one = 1;
        ssize_t written = write(loop->wake_fd, &one, sizeof one); /* the counter cannot overflow: the loop reads all of it at once */
        (void)written;
    }
}

/* A loop that is awake looks at the list before it sleeps. */
void net_post(net_loop *loop, net_task *task) {
    push(loop, task);
    if (atomic_load(&loop->asleep)) {
        wake(loop);
    }
}

void net_post_before(net_loop *loop, net_task *task) {
    push(loop, task);
}

void net_post_within(net_loop *loop, net_task *task, int64_t delay_us) {
    push(loop, task);
    if (atomic_load(&loop->asleep) && !atomic_load(&loop->woken) && !atomic_exchange(&loop->alarm_set, true)) {
        struct itimerspec at = {.it_value = {delay_us / 1000000, delay_us % 1000000 * 1000 + 1}}; /* 0 would disarm it */
        timerfd_settime(loop->alarm_fd, 0, &at, NULL);
    }
}

void net_loop_run_posted(net_loop *loop) {
    net_task *newest = atomic_exchange_explicit(&loop->posted, NULL, memory_order_acquire);
    net_task *oldest = NULL;
    while (newest) {
        net_task *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest) {
        net_task *next = oldest->next;
        net_loop_release_due(loop);
        oldest->run(oldest);
        oldest = next;
    }
}

/* Clears the flag before it takes the list, so that a later post wakes the loop again. */
static void take_posted(net_loop *loop, int fd, atomic_bool *flag) {
    uint64_t n;
    ssize_t got = read(fd, &n, sizeof n);
    (void)got;
    atomic_exchange(flag, false);
    net_loop_refresh(loop);
    net_loop_run_posted(loop);
}

static void on_wake(uv_poll_t *wake, int status, int events) {
    net_loop *loop = wake->data;
    (void)status;
    (void)events;
    take_posted(loop, loop->wake_fd, &loop->woken);
}

static void on_alarm(uv_poll_t *alarm, int status, int events) {
    net_loop *loop = alarm->data;
    (void)status;
    (void)events;
    take_posted(loop, loop->alarm_fd, &loop->alarm_set);
}

void net_loop_read_clock(net_loop *loop) {
    const clock_source *clock = loop->shared->options.clock;
    loop->seen = uv_now(&loop->uv);
    loop->now_ms = clock_monotonic_us(clock) / 1000;
    loop->wall_ms = clock_wall_ms(clock);
}

unsigned net_loop_index(const net_loop *loop) {
    return loop->index;
}

const clock_source *net_loop_clock(const net_loop *loop) {
    return loop->shared->options.clock;
}

int64_t net_loop_wall_ms(const net_loop *loop) {
    return loop->wall_ms;
}

bool net_loop_is_stopping(const net_loop *loop) {
    return loop->draining;
}

budget_pool *net_loop_memory(net_loop *loop) {
    return &loop->shared->requests;
}

random_source *net_loop_random(net_loop *loop) {
    return &loop->random;
}

/* A buffer's first bytes are forced: small answers, error messages among them, are never refused. */
static void make_room(net_loop *loop, buf *out) {
    *out = buf_init(NET_REPLY_BYTES_MAX);
    buf_reserve(out, NET_OUT_LEAST_BYTES);
    out->budget = &loop->memory;
    budget_force(&loop->memory, out->cap);
}

buf *net_loop_take_out(net_loop *loop) {
    buf *out = loop->outs_n ? loop->outs[--loop->outs_n] : mem_zero(sizeof *out);
    loop->outs_bytes -= out->cap;
    if (!out->cap) { /* it is new, or a queue of unsent output took its memory */
        make_room(loop, out);
    }
    return out;
}

void net_loop_give_out(net_loop *loop, buf *out) {
    if (loop->outs_n < NET_OUTS_MAX && out->cap <= NET_OUT_KEEP_BYTES && loop->outs_bytes + out->cap <= NET_OUTS_BYTES) {
        buf_clear(out);
        loop->outs_bytes += out->cap;
        loop->outs[loop->outs_n++] = out;
    } else {
        buf_free(out);
        free(out);
    }
}

void net_loop_hold(net_loop *loop, net_held *held) {
    if (held->waits) {
        return;
    }
    if (!loop->held) {
        loop->held_since_us = clock_monotonic_us(loop->shared->options.clock);
    }
    held->waits = true;
    held->next = loop->held;
    loop->held = held;
}

void net_loop_forget(net_loop *loop, net_held *held) {
    net_held **at = &loop->held;
    if (!held->waits) {
        return;
    }
    while (*at != held) {
        at = &(*at)->next;
    }
    *at = held->next;
    held->waits = false;
}

void net_loop_release(net_loop *loop) {
    while (loop->held) {
        net_held *held = loop->held;
        loop->held = held->next;
        held->waits = false;
        held->send(held);
    }
}

void net_loop_release_due(net_loop *loop) {
    if (loop->held && clock_monotonic_us(loop->shared->options.clock) - loop->held_since_us > HOLD_US) {
        net_loop_release(loop);
    }
}

static void on_tick(uv_timer_t *tick) {
    net_loop *loop = tick->data;
    net_loop_refresh(loop);
    net_wheel_turn(&loop->wheel, loop->now_ms, net_conn_expired);
    net_crowd_reclaim(loop);
    if (loop->index == 0 || !loop->conns) {
        pieces_trim();
    }
    if (!loop->conns) { /* an idle server has no timer; the next connection starts it again */
        uv_timer_stop(tick);
    }
}

void net_loop_start_ticking(net_loop *loop) {
    if (!uv_is_active((uv_handle_t *)&loop->tick)) {
        uv_timer_start(&loop->tick, on_tick, (uint64_t)loop->wheel.tick_ms, (uint64_t)loop->wheel.tick_ms);
    }
}

/* An eighth of the shortest timeout, at least 10 ms: that is how late a deadline may be noticed. */
static int64_t tick_for(const net_options *o) {
    unsigned shortest = NET_LINGER_MS;
    const unsigned each[] = {o->header_timeout_ms, o->body_timeout_ms, o->idle_timeout_ms, o->untrusted_timeout_ms};
    for (unsigned i = 0; i < sizeof each / sizeof *each; i++) {
        shortest = each[i] < shortest ? each[i] : shortest;
    }
    return shortest / 8 < 10 ? 10 : shortest / 8;
}

void net_loop_check_drained(net_loop *loop) {
    if (loop->draining && !loop->stopped && !loop->conns && !loop->requests_live) {
        loop->stopped = true;
        uv_stop(&loop->uv);
    }
}

static void on_drain_timeout(uv_timer_t *timer) {
    net_loop *loop = timer->data;
    unsigned cut = 0;
    for (net_conn *c = loop->conns; c; c = net_conn_next(c)) {
        net_conn_close(c);
        cut++;
    }
    log_warn("net", "drain time-out", "loop=%u connections=%u unanswered=%u", loop->index, cut, loop->requests_live);
    atomic_fetch_add(&loop->shared->drain_unanswered, loop->requests_live);
    loop->stopped = true;
    uv_stop(&loop->uv);
}

void net_loop_drain(net_loop *loop) {
    if (loop->draining) {
        return;
    }
    loop->draining = true;
    net_delays_end(loop);
    uv_timer_start(&loop->drain, on_drain_timeout, loop->shared->options.drain_timeout_ms, 0);
    for (net_conn *c = loop->conns, *next; c; c = next) {
        next = net_conn_next(c); /* closing is asynchronous: `c` stays in the list, and so does its successor */
        net_conn_stopping(c);
    }
    atomic_fetch_add(&loop->shared->drain_requests, loop->requests_live);
    net_loop_check_drained(loop);
}

static void run_drain(net_task *task) {
    net_loop_drain((net_loop *)((char *)task - offsetof(net_loop, drain_task)));
}

/* Runs what was posted while the loop was awake: no thread has woken it for that. */
static void end_turn(net_loop *loop) {
    if (atomic_load_explicit(&loop->posted, memory_order_relaxed)) {
        net_loop_run_posted(loop);
    }
    net_loop_release(loop);
}

static void on_poll_at_once(uv_idle_t *poll_at_once) {
    (void)poll_at_once;
}

static void give_way(net_loop *loop) {
    const clock_source *clock = loop->shared->options.clock;
    int64_t began_us = clock_monotonic_us(clock);
    sched_yield();
    net_look_took(&loop->look, clock_monotonic_us(clock) - began_us, loop->now_ms);
}

/* At the end of a turn. True: the loop polls its sockets without waiting. */
static bool looks_again(net_loop *loop) {
    bool again = net_look_again(&loop->look, loop->reads, loop->now_ms);
    loop->reads = 0;
    if (again) {
        uv_idle_start(&loop->poll_at_once, on_poll_at_once);
        give_way(loop);
    } else {
        uv_idle_stop(&loop->poll_at_once);
    }
    return again;
}

/* The store and the load after it are in that order for all threads, and so are those of net_post: either the loop sees the task, or the
 * thread that posts sees that the loop is asleep. */
static void on_prepare(uv_prepare_t *prepare) {
    net_loop *loop = prepare->data;
    end_turn(loop);
    if (looks_again(loop)) {
        return;
    }
    atomic_store(&loop->asleep, true);
    if (atomic_load(&loop->posted)) { /* not run here, or tasks that post tasks would keep the loop from its sockets */
        wake(loop);
    }
}

static void on_check(uv_check_t *check) {
    net_loop *loop = check->data;
    net_loop_rise(loop);
    end_turn(loop);
}

/* 0, or why not; then nothing is left open. */
static int open_descriptors(net_loop *loop) {
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    int rc = loop->wake_fd < 0 || loop->alarm_fd < 0 ? -errno : uv_loop_init(&loop->uv);
    if (rc == 0) {
        rc = uv_poll_init(&loop->uv, &loop->wake, loop->wake_fd);
        rc = rc == 0 ? uv_poll_init(&loop->uv, &loop->alarm, loop->alarm_fd) : rc;
        if (rc != 0) {
            uv_loop_close(&loop->uv);
        }
    }
    if (rc != 0) {
        close(loop->wake_fd);
        close(loop->alarm_fd);
    }
    return rc;
}

err net_loop_init(net_loop *loop, net_shared *shared, unsigned index) {
    *loop = (net_loop){.shared = shared, .index = index, .cipher = buf_init(BUF_NO_LIMIT), .drain_task = {.run = run_drain}};
    int rc = open_descriptors(loop);
    if (rc != 0) {
        log_error("net", "cannot make an event loop", "reason=%s", uv_strerror(rc));
        return E_INTERNAL;
    }
    uv_poll_start(&loop->wake, UV_READABLE, on_wake);
    uv_poll_start(&loop->alarm, UV_READABLE, on_alarm);
    uv_timer_init(&loop->uv, &loop->tick);
    uv_timer_init(&loop->uv, &loop->drain);
    uv_prepare_init(&loop->uv, &loop->before_sleep);
    uv_check_init(&loop->uv, &loop->after_events);
    uv_idle_init(&loop->uv, &loop->poll_at_once);
    net_delays_init(loop);
    loop->wake.data = loop->alarm.data = loop->tick.data = loop->drain.data = loop->before_sleep.data = loop->after_events.data = loop;
    uv_prepare_start(&loop->before_sleep, on_prepare);
    uv_check_start(&loop->after_events, on_check);
    loop->memory = budget_init(&shared->buffers, SIZE_MAX);
    random_seed_system(&loop->random);
    loop->read_bytes = mem_alloc(NET_READ_BYTES);
    net_loop_read_clock(loop);
    net_wheel_init(&loop->wheel, tick_for(&shared->options), loop->now_ms);
    return OK;
}

static void close_handle(uv_handle_t *handle, void *unused) {
    (void)unused;
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

void net_loop_free(net_loop *loop) {
    loop->draining = true; /* connections that arrive now are refused */
    loop->stopped = true;
    net_loop_run_posted(loop);
    for (net_conn *c = loop->conns; c; c = net_conn_next(c)) {
        net_conn_close(c);
    }
    uv_run(&loop->uv, UV_RUN_NOWAIT); /* runs their close callbacks */
    uv_walk(&loop->uv, close_handle, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    uv_loop_close(&loop->uv);
    close(loop->wake_fd);
    close(loop->alarm_fd);
    http_free_exchanges(loop);
    frames__free_stock(loop);
    http2_free_streams(loop);
    while (loop->outs_n) {
        buf *out = loop->outs[--loop->outs_n];
        buf_free(out);
        free(out);
    }
    buf_free(&loop->cipher);
    budget_end(&loop->memory);
    free(loop->read_bytes);
    free(loop->plain_bytes);
}
