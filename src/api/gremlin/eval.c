/* Running a request: a script's statements or one traversal of bytecode, one after the other.
 *
 *            ┌────────────────────────── go on ◄─────────────────────────┐
 *            ▼                                                           │
 *     turn (on the loop, or on a worker) ──┬─ asks ──► the graph ────────┤
 *                                          ├─ chunk ─► 206, sent ────────┤
 *                                          ├─ more ──► a worker ─────────┘
 *                                          ├─ ended ─► 200 or 204
 *                                          └─ failed ► the error
 *
 * The graph may answer at once, within the call: then the loop below goes on instead of a deeper call. */
#include "api/gremlin/graph.h"

enum { TURN_ASKS, TURN_CHUNK, TURN_MORE, TURN_ENDED, TURN_FAILED };

enum {
    LOOP_TURNS = 12,  /* turns of a short traversal, which ends without a worker */
    LOOP_STEPS = 100, /* of one turn on the loop */
    HEAVY_VALUES = 1000,
    WORKER_US = 200000,    /* of one turn on a worker: then the loop looks whether the server stops */
    STOPPING_US = 1000000, /* of a traversal when the server stops: longer ones end */
    BINDINGS_MAX = 1000,   /* the parser looks each name up among all of them */
};

/* ---- one turn; any thread ---- */

static bool is_last(const gremlin_eval *q) {
    return q->statement + 1 == q->script.n;
}

static bool is_full(const gremlin_eval *q) {
    return q->results.n >= q->batch || q->results.bytes.n >= GREMLIN_CHUNK_BYTES;
}

/* Adds the result that was taken. False: the chunk is full before all of it is in. */
static err add_taken(gremlin_eval *q, bool *added_out) {
    bool whole = q->results.traversers;
    *added_out = true;
    while (q->bulk > 0) {
        if (is_full(q)) {
            *added_out = false;
            return OK;
        }
        if (!gremlin_results_add(&q->results, q->taken, whole ? q->bulk : 1)) {
            return buf_ok(&q->results.bytes) ? op_fail_as(&q->op, E_BAD_REQUEST, 599, "A result has no form in the format of the response.")
                                             : E_MEMORY;
        }
        if (q->results.bytes.n > GREMLIN_RESPONSE_BYTES) {
            return op_fail(&q->op, E_BAD_QUERY, "A result takes more than %d MB: return fewer values in it, or return them one by one.",
                           GREMLIN_RESPONSE_BYTES >> 20);
        }
        q->bulk -= whole ? q->bulk : 1;
    }
    return OK;
}

static err check_time(gremlin_eval *q) {
    if (clock_monotonic_us(&clock_system) <= q->deadline_us) {
        return op_check(&q->op);
    }
    return op_fail(&q->op, E_TIMEOUT,
                   "A timeout occurred during traversal evaluation of [%.*s] - consider increasing the limit given to evaluationTimeout",
                   slice_shown(q->request.script), q->request.script.n ? q->request.script.p : "");
}

/* Writing it takes long: a worker does it. */
static bool is_heavy(gremlin_value v) {
    return v.type == GREMLIN_BULKSET || gremlin_weight(v) > HEAVY_VALUES;
}

static void begin_statement(gremlin_eval *q) {
    if (!q->run) {
        q->run = gremlin_run_begin(&q->op, q->script.traversals[q->statement], &q->options);
    }
}

static bool end_statement(gremlin_eval *q) {
    gremlin_run_free(q->run);
    q->run = NULL;
    q->statement++;
    return q->statement == q->script.n;
}

