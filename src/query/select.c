/* The rows of a SELECT over one item: nested loops over its sources, filtered by WHERE; the visitor does the rest. Subqueries are run
 * completely here, with grouping, DISTINCT, TOP, OFFSET and LIMIT. */
#include "query/distinct.h"
#include "query/group.h"

/* ---- sources ---- */

typedef struct rows {
    query_runner *runner;
    const query_select *select;
    query_row visit;
    void *context;
    size_t at;     /* index of the source being bound */
    bool others;   /* visit rows for which WHERE is false instead */
    bool releases; /* the row's arena may be released after each row */
} rows;

static bool each_source(rows *w);

static bool visit_row(const rows *w) {
    query_runner *r = w->runner;
    if (w->select->where) {
        query_value passed = query_eval(r, w->select->where);
        bool wanted = w->others ? passed.type == TYPE_BOOL && !passed.truth : value_is_true(&passed);
        if (!wanted) {
            return r->code == OK;
        }
    }
    return r->code == OK && w->visit(w->context);
}

/* An item may have millions of rows: the memory of each is released. */
static bool end_of_sources(const rows *w) {
    if (!w->releases) {
        return visit_row(w);
    }
    arena *a = w->runner->context.arena;
    arena_mark mark = arena_marked(a);
    bool go_on = visit_row(w);
    arena_release(a, mark);
    return go_on;
}

static bool with_value(rows *w, query_value v) {
    rows inner = *w;
    w->runner->slots[w->select->first_slot + (int)w->at] = v;
    inner.at++;
    return each_source(&inner);
}

/* The value of a path in FROM: the item, an alias, or a path below one. */
static query_value from_value(const rows *w, const query_expr *e) {
    if (!e || (e->kind == EXPR_NAME && e->slot < 0)) {
        return w->runner->item ? *w->runner->item : value_undefined();
    }
    if (e->kind == EXPR_MEMBER || e->kind == EXPR_INDEX) {
        query_value inner = from_value(w, e->items[0]);
        if (e->kind == EXPR_MEMBER) {
            return query_eval_member(w->runner, e, &inner);
        }
        query_value at = query_eval(w->runner, e->items[1]);
        return query_at(w->runner, &inner, &at);
    }
    return query_eval(w->runner, e);
}

static bool each_element(rows *w, const query_value *list) {
    bson_iter_t it;
    bool go_on = true;
    if (list->type != TYPE_ARRAY || !bson_iter_init_from_data(&it, (const uint8_t *)list->bytes.p, list->bytes.n)) {
        return true;
    }
    while (go_on && bson_iter_next(&it)) {
        if (!query_may_step(w->runner)) {
            return false;
        }
        w->runner->steps--;
        go_on = with_value(w, value_of_iter(&it));
    }
    return go_on;
}

typedef struct nested {
    rows *rows;
    bool go_on;
} nested;

static bool each_nested(void *context, const query_value *v) {
    nested *n = context;
    n->go_on = with_value(n->rows, *v);
    return n->go_on;
}

static bool each_nested_element(void *context, const query_value *v) {
    nested *n = context;
    n->go_on = each_element(n->rows, v);
    return n->go_on;
}

static bool each_source(rows *w) {
    if (w->at == w->select->sources_n) {
        return end_of_sources(w);
    }
    const query_source *source = &w->select->sources[w->at];
    if (source->kind == SOURCE_SUBQUERY) {
        nested n = {w, true};
        query_run_subquery(w->runner, source->select, each_nested, &n);
        return n.go_on;
    }
    if (source->kind == SOURCE_ITEMS && source->from->kind == EXPR_SUBQUERY) { /* the elements of its rows */
        nested n = {w, true};
        query_run_subquery(w->runner, source->from->select, each_nested_element, &n);
        return n.go_on;
    }
    query_value v = from_value(w, source->from);
    if (source->kind == SOURCE_ITEMS) {
        return each_element(w, &v);
    }
    return value_is_defined(&v) ? with_value(w, v) : true;
}

void query_each_row(query_runner *r, const query_select *s, const query_value *item, query_row visit, void *context) {
    rows w = {.runner = r, .select = s, .visit = visit, .context = context, .releases = item != NULL};
    if (item) {
        r->item = item;
    }
    each_source(&w);
}

