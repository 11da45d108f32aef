/* steps_filter.c — steps that let traversers pass or not. */
#include "gremlin/steps_int.h"

status gremlin__step_identity(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin__pass(m, f, s, &batch_at(s)[i]);
    }
    return DONE;
}

status gremlin__step_discard(gremlin_run *m, flow *f, state *s) {
    (void)m;
    (void)f;
    (void)s;
    return DONE;
}

status gremlin__step_fail(gremlin_run *m, flow *f, state *s) {
    (void)f;
    if (batch_n(s) == 0) {
        return DONE;
    }
    slice said = s->step->n ? gremlin_text(s->step->args[0]) : SLICE_LIT("fail() step triggered");
    status failed = gremlin__fail(m, E_BAD_REQUEST, "fail() Step Triggered: %.*s", slice_shown(said), said.p);
    m->op->protocol_code = 595; /* TinkerPop's SERVER_ERROR_FAIL_STEP */
    return failed;
}

static bool test_arg(gremlin_value arg, gremlin_value v) {
    return arg.type == GREMLIN_P ? gremlin_test(arg.predicate, v) : gremlin_equal(arg, v);
}

status gremlin__step_is(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s); i++) {
        if (test_arg(s->step->args[0], batch_at(s)[i].value)) {
            gremlin__pass(m, f, s, &batch_at(s)[i]);
        }
    }
    return DONE;
}

/* all(P), any(P), none(P) of the items of a list; none() without an argument lets nothing pass. */
status gremlin__step_all_any(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s) && s->step->n; i++) {
        gremlin_value v = batch_at(s)[i].value;
        size_t fits = 0;
        if (!gremlin_is_list(v)) {
            continue;
        }
        for (size_t j = 0; j < v.list->n; j++) {
            fits += test_arg(s->step->args[0], v.list->at[j]);
        }
        gremlin_op op = s->step->op;
        if (op == GREMLIN_ALL_STEP ? fits == v.list->n : op == GREMLIN_ANY_STEP ? fits > 0 : fits == 0) {
            gremlin__pass(m, f, s, &batch_at(s)[i]);
        }
    }
    return DONE;
}

/* ---- filter(), not(), and(), or() ---- */

static void list_conditions(gremlin_run *m, state *s, const traverser *t) {
    (void)m;
    for (size_t i = 0; i < s->step->n; i++) {
        if (s->step->args[i].type == GREMLIN_TRAVERSAL) {
            gremlin__subject_traversal(s, t, s->step->args[i].traversal);
        }
    }
}

static bool decide(gremlin_op op, const subject *at, size_t n) {
    size_t yes = 0;
    for (size_t i = 0; i < n; i++) {
        yes += at[i].productive;
    }
    return op == GREMLIN_OR_STEP ? yes > 0 || n == 0 : op == GREMLIN_NOT_STEP ? yes == 0 : yes == n;
}

status gremlin__step_filter(gremlin_run *m, flow *f, state *s) {
    if (s->step->n && s->step->args[0].type == GREMLIN_P) {
        return gremlin__step_is(m, f, s);
    }
    status st = gremlin__with_subjects(m, f, s, list_conditions);
    if (st != DONE) {
        return st;
    }
    for (size_t i = 0; i < batch_n(s); i++) {
        if (decide(s->step->op, subjects_at(s) + i * s->step->n, s->step->n)) {
            gremlin__pass(m, f, s, &batch_at(s)[i]);
        }
    }
    return DONE;
}

/* ---- where() ----
 *
 *   where('a', neq('b')), where(neq('b'))   compares what is labelled, or the traverser itself, each as its by() says
 *   where(traversal)                        a filter; if it begins with as('a') it starts at that, and if it ends with as('b') its end
 *                                           must equal that */

