/* steps_branch.c — steps with nested traversals: map, flatMap, local, sideEffect, union, choose, coalesce, optional, repeat. */
#include "gremlin/steps_int.h"

static const gremlin_traversal *child_of(const gremlin_step *step, size_t i) {
    return step->args[i].traversal;
}

/* ---- map(), flatMap(), local(), sideEffect() ---- */

static status run_batch(gremlin_run *m, flow *f, state *s, const gremlin_traversal *t, bool first_only) {
    s->phase = 1;
    return gremlin__run_child(m, f, s, t, batch_at(s), batch_n(s), first_only);
}

/* map() and flatMap(): what happened inside is not part of the path. */
status gremlin__step_map(gremlin_run *m, flow *f, state *s) {
    if (s->phase == 0) {
        return run_batch(m, f, s, child_of(s->step, 0), s->step->op == GREMLIN_MAP_STEP);
    }
    for (size_t i = 0; i < batch_n(s); i++) {
        size_t n;
        const traverser *found = results_of(s, i, &n);
        for (size_t j = 0; j < n; j++) {
            traverser t = batch_at(s)[i];
            t.bulk = bulk_times(t.bulk, found[j].bulk);
            t.sack = found[j].sack;
            gremlin__emit_value(m, f, s, &t, found[j].value);
        }
    }
    return DONE;
}

/* Emits the results for each traverser of the batch, with the paths that they have. */
static void emit_results(gremlin_run *m, flow *f, state *s, size_t tag, const traverser *of) {
    size_t n;
    const traverser *found = results_of(s, tag, &n);
    for (size_t j = 0; j < n; j++) {
        traverser t = found[j];
        t.tag = of->tag;
        t.bulk = bulk_times(t.bulk, of->bulk);
        t.loops = of->loops;
        gremlin__pass(m, f, s, &t);
    }
}

status gremlin__step_local(gremlin_run *m, flow *f, state *s) {
    if (s->phase == 0) {
        return run_batch(m, f, s, child_of(s->step, 0), false);
    }
    for (size_t i = 0; i < batch_n(s); i++) {
        emit_results(m, f, s, i, &batch_at(s)[i]);
    }
    return DONE;
}

status gremlin__step_side_effect(gremlin_run *m, flow *f, state *s) {
    if (s->phase == 0) {
        return run_batch(m, f, s, child_of(s->step, 0), false);
    }
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin__pass(m, f, s, &batch_at(s)[i]);
    }
    return DONE;
}

/* ---- optional(), coalesce() ---- */

status gremlin__step_optional(gremlin_run *m, flow *f, state *s) {
    if (s->phase == 0) {
        return run_batch(m, f, s, child_of(s->step, 0), false);
    }
    for (size_t i = 0; i < batch_n(s); i++) {
        size_t n;
        (void)results_of(s, i, &n);
        if (n) {
            emit_results(m, f, s, i, &batch_at(s)[i]);
        } else {
            gremlin__pass(m, f, s, &batch_at(s)[i]);
        }
    }
    return DONE;
}

/* The results of child s->child, for traversers in s->batch; those without a result stay in the batch for the next child. */
static void keep_coalesced(state *s) {
    size_t open = 0, n;
    traverser *batch = queue_at(&s->batch);
    for (size_t i = 0; i < batch_n(s); i++) {
        const traverser *found = results_of(s, i, &n);
        for (size_t j = 0; j < n; j++) {
            traverser t = batch[i]; /* what happened inside is not part of the path */
            t.value = found[j].value;
            t.bulk = bulk_times(t.bulk, found[j].bulk);
            t.sack = found[j].sack;
            t.seed = false;
            gremlin__put(&s->kept, &t);
        }
        if (n == 0) {
            batch[open++] = batch[i];
        }
    }
    s->batch.bytes.n = (s->batch.from + open) * sizeof *batch;
}

status gremlin__step_coalesce(gremlin_run *m, flow *f, state *s) {
    if (s->phase == 0) {
        s->child = 0;
        gremlin__queue_clear(&s->kept);
    } else {
        keep_coalesced(s);
        s->child++;
    }
    if (s->child < s->step->n && batch_n(s)) {
        return run_batch(m, f, s, child_of(s->step, s->child), false);
    }
    for (size_t i = 0; i < queue_n(&s->kept); i++) {
        const traverser *t = &queue_at(&s->kept)[i];
        gremlin__emit_value(m, f, s, t, t->value);
    }
    gremlin__queue_clear(&s->kept);
    return DONE;
}

