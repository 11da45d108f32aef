#include "api/mongo/operations.h"

#include <pthread.h>
#include <stdlib.h>

#include "api/mongo/mongo_int.h"
#include "base/memory.h"

enum { LOOPS = 64, TIMED_FIRST = 16, PROBES = 8 };

/* The times of one collection. */
typedef struct timed {
    uint32_t container; /* its number plus 1; 0: a free place */
    mongo_times times;
} timed;

/* Those of one loop; or of several, if there are more than LOOPS. */
typedef struct stripe {
    pthread_mutex_t lock;
    mongo_operation head; /* of a ring */
    timed *timed;         /* open addressing */
    size_t timed_n, timed_room;
} stripe;

struct mongo_operations {
    stripe stripes[LOOPS];
    atomic_uint ids;
};

mongo_operations *mongo_operations_new(void) {
    mongo_operations *t = mem_zero(sizeof *t);
    for (size_t i = 0; i < LOOPS; i++) {
        stripe *s = &t->stripes[i];
        pthread_mutex_init(&s->lock, NULL);
        s->head.next = s->head.prev = &s->head;
    }
    return t;
}

void mongo_operations_free(mongo_operations *t) {
    for (size_t i = 0; i < LOOPS; i++) {
        pthread_mutex_destroy(&t->stripes[i].lock);
        free(t->stripes[i].timed);
    }
    free(t);
}

static mongo_request *request_of(const mongo_operation *x) {
    return (mongo_request *)((char *)(uintptr_t)x - offsetof(mongo_request, operation));
}

static stripe *stripe_of(const mongo_request *q) {
    return &q->front->operations->stripes[net_loop_index(q->frame->client.loop) % LOOPS];
}

/* ---- killing ---- */

static void kill_operation(mongo_operation *x, int code) {
    int goes_on = 0;
    if (atomic_compare_exchange_strong(&x->killed_by, &goes_on, code)) {
        net_cancel(&request_of(x)->frame->client);
    }
}

/* A kill on its way to the operation's loop. */
typedef struct killing {
    net_task task;
    mongo_front *front;
    net_loop *loop;
    uint32_t id;
} killing;

static mongo_operation *find(stripe *s, uint32_t id) {
    for (mongo_operation *x = s->head.next; x != &s->head; x = x->next) {
        if (x->id == id) {
            return x;
        }
    }
    return NULL;
}

/* An operation ends on this loop only, so it lives on after the lock. */
static void kill_here(net_task *task) {
    killing *k = (killing *)task;
    stripe *s = &k->front->operations->stripes[net_loop_index(k->loop) % LOOPS];
    pthread_mutex_lock(&s->lock);
    mongo_operation *x = find(s, k->id);
    x = x && request_of(x)->frame->client.loop == k->loop ? x : NULL;
    pthread_mutex_unlock(&s->lock);
    if (x) {
        kill_operation(x, CODE_INTERRUPTED);
    }
    free(k);
}

void mongo_operations_kill(mongo_front *front, uint32_t id) {
    for (size_t i = 0; i < LOOPS; i++) {
        stripe *s = &front->operations->stripes[i];
        pthread_mutex_lock(&s->lock);
        const mongo_operation *x = find(s, id);
        net_loop *loop = x ? request_of(x)->frame->client.loop : NULL;
        pthread_mutex_unlock(&s->lock);
        if (loop) {
            killing *k = mem_zero(sizeof *k);
            *k = (killing){.task = {.run = kill_here}, .front = front, .loop = loop, .id = id};
            net_post(loop, &k->task);
            return;
        }
    }
}

/* ---- time limits ---- */

static void expire(net_delay *delay) {
    mongo_operation *x = (mongo_operation *)((char *)delay - offsetof(mongo_operation, limit));
    x->limit_ms = -x->limit_ms; /* the delay has ended */
    kill_operation(x, CODE_MAX_TIME_EXPIRED);
}

void mongo_operation_limit(mongo_request *q, int64_t ms) {
    q->operation.limit_ms = ms;
    net_delay_start(q->frame->client.loop, &q->operation.limit, (unsigned)ms, expire);
}

err mongo_operation_read_limit(mongo_request *q) {
    int64_t ms = 0;
    if (mql_is_missing(mongo_arg(q, "maxTimeMS")) || q->command->handle == mongo_get_more) { /* there it is the time to wait */
        return OK;
    }
    TRY(mongo_arg_count(q, "maxTimeMS", &ms));
    if (ms < 0 || ms > INT32_MAX) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "%lld value for maxTimeMS is out of range [0, 2147483647]", (long long)ms);
    }
    if (ms) {
        mongo_operation_limit(q, ms);
    }
    return OK;
}

/* ---- times ---- */

static mongo_use use_of(const mongo_command *c) {
    static const struct {
        mongo_handler handle;
        mongo_use use;
    } uses[] = {
        {mongo_find_documents, USE_QUERIES}, {mongo_get_more, USE_GETMORE}, {mongo_insert, USE_INSERT},
        {mongo_update, USE_UPDATE},          {mongo_delete, USE_REMOVE},
    };
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        if (uses[i].handle == c->handle) {
            return uses[i].use;
        }
    }
    return USE_COMMANDS;
}

