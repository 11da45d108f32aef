/* bulk.c — operations in per-range queues, sent in batches, many in flight.
 *
 *   queued in its range's list → in a request → done
 *                 ↑                  │ 429, 449: delayed, then queued again
 *                 └── moved ─────────┘ 410: the ranges are read again, and every queued operation moves to its new list
 *
 * All on the caller's thread, inside tesela_bulk_add and tesela_bulk_finish. */
#include <stdlib.h>

#include "base/memory.h"
#include "client/batch_body.h"
#include "client/json.h"
#include "client/routing.h"
#include <tesela/item.h>

enum { MOVES_MAX = 100, MOVE_WAIT_MS = 50 };

typedef struct operation {
    struct operation *next;
    tesela_bulk_kind kind;
    char *id, *body; /* may be NULL */
    char *text;      /* as it is sent */
    size_t text_n;
    void *tag;
    epk place;
    int64_t not_before_us;
    uint32_t throttled_ms;
    unsigned moves;
} operation;

typedef struct list {
    operation *first, **end;
    unsigned n;
    size_t bytes;
} list;

typedef struct request {
    unsigned n;
    operation *operations[];
} request;

struct tesela_bulk {
    tesela_container *container;
    tesela_bulk_options options;
    routing *routing;
    list *lists; /* one a range of the routing */
    list delayed;
    unsigned waiting; /* operations without a result */
    fan *fan;
    tesela_bulk_counts counts;
    tesela_status failed;
    tesela_error error;
};

static const char *const kinds[] = {"Create", "Upsert", "Read", "Replace", "Patch", "Delete"};

/* ---- lists ---- */

static void put(list *l, operation *o) {
    if (!l->first) {
        l->end = &l->first;
    }
    o->next = NULL;
    *l->end = o;
    l->end = &o->next;
    l->n++;
    l->bytes += o->text_n + 1;
}

static operation *pop(list *l) {
    operation *o = l->first;
    if (o) {
        l->first = o->next;
        l->n--;
        l->bytes -= o->text_n + 1;
    }
    return o;
}

static void free_operation(operation *o) {
    free(o->id);
    free(o->body);
    free(o->text);
    free(o);
}

static void free_list(list *l) {
    for (operation *o; (o = pop(l));) {
        free_operation(o);
    }
}

static void queue(tesela_bulk *b, operation *o) {
    put(&b->lists[client__routing_find(b->routing, &o->place) - b->routing->ranges], o);
}

static void delay(tesela_bulk *b, operation *o, uint32_t ms) {
    o->not_before_us = client__now_us() + (int64_t)ms * 1000;
    put(&b->delayed, o);
}

/* ---- open, close ---- */

tesela_status tesela_bulk_open(tesela_container *k, const tesela_bulk_options *options, tesela_bulk **bulk_out, tesela_error *error) {
    tesela_bulk *b = mem_zero(sizeof *b);
    b->container = k;
    b->options = options ? *options : (tesela_bulk_options){0};
    b->options.requests = b->options.requests ? b->options.requests : 16;
    b->options.operations = b->options.operations ? b->options.operations : 100;
    b->options.request_bytes = b->options.request_bytes ? b->options.request_bytes : 220201;
    b->options.queued = b->options.queued ? b->options.queued : 10000;
    b->options.throttle_wait_ms = b->options.throttle_wait_ms ? b->options.throttle_wait_ms : 300000;
    *bulk_out = NULL;
    tesela_status status = client__routing_take(k, &b->routing, error);
    if (status != TESELA_OK) {
        free(b);
        return status;
    }
    b->lists = mem_zero(b->routing->n * sizeof *b->lists);
    b->fan = client__fan_new(k->client);
    *bulk_out = b;
    return TESELA_OK;
}

static void free_request(request *r) {
    for (unsigned i = 0; i < r->n; i++) {
        free_operation(r->operations[i]);
    }
    free(r);
}

void tesela_bulk_close(tesela_bulk *b) {
    if (b) {
        client__fan_each(b->fan, (void (*)(void *))free_request);
        client__fan_free(b->fan);
        for (size_t i = 0; i < b->routing->n; i++) {
            free_list(&b->lists[i]);
        }
        free_list(&b->delayed);
        free(b->lists);
        client__routing_give(b->routing);
        free(b);
    }
}

tesela_bulk_counts tesela_bulk_counted(const tesela_bulk *b) {
    return b->counts;
}

/* ---- results ---- */

