/* steps_match.c — match(): patterns that share labels.
 *
 * A pattern as('a')….as('b') starts at what is bound to a; its result is bound to b, or must equal it if b is bound already. The patterns
 * are put in an order in which each start is bound by those before it, and all traversers go through one pattern after the other. Patterns
 * of another form (not(…), where(…), or(…)) are tests, made when everything is bound. */
#include "gremlin/steps_int.h"

enum { PATTERNS_MAX = 64 };

typedef struct plan {
    size_t n, tests; /* patterns; those from n - tests on are tests */
    const gremlin_traversal *patterns[PATTERNS_MAX];
    slice start; /* the label of the traverser's own value */
} plan;

static slice start_of(const gremlin_traversal *t) {
    return t->n && t->steps[0].op == GREMLIN_AS_STEP ? t->steps[0].labels.at[0] : SLICE_EMPTY;
}

static slice end_of(const gremlin_traversal *t) {
    const gremlin_step *last = &t->steps[t->n - 1];
    return t->n > 1 && last->labels.n ? last->labels.at[last->labels.n - 1] : SLICE_EMPTY;
}

static bool is_end(const gremlin_step *step, slice label) {
    for (size_t i = 0; i < step->n; i++) {
        const gremlin_traversal *t = step->args[i].traversal;
        if (start_of(t).n && slice_eq(end_of(t), label) && !slice_eq(start_of(t), label)) {
            return true;
        }
    }
    return false;
}

static slice first_label(const gremlin_step *step) {
    slice first = SLICE_EMPTY;
    for (size_t i = 0; i < step->n; i++) {
        slice start = start_of(step->args[i].traversal);
        first = first.n ? first : start;
        if (start.n && !is_end(step, start)) {
            return start;
        }
    }
    return first;
}

static bool is_bound(const plan *p, slice label) {
    if (slice_eq(label, p->start)) {
        return true;
    }
    for (size_t i = 0; i < p->n; i++) {
        if (slice_eq(end_of(p->patterns[i]), label)) {
            return true;
        }
    }
    return false;
}

static bool is_taken(const plan *p, const gremlin_traversal *t) {
    for (size_t i = 0; i < p->n; i++) {
        if (p->patterns[i] == t) {
            return true;
        }
    }
    return false;
}

static plan plan_of(const gremlin_step *step) {
    plan p = {.start = first_label(step)};
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < step->n && !more; i++) {
            const gremlin_traversal *t = step->args[i].traversal;
            if (start_of(t).n && is_bound(&p, start_of(t)) && !is_taken(&p, t) && p.n < PATTERNS_MAX) {
                p.patterns[p.n++] = t;
                more = true;
            }
        }
    }
    for (size_t i = 0; i < step->n; i++) {
        const gremlin_traversal *t = step->args[i].traversal;
        if (!is_taken(&p, t) && p.n < PATTERNS_MAX) {
            p.patterns[p.n++] = t;
            p.tests++;
        }
    }
    return p;
}

static traverser bind(gremlin_run *m, const traverser *t, slice label, gremlin_value value) {
    traverser other = *t;
    path_node *node = arena_new(&m->heap, path_node);
    slice *at = arena_new(&m->heap, slice);
    *at = label;
    *node = (path_node){t->path, value, {1, at}, t->path ? t->path->n + 1 : 1};
    other.path = node;
    return other;
}

/* The traversers at the start of the pattern. */
static status run_pattern(gremlin_run *m, flow *f, state *s, const gremlin_traversal *t) {
    queue in = {.bytes = buf_init_counted(BUF_NO_LIMIT, m->op->budget)};
    for (size_t i = 0; i < batch_n(s); i++) {
        traverser one = batch_at(s)[i];
        (void)gremlin__select(m, &one, start_of(t), POP_LAST, &one.value);
        gremlin__put(&in, &one);
    }
    status st = gremlin__run_child(m, f, s, t, queue_at(&in), queue_n(&in), end_of(t).n == 0);
    gremlin__queue_free(&in);
    return st;
}

