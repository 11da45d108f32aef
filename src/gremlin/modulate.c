/* modulate.c — modulators: as, by, with, from, to, option, times, until, emit and property() after addV(); the forms of has(). */
#include "gremlin/build_int.h"

static err no_step(gremlin_builder *b, gremlin_op op) {
    return op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: %s() has no step before it that it could modulate.",
                   gremlin_op_name(op));
}

/* ---- by() ---- */

static bool takes_by(gremlin_op op) {
    static const gremlin_op takers[] = {
        GREMLIN_AGGREGATE_STEP,   GREMLIN_STORE_STEP,        GREMLIN_CYCLIC_PATH_STEP, GREMLIN_DEDUP_STEP,  GREMLIN_FORMAT_STEP,
        GREMLIN_GROUP_STEP,       GREMLIN_GROUP_COUNT_STEP,  GREMLIN_MATH_STEP,        GREMLIN_ORDER_STEP,  GREMLIN_PATH_STEP,
        GREMLIN_PROJECT_STEP,     GREMLIN_PROPERTY_MAP_STEP, GREMLIN_SACK_STEP,        GREMLIN_SAMPLE_STEP, GREMLIN_SELECT_STEP,
        GREMLIN_SIMPLE_PATH_STEP, GREMLIN_TREE_STEP,         GREMLIN_VALUE_MAP_STEP,   GREMLIN_WHERE_STEP,
    };
    for (size_t i = 0; i < sizeof takers / sizeof *takers; i++) {
        if (takers[i] == op) {
            return true;
        }
    }
    return false;
}

static gremlin_by by_of(const gremlin_value *args, size_t n) {
    gremlin_by by = {.kind = BY_IDENTITY};
    for (size_t i = 0; i < n; i++) {
        if (args[i].type == GREMLIN_STRING) {
            by.kind = BY_KEY;
            by.key = gremlin_text(args[i]);
        } else if (args[i].type == GREMLIN_TRAVERSAL) {
            by.kind = BY_TRAVERSAL;
            by.traversal = args[i].traversal;
        } else if (gremlin_is_member(args[i], GREMLIN_ORDER)) {
            by.order = args[i].n;
        } else {
            by.kind = gremlin_is_member(args[i], GREMLIN_T) ? BY_TOKEN : BY_COLUMN;
            by.member = args[i].n;
        }
    }
    return by;
}

static err add_by(gremlin_builder *b, gremlin_step *last, const gremlin_value *args, size_t n) {
    if (!takes_by(last->op)) {
        return op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: by() cannot modulate %s().", gremlin_op_name(last->op));
    }
    gremlin_by by = by_of(args, n);
    if (last->op == GREMLIN_GROUP_STEP && last->by_n == 2) {
        return op_fail(b->op, E_BAD_QUERY,
                       "Gremlin Query Compilation Error: The key and value traversals for group()-step have already been set.");
    }
    last->bys = gremlin__appended(b->arena, last->bys, last->by_n++, &by, sizeof by);
    return OK;
}

/* ---- has() ---- */

static void add_condition(gremlin_builder *b, gremlin_step *s, gremlin_condition c) {
    s->conditions = gremlin__appended(b->arena, s->conditions, s->condition_n++, &c, sizeof c);
}

/* Several values: any of them; lists among them are taken apart. */
static const gremlin_predicate *any_of(gremlin_builder *b, const gremlin_value *args, size_t n) {
    if (n == 1 && !gremlin_is_list(args[0])) {
        return gremlin__predicate(b->arena, args[0]);
    }
    gremlin_items items = {0};
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; gremlin_is_list(args[i]) && j < args[i].list->n; j++) {
            gremlin_items_add(b->arena, &items, args[i].list->at[j]);
        }
        if (!gremlin_is_list(args[i])) {
            gremlin_items_add(b->arena, &items, args[i]);
        }
    }
    gremlin_predicate *p = arena_new(b->arena, gremlin_predicate);
    *p = (gremlin_predicate){.kind = P_WITHIN, .n = items.n, .values = items.at};
    return p;
}

static void add_token(gremlin_builder *b, gremlin_step *s, unsigned token, const gremlin_value *args, size_t n) {
    add_condition(b, s, (gremlin_condition){.kind = HAS_TOKEN, .token = token, .predicate = any_of(b, args, n)});
}

/* has(key, traversal): filter(values(key).…). */
static void filter_values(gremlin_builder *b, gremlin_step *s, gremlin_value key, const gremlin_traversal *inner) {
    gremlin_step *all = arena_array(b->arena, gremlin_step, inner->n + 1);
    gremlin_traversal *t = arena_new(b->arena, gremlin_traversal);
    gremlin_value *args = arena_array(b->arena, gremlin_value, 2);
    args[0] = key;
    gremlin_op op = key.type == GREMLIN_STRING ? GREMLIN_VALUES_STEP : key.n == T_ID ? GREMLIN_ID_STEP : GREMLIN_LABEL_STEP;
    all[0] = (gremlin_step){.op = op, .n = key.type == GREMLIN_STRING, .args = args, .times = -1, .limit = -1};
    if (inner->n) {
        memcpy(all + 1, inner->steps, inner->n * sizeof *all);
    }
    *t = *inner;
    t->n = inner->n + 1;
    t->steps = all;
    args[1] = (gremlin_value){.type = GREMLIN_TRAVERSAL, .traversal = t};
    s->op = GREMLIN_FILTER_STEP;
    s->n = 1;
    s->args = args + 1;
}

