/* plan.c — what can be known of a traversal before it runs: infix and()/or(), conditions and limits that the graph can use, what its
 * traversers must remember. */
#include "gremlin/build_int.h"

/* ---- infix: a.and().b becomes and(a, b) ---- */

static bool is_infix(const gremlin_step *s, gremlin_op op) {
    return s->op == op && s->n == 0;
}

static bool is_start(gremlin_op op) {
    return op == GREMLIN_V_STEP || op == GREMLIN_E_STEP || op == GREMLIN_INJECT_STEP;
}

static gremlin_value part_of(gremlin_builder *b, const gremlin_step *steps, size_t n) {
    gremlin_draft part = {.n = n, .steps = arena_array(b->arena, gremlin_step, n ? n : 1)};
    memcpy(part.steps, steps, n * sizeof *steps);
    gremlin_traversal *t = arena_new(b->arena, gremlin_traversal);
    if (gremlin__plan(b, &part) == OK) {
        *t = part.traversal;
    }
    t->n = part.n;
    t->steps = part.steps;
    return (gremlin_value){.type = GREMLIN_TRAVERSAL, .traversal = t};
}

static bool join_infix(gremlin_builder *b, gremlin_draft *d, gremlin_op op) {
    size_t first = d->n && is_start(d->steps[0].op) ? 1 : 0, from = first;
    gremlin_items parts = {0};
    for (size_t i = first; i < d->n; i++) {
        if (is_infix(&d->steps[i], op)) {
            gremlin_items_add(b->arena, &parts, part_of(b, d->steps + from, i - from));
            from = i + 1;
        }
    }
    if (parts.n == 0) {
        return false;
    }
    gremlin_items_add(b->arena, &parts, part_of(b, d->steps + from, d->n - from));
    gremlin_labels labels = d->steps[d->n - 1].labels;
    d->n = first;
    d->steps = arena_array(b->arena, gremlin_step, 2 + first);
    d->steps[first] = (gremlin_step){.op = op, .n = parts.n, .args = parts.at, .labels = labels, .times = -1, .limit = -1};
    d->n++;
    return true;
}

/* ---- folding ---- */

static bool reads_elements(gremlin_op op) {
    return op == GREMLIN_V_STEP || op == GREMLIN_E_STEP || op == GREMLIN_OUT_STEP || op == GREMLIN_IN_STEP || op == GREMLIN_BOTH_STEP ||
           op == GREMLIN_OUT_E_STEP || op == GREMLIN_IN_E_STEP || op == GREMLIN_BOTH_E_STEP;
}

static bool is_has(gremlin_op op) {
    return op == GREMLIN_HAS_STEP || op == GREMLIN_HAS_ID_STEP || op == GREMLIN_HAS_LABEL_STEP || op == GREMLIN_HAS_NOT_STEP;
}

static void fold_conditions(gremlin_builder *b, gremlin_step *into, const gremlin_step *has) {
    for (size_t i = 0; i < has->condition_n; i++) {
        into->conditions = gremlin__appended(b->arena, into->conditions, into->condition_n++, &has->conditions[i], sizeof *has->conditions);
    }
    for (size_t i = 0; i < has->labels.n; i++) {
        into->labels.at = gremlin__appended(b->arena, into->labels.at, into->labels.n++, &has->labels.at[i], sizeof *has->labels.at);
    }
}

/* The number of results after which `s` drops all others; -1: unknown. */
static int64_t taken_by(const gremlin_step *s) {
    bool local = s->n && gremlin_is_member(s->args[0], GREMLIN_SCOPE) && s->args[0].n == SCOPE_LOCAL;
    if (local || (s->op != GREMLIN_LIMIT_STEP && s->op != GREMLIN_RANGE_STEP)) {
        return -1;
    }
    return s->args[s->n - 1].i;
}

static void fold(gremlin_builder *b, gremlin_draft *d) {
    size_t kept = 0;
    for (size_t i = 0; i < d->n; i++) {
        gremlin_step *last = kept ? &d->steps[kept - 1] : NULL;
        if (last && reads_elements(last->op) && is_has(d->steps[i].op)) {
            fold_conditions(b, last, &d->steps[i]);
            continue;
        }
        if (last && reads_elements(last->op)) {
            last->limit = taken_by(&d->steps[i]);
        }
        d->steps[kept++] = d->steps[i];
    }
    d->n = kept;
}

/* ---- needs ---- */

static bool op_needs_path(gremlin_op op) {
    return op == GREMLIN_PATH_STEP || op == GREMLIN_SIMPLE_PATH_STEP || op == GREMLIN_CYCLIC_PATH_STEP || op == GREMLIN_TREE_STEP ||
           op == GREMLIN_OTHER_V_STEP;
}

