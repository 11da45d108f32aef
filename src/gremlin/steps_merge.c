/* steps_merge.c — mergeV() and mergeE(): find what the map describes; change it if it is there, make it if not.
 *
 * One traverser after the other, since one may find what the one before it has made. The place is kept in the state:
 *
 *   number  the traverser           phase  what is done for it
 *
 *   MAPS  evaluate the maps of all traversers          (once for the batch)
 *   ENDS  mergeE: find the vertices at its ends, by id
 *   FIND  ask for what is there
 *   TAKE  take the answers, test them; change them or make a new one
 *   DONE_WRITING  take what was written, go on with the next traverser */
#include "gremlin/steps_int.h"

enum { MERGE_BEGIN, MERGE_MAPS, MERGE_ENDS, MERGE_ENDS_FOUND, MERGE_FIND, MERGE_TAKE, MERGE_LOADED, MERGE_WRITTEN };
enum { MAP_SEARCH, MAP_CREATE, MAP_MATCH, MAP_OUT, MAP_IN, MAPS };

static const gremlin_value *option_of(const gremlin_step *step, unsigned merge) {
    for (size_t i = 0; i < step->option_n; i++) {
        if (step->options[i].choice.n == merge) {
            return &step->options[i].then;
        }
    }
    return NULL;
}

static void list_map(state *s, const traverser *t, const gremlin_value *given) {
    if (given && given->type == GREMLIN_TRAVERSAL) {
        gremlin__subject_traversal(s, t, given->traversal);
    } else {
        gremlin__subject_by(s, t, given ? *given : gremlin_null(), NULL);
        subjects_at(s)[subjects_n(s) - 1].missing = given == NULL;
    }
}

static void list_maps(gremlin_run *m, state *s, const traverser *t) {
    gremlin_value own = t->value;
    (void)m;
    list_map(s, t, s->step->n ? &s->step->args[0] : &own);
    list_map(s, t, option_of(s->step, MERGE_ON_CREATE));
    list_map(s, t, option_of(s->step, MERGE_ON_MATCH));
    list_map(s, t, option_of(s->step, MERGE_OUT_V));
    list_map(s, t, option_of(s->step, MERGE_IN_V));
}

static const subject *map_of(const state *s, size_t which) {
    return &subjects_at(s)[(size_t)s->number * MAPS + which];
}

/* ---- what is looked for ---- */

static const gremlin_value *get(gremlin_value map, gremlin_value key) {
    return gremlin_is_map(map) ? gremlin_map_get(map, key) : NULL;
}

static gremlin_value key_out(void) {
    return gremlin_member(GREMLIN_DIRECTION, DIRECTION_OUT);
}

static gremlin_value key_in(void) {
    return gremlin_member(GREMLIN_DIRECTION, DIRECTION_IN);
}

static status check_map(gremlin_run *m, const state *s, gremlin_value map) {
    const char *name = gremlin_op_name(s->step->op);
    if (map.type != GREMLIN_MAP && map.type != GREMLIN_NULL) {
        return gremlin__fail(m, E_BAD_QUERY, "%s() needs a map, but got a value of the type %s", name,
                             gremlin_type_name((gremlin_type)map.type));
    }
    for (size_t i = 0; map.type == GREMLIN_MAP && i < map.map->n; i++) {
        gremlin_value key = map.map->at[i].key;
        bool token = gremlin_is_member(key, GREMLIN_T) && (key.n == T_ID || key.n == T_LABEL);
        bool end = s->step->op == GREMLIN_MERGE_E_STEP && gremlin_is_member(key, GREMLIN_DIRECTION) && key.n != DIRECTION_BOTH;
        if (key.type != GREMLIN_STRING && !token && !end) {
            slice shown = gremlin__shown(m, key);
            return gremlin__fail(m, E_BAD_QUERY, "%s() and option(onCreate) args expect keys in Map to be either String or T - check: %.*s",
                                 name, slice_shown(shown), shown.p);
        }
    }
    return DONE;
}

/* The map's label and properties as conditions. */
static void add_conditions(gremlin_run *m, gremlin_value map) {
    gremlin_condition *at = arena_array(&m->heap, gremlin_condition, map.type == GREMLIN_MAP ? map.map->n + 1 : 1);
    size_t n = 0;
    for (size_t i = 0; map.type == GREMLIN_MAP && i < map.map->n; i++) {
        gremlin_value key = map.map->at[i].key;
        gremlin_predicate *p = arena_new(&m->heap, gremlin_predicate);
        *p = (gremlin_predicate){.kind = P_EQ, .n = 1, .values = &map.map->at[i].value};
        if (key.type == GREMLIN_STRING) {
            at[n++] = (gremlin_condition){.kind = HAS_PROPERTY, .key = gremlin_text(key), .predicate = p};
        } else if (gremlin_is_member(key, GREMLIN_T)) {
            at[n++] = (gremlin_condition){.kind = HAS_TOKEN, .token = key.n, .predicate = p};
        }
    }
    m->ask.conditions = at;
    m->ask.condition_n = n;
}