/* The predicate with values in place of the labels that it names; the values come in the order of the labels. */
static gremlin_value bound(gremlin_run *m, const gremlin_predicate *p, const gremlin_value **values) {
    gremlin_predicate *copy = arena_new(&m->heap, gremlin_predicate);
    *copy = *p;
    if (p->left) {
        copy->left = bound(m, p->left, values).predicate;
        copy->right = p->right ? bound(m, p->right, values).predicate : NULL;
    } else {
        gremlin_items items = {0};
        for (size_t i = 0; i < p->n; i++) {
            gremlin_value v = *(*values)++;
            if (gremlin_is_list(v) && (p->kind == P_WITHIN || p->kind == P_WITHOUT)) {
                gremlin_items more = {0};
                gremlin__items_of(m, v, &more);
                for (size_t j = 0; j < more.n; j++) {
                    gremlin_items_add(&m->heap, &items, more.at[j]);
                }
            } else {
                gremlin_items_add(&m->heap, &items, v);
            }
        }
        copy->n = items.n;
        copy->values = items.at;
    }
    return (gremlin_value){.type = GREMLIN_P, .predicate = copy};
}

static size_t labels_of(const gremlin_predicate *p) {
    return p->left ? labels_of(p->left) + (p->right ? labels_of(p->right) : 0) : p->n;
}

static void list_labels(gremlin_run *m, state *s, const traverser *t, const gremlin_predicate *p, size_t *by) {
    if (p->left) {
        list_labels(m, s, t, p->left, by);
        if (p->right) {
            list_labels(m, s, t, p->right, by);
        }
        return;
    }
    for (size_t i = 0; i < p->n; i++) {
        gremlin_value v = gremlin_null();
        bool found = p->values[i].type == GREMLIN_STRING && gremlin__select(m, t, gremlin_text(p->values[i]), POP_LAST, &v);
        bool bag = found && gremlin_is_list(v); /* by() is for what is in it, which is gathered already */
        gremlin__subject_by(s, t, v, bag || !found ? NULL : gremlin__by(s->step, *by));
        subjects_at(s)[subjects_n(s) - 1].missing = !found;
        (*by)++;
    }
}

static const gremlin_predicate *predicate_of(const gremlin_step *step) {
    return step->args[step->n - 1].predicate;
}

static void list_where(gremlin_run *m, state *s, const traverser *t) {
    gremlin_value start = t->value;
    size_t by = 1;
    bool found = s->step->n == 1 || gremlin__select(m, t, gremlin_text(s->step->args[0]), POP_LAST, &start);
    gremlin__subject_by(s, t, start, gremlin__by(s->step, 0));
    subjects_at(s)[subjects_n(s) - 1].missing = !found;
    list_labels(m, s, t, predicate_of(s->step), &by);
}

static status where_predicate(gremlin_run *m, flow *f, state *s) {
    size_t per = 1 + labels_of(predicate_of(s->step));
    status st = gremlin__with_subjects(m, f, s, list_where);
    if (st != DONE) {
        return st;
    }
    gremlin_value *values = arena_array(&m->heap, gremlin_value, per);
    for (size_t i = 0; i < batch_n(s); i++) {
        const subject *at = subjects_at(s) + i * per;
        const gremlin_value *next = values;
        bool whole = true;
        for (size_t j = 0; j < per; j++) {
            whole &= at[j].productive && !at[j].missing;
            values[j] = at[j].out;
        }
        next++;
        if (whole && gremlin_test(bound(m, predicate_of(s->step), &next).predicate, values[0])) {
            gremlin__pass(m, f, s, &batch_at(s)[i]);
        }
    }
    return DONE;
}

static bool starts_with_as(const gremlin_traversal *t) {
    return t->n && t->steps[0].op == GREMLIN_AS_STEP;
}

static slice end_label(const gremlin_traversal *t) {
    const gremlin_step *last = t->n ? &t->steps[t->n - 1] : NULL;
    return last && last->op != GREMLIN_AS_STEP && last->labels.n ? last->labels.at[0] : SLICE_EMPTY;
}

/* The traversers of the batch, moved to where the traversal starts; those without that label are left out and get a bulk of 0. */
static void start_where(gremlin_run *m, state *s, const gremlin_traversal *t, queue *in) {
    for (size_t i = 0; i < batch_n(s); i++) {
        traverser one = batch_at(s)[i];
        if (starts_with_as(t) && !gremlin__select(m, &one, t->steps[0].labels.at[0], POP_LAST, &one.value)) {
            one.bulk = 0;
        }
        gremlin__put(in, &one);
    }
}