/* ---- union() ----
 *
 * If a branch gathers (count, order, …), it gathers over all traversers: they are kept until the end of input. Otherwise each batch goes
 * through all branches. */

static bool gathers(const gremlin_step *step) {
    for (size_t i = 0; i < step->n; i++) {
        if (step->args[i].type == GREMLIN_TRAVERSAL && child_of(step, i)->has_barrier) {
            return true;
        }
    }
    return false;
}

static void emit_tagged(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < queue_n(&s->results); i++) {
        gremlin__pass(m, f, s, &queue_at(&s->results)[i]);
    }
}

/* One branch after the other on the same traversers, which keep their own tags. */
static status run_branches(gremlin_run *m, flow *f, state *s, const queue *in) {
    if (s->phase == 0) {
        s->child = 0;
        s->phase = 1;
    } else {
        emit_tagged(m, f, s);
        s->child++;
    }
    return s->child < s->step->n ? gremlin__run_tagged(m, f, s, child_of(s->step, s->child), queue_at(in), queue_n(in), f->tags) : DONE;
}

status gremlin__step_union(gremlin_run *m, flow *f, state *s) {
    if (!gathers(s->step)) {
        return run_branches(m, f, s, &s->batch);
    }
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin__put(&s->kept, &batch_at(s)[i]);
    }
    return DONE;
}

status gremlin__union_finish(gremlin_run *m, flow *f, state *s) {
    return gathers(s->step) ? run_branches(m, f, s, &s->kept) : DONE;
}

/* ---- choose(), branch() ----
 *
 *   choose(condition, then[, else])   the condition is a traversal or a predicate
 *   choose(traversal).option(value, then)…   the first option that fits (branch(): all that fit), Pick.none if none does
 *
 * `offsets` are the child's, so the branch of each traverser is noted in its subject: `out` is the choice. */

static bool is_simple_choose(const gremlin_step *step) {
    return step->op == GREMLIN_CHOOSE_STEP && step->n > 1;
}

static void list_choice(gremlin_run *m, state *s, const traverser *t) {
    static const gremlin_by tokens[] = {{.kind = BY_TOKEN, .member = T_ID},
                                        {.kind = BY_TOKEN, .member = T_KEY},
                                        {.kind = BY_TOKEN, .member = T_LABEL},
                                        {.kind = BY_TOKEN, .member = T_VALUE}};
    gremlin_value choice = s->step->args[0];
    (void)m;
    if (choice.type == GREMLIN_TRAVERSAL) {
        gremlin__subject_traversal(s, t, choice.traversal);
    } else {
        gremlin__subject_by(s, t, t->value, choice.type == GREMLIN_ENUM ? &tokens[choice.n] : NULL);
    }
}

static bool fits_option(const gremlin_option *o, const subject *choice) {
    if (o->choice.type == GREMLIN_P) {
        return choice->productive && gremlin_test(o->choice.predicate, choice->out);
    }
    if (gremlin_is_member(o->choice, GREMLIN_PICK)) {
        return false;
    }
    return choice->productive && gremlin_equal(o->choice, choice->out);
}

static bool any_fits(const gremlin_step *step, const subject *choice, size_t before) {
    for (size_t i = 0; i < before; i++) {
        if (fits_option(&step->options[i], choice)) {
            return true;
        }
    }
    return false;
}

/* Whether the traverser with this choice goes into branch i. */
static bool enters(const gremlin_step *step, const subject *choice, size_t i) {
    if (is_simple_choose(step)) {
        gremlin_value condition = step->args[0];
        bool yes = condition.type == GREMLIN_P ? gremlin_test(condition.predicate, choice->out) : choice->productive;
        return yes == (i == 0);
    }
    const gremlin_option *o = &step->options[i];
    if (gremlin_is_member(o->choice, GREMLIN_PICK)) {
        return o->choice.n == PICK_ANY || !any_fits(step, choice, step->option_n);
    }
    bool first = step->op == GREMLIN_BRANCH_STEP || !any_fits(step, choice, i);
    return first && fits_option(o, choice);
}

static size_t branches_of(const gremlin_step *step) {
    return is_simple_choose(step) ? 2 : step->option_n;
}

static const gremlin_traversal *branch_of(const gremlin_step *step, size_t i) {
    if (is_simple_choose(step)) {
        return i + 1 < step->n ? child_of(step, i + 1) : NULL;
    }
    return step->options[i].then.traversal;
}

static bool is_chosen(const gremlin_step *step, const subject *choice) {
    for (size_t i = 0; i < branches_of(step); i++) {
        if (enters(step, choice, i)) {
            return true;
        }
    }
    return false;
}