static void ask_find(gremlin_run *m, state *s, gremlin_value map) {
    const gremlin_value *id = get(map, gremlin_member(GREMLIN_T, T_ID));
    gremlin__ask_begin(m, GREMLIN_ASK_FIND);
    m->ask.edges = s->step->op == GREMLIN_MERGE_E_STEP;
    add_conditions(m, map);
    if (id) {
        m->ask.by_ids = true;
        m->ask.id_n = 1;
        m->ask.ids = gremlin__ask_add(m, id, sizeof *id);
    }
    m->ask.position = s->position;
}

/* The ends of the edge are the first two of s->kept: a vertex, or null. */
static gremlin_element *end_at(const state *s, size_t i) {
    gremlin_value v = queue_at(&s->kept)[i].value;
    return v.type == GREMLIN_VERTEX ? v.element : NULL;
}

static void ask_adjacent(gremlin_run *m, state *s, gremlin_value map) {
    const gremlin_value *label = get(map, gremlin_member(GREMLIN_T, T_LABEL));
    bool out = end_at(s, 0) != NULL;
    gremlin_element *end = end_at(s, out ? 0 : 1);
    slice *labels = arena_new(&m->heap, slice);
    gremlin__ask_begin(m, GREMLIN_ASK_ADJACENT);
    m->ask.edges = true;
    m->ask.direction = out ? DIRECTION_OUT : DIRECTION_IN;
    m->ask.elements = gremlin__ask_add(m, &end, sizeof end);
    m->ask.element_n = 1;
    if (label && label->type == GREMLIN_STRING) {
        *labels = gremlin_text(*label);
        m->ask.labels = labels;
        m->ask.label_n = 1;
    }
    m->ask.position = s->position;
}

static bool fits(gremlin_run *m, const state *s, gremlin_element *e, gremlin_value map) {
    gremlin_ask ask = m->ask;
    add_conditions(m, map);
    bool yes = gremlin_fulfils(e, m->ask.conditions, m->ask.condition_n);
    m->ask = ask;
    for (size_t i = 0; e->is_edge && i < 2 && yes; i++) {
        gremlin_element *end = end_at(s, i);
        yes = !end || gremlin_same(gremlin_of_element(end), gremlin_of_element(i ? e->in : e->out));
    }
    return yes;
}

/* ---- writing ---- */

static status add_writes(gremlin_run *m, gremlin_value map, gremlin_target *target, gremlin_write *writes) {
    for (size_t i = 0; map.type == GREMLIN_MAP && i < map.map->n; i++) {
        gremlin_value key = map.map->at[i].key, value = map.map->at[i].value;
        if (key.type == GREMLIN_STRING) {
            writes[target->n++] = (gremlin_write){.cardinality = -1, .key = gremlin_text(key), .value = value};
        } else if (gremlin_is_member(key, GREMLIN_T) && key.n == T_ID) {
            target->id = value;
        } else if (gremlin_is_member(key, GREMLIN_T) && value.type == GREMLIN_STRING) {
            target->label = gremlin_text(value);
        }
    }
    (void)m;
    return DONE;
}

/* What is created: the search map and, over it, that of onCreate, which may not change it. */
static status merged_map(gremlin_run *m, const state *s, gremlin_value *map_out) {
    gremlin_value search = map_of(s, MAP_SEARCH)->out, create = map_of(s, MAP_CREATE)->out;
    gremlin_pairs pairs = {0};
    for (size_t i = 0; search.type == GREMLIN_MAP && i < search.map->n; i++) {
        gremlin_pairs_add(&m->heap, &pairs, search.map->at[i].key, search.map->at[i].value);
    }
    for (size_t i = 0; create.type == GREMLIN_MAP && i < create.map->n; i++) {
        const gremlin_value *before = get(search, create.map->at[i].key);
        if (before && !gremlin_equal(*before, create.map->at[i].value)) {
            slice key = gremlin__shown(m, create.map->at[i].key);
            return gremlin__fail(m, E_BAD_QUERY, "option(onCreate) cannot override values from merge() argument: (%.*s)", slice_shown(key),
                                 key.p);
        }
        if (!before) {
            gremlin_pairs_add(&m->heap, &pairs, create.map->at[i].key, create.map->at[i].value);
        }
    }
    *map_out = gremlin_pairs_map(&m->heap, &pairs, GREMLIN_MAP);
    return DONE;
}

