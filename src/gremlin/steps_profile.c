/* steps_profile.c — profile() and executionProfile(): what each step of the outermost traversal did. */
#include "gremlin/steps_int.h"

static gremlin_value text(const char *s) {
    return gremlin_string(slice_str(s));
}

static void add(gremlin_run *m, gremlin_pairs *pairs, const char *key, gremlin_value v) {
    gremlin_pairs_add(&m->heap, pairs, text(key), v);
}

static int64_t total_us(gremlin_run *m) {
    int64_t total = clock_monotonic_us(m->options.clock) - m->started_us;
    return total > 0 ? total : 1;
}

/* ---- TinkerPop's ---- */

static gremlin_value metrics_of(gremlin_run *m, const state *one) {
    gremlin_pairs pairs = {0}, counts = {0};
    add(m, &counts, "traverserCount", gremlin_long(one->traversers));
    add(m, &counts, "elementCount", gremlin_long(one->elements));
    add(m, &pairs, "id", gremlin_string(arena_printf(&m->heap, "%zu.0.0()", (size_t)(one - m->root->states))));
    add(m, &pairs, "name", text(gremlin_op_name(one->step->op)));
    add(m, &pairs, "dur", gremlin_double((double)one->took_us / 1000));
    add(m, &pairs, "counts", gremlin_pairs_map(&m->heap, &counts, GREMLIN_MAP));
    gremlin_pairs annotations = {0};
    add(m, &annotations, "percentDur", gremlin_double(100.0 * (double)one->took_us / (double)total_us(m)));
    add(m, &annotations, "graphAsks", gremlin_long(one->asks));
    add(m, &pairs, "annotations", gremlin_pairs_map(&m->heap, &annotations, GREMLIN_MAP));
    return gremlin_pairs_map(&m->heap, &pairs, GREMLIN_MAP);
}

static gremlin_value profile_of(gremlin_run *m, const state *end) {
    gremlin_items metrics = {0};
    gremlin_pairs pairs = {0};
    for (const state *one = m->root->states; one < end; one++) {
        gremlin_items_add(&m->heap, &metrics, metrics_of(m, one));
    }
    add(m, &pairs, "dur", gremlin_double((double)total_us(m) / 1000));
    add(m, &pairs, "metrics", gremlin_items_list(&m->heap, &metrics, GREMLIN_LIST));
    return gremlin_pairs_map(&m->heap, &pairs, GREMLIN_MAP);
}

/* ---- the service's ---- */

static const char *operator_of(const gremlin_step *step) {
    switch (step->op) {
    case GREMLIN_V_STEP:
        return "GetVertices";
    case GREMLIN_E_STEP:
    case GREMLIN_OUT_E_STEP:
    case GREMLIN_IN_E_STEP:
    case GREMLIN_BOTH_E_STEP:
        return "GetEdges";
    case GREMLIN_OUT_STEP:
    case GREMLIN_IN_STEP:
    case GREMLIN_BOTH_STEP:
    case GREMLIN_OUT_V_STEP:
    case GREMLIN_IN_V_STEP:
    case GREMLIN_BOTH_V_STEP:
        return "GetNeighborVertices";
    case GREMLIN_COALESCE_STEP:
        return "Coalesce";
    case GREMLIN_INJECT_STEP:
    case GREMLIN_CONSTANT_STEP:
        return "ConstantSourceOperator";
    default:
        return gremlin__kinds[step->op].finish ? "ProjectAggregation" : "ProjectOperator";
    }
}

static gremlin_value operator_metrics(gremlin_run *m, const state *one) {
    gremlin_pairs pairs = {0}, annotations = {0}, counts = {0}, ops = {0};
    gremlin_items store = {0};
    add(m, &pairs, "name", text(operator_of(one->step)));
    add(m, &pairs, "time", gremlin_long(one->took_us / 1000));
    add(m, &annotations, "percentTime", gremlin_double(100.0 * (double)one->took_us / (double)total_us(m)));
    add(m, &pairs, "annotations", gremlin_pairs_map(&m->heap, &annotations, GREMLIN_MAP));
    add(m, &counts, "resultCount", gremlin_long(one->elements));
    add(m, &pairs, "counts", gremlin_pairs_map(&m->heap, &counts, GREMLIN_MAP));
    if (one->asks) {
        add(m, &ops, "fanoutFactor", gremlin_long(1));
        add(m, &ops, "count", gremlin_long(one->asks));
        add(m, &ops, "time", gremlin_double((double)one->took_us / 1000));
        gremlin_items_add(&m->heap, &store, gremlin_pairs_map(&m->heap, &ops, GREMLIN_MAP));
        add(m, &pairs, "storeOps", gremlin_items_list(&m->heap, &store, GREMLIN_LIST));
    }
    return gremlin_pairs_map(&m->heap, &pairs, GREMLIN_MAP);
}

static gremlin_value execution_profile(gremlin_run *m, const state *end) {
    gremlin_items metrics = {0};
    gremlin_pairs pairs = {0};
    for (const state *one = m->root->states; one < end; one++) {
        gremlin_items_add(&m->heap, &metrics, operator_metrics(m, one));
    }
    add(m, &pairs, "gremlin", gremlin_string(m->options.text));
    add(m, &pairs, "totalTime", gremlin_long(total_us(m) / 1000));
    add(m, &pairs, "metrics", gremlin_items_list(&m->heap, &metrics, GREMLIN_LIST));
    return gremlin_pairs_map(&m->heap, &pairs, GREMLIN_MAP);
}

/* ---- steps ---- */

static slice side_name(const gremlin_step *step) {
    return step->n ? gremlin_text(step->args[0]) : SLICE_EMPTY;
}

status gremlin__step_profile(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; side_name(s->step).n && i < batch_n(s); i++) {
        gremlin__pass(m, f, s, &batch_at(s)[i]);
    }
    return DONE;
}

status gremlin__profile_finish(gremlin_run *m, flow *f, state *s) {
    if (f != m->root) {
        return gremlin__fail(m, E_BAD_QUERY, "%s() must be in the outermost traversal", gremlin_op_name(s->step->op));
    }
    bool service = s->step->op == GREMLIN_EXECUTION_PROFILE_STEP;
    gremlin_value v = service ? execution_profile(m, s) : profile_of(m, s);
    if (side_name(s->step).n) {
        gremlin__side(m, side_name(s->step), SIDE_VALUE, s->step)->value = v;
    } else {
        gremlin__emit_fresh(m, f, s, 0, v);
    }
    return DONE;
}