/* Runs branch s->child on those that enter it; true: it was started. */
static bool start_branch(gremlin_run *m, flow *f, state *s) {
    const gremlin_traversal *t = branch_of(s->step, s->child);
    queue in = {.bytes = buf_init_counted(BUF_NO_LIMIT, m->op->budget)};
    for (size_t i = 0; i < batch_n(s); i++) {
        if (enters(s->step, &subjects_at(s)[i], s->child)) {
            gremlin__put(&in, &batch_at(s)[i]);
        }
    }
    bool any = queue_n(&in) > 0;
    if (any && t) {
        (void)gremlin__run_tagged(m, f, s, t, queue_at(&in), queue_n(&in), f->tags);
    }
    for (size_t i = 0; !t && i < queue_n(&in); i++) { /* choose() without an else: they pass */
        gremlin__pass(m, f, s, &queue_at(&in)[i]);
    }
    gremlin__queue_free(&in);
    return any && t;
}

static void pass_unchosen(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s) && s->step->op == GREMLIN_CHOOSE_STEP; i++) {
        if (!is_chosen(s->step, &subjects_at(s)[i])) {
            gremlin__pass(m, f, s, &batch_at(s)[i]);
        }
    }
}

static status choose(gremlin_run *m, flow *f, state *s) {
    if (s->phase < 2) {
        status st = gremlin__with_subjects(m, f, s, list_choice);
        if (st != DONE) {
            return st;
        }
        s->phase = 2;
        s->child = 0;
        pass_unchosen(m, f, s);
    } else {
        emit_tagged(m, f, s);
        s->child++;
    }
    for (; s->child < branches_of(s->step); s->child++) {
        if (start_branch(m, f, s)) {
            return WAIT;
        }
    }
    return DONE;
}

static bool branch_gathers(const gremlin_step *step) {
    for (size_t i = 0; i < branches_of(step); i++) {
        const gremlin_traversal *t = branch_of(step, i);
        if (t && t->has_barrier) {
            return true;
        }
    }
    return false;
}

status gremlin__step_choose(gremlin_run *m, flow *f, state *s) {
    if (!branch_gathers(s->step)) {
        return choose(m, f, s);
    }
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin__put(&s->kept, &batch_at(s)[i]);
    }
    return DONE;
}

/* All that was kept is the batch. */
status gremlin__choose_finish(gremlin_run *m, flow *f, state *s) {
    if (!branch_gathers(s->step)) {
        return DONE;
    }
    if (s->phase == 0) {
        queue empty = s->batch;
        s->batch = s->kept;
        s->kept = empty;
        gremlin__queue_clear(&s->kept);
    }
    return choose(m, f, s);
}

/* ---- repeat() ----
 *
 * Rounds are breadth-first: all traversers of a round go through the body, then the conditions are tested for all of them.
 *
 *   enter: until() and emit() that stand before repeat() are tested, then the traverser is in the round
 *   round: body → loops + 1 → until (leaves) → emit (a copy leaves) → next round
 *
 * `kept` is the round. The body is one flow for all rounds, so its dedup() and limit() remember earlier ones. */

enum { REPEAT_ENTER, REPEAT_ENTERED, REPEAT_BODY, REPEAT_RESULTS, REPEAT_DECIDED };

static bool times_reached(const gremlin_step *step, const traverser *t) {
    return step->times >= 0 && t->loops->count >= step->times;
}

static slice loop_name(const gremlin_step *step) {
    return step->n == 2 ? gremlin_text(step->args[0]) : SLICE_EMPTY;
}

static const loop_mark *next_loop(gremlin_run *m, const loop_mark *outer, slice name, int64_t count) {
    loop_mark *mark = arena_new(&m->heap, loop_mark);
    *mark = (loop_mark){outer, name, count};
    return mark;
}

/* A subject for each condition of each traverser of the batch. */
static void list_round(state *s, bool tests_until, bool tests_emit) {
    gremlin__subjects_clear(s);
    for (size_t i = 0; i < batch_n(s); i++) {
        if (tests_until && s->step->until) {
            gremlin__subject_traversal(s, &batch_at(s)[i], s->step->until);
        }
        if (tests_emit && s->step->emit) {
            gremlin__subject_traversal(s, &batch_at(s)[i], s->step->emit);
        }
    }
}

static void leave(gremlin_run *m, flow *f, state *s, const traverser *t) {
    traverser out = *t;
    out.loops = t->loops->outer;
    gremlin__pass(m, f, s, &out);
}