static void deliver(tesela_bulk *b, operation *o, tesela_bulk_result *r) {
    r->id = o->id;
    r->sent = o->body;
    r->tag = o->tag;
    b->counts.charge += r->charge;
    if (r->status == TESELA_OK || r->status == TESELA_NOT_MODIFIED) {
        b->counts.succeeded++;
    } else {
        b->counts.failed++;
        if (b->failed == TESELA_OK) {
            b->failed = client__fail(&b->error, r->status, "An operation on '%s' failed: %s.", o->id ? o->id : "an item",
                                     tesela_status_text(r->status));
            b->error.http_status = r->http_status;
            b->error.http_substatus = r->http_substatus;
        }
    }
    if (b->options.done) {
        b->options.done(b->options.context, r);
    }
    b->waiting--;
    free_operation(o);
}

static void fail(tesela_bulk *b, operation *o, tesela_status status, int http_status, int http_substatus) {
    deliver(b, o,
            &(tesela_bulk_result){.status = status, .http_status = http_status, .http_substatus = http_substatus, .body = "", .etag = ""});
}

/* Sends it again later; fails it if it has waited long enough. */
static void throttle(tesela_bulk *b, operation *o, uint32_t ms) {
    ms = ms ? ms : 1;
    b->counts.throttled++;
    o->throttled_ms += ms;
    if (o->throttled_ms > b->options.throttle_wait_ms) {
        fail(b, o, TESELA_THROTTLED, 429, 3200);
    } else {
        delay(b, o, ms);
    }
}

static void move(tesela_bulk *b, operation *o) {
    if (++o->moves > MOVES_MAX) {
        fail(b, o, TESELA_GONE, 410, 1002);
    } else {
        delay(b, o, o->moves == 1 ? 0 : MOVE_WAIT_MS);
    }
}

static char *decoded(slice value) {
    buf text = buf_init(CLIENT_HEADER_BYTES_MAX);
    json_text(value, &text);
    char *copy = mem_text(text.p ? text.p : "", text.n);
    buf_free(&text);
    return copy;
}

static void take_result(tesela_bulk *b, operation *o, slice one) {
    int http = (int)json_whole(json_member(one, "statusCode"), 0, 999, 0);
    tesela_status status = client__status_of_http(http);
    if (status == TESELA_THROTTLED || status == TESELA_RETRY_WITH) {
        throttle(b, o, (uint32_t)json_whole(json_member(one, "retryAfterMilliseconds"), 0, 1 << 30, 10));
        return;
    }
    if (status == TESELA_GONE) {
        client__routing_stale(b->container);
        move(b, o);
        return;
    }
    slice body = json_member(one, "resourceBody");
    char *text = mem_text(body.n ? body.p : "", body.n), *etag = decoded(json_member(one, "eTag"));
    deliver(b, o,
            &(tesela_bulk_result){.status = status,
                                  .http_status = http,
                                  .http_substatus = (int)json_whole(json_member(one, "subStatusCode"), 0, INT32_MAX, 0),
                                  .charge = json_number(json_member(one, "requestCharge"), 0),
                                  .body = text,
                                  .length = body.n,
                                  .etag = etag});
    free(text);
    free(etag);
}

/* A whole request failed. */
static void take_failure(tesela_bulk *b, operation *o, const exchange *x) {
    const tesela_response *r = x->response;
    if (x->status == TESELA_THROTTLED) {
        throttle(b, o, r ? r->retry_after_ms : 100);
    } else if (x->status == TESELA_GONE && !client__retry_gone_spent(&x->retries)) {
        move(b, o);
    } else {
        fail(b, o, x->status, r ? r->status : 0, r ? r->substatus : 0);
    }
}

static void take_answer(tesela_bulk *b, exchange *x) {
    request *r = x->tag;
    json_walk w;
    slice one;
    bool good = x->status == TESELA_OK && json_enter(client__response_body(x->response), &w) && !w.object;
    if (x->status == TESELA_OK && !good) {
        x->status = TESELA_BAD_RESPONSE;
    }
    for (unsigned i = 0; i < r->n; i++) {
        if (good && json_next(&w, NULL, &one)) {
            take_result(b, r->operations[i], one);
        } else if (good) {
            fail(b, r->operations[i], TESELA_BAD_RESPONSE, 0, 0);
        } else {
            take_failure(b, r->operations[i], x);
        }
    }
    free(r);
    client__exchange_free(x);
}

/* ---- requests ---- */