static bool ends_well(gremlin_run *m, state *s, size_t i, slice label) {
    size_t n;
    gremlin_value wanted;
    const traverser *found = results_of(s, i, &n);
    if (label.n == 0) {
        return n > 0;
    }
    if (!gremlin__select(m, &batch_at(s)[i], label, POP_LAST, &wanted)) {
        return n > 0; /* a label that is not bound does not compare with anything */
    }
    for (size_t j = 0; j < n; j++) {
        if (gremlin_equal(found[j].value, wanted)) {
            return true;
        }
    }
    return false;
}

static status where_traversal(gremlin_run *m, flow *f, state *s) {
    const gremlin_traversal *t = s->step->args[0].traversal;
    slice label = end_label(t);
    if (s->phase == 0) {
        queue in = {.bytes = buf_init_counted(BUF_NO_LIMIT, m->op->budget)};
        start_where(m, s, t, &in);
        s->phase = 1;
        status st = gremlin__run_child(m, f, s, t, queue_at(&in), queue_n(&in), label.n == 0);
        gremlin__queue_free(&in);
        return st;
    }
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin_value start;
        bool has_start = !starts_with_as(t) || gremlin__select(m, &batch_at(s)[i], t->steps[0].labels.at[0], POP_LAST, &start);
        if (has_start && ends_well(m, s, i, label)) {
            gremlin__pass(m, f, s, &batch_at(s)[i]);
        }
    }
    return DONE;
}

/* where(and(as('a')…, as('b')…)) and its relatives with or() and not(): each part is a where() of its own. */
static bool is_connective(const gremlin_traversal *t) {
    gremlin_op op = t->n == 1 ? t->steps[0].op : GREMLIN_OPS;
    return op == GREMLIN_AND_STEP || op == GREMLIN_OR_STEP || op == GREMLIN_NOT_STEP;
}

/* A traversal of one step where(part). */
static const gremlin_traversal *where_of(gremlin_run *m, const gremlin_value *part) {
    gremlin_step *step = arena_new(m->op->arena, gremlin_step);
    gremlin_traversal *t = arena_new(m->op->arena, gremlin_traversal);
    *step = (gremlin_step){.op = GREMLIN_WHERE_STEP, .n = 1, .args = part, .times = -1, .limit = -1};
    *t = (gremlin_traversal){.n = 1, .steps = step};
    return t;
}

static status where_connective(gremlin_run *m, flow *f, state *s) {
    const gremlin_step *inner = &s->step->args[0].traversal->steps[0];
    if (s->phase == 0) {
        gremlin__subjects_clear(s);
        const gremlin_traversal **parts = arena_array(&m->heap, const gremlin_traversal *, inner->n + 1);
        for (size_t j = 0; j < inner->n; j++) {
            parts[j] = where_of(m, &inner->args[j]);
        }
        for (size_t i = 0; i < batch_n(s); i++) {
            for (size_t j = 0; j < inner->n; j++) {
                gremlin__subject_traversal(s, &batch_at(s)[i], parts[j]);
            }
        }
        s->phase = 1;
    }
    status st = gremlin__evaluate(m, f, s);
    for (size_t i = 0; st == DONE && i < batch_n(s); i++) {
        if (decide(inner->op, subjects_at(s) + i * inner->n, inner->n)) {
            gremlin__pass(m, f, s, &batch_at(s)[i]);
        }
    }
    return st;
}

status gremlin__step_where(gremlin_run *m, flow *f, state *s) {
    if (s->step->args[s->step->n - 1].type == GREMLIN_P) {
        return where_predicate(m, f, s);
    }
    return is_connective(s->step->args[0].traversal) ? where_connective(m, f, s) : where_traversal(m, f, s);
}

/* ---- dedup() ---- */

static gremlin_value dedup_key(gremlin_run *m, const state *s, size_t i) {
    if (s->step->n == 0) {
        return subjects_at(s)[i].out;
    }
    gremlin_items items = {0};
    for (size_t j = 0; j < s->step->n; j++) {
        gremlin_items_add(&m->heap, &items, subjects_at(s)[i * s->step->n + j].out);
    }
    return gremlin_items_list(&m->heap, &items, GREMLIN_LIST);
}

