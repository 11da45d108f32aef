/* machine.c — flows and their turns. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "gremlin/machine_int.h"

enum { BATCH = 512, SLICE_STEPS = 500, SLICE_US = 2000, LOOPS_MAX = 10000 };

status gremlin__fail(gremlin_run *m, err e, const char *format, ...) {
    char said[600];
    va_list args;
    va_start(args, format);
    vsnprintf(said, sizeof said, format, args);
    va_end(args);
    if (m->failure == OK) {
        m->failure = op_fail(m->op, e, "%s", said);
    }
    return FAILED;
}

/* ---- emitting ---- */

void gremlin__emit(flow *f, state *s, const traverser *t) {
    size_t next = (size_t)(s - f->states) + 1;
    s->elements = bulk_plus(s->elements, t->bulk);
    s->traversers++;
    gremlin__put(next < f->n ? &f->states[next].in : &f->out, t);
}

static const path_node *extended(gremlin_run *m, const path_node *prev, gremlin_value value, gremlin_labels labels) {
    path_node *node = arena_new(&m->heap, path_node);
    *node = (path_node){prev, value, labels, prev ? prev->n + 1 : 1};
    return node;
}

traverser gremlin__split(gremlin_run *m, const state *s, const traverser *t, gremlin_value value) {
    traverser other = *t;
    other.value = value;
    other.seed = false;
    if (m->tracks_path || (m->tracks_labels && s->step->labels.n)) {
        other.path = extended(m, t->path, value, s->step->labels);
    }
    return other;
}

/* The last node again, with more labels. */
static const path_node *labelled(gremlin_run *m, const path_node *last, gremlin_labels more) {
    gremlin_labels labels = {last->labels.n + more.n, arena_alloc(&m->heap, (last->labels.n + more.n) * sizeof(slice))};
    slice *at = (slice *)(uintptr_t)labels.at;
    if (last->labels.n) {
        memcpy(at, last->labels.at, last->labels.n * sizeof *at);
    }
    memcpy(at + last->labels.n, more.at, more.n * sizeof *at);
    path_node *node = arena_new(&m->heap, path_node);
    *node = (path_node){last->prev, last->value, labels, last->n};
    return node;
}

void gremlin__pass(gremlin_run *m, flow *f, state *s, const traverser *t) {
    traverser other = *t;
    if (s->step->labels.n && (m->tracks_path || m->tracks_labels)) {
        other.path = m->tracks_path && t->path ? labelled(m, t->path, s->step->labels) : extended(m, t->path, t->value, s->step->labels);
    }
    gremlin__emit(f, s, &other);
}

void gremlin__emit_value(gremlin_run *m, flow *f, state *s, const traverser *t, gremlin_value value) {
    traverser other = gremlin__split(m, s, t, value);
    if (gremlin_depth(value) > GREMLIN_DEPTH_MAX) {
        (void)gremlin__fail(m, E_BAD_QUERY, "A value is nested deeper than %d levels.", GREMLIN_DEPTH_MAX);
        return;
    }
    if (gremlin_weight(value) > GREMLIN_WEIGHT_MAX) {
        (void)gremlin__fail(m, E_BAD_QUERY, "A list, map or path contains more than %d values, at all levels.", GREMLIN_WEIGHT_MAX);
        return;
    }
    gremlin__emit(f, s, &other);
}

traverser gremlin__fresh(uint32_t tag, gremlin_value value) {
    return (traverser){.value = value, .bulk = 1, .tag = tag};
}

void gremlin__emit_fresh(gremlin_run *m, flow *f, state *s, uint32_t tag, gremlin_value value) {
    traverser t = gremlin__fresh(tag, gremlin_null());
    t.sack = m->traversal->source && m->traversal->source->has_sack ? m->traversal->source->sack : gremlin_null();
    gremlin__emit_value(m, f, s, &t, value);
}

/* ---- flows ---- */

static queue new_queue(gremlin_run *m) {
    return (queue){.bytes = buf_init_counted(BUF_NO_LIMIT, m->op->budget)};
}