static exchange *request_exchange(tesela_bulk *b, const routing_range *range) {
    exchange *x = client__container_exchange(b->container, "POST", "docs", false);
    buf_add_lit(&x->path, "/docs");
    client__exchange_text(x, "Content-Type", "application/json");
    client__exchange_text(x, "x-ms-cosmos-is-batch-request", "True");
    client__exchange_text(x, "x-ms-cosmos-batch-atomic", "False");
    client__exchange_text(x, "x-ms-cosmos-batch-continue-on-error", "True");
    client__exchange_text(x, "x-ms-documentdb-partitionkeyrangeid", range->id);
    client__exchange_text(x, "Prefer", b->options.no_body ? "return=minimal" : NULL);
    x->routed = true;
    x->has_body = true;
    return x;
}

/* Sends the first operations of a range's list. */
static void send_batch(tesela_bulk *b, size_t range) {
    list *l = &b->lists[range];
    request *r = mem_zero(sizeof *r + b->options.operations * sizeof(operation *));
    exchange *x = request_exchange(b, &b->routing->ranges[range]);
    bool reads = true;
    buf_add_byte(&x->body, '[');
    while (l->first && r->n < b->options.operations && (r->n == 0 || x->body.n + l->first->text_n + 2 <= b->options.request_bytes)) {
        operation *o = pop(l);
        reads = reads && o->kind == TESELA_BULK_READ;
        if (r->n) {
            buf_add_byte(&x->body, ',');
        }
        buf_add(&x->body, o->text, o->text_n);
        r->operations[r->n++] = o;
    }
    buf_add_byte(&x->body, ']');
    x->read = reads;
    x->tag = r;
    client__fan_add(b->fan, x);
}

static bool is_full(const tesela_bulk *b, const list *l) {
    return l->n >= b->options.operations || l->bytes >= b->options.request_bytes;
}

/* Queues those whose delay is over; returns the time until the next, −1: none is delayed. */
static int64_t wake(tesela_bulk *b) {
    list still = {0};
    int64_t now = client__now_us(), least = -1;
    for (operation *o; (o = pop(&b->delayed));) {
        if (o->not_before_us <= now) {
            queue(b, o);
        } else {
            int64_t left = o->not_before_us - now;
            least = least < 0 || left < least ? left : least;
            put(&still, o);
        }
    }
    b->delayed = still;
    return least;
}

/* After a 410: takes the new ranges and moves all queued operations. */
static void follow_ranges(tesela_bulk *b) {
    routing *fresh;
    if (client__routing_take(b->container, &fresh, NULL) != TESELA_OK) {
        return; /* the next 410 tries again; MOVES_MAX ends it */
    }
    if (fresh == b->routing) {
        client__routing_give(fresh);
        return;
    }
    routing *old = b->routing;
    list *lists = b->lists;
    b->routing = fresh;
    b->lists = mem_zero(fresh->n * sizeof *b->lists);
    for (size_t i = 0; i < old->n; i++) {
        for (operation *o; (o = pop(&lists[i]));) {
            queue(b, o);
        }
    }
    free(lists);
    client__routing_give(old);
}

static bool send_some(tesela_bulk *b, bool all) {
    bool sent = false;
    for (size_t i = 0; i < b->routing->n; i++) {
        while (client__fan_count(b->fan) < b->options.requests && b->lists[i].n && (all || is_full(b, &b->lists[i]))) {
            send_batch(b, i);
            sent = true;
        }
    }
    return sent;
}

/* Sends what is full, or all; handles answers, and waits for one if `wait`. */
static void pump(tesela_bulk *b, bool all, bool wait) {
    if (b->container->stale) {
        follow_ranges(b);
    }
    int64_t later = wake(b);
    send_some(b, all);
    if (!client__fan_count(b->fan)) {
        if (wait && later > 0) {
            client__sleep_us(later);
        }
        return;
    }
    exchange *x = client__fan_next(b->fan, !wait ? 0 : later);
    while (x) {
        take_answer(b, x);
        x = client__fan_next(b->fan, 0);
    }
}

/* ---- adding ---- */

static tesela_status place(tesela_bulk *b, const tesela_bulk_operation *given, operation *o, buf *key, tesela_error *error) {
    arena memory = arena_init();
    pkey found;
    tesela_status status = TESELA_OK;
    if (given->key) {
        if (!client__key_of(given->key, &found)) {
            status =
                client__fail(error, TESELA_BAD_ARGUMENT, "The partition key has a text that is not UTF-8, or a number that is not finite.");
        }
    } else if (given->body && given->kind != TESELA_BULK_PATCH) {
        status = client__key_extract(b->routing, slice_str(given->body), &memory, &found, error);
    } else if (b->routing->definition.n) {
        status = client__fail(error, TESELA_BAD_ARGUMENT, "A read, patch or delete needs a partition key.");
    } else {
        found.n = 0;
    }
    if (status == TESELA_OK && found.n != b->routing->definition.n) {
        status = client__fail(error, TESELA_BAD_ARGUMENT, "The partition key needs %u components.", b->routing->definition.n);
    }
    if (status == TESELA_OK) {
        epk_of(&b->routing->definition, &found, &o->place);
        if (found.n) {
            pkey_write(key, &found);
        }
    }
    arena_free(&memory);
    return status;
}