static err has(gremlin_builder *b, gremlin_step *s, const gremlin_value *args, size_t n) {
    gremlin_value last = args[n - 1];
    if (n == 2 && last.type == GREMLIN_TRAVERSAL) {
        filter_values(b, s, args[0], last.traversal);
        return OK;
    }
    if (n == 3) {
        add_token(b, s, T_LABEL, args, 1);
    }
    if (gremlin_is_member(args[0], GREMLIN_T)) {
        add_token(b, s, args[0].n, &args[1], 1);
        return OK;
    }
    slice key = gremlin_text(args[n == 3 ? 1 : 0]);
    add_condition(b, s,
                  (gremlin_condition){.kind = HAS_PROPERTY, .key = key, .predicate = n == 1 ? NULL : gremlin__predicate(b->arena, last)});
    return OK;
}

err gremlin__conditions(gremlin_builder *b, gremlin_step *s, const gremlin_value *args, size_t n) {
    switch (s->op) {
    case GREMLIN_HAS_STEP:
        return has(b, s, args, n);
    case GREMLIN_HAS_NOT_STEP:
        add_condition(b, s, (gremlin_condition){.kind = HAS_PROPERTY, .key = gremlin_text(args[0]), .absent = true});
        return OK;
    case GREMLIN_HAS_ID_STEP:
        add_token(b, s, T_ID, args, n);
        return OK;
    case GREMLIN_HAS_LABEL_STEP:
        add_token(b, s, T_LABEL, args, n);
        return OK;
    case GREMLIN_HAS_KEY_STEP:
        add_token(b, s, T_KEY, args, n);
        return OK;
    default:
        add_token(b, s, T_VALUE, args, n);
        return OK;
    }
}

/* ---- property() ---- */

static void add_setting(gremlin_builder *b, gremlin_step *s, gremlin_setting setting) {
    s->settings = gremlin__appended(b->arena, s->settings, s->setting_n++, &setting, sizeof setting);
}

static err settings_of_map(gremlin_builder *b, gremlin_step *s, int cardinality, gremlin_value map) {
    for (size_t i = 0; i < map.map->n; i++) {
        add_setting(b, s, (gremlin_setting){.cardinality = cardinality, .key = map.map->at[i].key, .value = map.map->at[i].value});
    }
    return OK;
}

err gremlin__settings(gremlin_builder *b, gremlin_step *s, const gremlin_value *args, size_t n) {
    int cardinality = -1;
    if (gremlin_is_member(args[0], GREMLIN_CARDINALITY)) {
        cardinality = (int)args[0].n;
        args++;
        n--;
    }
    if (n == 1 && args[0].type == GREMLIN_MAP) {
        return settings_of_map(b, s, cardinality, args[0]);
    }
    bool key_fits = n > 0 && (args[0].type == GREMLIN_STRING || args[0].type == GREMLIN_TRAVERSAL || gremlin_is_member(args[0], GREMLIN_T));
    if (n < 2 || n % 2 || !key_fits) {
        return op_fail(b->op, E_BAD_QUERY,
                       "Gremlin Query Compilation Error: property() takes a key and a value, then pairs of meta-properties.");
    }
    gremlin_setting setting = {.cardinality = cardinality, .key = args[0], .value = args[1]};
    for (size_t i = 2; i < n; i += 2) {
        gremlin_pair meta = {args[i], args[i + 1]};
        if (meta.key.type != GREMLIN_STRING) {
            return op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: The key of a meta-property must be a string.");
        }
        setting.metas = gremlin__appended(b->arena, setting.metas, setting.n++, &meta, sizeof meta);
    }
    add_setting(b, s, setting);
    return OK;
}

/* ---- repeat() ---- */

static const gremlin_traversal *condition_of(gremlin_builder *b, gremlin_value arg) {
    return arg.type == GREMLIN_P ? gremlin__is_traversal(b->arena, arg) : arg.traversal;
}

static err modulate_repeat(gremlin_builder *b, gremlin_draft *d, gremlin_step *last, gremlin_op op, const gremlin_value *args, size_t n) {
    bool after = last && last->op == GREMLIN_REPEAT_STEP;
    if (op == GREMLIN_TIMES_STEP) {
        if (args[0].i < 0 || args[0].i > INT32_MAX) {
            return op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: times() takes a number of rounds.");
        }
        *(after ? &last->times : &d->early_times) = args[0].i + !after;
    } else if (op == GREMLIN_UNTIL_STEP) {
        const gremlin_traversal **until = after ? &last->until : &d->early_until;
        *until = condition_of(b, args[0]);
    } else {
        *(after ? &last->emit : &d->early_emit) = n ? condition_of(b, args[0]) : NULL;
        *(after ? &last->emits : &d->early_emits) = true;
    }
    return OK;
}