static status create(gremlin_run *m, state *s) {
    bool edge = s->step->op == GREMLIN_MERGE_E_STEP;
    gremlin_value map;
    gremlin_target target = {.label = edge ? SLICE_LIT("edge") : SLICE_LIT("vertex")};
    if (merged_map(m, s, &map) != DONE) {
        return FAILED;
    }
    gremlin_write *writes = arena_array(&m->heap, gremlin_write, map.map->n + 1);
    (void)add_writes(m, map, &target, writes);
    target.writes = writes;
    if (edge) {
        target.out = end_at(s, 0);
        target.in = end_at(s, 1);
    }
    if (edge && (!target.out || !target.in)) {
        return gremlin__fail(m, E_BAD_QUERY, "%s Vertex not specified in mergeE argument", target.out ? "In" : "Out");
    }
    gremlin__ask_begin(m, GREMLIN_ASK_ADD);
    m->ask.edges = edge;
    m->ask.targets = gremlin__ask_add(m, &target, sizeof target);
    m->ask.target_n = 1;
    s->phase = MERGE_WRITTEN;
    return gremlin__ask_send(m);
}

/* onMatch: its properties are set on everything that was found. */
static status change(gremlin_run *m, state *s) {
    gremlin_value map = map_of(s, MAP_MATCH)->out;
    gremlin__ask_begin(m, GREMLIN_ASK_SET);
    for (size_t i = 2; i < queue_n(&s->kept); i++) {
        gremlin_target target = {.element = queue_at(&s->kept)[i].value.element};
        gremlin_write *writes = arena_array(&m->heap, gremlin_write, map.map->n + 1);
        (void)add_writes(m, map, &target, writes);
        if (target.id.type != GREMLIN_NULL || target.label.n) {
            return gremlin__fail(m, E_BAD_QUERY, "option(onMatch) expects keys in Map to be String: ids and labels cannot be changed");
        }
        target.writes = writes;
        m->ask.targets = gremlin__ask_add(m, &target, sizeof target);
        m->ask.target_n++;
    }
    s->phase = MERGE_WRITTEN;
    return gremlin__ask_send(m);
}

/* ---- phases ---- */

/* An end: a vertex, an id, or Merge.outV and Merge.inV, which an option() explains. */
static gremlin_value end_value(const state *s, bool out) {
    gremlin_value search = map_of(s, MAP_SEARCH)->out, made = map_of(s, MAP_CREATE)->out;
    const gremlin_value *found = get(search, out ? key_out() : key_in());
    found = found ? found : get(made, out ? key_out() : key_in());
    const subject *option = map_of(s, out ? MAP_OUT : MAP_IN);
    bool by_option = found && gremlin_is_member(*found, GREMLIN_MERGE);
    if (by_option || (!found && !option->missing)) {
        return option->out;
    }
    return found ? *found : gremlin_null();
}

/* Asks for the ends that are given as ids. */
static status find_ends(gremlin_run *m, state *s) {
    gremlin__queue_clear(&s->kept);
    gremlin__ask_begin(m, GREMLIN_ASK_FIND);
    for (int i = 0; i < 2; i++) {
        gremlin_value v = s->step->op == GREMLIN_MERGE_E_STEP ? end_value(s, i == 0) : gremlin_null();
        traverser t = gremlin__fresh(0, v);
        gremlin__put(&s->kept, &t);
        if (v.type != GREMLIN_VERTEX && v.type != GREMLIN_NULL) {
            m->ask.ids = gremlin__ask_add(m, &v, sizeof v);
            m->ask.id_n++;
        }
    }
    m->ask.by_ids = true;
    s->phase = MERGE_ENDS_FOUND;
    return m->ask.id_n ? gremlin__ask_send(m) : DONE;
}

static bool has_id(const gremlin_element *e, gremlin_value id) {
    gremlin_predicate p = {.kind = P_EQ, .n = 1, .values = &id};
    gremlin_condition c = {.kind = HAS_TOKEN, .token = T_ID, .predicate = &p};
    return gremlin_fulfils(e, &c, 1);
}

static status take_ends(gremlin_run *m, state *s) {
    for (size_t i = 0; i < 2; i++) {
        traverser *t = &queue_at(&s->kept)[i];
        gremlin_value wanted = t->value;
        if (wanted.type == GREMLIN_VERTEX || wanted.type == GREMLIN_NULL) {
            continue;
        }
        for (size_t j = 0; j < answers_n(m) && t->value.type != GREMLIN_VERTEX; j++) {
            if (has_id(answers_at(m)[j].element, wanted)) {
                t->value = gremlin_of_element(answers_at(m)[j].element);
            }
        }
        if (t->value.type != GREMLIN_VERTEX) {
            slice id = gremlin__shown(m, wanted);
            return gremlin__fail(m, E_NOT_FOUND, "Vertex does not exist for mergeE(): %.*s", slice_shown(id), id.p);
        }
    }
    s->phase = MERGE_FIND;
    return DONE;
}

