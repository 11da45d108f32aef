#include "script/execute.h"

#include <pthread.h>

#include "base/random.h"
#include "throughput/charge.h"

enum { RETIRED_MAX = 3 };

static void give_unfit(script_attempt *a) {
    script_process_give(a->pool, a->process, false);
    a->process = NULL;
}

err script_attempt_run(script_attempt *a, script_run *run) {
    if (a->process && a->unfit) { /* the process ended with the previous run */
        give_unfit(a);
    }
    if (!a->process) {
        TRY(script_process_take(a->pool, &a->process));
    }
    run->until_us = a->until_us;
    run->call = script_transaction_call;
    run->context = a->transaction;
    err code = script_run_in(a->process, a->op, run);
    a->unfit = !run->fit;
    a->cpu_us += run->cpu_us;
    if (run->retired && a->retired++ < RETIRED_MAX) {
        give_unfit(a);
        return script_attempt_run(a, run);
    }
    return code;
}

/* Copies the transaction's error message to the request's op, unless a script's error is already there. */
static void tell(op *o, const op *of_transaction) {
    if (!o->detail_n && of_transaction->detail_n) {
        memcpy(o->detail, of_transaction->detail, of_transaction->detail_n + 1);
        o->detail_n = of_transaction->detail_n;
    }
}

typedef struct work {
    const script_scope *scope;
    op *op;
    script_attempt attempt;
    double charge_ru;    /* charge of the last attempt */
    double unsettled_ru; /* unsettled charges of all attempts */
} work;

static err try_once(work *w, err (*attempt)(void *context, script_attempt *a), void *context, item_mark *mark_out) {
    script_transaction *t = script_transaction_begin(w->scope, w->op);
    op *o = script_transaction_op(t);
    w->attempt.transaction = t;
    w->op->detail_n = 0;
    err code = attempt(context, &w->attempt);
    if (code == OK) {
        o->detail_n = 0; /* drop the error of a call that the script handled */
        code = script_transaction_commit(t, mark_out);
    }
    if (code != OK) {
        tell(w->op, o);
    }
    w->charge_ru = o->charge_ru;
    w->unsettled_ru += script_transaction_unsettled(t);
    script_transaction_end(t);
    return code;
}

static bool may_try_again(const work *w, err code, unsigned tries) {
    bool others = code == E_RETRY_WITH || code == E_UNIQUE_KEY;
    return others && tries < SCRIPT_TRIES_MAX && script_now_us() < w->scope->soft_us;
}

err script_transact(script_pool *pool, const script_scope *scope, op *o, err (*attempt)(void *context, script_attempt *a), void *context,
                    item_mark *mark_out) {
    int64_t begun_us = script_now_us();
    script_scope limited = *scope;
    limited.soft_us = begun_us + SCRIPT_SOFT_US;
    work w = {.scope = &limited, .op = o, .attempt = {.op = o, .pool = pool, .until_us = begun_us + SCRIPT_RUN_US}};
    TRY(item_admit_many(scope->items, o, scope->container, scope->key, 1));
    err code = OK;
    unsigned tries = 0;
    do {
        code = try_once(&w, attempt, context, mark_out);
        tries++;
    } while (may_try_again(&w, code, tries));
    if (w.attempt.process) {
        script_process_give(pool, w.attempt.process, !w.attempt.unfit);
    }
    double own = charge_script(code == E_SCRIPT_TIMEOUT ? SCRIPT_RUN_US : w.attempt.cpu_us); /* a timeout costs the full time */
    op_charge(o, own + w.charge_ru);
    item_debit(scope->items, o, scope->container, scope->key, own + w.unsettled_ru, true, code != OK);
    return code;
}

static uint64_t sequence_secret;
static pthread_once_t sequence_once = PTHREAD_ONCE_INIT;

static void choose_sequence_secret(void) {
    random_source random;
    random_seed_system(&random);
    sequence_secret = random_u64(&random);
}

/* A sequence is a keyed hash of the partition. The secret prevents clients from choosing a key that collides with another's sequence to
 * delay it. */
uint64_t script_sequence(const container *c, const item_key *key) {
    layout_key k;
    pthread_once(&sequence_once, choose_sequence_secret);
    uint64_t hash = sequence_secret;
    layout_size(&k, c->space->container, &key->epk, &key->partition);
    for (size_t i = 0; i < k.n; i++) {
        hash = (hash ^ (unsigned char)k.bytes[i]) * 0x100000001b3;
    }
    return hash == 0 || hash == UINT64_MAX ? 1 : hash;
}
