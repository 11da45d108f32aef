#include "api/mongo/scan.h"

#include "api/mongo/transaction.h"

static bool sink(void *context, const query_found *row) {
    mongo_request *q = context;
    mongo_scan *s = q->scan;
    s->times = row->times;
    bool taken = s->take(q, row->body);
    s->stopped = s->stopped || !taken;
    return taken;
}

static void finish(mongo_request *q, mongo_handler handler) {
    err code = handler(q);
    if (code != OK) {
        mongo_fail(q, code);
    }
}

static void page_read(call *c) {
    mongo_request *q = (mongo_request *)c;
    mongo_scan *s = q->scan;
    if (!q->transaction) { /* a transaction has set it already */
        if (c->code == OK && !s->from.n) {
            mongo_index_uses_add(q->front->index_uses, q->container->space->container, q->call.find.outcome.index);
        }
        s->from = q->call.find.next;
        s->counted += c->code == OK ? q->call.find.outcome.counted : 0;
    }
    s->from = s->stopped ? SLICE_EMPTY : s->from;
    s->code = c->code != OK ? c->code : s->failed;
    if (s->code != OK) {
        finish(q, s->done);
    } else if (s->page) {
        finish(q, s->page);
    } else {
        mongo_scan_next(q);
    }
}

static void read_page(mongo_request *q) {
    mongo_scan *s = q->scan;
    const mongo_find *f = s->find;
    if (s->begin_page) {
        s->begin_page(q);
    }
    if (q->transaction) {
        mongo_transaction_page(q, s, page_read);
        return;
    }
    call_find_init(&q->call.find, &q->front->core, &q->frame->client, &q->op, q->container, page_read);
    q->call.find.find.where = f->where;
    q->call.find.find.order = f->order;
    q->call.find.find.counts = f->counts;
    q->call.find.find.each = f->each;
    q->call.find.find.verified = s->verified;
    if (f->one_partition) {
        q->call.find.find.scope = query_scope_partition(&f->partition);
    }
    if (s->rows_max) {
        q->call.find.rows_max = s->rows_max;
    }
    q->call.find.from = s->from;
    q->call.find.sink = sink;
    q->call.find.context = q;
    call_find_submit(&q->call.find);
}

void mongo_scan_start(mongo_request *q, mongo_scan *scan) {
    q->scan = scan;
    scan->from = SLICE_EMPTY;
    scan->stopped = false;
    scan->code = scan->failed = OK;
    scan->times = 1;
    scan->counted = 0;
    read_page(q);
}

void mongo_scan_next(mongo_request *q) {
    if (q->scan->from.n) {
        read_page(q);
        return;
    }
    finish(q, q->scan->done);
}