static bool op_needs_labels(const gremlin_step *s) {
    switch (s->op) {
    case GREMLIN_SELECT_STEP:
    case GREMLIN_WHERE_STEP:
    case GREMLIN_MATCH_STEP:
    case GREMLIN_MATH_STEP:
    case GREMLIN_FORMAT_STEP:
    case GREMLIN_ADD_E_STEP:
        return true;
    case GREMLIN_DEDUP_STEP:
        return s->n > 0;
    default:
        return false;
    }
}

static bool op_is_barrier(gremlin_op op) {
    static const gremlin_op barriers[] = {
        GREMLIN_COUNT_STEP, GREMLIN_SUM_STEP,   GREMLIN_MIN_STEP,   GREMLIN_MAX_STEP,     GREMLIN_MEAN_STEP,
        GREMLIN_FOLD_STEP,  GREMLIN_GROUP_STEP, GREMLIN_ORDER_STEP, GREMLIN_SAMPLE_STEP,  GREMLIN_GROUP_COUNT_STEP,
        GREMLIN_CAP_STEP,   GREMLIN_TAIL_STEP,  GREMLIN_TREE_STEP,  GREMLIN_BARRIER_STEP, GREMLIN_AGGREGATE_STEP,
        GREMLIN_LIMIT_STEP, GREMLIN_RANGE_STEP, GREMLIN_SKIP_STEP,  GREMLIN_DEDUP_STEP,   GREMLIN_INDEX_STEP,
    };
    for (size_t i = 0; i < sizeof barriers / sizeof *barriers; i++) {
        if (barriers[i] == op) {
            return true;
        }
    }
    return false;
}

static bool op_writes(gremlin_op op) {
    return op == GREMLIN_ADD_V_STEP || op == GREMLIN_ADD_E_STEP || op == GREMLIN_PROPERTY_STEP || op == GREMLIN_DROP_STEP ||
           op == GREMLIN_MERGE_V_STEP || op == GREMLIN_MERGE_E_STEP;
}

static void note_child(gremlin_traversal *t, const gremlin_traversal *child) {
    if (child) {
        t->needs_path |= child->needs_path;
        t->needs_labels |= child->needs_labels;
        t->has_labels |= child->has_labels;
        t->writes |= child->writes;
    }
}

static void note_value(gremlin_traversal *t, gremlin_value v) {
    note_child(t, v.type == GREMLIN_TRAVERSAL ? v.traversal : NULL);
}

static void note_children(gremlin_traversal *t, const gremlin_step *s) {
    for (size_t i = 0; i < s->n; i++) {
        note_value(t, s->args[i]);
    }
    for (size_t i = 0; i < s->by_n; i++) {
        note_child(t, s->bys[i].traversal);
    }
    for (size_t i = 0; i < s->option_n; i++) {
        note_value(t, s->options[i].choice);
        note_value(t, s->options[i].then);
    }
    for (size_t i = 0; i < s->setting_n; i++) {
        note_value(t, s->settings[i].key);
        note_value(t, s->settings[i].value);
        for (size_t j = 0; j < s->settings[i].n; j++) {
            note_value(t, s->settings[i].metas[j].value);
        }
    }
    note_value(t, s->from);
    note_value(t, s->to);
    note_child(t, s->until);
    note_child(t, s->emit);
}

static void note(gremlin_traversal *t, const gremlin_step *s) {
    t->needs_path |= op_needs_path(s->op);
    t->needs_labels |= op_needs_labels(s) || s->from.type == GREMLIN_STRING;
    t->has_labels |= s->labels.n > 0;
    t->has_barrier |= op_is_barrier(s->op);
    t->writes |= op_writes(s->op);
    note_children(t, s);
}

/* Arguments that only a valid step has. */
static err check_step(gremlin_builder *b, const gremlin_step *s) {
    if (s->op == GREMLIN_REPEAT_STEP && s->args[s->n - 1].traversal->n == 0) {
        return op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: The traversal of repeat() has no steps.");
    }
    if (s->op == GREMLIN_RANGE_STEP && s->args[s->n - 1].i != -1 && s->args[s->n - 1].i < s->args[s->n - 2].i) {
        return op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: Not a legal range: [%lld, %lld]",
                       (long long)s->args[s->n - 2].i, (long long)s->args[s->n - 1].i);
    }
    return OK;
}

err gremlin__plan(gremlin_builder *b, gremlin_draft *d) {
    if (!join_infix(b, d, GREMLIN_OR_STEP)) {
        (void)join_infix(b, d, GREMLIN_AND_STEP);
    }
    for (size_t i = 0; i < d->n; i++) {
        TRY(check_step(b, &d->steps[i]));
    }
    fold(b, d);
    TRY(gremlin__restrict(b, d));
    for (size_t i = 0; i < d->n; i++) {
        note(&d->traversal, &d->steps[i]);
    }
    return OK;
}