static buf new_buf(gremlin_run *m) {
    return buf_init_counted(BUF_NO_LIMIT, m->op->budget);
}

static void state_init(gremlin_run *m, state *s, const gremlin_step *step) {
    *s = (state){.step = step, .kind = &gremlin__kinds[step->op]};
    s->in = new_queue(m);
    s->batch = new_queue(m);
    s->results = new_queue(m);
    s->kept = new_queue(m);
    s->subjects = new_buf(m);
    s->offsets = new_buf(m);
    s->table = (table){new_buf(m), new_buf(m)};
}

static void state_free(gremlin_run *m, state *s) {
    gremlin__queue_free(&s->in);
    gremlin__queue_free(&s->batch);
    gremlin__queue_free(&s->results);
    gremlin__queue_free(&s->kept);
    buf_free(&s->subjects);
    buf_free(&s->offsets);
    gremlin__table_free(&s->table);
    if (s->body) {
        gremlin__flow_free(m, s->body);
    }
}

flow *gremlin__flow(gremlin_run *m, const gremlin_traversal *t, uint32_t tags, bool first_only) {
    flow *f = mem_zero(sizeof *f);
    *f = (flow){
        .traversal = t, .n = t->n, .tags = tags, .first_only = first_only, .current = SIZE_MAX, .out = new_queue(m), .done = new_buf(m)};
    f->states = mem_zero((t->n ? t->n : 1) * sizeof *f->states);
    budget *b = m->op->budget;
    if (b) {
        budget_force(b, t->n * sizeof *f->states + sizeof *f);
    }
    for (size_t i = 0; i < t->n; i++) {
        state_init(m, &f->states[i], &t->steps[i]);
    }
    if (first_only && tags && buf_reserve(&f->done, tags)) {
        memset(f->done.p, 0, tags);
        f->done.n = tags;
    }
    return f;
}

void gremlin__flow_free(gremlin_run *m, flow *f) {
    for (size_t i = 0; i < f->n; i++) {
        state_free(m, &f->states[i]);
    }
    if (m->op->budget) {
        budget_give(m->op->budget, f->n * sizeof *f->states + sizeof *f);
    }
    gremlin__queue_free(&f->out);
    buf_free(&f->done);
    free(f->states);
    free(f);
}

void gremlin__flow_end(flow *f) {
    if (f->n) {
        f->states[0].ended = true;
    }
}

void gremlin__flow_rearm(flow *f) {
    for (size_t i = 0; i < f->n; i++) {
        f->states[i].ended = f->states[i].finished = false;
    }
}

void gremlin__cut(flow *f, const state *s) {
    for (state *before = f->states; before < s; before++) {
        gremlin__queue_clear(&before->in);
        gremlin__queue_clear(&before->batch);
        before->pending = before->finishing = false;
        before->ended = before->finished = true;
    }
    f->states[s - f->states].ended = true;
}

/* ---- children ---- */

static void push(gremlin_run *m, flow *child, flow *parent, state *into) {
    child->parent = parent;
    child->into = into;
    m->top = child;
}

static void feed(flow *f, const traverser *t) {
    gremlin__put(f->n ? &f->states[0].in : &f->out, t);
}

status gremlin__run_child(gremlin_run *m, flow *f, state *s, const gremlin_traversal *t, const traverser *in, size_t n, bool first_only) {
    flow *child = gremlin__flow(m, t, (uint32_t)n, first_only);
    for (size_t i = 0; i < n; i++) {
        traverser one = in[i];
        one.tag = (uint32_t)i;
        one.bulk = s->step->op == GREMLIN_SIDE_EFFECT_STEP ? one.bulk : 1; /* the step multiplies its results by the bulk */
        feed(child, &one);
    }
    gremlin__flow_end(child);
    push(m, child, f, s);
    return WAIT;
}

