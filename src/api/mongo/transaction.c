#include "api/mongo/transaction.h"

#include "api/mongo/filter_kind.h"
#include "api/mongo/plan.h"

enum { MATCH_STEPS = 10000000 };

/* ---- entering and leaving ---- */

static err no_transaction(mongo_request *q) {
    return op_fail_as(&q->op, E_BAD_REQUEST, CODE_NO_SUCH_TRANSACTION,
                      "Given transaction number %ld does not match any in-progress transactions.", (long)q->session.number);
}

static err refuse_turn(mongo_request *q, session_turn turn) {
    switch (turn) {
    case SESSION_BUSY:
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_CONFLICTING_OPERATION, "Another command of the transaction is in progress.");
    case SESSION_NUMBER_OLD:
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_TRANSACTION_TOO_OLD, "Transaction number %ld was used before on this session.",
                          (long)q->session.number);
    case SESSION_CROWDED:
        return op_fail_as(&q->op, E_BUSY_MEMORY, CODE_TOO_MANY_REQUESTS, "Too many transactions are open.");
    case SESSION_IS_OVER:
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_TRANSACTION_COMMITTED, "Transaction with number %ld has been committed.",
                          (long)q->session.number);
    default:
        return no_transaction(q);
    }
}

static err begin(mongo_request *q) {
    call_transaction *t = call_transaction_begin(&q->front->core, q->frame->client.loop);
    session_turn turn = mongo_sessions_begin(q->front->sessions, &q->session.id, q->session.number, t, q->started_us);
    if (turn != SESSION_TAKEN) {
        call_transaction_end(t);
        return refuse_turn(q, turn);
    }
    q->transaction = t;
    return OK;
}

static err take(mongo_request *q) {
    session_turn turn = mongo_sessions_take(q->front->sessions, &q->session.id, q->session.number, q->started_us, &q->transaction);
    return turn == SESSION_TAKEN ? OK : refuse_turn(q, turn);
}

err mongo_transaction_enter(mongo_request *q) {
    bool starts = false;
    if (!(q->command->flags & MONGO_WITHIN)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_NOT_IN_TRANSACTION, "Cannot run '%s' in a multi-document transaction.",
                          q->command->name);
    }
    if (!q->session.numbered) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS, "A transaction needs an lsid and a txnNumber.");
    }
    TRY(mongo_arg_bool(q, "startTransaction", &starts));
    q->transaction_state = SESSION_OPEN;
    return starts ? begin(q) : take(q);
}

void mongo_transaction_leave(mongo_request *q, bool failed) {
    if (q->transaction) {
        bool aborts = q->transaction_state == SESSION_OPEN && (failed || q->write_failed);
        mongo_sessions_give(q->front->sessions, &q->session.id, aborts ? SESSION_ABORTED : q->transaction_state, q->started_us);
        q->transaction = NULL;
    }
}

/* ---- commitTransaction, abortTransaction ---- */

static void committed(call *c) {
    mongo_request *q = (mongo_request *)c;
    q->transaction_state = c->code == OK ? SESSION_COMMITTED : SESSION_ABORTED;
    if (c->code == OK) {
        mongo_ok(q);
    } else {
        mongo_fail(q, c->code);
    }
}

/* A commit that is repeated because its answer was lost succeeds again. */
err mongo_commit_transaction(mongo_request *q) {
    session_turn turn = mongo_sessions_take(q->front->sessions, &q->session.id, q->session.number, q->started_us, &q->transaction);
    if (turn == SESSION_IS_OVER) {
        return mongo_ok(q);
    }
    if (turn != SESSION_TAKEN) {
        return refuse_turn(q, turn);
    }
    q->transaction_state = SESSION_ABORTED;
    call_within_init(&q->call.within, q->transaction, &q->front->core, &q->frame->client, &q->op, NULL, committed);
    call_within_commit(&q->call.within);
    return OK;
}

err mongo_abort_transaction(mongo_request *q) {
    TRY(take(q));
    q->transaction_state = SESSION_ABORTED;
    return mongo_ok(q);
}

/* ---- writing ---- */

typedef struct writing {
    item_op *ops;
    size_t n, at;
    bool stops;
    call_step done;
} writing;

static void write_next(mongo_request *q);

static void all_written(mongo_request *q) {
    call_step done = q->writing->done;
    call_commit_init(&q->call.commit, &q->front->core, &q->frame->client, &q->op, q->container, done);
    item_commit_init(&q->call.commit.commit);
    done(&q->call.any);
}

static void written(call *c) {
    mongo_request *q = (mongo_request *)c;
    writing *w = q->writing;
    w->ops[w->at].code = c->code;
    w->at++;
    if (c->code != OK && w->stops) {
        for (; w->at < w->n; w->at++) {
            w->ops[w->at].code = E_FAILED_DEPENDENCY;
        }
    }
    write_next(q);
}