/* The collection's place; if there is none nearby, that of another one. */
static timed *place_of(timed *list, size_t room, uint32_t container) {
    timed *first = &list[container * 2654435761u % room];
    for (size_t i = 0; i < PROBES; i++) {
        timed *x = &list[(container * 2654435761u + i) % room];
        if (!x->container || x->container == container) {
            return x;
        }
    }
    return first;
}

static void grow(stripe *s) {
    size_t room = s->timed_room ? 2 * s->timed_room : TIMED_FIRST;
    timed *more = mem_zero(room * sizeof *more);
    for (size_t i = 0; i < s->timed_room; i++) {
        if (s->timed[i].container) {
            *place_of(more, room, s->timed[i].container) = s->timed[i];
        }
    }
    free(s->timed);
    s->timed = more;
    s->timed_room = room;
}

static void note_time(stripe *s, uint32_t container, mongo_use use, int64_t us, bool by_key) {
    if (2 * s->timed_n >= s->timed_room && s->timed_room < OPERATIONS_TIMED_MAX) {
        grow(s);
    }
    timed *x = place_of(s->timed, s->timed_room, container);
    if (x->container != container) {
        s->timed_n += x->container == 0;
        *x = (timed){.container = container};
    }
    x->times.count[use]++;
    x->times.us[use] += (uint64_t)us;
    x->times.by_key += by_key;
}

void mongo_operations_times(mongo_operations *t, uint32_t container, mongo_times *times) {
    *times = (mongo_times){0};
    container++;
    for (size_t i = 0; i < LOOPS; i++) {
        stripe *s = &t->stripes[i];
        pthread_mutex_lock(&s->lock);
        const timed *x = s->timed_room ? place_of(s->timed, s->timed_room, container) : NULL;
        bool known = x && x->container == container;
        for (int use = 0; known && use < USES; use++) {
            times->count[use] += x->times.count[use];
            times->us[use] += x->times.us[use];
        }
        times->by_key += known ? x->times.by_key : 0;
        pthread_mutex_unlock(&s->lock);
    }
}

/* ---- beginning and ending ---- */

void mongo_operation_begin(mongo_request *q) {
    stripe *s = stripe_of(q);
    mongo_operation *x = &q->operation;
    x->id = 1 + atomic_fetch_add_explicit(&q->front->operations->ids, 1, memory_order_relaxed) % INT32_MAX;
    pthread_mutex_lock(&s->lock);
    x->prev = &s->head;
    x->next = s->head.next;
    x->next->prev = x->prev->next = x;
    pthread_mutex_unlock(&s->lock);
}

void mongo_operation_end(mongo_request *q, int64_t us) {
    stripe *s = stripe_of(q);
    mongo_operation *x = &q->operation;
    if (x->limit_ms > 0) {
        net_delay_stop(&x->limit);
    }
    if (!x->next) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    x->next->prev = x->prev;
    x->prev->next = x->next;
    uint32_t timed = q->container ? q->container->space->container + 1 : x->timed;
    if (timed) {
        note_time(s, timed, use_of(q->command), us, x->by_key);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- listing ---- */

/* What does not change while the operation is listed: another thread reads it. */
static void add_operation(mql_builder *b, const mongo_request *q, int64_t now_us) {
    char text[64];
    doc_walk w;
    doc_element first = {0};
    doc_walk_init(&w, q->message.body);
    bool named = doc_walk_next(&w, &first) && first.type == BSON_TYPE_UTF8;
    slice collection = named ? doc_element_text(&first) : SLICE_LIT("$cmd");
    int64_t us = now_us - q->started_us;
    mongo_add_text(b, "type", SLICE_LIT("op"));
    snprintf(text, sizeof text, "conn%llu", (unsigned long long)q->conn->id);
    mongo_add_text(b, "desc", slice_str(text));
    mongo_add_long(b, "connectionId", (int64_t)q->conn->id);
    mongo_add_bool(b, "active", true);
    mongo_add_int(b, "opid", (int32_t)q->operation.id);
    mongo_add_text(b, "op",
                   slice_str(use_of(q->command) == USE_QUERIES   ? "query"
                             : use_of(q->command) == USE_GETMORE ? "getmore"
                                                                 : "command"));
    buf ns = buf_init(BUF_NO_LIMIT);
    buf_addf(&ns, "%.*s.%.*s", (int)q->database.n, q->database.p, (int)collection.n, collection.p);
    mongo_add_text(b, "ns", buf_view(&ns));
    buf_free(&ns);
    mongo_add_long(b, "secs_running", us / 1000000);
    mongo_add_long(b, "microsecs_running", us);
    if (q->message.body.n <= OPERATIONS_COMMAND_BYTES) {
        mongo_add_document(b, "command", q->message.body);
    } else {
        mongo_open_document(b, "command");
        mql_add_element(b, &first);
        mongo_add_bool(b, "truncated", true);
        mql_close(b);
    }
    mongo_add_bool(b, "killPending", atomic_load(&q->operation.killed_by) != 0);
}

void mongo_operations_list(mongo_front *front, int64_t now_us, buf *out) {
    for (size_t i = 0; i < LOOPS; i++) {
        stripe *s = &front->operations->stripes[i];
        pthread_mutex_lock(&s->lock);
        for (const mongo_operation *x = s->head.next; x != &s->head && buf_ok(out); x = x->next) {
            mql_builder b = mql_build(out);
            add_operation(&b, request_of(x), now_us);
            mql_built(&b);
        }
        pthread_mutex_unlock(&s->lock);
    }
}