status gremlin__run_tagged(gremlin_run *m, flow *f, state *s, const gremlin_traversal *t, const traverser *in, size_t n, uint32_t tags) {
    flow *child = gremlin__flow(m, t, tags, false);
    for (size_t i = 0; i < n; i++) {
        feed(child, &in[i]);
    }
    gremlin__flow_end(child);
    push(m, child, f, s);
    return WAIT;
}

/* Moves the results of a child to its parent's state, sorted by tag; those of one tag stay in order. */
static void deliver(flow *child, state *s) {
    size_t n = queue_n(&child->out);
    const traverser *from = queue_at(&child->out);
    gremlin__queue_clear(&s->results);
    buf_clear(&s->offsets);
    if (!buf_reserve(&s->offsets, (child->tags + 2) * sizeof(uint32_t)) || !buf_reserve(&s->results.bytes, n * sizeof *from)) {
        return;
    }
    uint32_t *offsets = (uint32_t *)(void *)s->offsets.p;
    traverser *to = (traverser *)(void *)s->results.bytes.p;
    memset(offsets, 0, (child->tags + 2) * sizeof *offsets);
    for (size_t i = 0; i < n; i++) {
        offsets[from[i].tag + 2]++;
    }
    for (size_t i = 2; i < child->tags + 2u; i++) {
        offsets[i] += offsets[i - 1];
    }
    for (size_t i = 0; i < n; i++) {
        to[offsets[from[i].tag + 1]++] = from[i];
    }
    s->offsets.n = (child->tags + 1) * sizeof *offsets;
    s->results.bytes.n = n * sizeof *from;
}

static void pop(gremlin_run *m, flow *f) {
    m->top = f->parent;
    deliver(f, f->into);
    if (f->stays) {
        gremlin__queue_clear(&f->out);
    } else {
        gremlin__flow_free(m, f);
    }
}

/* ---- turns ---- */

bool gremlin__has_result(const flow *f, uint32_t tag) {
    return f->first_only && f->done.n > tag && f->done.p[tag];
}

/* Takes a batch off the queue; leaves out traversers whose tag has its result. */
static void take_batch(gremlin_run *m, flow *f, state *s) {
    size_t most = m->options.batch, n = queue_n(&s->in), taken = n < most ? n : most;
    gremlin__queue_clear(&s->batch);
    for (size_t i = 0; i < taken; i++) {
        const traverser *t = queue_at(&s->in) + i;
        if (!gremlin__has_result(f, t->tag)) {
            gremlin__put(&s->batch, t);
        }
    }
    gremlin__queue_take(&s->in, taken);
    s->phase = 0;
}

/* Whether nothing but this batch knows its elements: no path, no side effect, no traversal around this one. */
static bool is_last_sight(const gremlin_run *m, const flow *f, const state *s) {
    bool last = f == m->root && !m->tracks_path && !m->tracks_labels && !m->sides;
    for (size_t i = 0; i < batch_n(s) && last; i++) {
        last = batch_at(s)[i].sack.type == GREMLIN_NULL;
    }
    return last;
}

/* values('name') after which nobody sees the element again needs only that property. */
static void name_keys(gremlin_run *m, const flow *f, const state *s) {
    const gremlin_step *step = s->step;
    if (step->op != GREMLIN_VALUES_STEP || step->n == 0 || !is_last_sight(m, f, s)) {
        return;
    }
    slice *keys = arena_array(&m->heap, slice, step->n);
    for (size_t i = 0; i < step->n; i++) {
        keys[i] = gremlin_text(step->args[i]);
    }
    m->ask.keys = keys;
    m->ask.key_n = step->n;
}

static status run_state(gremlin_run *m, flow *f, state *s) {
    if (s->finishing) {
        return s->kind->finish(m, f, s);
    }
    if (s->kind->loads && s->phase == 0 && batch_n(s) &&
        !gremlin__loaded(m, s, &queue_at(&s->batch)->value, batch_n(s), sizeof(traverser))) {
        name_keys(m, f, s);
        return WAIT;
    }
    return s->kind->apply(m, f, s);
}

