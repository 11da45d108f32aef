/* Events: connections that registered are told about changes of the schema. The list is shared; a connection is touched on its own loop. */
#include <stdlib.h>

#include "api/cassandra/cassandra_int.h"
#include "base/memory.h"

static cass_front *front_of(const cass_conn *c) {
    return frames_context(c->frames);
}

void cass_watch(cass_conn *c) {
    cass_front *f = front_of(c);
    if (c->watching) {
        return;
    }
    pthread_mutex_lock(&f->lock);
    c->next = f->watchers;
    c->at = &f->watchers;
    if (c->next) {
        c->next->at = &c->next;
    }
    f->watchers = c;
    c->watching = true;
    pthread_mutex_unlock(&f->lock);
}

void cass_unwatch(cass_conn *c) {
    cass_front *f = front_of(c);
    if (!c->watching) {
        return;
    }
    pthread_mutex_lock(&f->lock);
    *c->at = c->next;
    if (c->next) {
        c->next->at = c->at;
    }
    c->watching = false;
    pthread_mutex_unlock(&f->lock);
}

/* ---- telling ---- */

typedef struct news {
    net_task task; /* first: found by a cast */
    cass_front *front;
    net_loop *loop;
    cass_change change; /* its names are in `room` */
    char room[2 * (LIMIT_NAME_BYTES + 1)];
} news;

/* NULL in `frames_begin`: the client is not reading, or the connection closes; it reads the schema again when it reconnects. */
static void send(const cass_conn *c, const cass_change *change) {
    frames_request *r = frames_begin(c->frames);
    if (!r) {
        return;
    }
    cass_envelope none = {.version = c->version, .stream = -1};
    cass_request *q = cass_request_new(r, &none);
    buf *out = cass_answer(q, CASS_EVENT);
    cass_put_string(out, SLICE_LIT("SCHEMA_CHANGE"));
    cass_put_string(out, slice_str(change->change));
    cass_put_string(out, slice_str(change->target));
    cass_put_string(out, change->keyspace);
    if (change->name.n) {
        cass_put_string(out, change->name);
    }
    cass_end(q);
}

/* Sending may close a connection, which leaves the list; so they are collected first. All of them are on this loop, and live on. */
static void spread(net_task *task) {
    news *n = (news *)task;
    size_t count = 0, room = 0;
    pthread_mutex_lock(&n->front->lock);
    for (cass_conn *c = n->front->watchers; c; c = c->next) {
        room++;
    }
    cass_conn **told = mem_alloc((room + 1) * sizeof *told);
    for (cass_conn *c = n->front->watchers; c; c = c->next) {
        if (frames_loop(c->frames) == n->loop && c->events & CASS_SCHEMA_CHANGE) {
            told[count++] = c;
        }
    }
    pthread_mutex_unlock(&n->front->lock);
    for (size_t i = 0; i < count; i++) {
        send(told[i], &n->change);
    }
    free(told);
    free(n);
}

static void post(cass_front *front, net_loop *loop, cass_change change) {
    news *n = mem_zero(sizeof *n);
    size_t a = change.keyspace.n < LIMIT_NAME_BYTES ? change.keyspace.n : LIMIT_NAME_BYTES;
    size_t b = change.name.n < LIMIT_NAME_BYTES ? change.name.n : LIMIT_NAME_BYTES;
    memcpy(n->room, a ? change.keyspace.p : "", a);
    memcpy(n->room + a, b ? change.name.p : "", b);
    change.keyspace = slice_of(n->room, a);
    change.name = slice_of(n->room + a, b);
    n->task.run = spread;
    n->front = front;
    n->loop = loop;
    n->change = change;
    net_post(loop, &n->task);
}

void cass_tell(cass_front *front, cass_change change) {
    enum { LOOPS_MAX = 64 };
    net_loop *loops[LOOPS_MAX];
    size_t n = 0;
    pthread_mutex_lock(&front->lock);
    for (cass_conn *c = front->watchers; c; c = c->next) {
        net_loop *loop = frames_loop(c->frames);
        size_t i = 0;
        while (i < n && loops[i] != loop) {
            i++;
        }
        if (i == n && n < LOOPS_MAX) {
            loops[n++] = loop;
        }
    }
    pthread_mutex_unlock(&front->lock);
    for (size_t i = 0; i < n; i++) {
        post(front, loops[i], change);
    }
}