static void write_next(mongo_request *q) {
    writing *w = q->writing;
    if (w->at == w->n) {
        all_written(q);
        return;
    }
    call_within_init(&q->call.within, q->transaction, &q->front->core, &q->frame->client, &w->ops[w->at].op, q->container, written);
    q->call.within.op = &w->ops[w->at];
    call_within_write(&q->call.within);
}

void mongo_commit(mongo_request *q, item_op *ops, size_t n, bool stops, call_step done) {
    if (q->transaction) {
        q->writing = arena_new(q->frame->arena, writing);
        *q->writing = (writing){.ops = ops, .n = n, .stops = stops, .done = done};
        write_next(q);
        return;
    }
    call_commit_init(&q->call.commit, &q->front->core, &q->frame->client, &q->op, q->container, done);
    q->call.commit.ops = ops;
    q->call.commit.n = n;
    q->call.commit.stops_at_failure = stops;
    call_commit_submit(&q->call.commit);
}

/* ---- reading ---- */

struct mongo_reading {
    mongo_scan *scan;
    mongo_scope scope;
    const mql_match *match; /* NULL: all documents */
    bool parsed;            /* match is set: the first visit, on a worker, parses the filter */
    item_key key;           /* key of the document or the partition */
    arena row;
    size_t taken;
    call_step done;
};

static err parse_filter(mongo_request *q, struct mongo_reading *r) {
    const mongo_find *f = r->scan->find;
    r->parsed = true;
    TRY(mongo_scope_begin(&q->op, q->front->surface == MONGO_SERVICE, f->variables, f->now_ms, &r->scope));
    TRY(mongo_scope_collate(&q->op, r->scan->container ? r->scan->container : q->container, f->collation, &r->scope));
    return f->filter.n ? mql_match_parse(&r->scope.scope, f->filter, &r->match) : OK;
}

static bool visit(void *context, const item_found *found) {
    mongo_request *q = context;
    struct mongo_reading *r = q->reading;
    mongo_scan *s = r->scan;
    bool matches = true;
    if (s->paused || (s->rows_max && r->taken == s->rows_max)) {
        return false; /* the page is full */
    }
    s->failed = r->parsed ? OK : parse_filter(q, r);
    if (s->failed == OK && r->match) {
        mql_run run = mongo_run_of(&q->op, &r->row, &r->scope, MATCH_STEPS);
        run.root = mql_document(found->body);
        s->failed = mql_matches(&run, r->match, &matches, NULL);
        arena_reset(&r->row);
    }
    if (s->failed != OK || (matches && !s->take(q, found->body))) {
        s->stopped = true;
        return false;
    }
    r->taken += matches;
    return true;
}

static void page_ended(call *c) {
    mongo_request *q = (mongo_request *)c;
    struct mongo_reading *r = q->reading;
    arena_free(&r->row);
    r->scan->from = c->code == OK && !q->call.within.cursor.ended ? q->call.within.cursor.place : SLICE_EMPTY;
    r->done(c);
}

static container *container_of(const mongo_request *q, const mongo_scan *s) {
    return s->container ? s->container : q->container;
}

/* Chooses what to read: the document that the filter names, its partition, or the whole collection. */
static void choose_rows(mongo_request *q, struct mongo_reading *r, item_rows_ask *ask) {
    const mongo_find *f = r->scan->find;
    bool alone;
    if (f->filter.n && !f->collation.n && mongo_plan_point(&q->op, container_of(q, r->scan), f->filter, &r->key, &alone)) {
        *ask = item_rows_ask_partition(&r->key);
        ask->from = ask->to = (item_row_bound){.given = true, .prefix = r->key.row};
    } else if (f->one_partition) {
        r->key = f->partition;
        *ask = item_rows_ask_partition(&r->key);
    } else {
        r->key = (item_key){.epk = epk_min()};
        *ask = item_rows_ask_space(epk_min(), epk_max());
    }
}

void mongo_transaction_page(mongo_request *q, mongo_scan *s, call_step done) {
    struct mongo_reading *r = q->reading;
    if (!r || r->scan != s || !s->from.n) {
        r = q->reading = arena_new(q->frame->arena, struct mongo_reading);
        r->scan = s;
    }
    r->row = arena_init_counted(q->op.budget);
    r->taken = 0;
    r->done = done;
    call_within_init(&q->call.within, q->transaction, &q->front->core, &q->frame->client, &q->op, container_of(q, s), page_ended);
    choose_rows(q, r, &q->call.within.rows);
    q->call.within.key = r->key;
    q->call.within.cursor.place = s->from;
    q->call.within.sink = visit;
    q->call.within.context = q;
    call_within_rows(&q->call.within);
}