static void after(flow *f, state *s, status st) {
    s->pending = st == YIELD;
    f->current = st == WAIT ? (size_t)(s - f->states) : SIZE_MAX;
    if (st != DONE) {
        return;
    }
    s->phase = 0;
    gremlin__queue_clear(&s->batch);
    gremlin__queue_clear(&s->results);
    if (s->finishing) {
        s->finishing = false;
        s->finished = true;
    }
}

static err go(gremlin_run *m, flow *f, state *s) {
    int64_t before = clock_monotonic_us(m->options.clock);
    status st = run_state(m, f, s);
    s->took_us += clock_monotonic_us(m->options.clock) - before;
    if (st == FAILED || m->failure != OK) {
        return m->failure != OK ? m->failure : E_BAD_QUERY;
    }
    after(f, s, st);
    return OK;
}

/* The end of input reaches a step: it finishes, then its successor sees the end. */
static bool finish_state(flow *f, state *s) {
    if (!s->ended || s->finished || s->pending || queue_n(&s->in)) {
        return false;
    }
    if (s->kind->finish) {
        s->finishing = true;
        s->phase = 0;
        return true;
    }
    s->finished = true;
    (void)f;
    return true;
}

/* One step of one state: the last one that has work. False: the flow has nothing to do. */
static err turn(gremlin_run *m, flow *f, bool *worked_out) {
    *worked_out = true;
    if (f->current != SIZE_MAX) {
        return go(m, f, &f->states[f->current]);
    }
    for (size_t i = f->n; i-- > 0;) {
        state *s = &f->states[i];
        if (s->pending || s->finishing) {
            return go(m, f, s);
        }
        if (queue_n(&s->in)) {
            take_batch(m, f, s);
            return go(m, f, s);
        }
    }
    for (size_t i = 0; i < f->n; i++) {
        state *s = &f->states[i];
        s->ended |= i > 0 && f->states[i - 1].finished;
        if (finish_state(f, s)) {
            return OK;
        }
    }
    *worked_out = false;
    return OK;
}

/* In a flow that needs one result per tag: keeps the first, and notes which tags have theirs. */
static void keep_first(flow *f) {
    size_t kept = 0, n = queue_n(&f->out);
    traverser *at = queue_at(&f->out);
    for (size_t i = 0; i < n; i++) {
        bool first = f->number_seen <= i ? !gremlin__has_result(f, at[i].tag) : true;
        if (first) {
            f->done.p[at[i].tag] = 1;
            at[kept++] = at[i];
        }
    }
    f->out.bytes.n = (f->out.from + kept) * sizeof *at;
    f->number_seen = kept;
}

/* ---- results ---- */

static bool wants_more(const gremlin_run *m) {
    switch (m->traversal->terminal) {
    case TERMINAL_NEXT:
    case TERMINAL_HAS_NEXT:
        return m->result_n < 1;
    case TERMINAL_NEXT_N:
        return m->result_n < m->traversal->next_n;
    default:
        return true;
    }
}

/* True: a result is in m->result. */
static bool take_result(gremlin_run *m) {
    traverser t = *queue_at(&m->root->out);
    gremlin__queue_take(&m->root->out, 1);
    if (m->traversal->terminal == TERMINAL_TO_SET) {
        bool is_new = false;
        (void)gremlin__entry(&m->seen, 0, t.value, &is_new);
        t.bulk = 1;
        if (!is_new) {
            return false;
        }
    }
    int64_t left = m->traversal->terminal == TERMINAL_NEXT_N ? m->traversal->next_n - m->result_n : 1;
    m->result = t.value;
    m->result_bulk = m->traversal->terminal == TERMINAL_ALL || t.bulk < left ? t.bulk : left;
    m->result_n = bulk_plus(m->result_n, m->result_bulk);
    return m->traversal->terminal != TERMINAL_ITERATE && m->traversal->terminal != TERMINAL_HAS_NEXT;
}