static status find(gremlin_run *m, state *s) {
    gremlin_value map = map_of(s, MAP_SEARCH)->out;
    if (end_at(s, 0) || end_at(s, 1)) {
        ask_adjacent(m, s, map);
    } else {
        ask_find(m, s, map);
    }
    s->asks++;
    s->phase = MERGE_TAKE;
    return gremlin__ask_send(m);
}

/* Adds the answers to s->kept; asks for more if there are more. */
static status take(gremlin_run *m, state *s) {
    for (size_t i = 0; i < answers_n(m); i++) {
        traverser t = gremlin__fresh(0, gremlin_of_element(answers_at(m)[i].element));
        gremlin__put(&s->kept, &t);
    }
    s->position = m->answer_end;
    s->phase = s->position.n ? MERGE_FIND : MERGE_LOADED;
    return DONE;
}

static void keep_fitting(gremlin_run *m, state *s) {
    traverser *at = queue_at(&s->kept);
    size_t kept = 2;
    for (size_t i = 2; i < queue_n(&s->kept); i++) {
        if (fits(m, s, at[i].value.element, map_of(s, MAP_SEARCH)->out)) {
            at[kept++] = at[i];
        }
    }
    s->kept.bytes.n = (s->kept.from + kept) * sizeof *at;
}

static void next_traverser(state *s) {
    s->number++;
    s->phase = MERGE_ENDS;
}

static void emit_kept(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 2; i < queue_n(&s->kept); i++) {
        gremlin__emit_value(m, f, s, &batch_at(s)[s->number], queue_at(&s->kept)[i].value);
    }
    next_traverser(s);
}

static status decide(gremlin_run *m, flow *f, state *s) {
    if (queue_n(&s->kept) > 2 && !gremlin__loaded(m, s, &queue_at(&s->kept)[2].value, queue_n(&s->kept) - 2, sizeof(traverser))) {
        return WAIT;
    }
    keep_fitting(m, s);
    if (queue_n(&s->kept) == 2) {
        return create(m, s);
    }
    gremlin_value match = map_of(s, MAP_MATCH)->out;
    if (match.type == GREMLIN_MAP && match.map->n) {
        return change(m, s);
    }
    emit_kept(m, f, s);
    return DONE;
}

static void written(gremlin_run *m, flow *f, state *s) {
    bool added = m->ask.kind == GREMLIN_ASK_ADD;
    for (size_t i = 0; i < answers_n(m); i++) {
        gremlin_element *e = answers_at(m)[i].element;
        if (added) {
            gremlin__emit_value(m, f, s, &batch_at(s)[s->number], gremlin_of_element(e));
        } else {
            gremlin__complete(m, queue_at(&s->kept)[2 + answers_at(m)[i].index].value.element, e);
        }
    }
    if (added) {
        next_traverser(s);
    } else {
        emit_kept(m, f, s);
    }
}

static status begin_one(gremlin_run *m, state *s) {
    for (size_t i = MAP_SEARCH; i <= MAP_MATCH; i++) {
        if (check_map(m, s, map_of(s, i)->out) != DONE) {
            return FAILED;
        }
    }
    s->position = SLICE_EMPTY;
    return find_ends(m, s);
}

static status merge_phase(gremlin_run *m, flow *f, state *s) {
    switch (s->phase) {
    case MERGE_ENDS:
        return begin_one(m, s);
    case MERGE_ENDS_FOUND:
        return take_ends(m, s);
    case MERGE_FIND:
        return find(m, s);
    case MERGE_TAKE:
        return take(m, s);
    case MERGE_LOADED:
        return decide(m, f, s);
    default:
        written(m, f, s);
        return DONE;
    }
}

static status merge(gremlin_run *m, flow *f, state *s) {
    if (s->phase <= MERGE_MAPS) {
        status st = gremlin__with_subjects(m, f, s, list_maps);
        if (st != DONE) {
            return st;
        }
        s->number = 0;
        s->phase = MERGE_ENDS;
    }
    while (s->phase != MERGE_ENDS || (size_t)s->number < batch_n(s)) {
        status st = merge_phase(m, f, s);
        if (st != DONE) {
            return st;
        }
    }
    gremlin__queue_clear(&s->kept);
    return DONE;
}

status gremlin__step_merge_v(gremlin_run *m, flow *f, state *s) {
    return merge(m, f, s);
}

status gremlin__step_merge_e(gremlin_run *m, flow *f, state *s) {
    return merge(m, f, s);
}
