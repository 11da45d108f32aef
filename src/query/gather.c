#include "query/gather.h"

#include "query/distinct.h"
#include "query/group.h"

/* One of the nested subqueries, and its rows. */
typedef struct stage {
    query_gather *gather;
    const query_select *select;
    query_runner *runner;
    query_groups *groups; /* NULL: it has no groups */
    query_distinct set;   /* its rows; used as a set if it is DISTINCT, otherwise only `values` is used */
} stage;

/* stages[0] is the first source of the outer query, stages[1] that of stages[0], and so on; the last stage reads items. */
struct query_gather {
    arena *keep;
    const query_select *select;
    stage *stages;
    size_t n;
};

/* ---- finding the subqueries ---- */

static const query_select *first_subquery(const query_select *s) {
    const query_source *source = s->sources_n ? &s->sources[0] : NULL;
    if (source && source->kind == SOURCE_ITEMS && source->from->kind == EXPR_SUBQUERY) {
        return source->from->select;
    }
    return source && source->kind == SOURCE_SUBQUERY ? source->select : NULL;
}

/* How many nested subqueries there are up to the innermost one that needs all items. */
static size_t depth_of(const query_select *s) {
    size_t found = 0, depth = 0;
    for (s = first_subquery(s); s; s = first_subquery(s)) {
        depth++;
        found = s->distinct || s->aggregates_n || s->group_n ? depth : found;
    }
    return found;
}

bool query_has_gathered_subquery(const query_select *s) {
    return depth_of(s) > 0;
}

query_gather *query_gather_new(arena *keep, const query_select *s) {
    size_t n = depth_of(s);
    if (n == 0) {
        return NULL;
    }
    query_gather *g = arena_new(keep, query_gather);
    *g = (query_gather){keep, s, arena_array(keep, stage, n), n};
    s = first_subquery(s);
    for (size_t i = 0; i < n && s; i++, s = first_subquery(s)) {
        g->stages[i] = (stage){.gather = g, .select = s, .set = {.keep = keep}};
        g->stages[i].groups = s->aggregates_n || s->group_n ? query_groups_new(keep, s) : NULL;
    }
    return g;
}

const query_select *query_gather_first(const query_gather *g) {
    return g->stages[g->n - 1].select;
}

/* ---- rows of a stage ---- */

static void keep_value(stage *t, const query_value *v) {
    query_distinct *set = &t->set;
    if (t->select->distinct) {
        query_pay_value(t->runner, v);
        query_distinct_add(set, v);
        return;
    }
    if (set->n == set->cap) {
        size_t cap = set->cap ? 2 * set->cap : 16;
        if (!arena_fits(t->gather->keep, cap * sizeof *set->values)) {
            return;
        }
        set->cap = cap;
        query_value *values = arena_alloc(t->gather->keep, cap * sizeof *values);
        memcpy(values, set->n ? (const void *)set->values : "", set->n * sizeof *values);
        set->values = values;
    }
    set->values[set->n++] = value_keep(t->gather->keep, v);
}

static bool keep_row(void *context) {
    stage *t = context;
    query_value v = query_project(t->runner, t->select);
    if (value_is_defined(&v) && t->runner->code == OK) {
        keep_value(t, &v);
    }
    return query_may_keep(t->runner);
}

/* Each group has the step budget of an item. */
static bool keep_group(void *context) {
    stage *t = context;
    query_renew_steps(t->runner, QUERY_ITEM_STEPS);
    return keep_row(t);
}

static bool stage_row(void *context) {
    stage *t = context;
    if (!t->groups) {
        return keep_row(t);
    }
    query_groups_add(t->groups, t->runner, 1, SIZE_MAX);
    return t->runner->code == OK;
}

void query_gather_add(query_gather *g, query_runner *r, const query_value *item) {
    stage *last = &g->stages[g->n - 1];
    last->runner = r;
    query_each_row(r, last->select, item, stage_row, last);
}

/* ---- passing rows to the enclosing stage ---- */

typedef struct visit {
    query_row row;
    void *context;
    bool stopped;
} visit;

static bool visit_row(void *context) {
    visit *v = context;
    v->stopped = !v->row(v->context);
    return !v->stopped;
}

static void feed(const query_gather *g, size_t i, query_runner *r, query_row go_on, void *context, query_row row, void *row_context) {
    const query_select *into = i ? g->stages[i - 1].select : g->select;
    visit v = {row, row_context, false};
    for (size_t at = 0; at < g->stages[i].set.n && !v.stopped && go_on(context); at++) {
        arena_reset(r->context.arena);
        query_each_row_from(r, into, &g->stages[i].set.values[at], visit_row, &v);
    }
}

void query_gather_each(query_gather *g, query_runner *r, query_row go_on, query_row visit_outer, void *context) {
    for (size_t i = g->n; i-- > 0 && r->code == OK;) {
        stage *t = &g->stages[i];
        t->runner = r;
        if (t->groups) {
            arena_reset(r->context.arena);
            query_groups_each(t->groups, r, keep_group, t);
        }
        stage *around = i ? &g->stages[i - 1] : NULL;
        if (around) {
            around->runner = r;
        }
        feed(g, i, r, go_on, context, around ? stage_row : visit_outer, around ? (void *)around : context);
    }
}