/* Works until something is to be done on the loop. `slices`: 0 on a worker, where time limits it. */
static err turn(gremlin_eval *q, unsigned slices, int *outcome_out) {
    bool added;
    gremlin_need need;
    int64_t begun = clock_monotonic_us(&clock_system);
    TRY(check_time(q));
    for (;;) {
        begin_statement(q);
        TRY(add_taken(q, &added));
        if (!added) {
            *outcome_out = TURN_CHUNK;
            return OK;
        }
        TRY(gremlin_run_step(q->run, &need));
        switch (need) {
        case GREMLIN_NEED_GRAPH:
            *outcome_out = TURN_ASKS;
            return OK;
        case GREMLIN_NEED_TAKE:
            q->taken = gremlin_run_take(q->run, &q->bulk);
            q->bulk = is_last(q) ? q->bulk : 0;
            if (slices && q->bulk && is_heavy(q->taken)) {
                *outcome_out = TURN_MORE;
                return OK;
            }
            break;
        case GREMLIN_NEED_TURN:
            TRY(check_time(q));
            if (slices ? --slices == 0 : clock_monotonic_us(&clock_system) - begun > WORKER_US) {
                *outcome_out = TURN_MORE;
                return OK;
            }
            break;
        case GREMLIN_NEED_NOTHING:
            if (end_statement(q)) {
                *outcome_out = TURN_ENDED;
                return OK;
            }
        }
    }
}

static void turn_on_worker(call *c) {
    gremlin_eval *q = (gremlin_eval *)c;
    c->code = turn(q, 0, &q->outcome);
}

/* ---- after a turn; on the loop ---- */

static void worker_ended(call *c) {
    gremlin_eval *q = (gremlin_eval *)c;
    if (c->code != OK) {
        gremlin_fail(q, c->code);
        return;
    }
    gremlin_eval_go_on(q);
}

static void to_worker(gremlin_eval *q) {
    q->outcome = TURN_MORE;
    call_init(&q->call.any, &q->front->core, &q->frame->client, &q->op, q->container, worker_ended);
    call_work(&q->call.any, NET_PAGES, turn_on_worker);
}

static void part_sent(frames_request *frame) {
    gremlin_eval *q = frame->context;
    frame->context = q->front;
    frame->client.left ? gremlin_fail(q, E_CANCELLED) : gremlin_eval_go_on(q);
}

static void ask_graph(gremlin_eval *q) {
    err code = check_time(q);
    code == OK ? gremlin_graph_answer(q) : gremlin_fail(q, code);
}

static void after_turn(gremlin_eval *q, int outcome) {
    switch (outcome) {
    case TURN_ASKS:
        ask_graph(q);
        break;
    case TURN_CHUNK:
        gremlin_reply_part(q, part_sent);
        break;
    case TURN_ENDED:
        q->transaction ? gremlin_atomic_commit(q) : gremlin_reply_end(q);
        break;
    default:
        to_worker(q);
    }
}

static bool must_stop(const gremlin_eval *q) {
    return net_loop_is_stopping(q->frame->client.loop) && clock_monotonic_us(&clock_system) - q->started_us > STOPPING_US;
}

/* A turn on the loop, or what a worker's turn has left to do. */
static void go_on_once(gremlin_eval *q) {
    int outcome = q->outcome;
    q->outcome = TURN_MORE;
    if (must_stop(q)) {
        gremlin_fail(q, E_UNAVAILABLE);
        return;
    }
    if (outcome == TURN_MORE && q->loop_turns) {
        q->loop_turns--;
        err code = turn(q, 1, &outcome);
        if (code != OK) {
            gremlin_fail(q, code);
            return;
        }
        q->loop_turns = outcome == TURN_MORE ? 0 : q->loop_turns; /* it is long: workers do the rest */
    }
    after_turn(q, outcome);
}

void gremlin_eval_go_on(gremlin_eval *q) {
    q->again = true;
    if (q->going) {
        return;
    }
    q->going = true;
    while (q->again && !q->over) {
        q->again = false;
        go_on_once(q);
    }
    q->going = false;
    if (q->over) {
        gremlin_release(q);
    }
}

/* ---- the beginning ---- */

/* The service returns its untyped form, whatever version of GraphSON 2 was asked for. */
static void choose_format(gremlin_eval *q) {
    bool bytecode = q->request.traversal != NULL;
    if (!bytecode && (q->request.format == GREMLIN_GRAPHSON_2 || q->request.format == GREMLIN_GRAPHSON_2_UNTYPED)) {
        q->request.format = GREMLIN_GRAPHSON_1;
    }
    q->results = gremlin_results_init(q->request.format, bytecode, q->op.budget);
    q->results.texts = q->request.texts && !bytecode;
    q->batch = q->request.batch_size <= 0                  ? GREMLIN_BATCH
               : q->request.batch_size > GREMLIN_BATCH_MAX ? GREMLIN_BATCH_MAX
                                                           : (size_t)q->request.batch_size;
}

