#include "api/mongo/work.h"

static void run(call *c) {
    mongo_request *q = (mongo_request *)c;
    c->code = q->work(q);
}

static void ended(call *c) {
    mongo_request *q = (mongo_request *)c;
    q->worked(q, c->code);
}

void mongo_work(mongo_request *q, bool long_work, mongo_handler work, void (*then)(mongo_request *q, err code)) {
    if (!long_work) {
        q->steps = MONGO_LOOP_STEPS;
        err code = work(q);
        if (code != E_QUERY_TOO_LONG) {
            then(q, code);
            return;
        }
        q->op.detail_n = 0;
        q->op.protocol_code = 0;
    }
    q->steps = MONGO_WORKER_STEPS;
    q->work = work;
    q->worked = then;
    call_init(&q->call.any, &q->front->core, &q->frame->client, &q->op, q->container, ended);
    if (!q->container) {
        q->call.any.tenant = call_tenant_of_none();
    }
    call_work(&q->call.any, NET_PAGES, run);
}
