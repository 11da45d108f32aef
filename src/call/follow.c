/* Following changes: reads on a worker; if there is nothing, waits on the loop without a thread, and reads again when woken.
 *
 *     go → look_or_wait ──────────────→ wait ── woken ──→ read
 *              │ new changes               │ timeout, or the client left
 *              ↓                           ↓
 *            read ── changes, or ──────→ complete
 *              │     timeout               (follower closed, position returned)
 *              └─ no changes → look_or_wait
 */
#include "call/call_int.h"

static call_follow *of(call *c) {
    return (call_follow *)c;
}

static int64_t now_ms(const call_follow *f) {
    return clock_monotonic_us(net_loop_clock(f->call.client->loop)) / 1000;
}

/* The call's `clean`: runs on the loop, before the call completes. */
static void close_follower(call *c) {
    call_follow *f = of(c);
    if (f->follower) {
        buf position = buf_init(BUF_NO_LIMIT);
        follow_position(f->follower, &position);
        f->position = arena_copy(c->op->arena, buf_view(&position));
        buf_free(&position);
        follow_close(f->follower);
    }
    if (f->newest) {
        container_give(f->newest);
    }
    f->follower = NULL;
    f->newest = NULL;
}

/* ---- reading ---- */

static void look_or_wait(call_follow *f);

static void page(call *c) {
    call_follow *f = of(c);
    follow_page page = {.items_max = f->items_max ? f->items_max : 1, .bytes_max = f->bytes_max};
    page.until_us = account_page_deadline_us(c->core->account);
    c->code = follow_read(f->follower, c->op, f->newest ? f->newest : c->container, &page, f->sink, f->context);
    if (c->code == OK) {
        f->n = page.n;
        f->more = page.more;
        c->mark = page.n ? page.mark : c->mark;
    }
}

/* A wake is a hint: there may be nothing to read. */
static void was_read(call *c) {
    call_follow *f = of(c);
    if (c->code == OK && !f->n && !f->more && now_ms(f) < f->until_ms) {
        look_or_wait(f);
    } else {
        call__finish(c);
    }
}

/* Uses the newest version of the container, since settings and ranges may have changed. If it was deleted, the follower reports that. */
static void read_now(call_follow *f) {
    container *before = f->newest;
    f->newest = account_container_newest(f->call.core->account, f->call.container);
    if (before) {
        container_give(before);
    }
    call__on_worker(&f->call, NET_PAGES, page, was_read);
}

/* ---- waiting ---- */

static bool cancel(net_wait *wait) {
    return follow_cancel(((call_follow *)((char *)wait - offsetof(call_follow, wait)))->follower);
}

static void woken(void *context) {
    net_wait_wake(context);
}

static void wait_ended(net_wait *wait) {
    call_follow *f = (call_follow *)((char *)wait - offsetof(call_follow, wait));
    if (call_client_left(&f->call)) {
        call__end(&f->call, E_CANCELLED);
    } else if (wait->woken) {
        read_now(f);
    } else {
        call__end(&f->call, OK);
    }
}

static void look_or_wait(call_follow *f) {
    int64_t left_ms = f->until_ms - now_ms(f);
    net_wait_init(&f->wait, f->call.client, cancel, wait_ended);
    if (follow_wait(f->follower, woken, &f->wait)) {
        net_wait_start(&f->wait, left_ms > 0 ? (unsigned)left_ms : 0);
    } else {
        read_now(f);
    }
}

/* ---- beginning ---- */

static void go(call *c) {
    call_follow *f = of(c);
    err code = follow_open(call__items(c), c->op, c->container, &f->start, &f->follower);
    if (code != OK) {
        call__end(c, code);
        return;
    }
    f->until_ms = now_ms(f) + f->wait_ms;
    look_or_wait(f);
}

void call_follow_init(call_follow *f, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    call_init(&f->call, core, client, o, container, done);
    f->start = (follow_start){.mode = FOLLOW_LATEST, .min = epk_min(), .max = epk_max()};
    f->items_max = SIZE_MAX;
    f->bytes_max = LIMIT_RESPONSE_BYTES;
    f->wait_ms = 0;
    f->sink = NULL;
    f->context = NULL;
    f->n = 0;
    f->more = false;
    f->position = SLICE_EMPTY;
    f->follower = NULL;
    f->newest = NULL;
}

void call_follow_submit(call_follow *f) {
    const follow_start *start = &f->start;
    const epk *min = start->partition ? &start->partition->epk : &start->min, *end = start->partition ? min : &start->max;
    f->call.clean = close_follower;
    call__enter(&f->call, min, end, call__one_range(&f->call, min, end), false, go);
}