/* From the request, or from with('evaluationTimeout', ms). 0 and what is too long are the longest time. */
static void set_deadline(gremlin_eval *q) {
    int64_t ms = q->request.timeout_ms >= 0 ? q->request.timeout_ms : GREMLIN_TIMEOUT_MS;
    const gremlin_source *source = q->script.n ? q->script.traversals[0]->source : NULL;
    for (size_t i = 0; source && i < source->given_n; i++) {
        const gremlin_pair *given = &source->given[i];
        if ((gremlin_is_text(given->key, "evaluationTimeout") || gremlin_is_text(given->key, "scriptEvaluationTimeout")) &&
            gremlin_is_number(given->value)) {
            (void)gremlin_as_long(given->value, &ms);
        }
    }
    ms = ms <= 0 || ms > GREMLIN_TIMEOUT_MS_MAX ? GREMLIN_TIMEOUT_MS_MAX : ms;
    q->deadline_us = q->started_us + ms * 1000;
}

static err read_script(gremlin_eval *q) {
    slice language = q->request.language;
    if (!q->request.traversal && !slice_trim(q->request.script).n) {
        return OK;
    }
    if (q->request.traversal) {
        const gremlin_traversal **one = arena_alloc(q->frame->arena, sizeof *one);
        *one = q->request.traversal;
        q->script = (gremlin_script){.n = 1, .traversals = one};
        return OK;
    }
    if (language.n && !slice_eq(language, SLICE_LIT("gremlin-groovy")) && !slice_eq(language, SLICE_LIT("gremlin-lang"))) {
        return op_fail(&q->op, E_BAD_QUERY, "The language %.*s is not known; scripts are gremlin-groovy or gremlin-lang.",
                       slice_shown(language), language.p);
    }
    if (gremlin_is_map(q->request.bindings) && q->request.bindings.map->n > BINDINGS_MAX) {
        return op_fail(&q->op, E_BAD_QUERY, "A script has %d bindings at most: send a list or a map as one of them.", BINDINGS_MAX);
    }
    return gremlin_parse(&q->op, &gremlin_limits_of_service, q->request.script, q->request.bindings, &q->script);
}

static err find_container(gremlin_eval *q) {
    account *a = q->front->core.account;
    TRY(access_reach_holds(&q->op, &q->conn->reach, access_keys_ring(q->front->keys), a));
    err code = account_container(a, slice_str(q->conn->database), false, slice_str(q->conn->container), false, &q->container);
    if (code != OK) {
        return op_fail(&q->op, E_OWNER_NOT_FOUND, "Owner resource does not exist: there is no container %s in a database %s.",
                       q->conn->container, q->conn->database);
    }
    return document_check_container(&q->op, q->container);
}

static err start(gremlin_eval *q) {
    choose_format(q);
    TRY(find_container(q));
    TRY(read_script(q));
    TRY(gremlin_atomic_read_option(q));
    TRY(gremlin_projection_check(q));
    set_deadline(q);
    q->loop_turns = q->frame->frame.n > GREMLIN_LARGE_BYTES ? 0 : LOOP_TURNS; /* one step over a long list takes long */
    q->options = (gremlin_run_options){.clock = &clock_system,
                                       .random = &q->random,
                                       .slice_steps = LOOP_STEPS,
                                       .bare_results = q->request.traversal && q->request.bare,
                                       .text = q->request.script};
    q->graph = gremlin_graph_new(q);
    q->outcome = TURN_MORE;
    return OK;
}

void gremlin_eval_start(gremlin_eval *q) {
    err code = start(q);
    if (code != OK) {
        gremlin_fail(q, code);
    } else if (q->script.n == 0) {
        gremlin_reply_end(q);
    } else {
        gremlin_eval_go_on(q);
    }
}
