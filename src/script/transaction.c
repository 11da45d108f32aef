#include "script/transaction.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "script/process.h"

enum { RESERVE_FIRST = 4, RESERVE_MAX = 256, CHARGED_SECONDS = 5 };

struct script_transaction {
    script_scope scope;
    item_transaction *core;
    const item_moment *moment; /* owned by `core` */
    op op;
    arena call_arena;
    random_source random;
    uint64_t reserved;
    uint32_t reserved_n, reserve_next;
    double charge_max; /* 0: no bound */
    double unsettled_ru;

    /* for waiting for the committer */
    pthread_mutex_t lock;
    pthread_cond_t come;
    bool answered;
    item_reserve reserve;
};

/* ---- the committer ---- */

static void answer(void *context) {
    script_transaction *t = context;
    pthread_mutex_lock(&t->lock);
    t->answered = true;
    pthread_cond_signal(&t->come);
    pthread_mutex_unlock(&t->lock);
}

static void wait_for_answer(script_transaction *t) {
    pthread_mutex_lock(&t->lock);
    while (!t->answered) {
        pthread_cond_wait(&t->come, &t->lock);
    }
    t->answered = false;
    pthread_mutex_unlock(&t->lock);
}

static void reserve_done(item_reserve *r) {
    answer((char *)r - offsetof(script_transaction, reserve));
}

/* Reserves numbers in batches, which double in size. */
static err next_number(void *context, container *c, const item_key *key, uint64_t *number_out) {
    script_transaction *t = context;
    (void)key; /* in the scope's partition */
    if (t->reserved_n == 0) {
        uint32_t n = t->reserve_next;
        t->reserve_next = 2 * n < RESERVE_MAX ? 2 * n : RESERVE_MAX;
        t->reserve = (item_reserve){.container = c, .key = t->scope.key, .n = n, .done = reserve_done};
        item_reserve_submit(t->scope.items, &t->reserve);
        wait_for_answer(t);
        TRY(t->reserve.base.code);
        t->reserved = t->reserve.first;
        t->reserved_n = n;
    }
    t->reserved_n--;
    *number_out = t->reserved++;
    return OK;
}

/* ---- life ---- */

static void init_op(script_transaction *t, const op *o) {
    op_init(&t->op, &t->call_arena, clock_wall_ms(t->scope.items->clock) / 1000);
    t->op.low_priority = o->low_priority;
    t->op.throughput_bucket = o->throughput_bucket;
    t->op.strong = o->strong;
    t->op.admitted = true;
}

script_transaction *script_transaction_begin(const script_scope *scope, const op *o) {
    script_transaction *t = mem_zero(sizeof *t);
    t->scope = *scope;
    t->call_arena = arena_init_counted(o->budget);
    init_op(t, o);
    t->reserve_next = RESERVE_FIRST;
    t->charge_max = CHARGED_SECONDS * item_rate(scope->container, scope->key);
    random_seed_system(&t->random);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->come, NULL);
    item_transaction_ask ask = {.items = scope->items, .budget = o->budget, .unsettled = true, .number = next_number, .context = t};
    t->core = item_transaction_begin(&ask);
    err code = item_transaction_moment(t->core, &t->op, scope->container, scope->key, &t->moment);
    assert(code == OK); /* the first call of a transaction without a deadline never fails */
    return t;
}

void script_transaction_end(script_transaction *t) {
    item_transaction_end(t->core);
    pthread_cond_destroy(&t->come);
    pthread_mutex_destroy(&t->lock);
    arena_free(&t->call_arena);
    free(t);
}

op *script_transaction_op(script_transaction *t) {
    return &t->op;
}

const script_scope *script__scope(const script_transaction *t) {
    return &t->scope;
}

const item_moment *script__moment(const script_transaction *t) {
    return t->moment;
}

double script_transaction_unsettled(const script_transaction *t) {
    return t->unsettled_ru;
}

arena *script__arena(script_transaction *t) {
    return &t->call_arena;
}

random_source *script__random(script_transaction *t) {
    return &t->random;
}

bool script__accepts(script_transaction *t, size_t bytes) {
    bool in_time = !t->scope.soft_us || script_now_us() < t->scope.soft_us;
    bool room = item_transaction_accepts(t->core, bytes);
    return in_time && room && (t->charge_max == 0 || t->op.charge_ru < t->charge_max);
}

/* ---- calls ---- */

static item_key key_of(const script_transaction *t, slice id) {
    item_key key = *t->scope.key;
    key.row = id;
    return key;
}

err script__read(script_transaction *t, slice id, item_found *found_out) {
    item_key key = key_of(t, id);
    double before = t->op.charge_ru;
    err code = item_transaction_read(t->core, &t->op, t->scope.container, &key, false, found_out);
    t->unsettled_ru += t->op.charge_ru - before;
    return code;
}

err script__find_number(script_transaction *t, uint64_t number, slice *id_out) {
    return item_transaction_row_of(t->core, &t->op, t->scope.container, t->scope.key, number, id_out);
}

err script_transaction_write(script_transaction *t, item_op *op) {
    double before = t->op.charge_ru;
    op->key = key_of(t, op->key.row);
    err code = item_transaction_write(t->core, &t->op, t->scope.container, op);
    t->unsettled_ru += t->op.charge_ru - before;
    return code;
}

err script_transaction_commit(script_transaction *t, item_mark *mark_out) {
    item_transaction_list(t->core);
    TRY(item_transaction_commit(t->core, &t->op, answer, t));
    wait_for_answer(t);
    while (item_transaction_missed(t->core)) {
        item_transaction_fetch(t->core);
        item_transaction_commit_again(t->core, true);
        wait_for_answer(t);
    }
    TRY(item_transaction_outcome(t->core, &t->op));
    if (!item_transaction_mark(t->core, t->scope.container, mark_out)) {
        *mark_out = item_mark_of(container_route(t->scope.container->tiles, &t->scope.key->epk));
    }
    return OK;
}