static bool emits_last(gremlin_run *m) {
    if (m->traversal->terminal == TERMINAL_HAS_NEXT && !m->produced) {
        m->produced = true;
        m->result = gremlin_boolean(m->result_n > 0);
        m->result_bulk = 1;
        return true;
    }
    return false;
}

/* DONE: something happened; WAIT: *need_out says what the caller has to do. */
static status root_results(gremlin_run *m, gremlin_need *need_out) {
    flow *root = m->root;
    if (m->top == root && root->current == SIZE_MAX && queue_n(&root->out) && wants_more(m)) {
        if (!m->options.bare_results && !gremlin__loaded(m, NULL, &queue_at(&root->out)->value, 1, sizeof(traverser))) {
            return DONE;
        }
        if (take_result(m)) {
            *need_out = GREMLIN_NEED_TAKE;
            return WAIT;
        }
        return DONE;
    }
    return YIELD;
}

static status at_end(gremlin_run *m, gremlin_need *need_out) {
    if (emits_last(m)) {
        *need_out = GREMLIN_NEED_TAKE;
    } else {
        m->ended = true;
        *need_out = GREMLIN_NEED_NOTHING;
    }
    return WAIT;
}

static err check(gremlin_run *m) {
    if (m->failure != OK) {
        return m->failure;
    }
    return m->op->budget && m->op->budget->exceeded ? budget_error(m->op->budget) : OK;
}

/* One turn of the machine. WAIT: return to the caller. */
static err machine_turn(gremlin_run *m, status *status_out, gremlin_need *need_out) {
    bool worked;
    if (m->asking) {
        *need_out = GREMLIN_NEED_GRAPH;
        *status_out = WAIT;
        return OK;
    }
    if (!m->answered) { /* the answers are not in any state yet */
        gremlin__collect(m);
    }
    m->answered = false;
    *status_out = root_results(m, need_out);
    if (*status_out != YIELD) {
        return OK;
    }
    *status_out = DONE;
    flow *f = m->top;
    if (f == m->root && !wants_more(m)) {
        *status_out = at_end(m, need_out);
        return OK;
    }
    TRY(turn(m, f, &worked));
    if (f->first_only && m->top == f) {
        keep_first(f);
    }
    if (!worked && f == m->root) {
        *status_out = at_end(m, need_out);
    } else if (!worked) {
        pop(m, f);
    }
    return OK;
}

/* explain(): the traversal as it was planned; it is not run. */
static err explain(gremlin_run *m) {
    buf out = buf_init_counted(BUF_NO_LIMIT, m->op->budget);
    gremlin_show_traversal(&out, m->traversal);
    m->result = gremlin_string(buf_ok(&out) ? arena_copy(&m->heap, buf_view(&out)) : SLICE_EMPTY);
    m->result_bulk = 1;
    m->ended = true;
    buf_free(&out);
    return check(m);
}

err gremlin_run_step(gremlin_run *m, gremlin_need *need_out) {
    status st = DONE;
    *need_out = GREMLIN_NEED_NOTHING;
    if (m->ended) {
        return OK;
    }
    if (m->traversal->terminal == TERMINAL_EXPLAIN) {
        *need_out = GREMLIN_NEED_TAKE;
        return explain(m);
    }
    int64_t until_us = clock_monotonic_us(m->options.clock) + SLICE_US;
    for (size_t i = 0; i < m->options.slice_steps && clock_monotonic_us(m->options.clock) <= until_us; i++) {
        TRY(check(m));
        err e = machine_turn(m, &st, need_out);
        if (e != OK) {
            return m->failure = e;
        }
        if (st == WAIT) {
            return check(m);
        }
    }
    *need_out = GREMLIN_NEED_TURN;
    return OK;
}

gremlin_value gremlin_run_take(gremlin_run *m, int64_t *bulk_out) {
    *bulk_out = m->result_bulk;
    return m->result;
}

/* ---- life ---- */