/* What the conditions say: leaves, emitted, or into the next round. */
static void decide_round(gremlin_run *m, flow *f, state *s, bool tests_until, bool tests_emit) {
    const subject *at = subjects_at(s);
    for (size_t i = 0; i < batch_n(s); i++) {
        const traverser *t = &batch_at(s)[i];
        bool until = tests_until && s->step->until && (at++)->productive;
        bool emit = tests_emit && s->step->emits && (!s->step->emit || (at++)->productive);
        until |= tests_until && times_reached(s->step, t);
        if (until) {
            leave(m, f, s, t);
            continue;
        }
        if (emit) {
            leave(m, f, s, t);
        }
        if (!gremlin__has_result(f, t->tag)) {
            gremlin__put(&s->kept, t);
        }
    }
}

static status enter_round(gremlin_run *m, flow *f, state *s) {
    const gremlin_step *step = s->step;
    if (s->phase == REPEAT_ENTER) {
        const loop_mark *last = NULL;
        for (size_t i = 0; i < batch_n(s); i++) {
            traverser *t = &queue_at(&s->batch)[i];
            last = last && last->outer == t->loops ? last : next_loop(m, t->loops, loop_name(step), 0);
            t->loops = last;
        }
        list_round(s, step->until_first, step->emit_first);
        s->phase = REPEAT_ENTERED;
    }
    status st = gremlin__evaluate(m, f, s);
    if (st == DONE) {
        decide_round(m, f, s, step->until_first || step->times == 0, step->emit_first);
    }
    return st;
}

/* The body gets the round; its results become the batch. */
static status run_body(gremlin_run *m, flow *f, state *s) {
    gremlin__merge_equal(m, &s->kept);
    if (!s->body) {
        s->body = gremlin__flow(m, s->step->args[s->step->n - 1].traversal, f->tags, false);
        s->body->stays = true;
    }
    gremlin__flow_rearm(s->body);
    for (size_t i = 0; i < queue_n(&s->kept); i++) {
        gremlin__put(&s->body->states[0].in, &queue_at(&s->kept)[i]);
    }
    gremlin__queue_clear(&s->kept);
    gremlin__flow_end(s->body);
    s->body->parent = f;
    s->body->into = s;
    m->top = s->body;
    s->phase = REPEAT_RESULTS;
    return WAIT;
}

static void take_results(gremlin_run *m, state *s) {
    const loop_mark *last = NULL;
    gremlin__queue_clear(&s->batch);
    for (size_t i = 0; i < queue_n(&s->results); i++) {
        traverser t = queue_at(&s->results)[i];
        int64_t count = t.loops ? t.loops->count + 1 : s->number;
        const loop_mark *outer = t.loops ? t.loops->outer : NULL;
        last = last && last->outer == outer && last->count == count ? last : next_loop(m, outer, loop_name(s->step), count);
        t.loops = last;
        gremlin__put(&s->batch, &t);
    }
    gremlin__queue_clear(&s->results);
    list_round(s, true, true);
    s->phase = REPEAT_DECIDED;
}

static status go_round(gremlin_run *m, flow *f, state *s) {
    if (s->phase == REPEAT_BODY) {
        if (queue_n(&s->kept) == 0) {
            return DONE;
        }
        if (++s->number > m->options.loops_max) {
            return gremlin__fail(m, E_BAD_QUERY, "repeat() has run for more than %lld rounds", (long long)m->options.loops_max);
        }
        return run_body(m, f, s);
    }
    if (s->phase == REPEAT_RESULTS) {
        take_results(m, s);
    }
    status st = gremlin__evaluate(m, f, s);
    if (st != DONE) {
        return st;
    }
    decide_round(m, f, s, true, true);
    gremlin__queue_clear(&s->batch);
    s->phase = REPEAT_BODY;
    return YIELD;
}

/* New traversers wait in the round until all of this flow's input is there, unless nothing could gather in the body: then they go at once.
 */
status gremlin__step_repeat(gremlin_run *m, flow *f, state *s) {
    if (s->phase <= REPEAT_ENTERED) {
        status st = enter_round(m, f, s);
        if (st != DONE) {
            return st;
        }
        gremlin__queue_clear(&s->batch);
        s->number = 0;
        s->phase = REPEAT_BODY;
        if (queue_n(&s->in) == 0 && s->ended) {
            return DONE; /* the rounds are run by `finish` */
        }
        return s->step->args[s->step->n - 1].traversal->has_barrier ? DONE : YIELD;
    }
    return go_round(m, f, s);
}

status gremlin__repeat_finish(gremlin_run *m, flow *f, state *s) {
    s->phase = s->phase ? s->phase : REPEAT_BODY;
    return go_round(m, f, s);
}