static void list_dedup(gremlin_run *m, state *s, const traverser *t) {
    if (s->step->n == 0) {
        gremlin__subject_by(s, t, t->value, gremlin__by(s->step, 0));
    }
    for (size_t j = 0; j < s->step->n; j++) {
        gremlin_value v = gremlin_null();
        bool found = gremlin__select(m, t, gremlin_text(s->step->args[j]), POP_LAST, &v);
        gremlin__subject_by(s, t, v, gremlin__by(s->step, 0));
        subjects_at(s)[subjects_n(s) - 1].missing = !found;
    }
}

static bool is_whole(const state *s, size_t i) {
    size_t per = s->step->n ? s->step->n : 1;
    for (size_t j = 0; j < per; j++) {
        const subject *one = &subjects_at(s)[i * per + j];
        if (!one->productive || one->missing) {
            return false;
        }
    }
    return true;
}

static status dedup_local(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin_items items = {0}, kept = {0};
        gremlin_value v = batch_at(s)[i].value;
        if (!gremlin_is_list(v)) {
            gremlin__pass(m, f, s, &batch_at(s)[i]);
            continue;
        }
        gremlin__items_of(m, v, &items);
        gremlin__table_clear(&s->table);
        for (size_t j = 0; j < items.n; j++) {
            bool is_new = false;
            (void)gremlin__entry(&s->table, 0, items.at[j], &is_new);
            if (is_new) {
                gremlin_items_add(&m->heap, &kept, items.at[j]);
            }
        }
        gremlin__emit_value(m, f, s, &batch_at(s)[i], gremlin_items_list(&m->heap, &kept, GREMLIN_SET));
    }
    return DONE;
}

status gremlin__step_dedup(gremlin_run *m, flow *f, state *s) {
    if (is_local(s->step)) {
        return dedup_local(m, f, s);
    }
    status st = gremlin__with_subjects(m, f, s, list_dedup);
    for (size_t i = 0; st == DONE && i < batch_n(s); i++) {
        bool is_new = false;
        traverser t = batch_at(s)[i];
        if (is_whole(s, i)) {
            (void)gremlin__entry(&s->table, t.tag, dedup_key(m, s, i), &is_new);
        }
        if (is_new) {
            t.bulk = 1;
            gremlin__pass(m, f, s, &t);
        }
    }
    return st;
}

/* ---- limit(), range(), skip() ---- */

static void bounds_of(const gremlin_step *step, int64_t *low_out, int64_t *high_out) {
    const gremlin_value *args = step->args + has_scope(step);
    *low_out = step->op == GREMLIN_LIMIT_STEP ? 0 : args[0].i;
    *high_out = step->op == GREMLIN_SKIP_STEP ? -1 : step->op == GREMLIN_LIMIT_STEP ? args[0].i : args[1].i;
    *low_out = *low_out < 0 ? 0 : *low_out;
    *high_out = *high_out < 0 ? INT64_MAX : *high_out;
}

static gremlin_value part_of(gremlin_run *m, gremlin_value v, size_t low, size_t high) {
    gremlin_items items = {0};
    if (gremlin_is_map(v)) {
        high = high < v.map->n ? high : v.map->n;
        low = low < high ? low : high;
        return gremlin_map_of(&m->heap, GREMLIN_MAP, v.map->at + low, high - low);
    }
    gremlin__items_of(m, v, &items);
    high = high < items.n ? high : items.n;
    low = low < high ? low : high;
    return gremlin_list_of(&m->heap, v.type == GREMLIN_SET ? GREMLIN_SET : GREMLIN_LIST, items.at + low, high - low);
}

static status range_local(gremlin_run *m, flow *f, state *s) {
    int64_t low, high;
    bounds_of(s->step, &low, &high);
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin_value v = batch_at(s)[i].value;
        bool parts = gremlin_is_list(v) || gremlin_is_map(v) || v.type == GREMLIN_PATH;
        gremlin_value part = parts ? part_of(m, v, (size_t)low, (size_t)high) : v;
        if (gremlin_is_list(part) && s->step->op != GREMLIN_SKIP_STEP && high - low == 1) { /* one item comes without its list */
            if (part.list->n) {
                gremlin__emit_value(m, f, s, &batch_at(s)[i], part.list->at[0]);
            }
        } else {
            gremlin__emit_value(m, f, s, &batch_at(s)[i], part);
        }
    }
    return DONE;
}

