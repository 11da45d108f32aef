/* pipeline_flow.c — flows: pushing, stepping, taking; finds that stages wait for; flows of sub-pipelines. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "mql/pipeline_int.h"

enum { QUEUE_BYTES_MAX = 512 * 1024 * 1024, CHECK_EVERY = 64 };

/* ---- queues ---- */

err mql__queue_push(mql__queue *q, slice document) {
    if (q->at == q->bytes.n) {
        q->at = q->bytes.n = 0;
    }
    buf_add_slice(&q->bytes, document);
    return buf_ok(&q->bytes) ? OK : q->bytes.budget && q->bytes.budget->exceeded ? budget_error(q->bytes.budget) : E_MEMORY;
}

bool mql__queue_pop(mql__queue *q, slice *document_out) {
    *document_out = SLICE_EMPTY;
    if (q->at >= q->bytes.n) {
        return false;
    }
    *document_out = slice_of(q->bytes.p + q->at, (size_t)doc_load_i32(q->bytes.p + q->at));
    q->at += document_out->n;
    return true;
}

static mql__queue queue_init(budget *b) {
    return (mql__queue){.bytes = buf_init_counted(QUEUE_BYTES_MAX, b)};
}

/* ---- pulling ---- */

static void pop_times(mql_flow *f) {
    memcpy(&f->repeats, f->times.p + f->times_at, sizeof f->repeats);
    f->times_at += sizeof f->repeats;
    if (f->times_at == f->times.n) {
        f->times_at = f->times.n = 0;
    }
}

static err pull_input(mql_flow *f, mql__status *status_out, slice *document_out) {
    if (mql__queue_pop(&f->input, document_out)) {
        pop_times(f);
        *status_out = MQL__DOCUMENT;
        return ++f->pulled % CHECK_EVERY == 0 ? op_check(f->run->op) : OK;
    }
    *status_out = f->ended ? MQL__END : MQL__BLOCKED;
    if (!f->ended) {
        f->need = MQL_NEED_INPUT;
    }
    return OK;
}

/* Runs a stage that maps each document to one document, or to none. */
static err next_mapped(mql__runner *at, mql__status *status_out, slice *document_out) {
    mql_run *r = mql__run_of(at);
    for (;;) {
        arena_mark mark = arena_marked(r->arena);
        slice document;
        TRY(mql__pull(at, status_out, &document));
        if (*status_out != MQL__DOCUMENT) {
            return OK;
        }
        r->root = mql_document(document);
        TRY(at->stage->kind->map(r, at->stage, document, document_out));
        TRY(mql__arena_error(r->arena));
        if (document_out->n) {
            return OK;
        }
        arena_release(r->arena, mark);
    }
}

static err next(mql_flow *f, size_t stages, mql__status *status_out, slice *document_out) {
    *document_out = SLICE_EMPTY;
    if (stages == 0) {
        return pull_input(f, status_out, document_out);
    }
    mql__runner *at = &f->runners[stages - 1];
    TRY(mql_pay(f->run, 2));
    return at->stage->kind->next ? at->stage->kind->next(at, status_out, document_out) : next_mapped(at, status_out, document_out);
}

err mql__pull(mql__runner *at, mql__status *status_out, slice *document_out) {
    return next(at->flow, at->position, status_out, document_out);
}

/* ---- flows ---- */

mql_flow *mql_flow_begin(const mql_pipeline *p, size_t from, budget *memory) {
    mql_flow *f = mem_zero(sizeof *f);
    f->pipeline = p;
    f->budget = memory;
    f->memory = arena_init_counted(memory);
    f->scratch = arena_init_counted(memory);
    f->input = queue_init(memory);
    f->times = buf_init_counted(QUEUE_BYTES_MAX, memory);
    f->n = p->n - from;
    f->runners = arena_array(&f->memory, mql__runner, f->n + 1);
    for (size_t i = 0; i < f->n; i++) {
        const mql__stage *s = &p->stages[from + i];
        f->runners[i] = (mql__runner){.stage = s, .flow = f, .position = i};
        f->runners[i].state = s->kind->state_bytes ? arena_zero(&f->memory, s->kind->state_bytes) : NULL;
    }
    return f;
}

void mql_flow_free(mql_flow *f) {
    if (!f) {
        return;
    }
    for (size_t i = 0; i < f->n; i++) {
        if (f->runners[i].stage->kind->end) {
            f->runners[i].stage->kind->end(&f->runners[i]);
        }
    }
    buf_free(&f->input.bytes);
    buf_free(&f->times);
    arena_free(&f->scratch);
    arena_free(&f->memory);
    free(f);
}

