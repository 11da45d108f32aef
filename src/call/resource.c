#include "call/call_int.h"

static void leave_committer(account_change *change) {
    call_complete(change->context, change->commit.code);
}

void call_await_change(call *c, account_change *change) {
    change->account = c->core->account;
    change->op = c->op;
    change->done = leave_committer;
    change->context = c;
}