/* Each result of the pattern makes a traverser of the next batch. */
static void take_pattern(gremlin_run *m, state *s, const gremlin_traversal *t) {
    queue next = {.bytes = buf_init_counted(BUF_NO_LIMIT, m->op->budget)};
    slice end = end_of(t);
    for (size_t i = 0; i < batch_n(s); i++) {
        size_t n;
        const traverser *found = results_of(s, i, &n), *own = &batch_at(s)[i];
        gremlin_value known;
        bool bound = end.n && gremlin__select(m, own, end, POP_LAST, &known);
        for (size_t j = 0; j < n && !(end.n == 0 && j); j++) {
            if (end.n && bound && !gremlin_equal(known, found[j].value)) {
                continue;
            }
            traverser one = end.n && !bound ? bind(m, own, end, found[j].value) : *own;
            one.bulk = bulk_times(one.bulk, found[j].bulk);
            gremlin__put(&next, &one);
        }
    }
    gremlin__queue_free(&s->batch);
    s->batch = next;
}

static void add_binding(gremlin_run *m, gremlin_pairs *pairs, const traverser *t, slice label) {
    gremlin_value v;
    for (size_t i = 0; i < pairs->n; i++) {
        if (slice_eq(gremlin_text(pairs->at[i].key), label)) {
            return;
        }
    }
    if (label.n && gremlin__select(m, t, label, POP_LAST, &v)) {
        gremlin_pairs_add(&m->heap, pairs, gremlin_string(label), v);
    }
}

static void emit_bindings(gremlin_run *m, flow *f, state *s, const plan *p, const traverser *t) {
    gremlin_pairs pairs = {0};
    for (size_t i = 0; i < p->n - p->tests; i++) {
        add_binding(m, &pairs, t, start_of(p->patterns[i]));
        add_binding(m, &pairs, t, end_of(p->patterns[i]));
    }
    gremlin__emit_value(m, f, s, t, gremlin_pairs_map(&m->heap, &pairs, GREMLIN_MAP));
}

static const gremlin_traversal *test_of(gremlin_run *m, const gremlin_traversal *t) {
    if (t->n == 1 && t->steps[0].op == GREMLIN_WHERE_STEP) {
        return t;
    }
    gremlin_value *part = arena_new(m->op->arena, gremlin_value);
    gremlin_step *step = arena_new(m->op->arena, gremlin_step);
    gremlin_traversal *where = arena_new(m->op->arena, gremlin_traversal);
    *part = (gremlin_value){.type = GREMLIN_TRAVERSAL, .traversal = t};
    *step = (gremlin_step){.op = GREMLIN_WHERE_STEP, .n = 1, .args = part, .times = -1, .limit = -1};
    *where = (gremlin_traversal){.n = 1, .steps = step};
    return where;
}

static status run_tests(gremlin_run *m, flow *f, state *s, const plan *p, unsigned phase) {
    if (s->phase == phase) {
        gremlin__subjects_clear(s);
        for (size_t j = 0; j < p->tests; j++) {
            const gremlin_traversal *test = test_of(m, p->patterns[p->n - p->tests + j]);
            for (size_t i = 0; i < batch_n(s); i++) {
                gremlin__subject_traversal(s, &batch_at(s)[i], test);
            }
        }
        s->phase++;
    }
    status st = gremlin__evaluate(m, f, s);
    for (size_t i = 0; st == DONE && i < batch_n(s); i++) {
        bool all = true;
        for (size_t j = 0; j < p->tests; j++) {
            all &= subjects_at(s)[j * batch_n(s) + i].productive;
        }
        if (all) {
            emit_bindings(m, f, s, p, &batch_at(s)[i]);
        }
    }
    return st;
}

/* Phase 1 + i: pattern i has been run. */
status gremlin__step_match(gremlin_run *m, flow *f, state *s) {
    plan p = plan_of(s->step);
    size_t patterns = p.n - p.tests;
    if (s->phase == 0) {
        for (size_t i = 0; i < batch_n(s); i++) {
            traverser *t = &queue_at(&s->batch)[i];
            gremlin_value v;
            bool bound = !p.start.n || gremlin__select(m, t, p.start, POP_LAST, &v);
            *t = bound ? *t : bind(m, t, p.start, t->value);
        }
    } else if (s->phase <= patterns) {
        take_pattern(m, s, p.patterns[s->phase - 1]);
    }
    if (s->phase < patterns) {
        return run_pattern(m, f, s, p.patterns[s->phase++]);
    }
    s->phase = s->phase == patterns ? (unsigned)patterns + 1 : s->phase;
    return run_tests(m, f, s, &p, (unsigned)patterns + 1);
}