/* ---- the rest ---- */

static err add_labels(gremlin_builder *b, gremlin_draft *d, gremlin_step *last, const gremlin_value *args, size_t n) {
    if (!last) {
        last = gremlin__push(b, d, GREMLIN_AS_STEP, args, n);
    }
    for (size_t i = 0; i < n; i++) {
        slice label = gremlin_text(args[i]);
        last->labels.at = gremlin__appended(b->arena, last->labels.at, last->labels.n++, &label, sizeof label);
    }
    return OK;
}

static err add_option(gremlin_builder *b, gremlin_step *last, const gremlin_value *args, size_t n) {
    gremlin_option option = {n == 2 ? args[0] : gremlin_member(GREMLIN_PICK, PICK_ANY), args[n - 1]};
    bool merges = last->op == GREMLIN_MERGE_V_STEP || last->op == GREMLIN_MERGE_E_STEP;
    bool branches = last->op == GREMLIN_CHOOSE_STEP || last->op == GREMLIN_BRANCH_STEP;
    if ((!merges && !branches) || (merges && !gremlin_is_member(option.choice, GREMLIN_MERGE)) ||
        (branches && option.then.type != GREMLIN_TRAVERSAL)) {
        return op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: This option() does not fit %s().", gremlin_op_name(last->op));
    }
    if (branches && option.choice.type == GREMLIN_ENUM) { /* `none` and `any` are words of several enums */
        unsigned pick;
        if (gremlin_member_find(GREMLIN_PICK, slice_str(gremlin_member_name(option.choice.family, option.choice.n)), &pick)) {
            option.choice = gremlin_member(GREMLIN_PICK, pick);
        }
    }
    last->options = gremlin__appended(b->arena, last->options, last->option_n++, &option, sizeof option);
    return OK;
}

static bool takes_ends(gremlin_op op) {
    return op == GREMLIN_ADD_E_STEP || op == GREMLIN_PATH_STEP || op == GREMLIN_SIMPLE_PATH_STEP || op == GREMLIN_CYCLIC_PATH_STEP;
}

static err add_end(gremlin_builder *b, gremlin_step *last, gremlin_op op, gremlin_value end) {
    if (!takes_ends(last->op)) {
        return op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: %s() cannot modulate %s().", gremlin_op_name(op),
                       gremlin_op_name(last->op));
    }
    *(op == GREMLIN_FROM_STEP ? &last->from : &last->to) = end;
    return OK;
}

static err add_with(gremlin_builder *b, gremlin_step *last, const gremlin_value *args, size_t n) {
    gremlin_pair pair = {args[0], n == 2 ? args[1] : gremlin_boolean(true)};
    last->given = gremlin__appended(b->arena, last->given, last->given_n++, &pair, sizeof pair);
    return OK;
}

static bool folds_property(const gremlin_step *last) {
    return last && (last->op == GREMLIN_ADD_V_STEP || last->op == GREMLIN_ADD_E_STEP);
}

static err modulate_last(gremlin_builder *b, gremlin_step *last, gremlin_op op, const gremlin_value *args, size_t n) {
    switch (op) {
    case GREMLIN_BY_STEP:
        return add_by(b, last, args, n);
    case GREMLIN_WITH_STEP:
        return add_with(b, last, args, n);
    case GREMLIN_OPTION_STEP:
        return add_option(b, last, args, n);
    default:
        return add_end(b, last, op, args[0]);
    }
}

err gremlin__modulate(gremlin_builder *b, gremlin_draft *d, gremlin_op op, const gremlin_value *args, size_t n, bool *done_out) {
    gremlin_step *last = d->n ? &d->steps[d->n - 1] : NULL;
    *done_out = true;
    switch (op) {
    case GREMLIN_AS_STEP:
        return d->traversal.source && !last ? no_step(b, op) : add_labels(b, d, last, args, n);
    case GREMLIN_TIMES_STEP:
    case GREMLIN_UNTIL_STEP:
    case GREMLIN_EMIT_STEP:
        return modulate_repeat(b, d, last, op, args, n);
    case GREMLIN_PROPERTY_STEP:
        *done_out = folds_property(last);
        return *done_out ? gremlin__settings(b, last, args, n) : OK;
    case GREMLIN_TO_STEP:
        *done_out = !gremlin_is_member(args[0], GREMLIN_DIRECTION);
        return !*done_out ? OK : last ? add_end(b, last, op, args[0]) : no_step(b, op);
    case GREMLIN_BY_STEP:
    case GREMLIN_WITH_STEP:
    case GREMLIN_OPTION_STEP:
    case GREMLIN_FROM_STEP:
        return last ? modulate_last(b, last, op, args, n) : no_step(b, op);
    default:
        *done_out = false;
        return OK;
    }
}
