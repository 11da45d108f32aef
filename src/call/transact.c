#include "account/scripts.h"
#include "call/call_int.h"

static err find_function(void *context, arena *a, slice id, slice *body_out) {
    const call *c = context;
    account_script *s;
    TRY(account_find_script(c->core->account, c->container, ACCOUNT_FUNCTION, id, false, &s));
    *body_out = arena_copy(a, s->body);
    account_script_give(s);
    return OK;
}

static err attempt(void *context, script_attempt *a) {
    call_transact *t = context;
    return t->attempt(t, a);
}

static void run(call *c) {
    call_transact *t = (call_transact *)c;
    script_scope scope = {
        .items = call__items(c),
        .container = c->container,
        .key = &t->key,
        .tokens = t->tokens,
        .function = find_function,
        .context = c,
        .pool = c->core->scripts,
    };
    c->code = script_transact(c->core->scripts, &scope, c->op, attempt, t, &c->mark);
}

static void go(call *c) {
    const call_transact *t = (const call_transact *)c;
    call__on_script_thread(c, script_sequence(c->container, &t->key), run, call__finish);
}

void call_transact_init(call_transact *t, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    call_init(&t->call, core, client, o, container, done);
    t->tokens = NULL;
    t->attempt = NULL;
}

void call_transact_submit(call_transact *t) {
    const epk *at = &t->key.epk;
    call__enter(&t->call, at, at, call__one_range(&t->call, at, at), true, go);
}