static void add_sides(gremlin_run *m, const gremlin_source *source) {
    for (size_t i = 0; i < source->side_n; i++) {
        side *e = gremlin__side(m, gremlin_text(source->sides[i].key), SIDE_VALUE, NULL);
        e->value = source->sides[i].value;
        e->reducer = source->side_reducers[i];
    }
}

/* In the operation's arena: it lives as long as the run. */
static void apply_partition(gremlin_run *m, const gremlin_strategy *s) {
    const gremlin_value *key = gremlin_strategy_setting(s, "partitionKey"), *read = gremlin_strategy_setting(s, "readPartitions");
    const gremlin_value *write = gremlin_strategy_setting(s, "writePartition");
    if (!key || key->type != GREMLIN_STRING) {
        return;
    }
    if (write) {
        m->added = (gremlin_pair){*key, *write};
    }
    if (!read) {
        return;
    }
    gremlin_predicate *p = arena_new(m->op->arena, gremlin_predicate);
    *p = (gremlin_predicate){.kind = P_WITHIN, .n = 1, .values = read};
    if (gremlin_is_list(*read)) {
        p->n = read->list->n;
        p->values = read->list->at;
    }
    m->everywhere = (gremlin_condition){.kind = HAS_PROPERTY, .key = gremlin_text(*key), .predicate = p};
}

static void apply_seed(gremlin_run *m, const gremlin_value *seed) {
    int64_t number;
    if (seed && gremlin_is_number(*seed) && gremlin_as_long(*seed, &number)) {
        random_seed(&m->seeded, (uint64_t)number);
        m->options.random = &m->seeded;
    }
}

gremlin_run *gremlin_run_begin(op *o, const gremlin_traversal *t, const gremlin_run_options *options) {
    gremlin_run *m = mem_zero(sizeof *m);
    m->op = o;
    m->traversal = t;
    m->options = *options;
    m->options.clock = options->clock ? options->clock : &clock_system;
    m->options.batch = options->batch ? options->batch : BATCH;
    m->options.slice_steps = options->slice_steps ? options->slice_steps : SLICE_STEPS;
    m->options.loops_max = options->loops_max ? options->loops_max : LOOPS_MAX;
    m->heap = arena_init_counted(o->budget);
    m->ask_room = new_buf(m);
    m->answers = new_buf(m);
    m->seen = (table){new_buf(m), new_buf(m)};
    m->loads = (table){new_buf(m), new_buf(m)};
    m->load_pairs = new_buf(m);
    m->tracks_path = t->needs_path;
    m->tracks_labels = t->needs_labels && t->has_labels;
    m->started_us = clock_monotonic_us(m->options.clock);
    m->root = m->top = gremlin__flow(m, t, 1, false);
    traverser seed = gremlin__fresh(0, gremlin_null());
    seed.seed = true;
    if (t->source) {
        add_sides(m, t->source);
        const gremlin_strategy *partition = gremlin_strategy_find(t->source, SLICE_LIT("PartitionStrategy"));
        if (partition) {
            apply_partition(m, partition);
        }
        apply_seed(m, gremlin_strategy_setting(gremlin_strategy_find(t->source, SLICE_LIT("SeedStrategy")), "seed"));
        seed.sack = t->source->has_sack ? t->source->sack : gremlin_null();
    }
    feed(m->root, &seed);
    gremlin__flow_end(m->root);
    return m;
}

void gremlin_run_free(gremlin_run *m) {
    for (flow *f = m->top, *parent; f; f = parent) {
        parent = f->parent;
        if (!f->stays) {
            gremlin__flow_free(m, f);
        }
    }
    for (side *e = m->sides, *next; e; e = next) {
        next = e->next;
        gremlin__table_free(&e->table);
        gremlin__queue_free(&e->kept);
        free(e);
    }
    gremlin__table_free(&m->seen);
    gremlin__table_free(&m->loads);
    buf_free(&m->load_pairs);
    buf_free(&m->ask_room);
    buf_free(&m->answers);
    arena_free(&m->heap);
    free(m);
}