err mql_flow_push_times(mql_flow *f, slice document, uint64_t times) {
    buf_add(&f->times, (const char *)&times, sizeof times);
    if (!buf_ok(&f->times)) {
        return f->budget && f->budget->exceeded ? budget_error(f->budget) : E_MEMORY;
    }
    return mql__queue_push(&f->input, document);
}

err mql_flow_push(mql_flow *f, slice document) {
    return mql_flow_push_times(f, document, 1);
}

void mql_flow_end(mql_flow *f) {
    f->ended = true;
}

/* The flow's memory has its own limit; exceeding it is MongoDB's error. */
static err memory_error(mql_flow *f, err e) {
    if (e != E_MEMORY || f->run->op->protocol_code) {
        return e;
    }
    return mql_fail(f->run->op, 292,
                    "PlanExecutor error during aggregation :: caused by :: Exceeded memory limit of %zu bytes: nothing is written to disk, "
                    "also with allowDiskUse",
                    f->budget ? f->budget->max : 0);
}

/* One document of the flow. */
static err flow_next(mql_flow *f, mql_run *r, mql__status *status_out) {
    arena *before = r->arena;
    mql_value root = r->root;
    arena_reset(&f->scratch);
    r->arena = &f->scratch;
    f->run = r;
    f->asking = NULL;
    f->waiting = NULL;
    err e = next(f, f->n, status_out, &f->output);
    e = memory_error(f, e);
    f->run = NULL;
    r->arena = before;
    r->root = root;
    return e;
}

err mql_flow_step(mql_flow *f, mql_run *r, mql_need *need_out) {
    mql__status status = MQL__END;
    *need_out = MQL_NEED_NOTHING;
    TRY(flow_next(f, r, &status));
    *need_out = status == MQL__DOCUMENT ? MQL_NEED_TAKE : status == MQL__END ? MQL_NEED_NOTHING : f->need;
    return OK;
}

slice mql_flow_take(mql_flow *f) {
    return f->output;
}

/* ---- finds ---- */

void mql__ask_begin(mql__runner *at, mql__ask *ask, slice collection, slice filter) {
    buf bytes = ask->arrived.bytes.p ? ask->arrived.bytes : buf_init_counted(QUEUE_BYTES_MAX, at->flow->budget);
    buf_clear(&bytes);
    static atomic_uint ids; /* must be unique among the flows of one pipeline */
    *ask = (mql__ask){.lookup = {atomic_fetch_add(&ids, 1), collection, filter}, .arrived = {.bytes = bytes}, .open = true};
}

err mql__ask_next(mql__runner *at, mql__ask *ask, mql__status *status_out, slice *document_out) {
    *status_out = MQL__DOCUMENT;
    if (mql__queue_pop(&ask->arrived, document_out)) {
        return OK;
    }
    *status_out = ask->ended ? MQL__END : MQL__BLOCKED;
    if (!ask->ended) {
        at->flow->need = MQL_NEED_LOOKUP;
        at->flow->asking = ask;
    }
    return OK;
}

void mql__ask_end(mql__ask *ask) {
    buf_free(&ask->arrived.bytes);
    *ask = (mql__ask){0};
}

static mql__ask *asked(const mql_flow *f) {
    while (f->waiting) {
        f = f->waiting;
    }
    return f->asking;
}

void mql_flow_lookup(const mql_flow *f, mql_lookup *lookup_out) {
    mql__ask *ask = asked(f);
    *lookup_out = ask ? ask->lookup : (mql_lookup){0};
}

err mql_flow_lookup_push(mql_flow *f, slice document) {
    mql__ask *ask = asked(f);
    return ask ? mql__queue_push(&ask->arrived, document) : OK;
}

void mql_flow_lookup_end(mql_flow *f) {
    mql__ask *ask = asked(f);
    if (ask) {
        ask->ended = true;
    }
}

/* ---- sub-pipelines ---- */

mql_flow *mql__sub_begin(mql__runner *at, const mql_pipeline *p) {
    return mql_flow_begin(p, 0, at->flow->budget);
}

err mql__sub_next(mql__runner *at, mql_flow *sub, mql__status *status_out, slice *document_out, bool *hungry_out) {
    *hungry_out = false;
    TRY(flow_next(sub, at->flow->run, status_out));
    *document_out = sub->output;
    if (*status_out == MQL__BLOCKED) {
        *hungry_out = sub->need == MQL_NEED_INPUT;
        if (!*hungry_out) {
            at->flow->need = MQL_NEED_LOOKUP;
            at->flow->waiting = sub;
        }
    }
    return OK;
}