/* How many of `bulk` traversers, of which the first is at position `at`, lie in [low, high). */
static int64_t overlap(int64_t at, int64_t bulk, int64_t low, int64_t high) {
    int64_t from = at > low ? at : low, end = bulk_plus(at, bulk) < high ? bulk_plus(at, bulk) : high;
    return end > from ? end - from : 0;
}

status gremlin__step_range(gremlin_run *m, flow *f, state *s) {
    int64_t low, high;
    if (is_local(s->step)) {
        return range_local(m, f, s);
    }
    bounds_of(s->step, &low, &high);
    for (size_t i = 0; i < batch_n(s); i++) {
        traverser t = batch_at(s)[i];
        entry *seen = gremlin__entry(&s->table, t.tag, gremlin_null(), NULL);
        int64_t at = seen ? seen->n : 0;
        int64_t bulk = t.bulk;
        if (seen) {
            seen->n = bulk_plus(at, bulk);
        }
        t.bulk = overlap(at, bulk, low, high);
        if (t.bulk) {
            gremlin__pass(m, f, s, &t);
        }
        if (bulk_plus(at, bulk) >= high && f->tags == 1 && !f->stays) {
            gremlin__cut(f, s);
            gremlin__queue_clear(&s->in);
            break;
        }
    }
    return DONE;
}

/* ---- paths, chance, time ---- */

static void list_path(gremlin_run *m, state *s, const traverser *t) {
    slice from = s->step->from.type == GREMLIN_STRING ? gremlin_text(s->step->from) : SLICE_EMPTY;
    slice to = s->step->to.type == GREMLIN_STRING ? gremlin_text(s->step->to) : SLICE_EMPTY;
    gremlin_value path = gremlin__path_value(m, t, from, to);
    for (size_t i = 0; i < path.path->n; i++) {
        gremlin__subject_by(s, t, path.path->objects[i], gremlin__by(s->step, i));
    }
    traverser end = {.bulk = -1}; /* marks the end of one traverser's path */
    gremlin__subject_by(s, &end, gremlin_null(), NULL);
}

status gremlin__step_simple_path(gremlin_run *m, flow *f, state *s) {
    status st = gremlin__with_subjects(m, f, s, list_path);
    if (st != DONE) {
        return st;
    }
    const subject *at = subjects_at(s);
    for (size_t i = 0; i < batch_n(s); i++, at++) {
        bool simple = true;
        gremlin__table_clear(&s->table);
        for (; at->in.bulk != -1; at++) {
            bool is_new = true;
            (void)gremlin__entry(&s->table, 0, at->out, &is_new);
            simple &= is_new;
        }
        if (simple == (s->step->op == GREMLIN_SIMPLE_PATH_STEP)) {
            gremlin__pass(m, f, s, &batch_at(s)[i]);
        }
    }
    return DONE;
}

static double chance(gremlin_run *m) {
    return m->options.random ? (double)(random_u64(m->options.random) >> 11) / 9007199254740992.0 : 0.5;
}

enum { TOSSES_MAX = 1000 };

status gremlin__step_coin(gremlin_run *m, flow *f, state *s) {
    double p = gremlin_as_double(s->step->args[0]);
    for (size_t i = 0; i < batch_n(s); i++) {
        traverser t = batch_at(s)[i];
        int64_t kept = t.bulk > TOSSES_MAX ? (int64_t)((double)t.bulk * (p < 0 ? 0 : p > 1 ? 1 : p)) : 0; /* many: the mean */
        for (int64_t j = 0; j < t.bulk && t.bulk <= TOSSES_MAX; j++) {
            kept += chance(m) < p;
        }
        t.bulk = kept;
        if (kept) {
            gremlin__pass(m, f, s, &t);
        }
    }
    return DONE;
}

status gremlin__step_time_limit(gremlin_run *m, flow *f, state *s) {
    int64_t now = clock_monotonic_us(m->options.clock);
    s->since_us = s->since_us ? s->since_us : now;
    if (now - s->since_us >= s->step->args[0].i * 1000 && s->step->args[0].i < INT64_MAX / 1000) {
        gremlin__cut(f, s);
        gremlin__queue_clear(&s->in);
        return DONE;
    }
    return gremlin__step_identity(m, f, s);
}