void query_each_row_from(query_runner *r, const query_select *s, const query_value *first, query_row visit, void *context) {
    rows w = {.runner = r, .select = s, .visit = visit, .context = context};
    if (s->sources[0].kind == SOURCE_ITEMS) {
        each_element(&w, first);
    } else {
        with_value(&w, *first);
    }
}

static bool found_one(void *context) {
    *(bool *)context = true;
    return false;
}

bool query_all_rows_pass(query_runner *r, const query_select *s) {
    bool failed = false;
    rows w = {.runner = r, .select = s, .visit = found_one, .context = &failed, .others = true};
    if (s->where) {
        each_source(&w);
    }
    return !failed;
}

/* ---- projecting a row ---- */

/* SELECT * over several sources gives an object with their aliases. */
static query_value project_star(query_runner *r, const query_select *s) {
    slice names[QUERY_SLOTS_MAX];
    if (s->sources_n == 1) {
        return r->slots[s->first_slot];
    }
    for (size_t i = 0; i < s->sources_n; i++) {
        names[i] = s->sources[i].alias;
    }
    return query_made(r, value_object(r->context.arena, names, &r->slots[s->first_slot], s->sources_n));
}

query_value query_project(query_runner *r, const query_select *s) {
    if (s->star) {
        return project_star(r, s);
    }
    if (s->value) {
        return query_eval(r, s->columns[0].expr);
    }
    slice *names = arena_array(r->context.arena, slice, s->columns_n + 1);
    query_value *values = arena_array(r->context.arena, query_value, s->columns_n + 1);
    for (size_t i = 0; i < s->columns_n; i++) {
        names[i] = s->columns[i].alias;
        values[i] = query_eval(r, s->columns[i].expr);
    }
    return query_made(r, value_object(r->context.arena, names, values, s->columns_n));
}

/* ---- subqueries ---- */

typedef struct subquery {
    query_runner *runner;
    const query_select *select;
    query_result visit;
    void *context;
    double skip, left;   /* rows left for OFFSET, and for TOP or LIMIT; left < 0: no limit */
    query_distinct seen; /* for DISTINCT */
    query_groups *groups;
    bool stopped;
} subquery;

static double count_of(query_runner *r, const query_count *c) {
    query_value v = c->given ? query_eval(r, c->expr) : value_undefined();
    return v.type == TYPE_NUMBER && v.number >= 0 ? v.number : -1;
}

static bool emit(subquery *q) {
    query_value v = query_project(q->runner, q->select);
    if (q->select->distinct) {
        query_pay_value(q->runner, &v);
    }
    if (!value_is_defined(&v) || (q->select->distinct && !query_distinct_add(&q->seen, &v))) {
        return true;
    }
    if (q->skip > 0) {
        q->skip--;
        return true;
    }
    if (q->left == 0) {
        q->stopped = true;
        return false;
    }
    q->left -= q->left > 0;
    q->stopped = !q->visit(q->context, &v);
    return !q->stopped;
}

static bool subquery_row(void *context) {
    subquery *q = context;
    if (q->groups) {
        query_groups_add(q->groups, q->runner, 1, SIZE_MAX);
        return q->runner->code == OK;
    }
    return emit(q);
}

static bool subquery_group(void *context) {
    return emit(context);
}

void query_run_subquery(query_runner *r, const query_select *s, query_result visit, void *context) {
    subquery q = {.runner = r, .select = s, .visit = visit, .context = context, .seen = {.keep = r->context.arena}};
    const query_value *aggregates = r->aggregates, *keys = r->keys;
    double top = count_of(r, &s->top), limit = count_of(r, &s->limit), offset = count_of(r, &s->offset);
    q.skip = offset > 0 ? offset : 0;
    q.left = top >= 0 && (limit < 0 || top < limit) ? top : limit;
    r->aggregates = r->keys = NULL;
    if (s->aggregates_n || s->group_n) {
        q.groups = query_groups_new(r->context.arena, s);
    }
    query_each_row(r, s, NULL, subquery_row, &q);
    if (q.groups && r->code == OK) {
        query_groups_each(q.groups, r, subquery_group, &q);
    }
    r->aggregates = aggregates;
    r->keys = keys;
}
