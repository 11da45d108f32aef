/* Requests that go wrong on purpose (account/faults.h): late, with an error, or both. Nobody waits for the late ones but their client. */
#include "api/sql/sql_int.h"
#include "net/delay.h"
#include "throughput/charge.h"

typedef struct delayed {
    net_delay delay; /* first */
    sql_request *q;
    sql_handler handler;
    err code;
} delayed;

/* The one range that a request names, by id or by a whole key; -1: none, or not one. What is wrong with it is the handler's to say. */
static int64_t range_of(sql_request *q) {
    const container *c = q->container;
    slice header = sql_get(q, FIELD_PARTITION_KEY);
    int64_t id = -1;
    uint32_t named;
    pkey key;
    epk e;
    if (sql_has(q, FIELD_RANGE_ID)) {
        id = sql_range_id(q, &named) == OK ? (int64_t)named : -1;
    } else if (header.p && pkey_parse(&q->op, header, &key) == OK && key.n == c->key.n) {
        epk_of(&c->key, &key, &e);
        id = container_route(c->tiles, &e)->id;
    }
    q->op.detail_n = 0;
    return id;
}

/* A container that is not there is found missing by the handler. */
static bool find_hit(sql_request *q, fault *hit) {
    if (sql_find_container(q) != OK) {
        q->op.detail_n = 0;
        return false;
    }
    fault_request request = {
        .database = q->container->database_id,
        .container = q->container->id,
        .range = range_of(q),
        .writes = q->http->method != VERB_GET && !sql_is_query(q),
    };
    return faults_hit(q->front->faults, &request, hit);
}

static void give_container(sql_request *q) {
    if (q->container) {
        container_give(q->container);
        q->container = NULL;
    }
}

static void go_on(sql_request *q, err code, sql_handler handler) {
    if (code != OK) {
        sql_fail(q, code);
    } else {
        give_container(q);
        handler(q);
    }
}

static void resume(net_delay *delay) {
    delayed *d = (delayed *)delay;
    go_on(d->q, d->code, d->handler);
}

bool sql_fault(sql_request *q, sql_handler handler) {
    fault hit;
    bool of_items = q->route.kind == SQL_ITEM || q->route.kind == SQL_ITEMS;
    if (!of_items || !find_hit(q, &hit)) {
        give_container(q);
        return false;
    }
    if (hit.code != OK) {
        q->fault = hit.id;
        q->substatus = hit.substatus;
        q->op.retry_after_ms = hit.retry_after_ms;
        op_charge(&q->op, hit.code == E_THROTTLED ? CHARGE_THROTTLED : 0);
    }
    if (hit.delay_ms == 0) {
        go_on(q, hit.code, handler);
        return true;
    }
    delayed *late = arena_new(q->http->arena, delayed);
    *late = (delayed){.q = q, .handler = handler, .code = hit.code};
    net_delay_start(q->http->client.loop, &late->delay, hit.delay_ms, resume);
    return true;
}