static tesela_status check(const tesela_bulk_operation *o, tesela_error *error) {
    bool has_body = o->kind != TESELA_BULK_READ && o->kind != TESELA_BULK_DELETE;
    bool has_id = o->kind != TESELA_BULK_CREATE && o->kind != TESELA_BULK_UPSERT;
    if ((unsigned)o->kind > TESELA_BULK_DELETE || (has_body && !o->body) || (has_id && (!o->id || !*o->id))) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The operation lacks an id or an item.");
    }
    return TESELA_OK;
}

tesela_status tesela_bulk_add(tesela_bulk *b, const tesela_bulk_operation *given, tesela_error *error) {
    operation *o = mem_zero(sizeof *o);
    buf key = buf_init(64 * 1024), text = buf_init(CLIENT_REQUEST_BYTES_MAX);
    tesela_status status = check(given, error);
    if (status == TESELA_OK) {
        status = place(b, given, o, &key, error);
    }
    bool has_id = given->kind != TESELA_BULK_CREATE && given->kind != TESELA_BULK_UPSERT;
    if (status == TESELA_OK && !client__operation_add(&text, &(batch_operation){.kind = kinds[given->kind],
                                                                                .id = has_id ? given->id : NULL,
                                                                                .body = given->body,
                                                                                .if_match = given->if_match,
                                                                                .key = buf_view(&key)})) {
        status = client__fail(error, TESELA_BAD_ARGUMENT, "The operation's item is not JSON.");
    }
    if (status == TESELA_OK && !buf_ok(&text)) {
        status = client__fail(error, TESELA_TOO_LARGE, "The operation's item is too large.");
    }
    buf_free(&key);
    if (status != TESELA_OK) {
        buf_free(&text);
        free_operation(o);
        return status;
    }
    o->kind = given->kind;
    o->tag = given->tag;
    o->id = given->id ? mem_text(given->id, strlen(given->id)) : NULL;
    o->body = given->body ? mem_text(given->body, strlen(given->body)) : NULL;
    o->text = buf_take(&text, &o->text_n);
    b->waiting++;
    queue(b, o);
    if (b->waiting >= b->options.queued) {
        while (b->waiting >= b->options.queued) {
            pump(b, true, true);
        }
    } else if (is_full(b, &b->lists[client__routing_find(b->routing, &o->place) - b->routing->ranges])) {
        pump(b, false, false);
    }
    return TESELA_OK;
}

tesela_status tesela_bulk_finish(tesela_bulk *b, tesela_error *error) {
    while (b->waiting) {
        pump(b, true, true);
    }
    tesela_status status = b->failed;
    if (status != TESELA_OK && error) {
        *error = b->error;
    }
    b->failed = TESELA_OK;
    return status;
}

/* ---- reading many ---- */

typedef struct many {
    void (*found)(void *context, size_t index, const tesela_bulk_result *result);
    void *context;
    tesela_status failed;
    int http_status;
} many;

static void on_found(void *context, const tesela_bulk_result *r) {
    many *m = context;
    if (r->status != TESELA_OK && r->status != TESELA_NOT_FOUND && m->failed == TESELA_OK) {
        m->failed = r->status;
        m->http_status = r->http_status;
    }
    if (m->found) {
        m->found(m->context, (size_t)(uintptr_t)r->tag, r);
    }
}

tesela_status tesela_items_read(tesela_container *k, const tesela_item_name *names, size_t count,
                                void (*found)(void *context, size_t index, const tesela_bulk_result *result), void *context,
                                tesela_error *error) {
    many m = {.found = found, .context = context};
    tesela_bulk *b;
    tesela_status status = tesela_bulk_open(k, &(tesela_bulk_options){.done = on_found, .context = &m}, &b, error);
    for (size_t i = 0; status == TESELA_OK && i < count; i++) {
        status = tesela_bulk_add(
            b, &(tesela_bulk_operation){.kind = TESELA_BULK_READ, .id = names[i].id, .key = &names[i].key, .tag = (void *)(uintptr_t)i},
            error);
    }
    if (status == TESELA_OK) {
        (void)tesela_bulk_finish(b, NULL);
        if (m.failed != TESELA_OK) {
            status = client__fail(error, m.failed, "A read failed: %s.", tesela_status_text(m.failed));
        }
    }
    tesela_bulk_close(b);
    return status;
}
