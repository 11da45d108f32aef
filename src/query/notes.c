#include "query/notes.h"

#include "query/order_by.h"

enum { NOTES_MAX = 64, PARTS_MAX = 8 };

static const index_policy everything = {.rest_included = true};

/* ---- writing paths ---- */

static bool is_plain(slice name) {
    bool plain = name.n > 0;
    for (size_t i = 0; i < name.n && plain; i++) {
        unsigned char c = (unsigned char)name.p[i];
        plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '-' || c >= 0x80;
    }
    return plain;
}

static void add_path(buf *out, const index_step *steps, size_t n) {
    for (size_t i = 0; i < n; i++) {
        bool plain = steps[i].element || is_plain(steps[i].name);
        buf_add_lit(out, "/");
        buf_add(out, "\"", !plain);
        buf_add_slice(out, steps[i].element ? SLICE_LIT("[]") : steps[i].name);
        buf_add(out, "\"", !plain);
    }
}

static slice taken(arena *a, buf *b) {
    slice text = arena_copy(a, buf_view(b));
    buf_free(b);
    return text;
}

slice query_note_path(arena *a, const index_step *steps, size_t n, const char *end) {
    buf b = buf_init(BUF_NO_LIMIT);
    add_path(&b, steps, n);
    buf_addf(&b, "%s", end);
    return taken(a, &b);
}

static const char *direction(bool descending) {
    return descending ? " DESC" : " ASC";
}

static slice composite_part(arena *a, const index_composite_part *part) {
    index_step steps[LIMIT_PATH_DEPTH];
    size_t n = 0;
    for (; n < part->path.steps_n && n < LIMIT_PATH_DEPTH; n++) {
        steps[n] = (index_step){.name = part->path.steps[n], .element = slice_eq(part->path.steps[n], SLICE_LIT("[]"))};
    }
    return query_note_path(a, steps, n, direction(part->descending));
}

static slice order_part(arena *a, const query *q, const query_order *order) {
    find_path p;
    return query_path_of(q, order->expr, &p) ? query_note_path(a, p.steps, p.n, direction(order->descending)) : SLICE_EMPTY;
}

slice query_note_order(arena *a, const query *q, const index_composite *composite) {
    buf b = buf_init(BUF_NO_LIMIT);
    size_t n = composite ? composite->n : q->select->order_n;
    for (size_t i = 0; i < n; i++) {
        buf_add(&b, ", ", i ? 2 : 0);
        buf_add_slice(&b, composite ? composite_part(a, &composite->parts[i]) : order_part(a, q, &q->select->order[i]));
    }
    return taken(a, &b);
}

/* ---- a condition as text, with ROOT as the name of the item ---- */

static query_expr *rooted(arena *a, const query_select *s, const query_expr *e) {
    query_expr *copy = arena_new(a, query_expr);
    *copy = *e;
    if (e->kind == EXPR_NAME && s->sources_n && e->slot == s->first_slot && !s->sources[0].from) {
        copy->name = SLICE_LIT("ROOT");
    } else if (e->kind == EXPR_NAME && s->sources_n && e->slot == s->first_slot && s->sources[0].from->kind == EXPR_NAME) {
        copy->name = SLICE_LIT("ROOT");
    }
    copy->items = arena_array(a, query_expr *, e->items_n + 1);
    for (size_t i = 0; i < e->items_n; i++) {
        copy->items[i] = rooted(a, s, e->items[i]);
    }
    return copy;
}

static slice filter_text(arena *a, const query_select *s, const query_expr *e) {
    buf b = buf_init(BUF_NO_LIMIT);
    query_print_expr(&b, rooted(a, s, e));
    return taken(a, &b);
}

/* ---- notes ---- */

typedef struct noting {
    query_page *page;
    query_runner *runner;
    const query_select *select;
    const index_policy *policy;
    arena *arena;
} noting;

static bool same_specs(const query_index_note *a, const query_index_note *b) {
    bool same = a->composite == b->composite && a->specs_n == b->specs_n;
    for (size_t i = 0; same && i < a->specs_n; i++) {
        same = slice_eq(a->specs[i], b->specs[i]);
    }
    return same;
}

static void add_note(noting *t, query_index_note note) {
    query_page *p = t->page;
    for (size_t i = 0; i < p->outcome.indexes_n; i++) {
        if (same_specs(&p->outcome.indexes[i], &note)) {
            return;
        }
    }
    if (p->outcome.indexes_n < NOTES_MAX) {
        p->outcome.indexes[p->outcome.indexes_n++] = note;
    }
}

static void add_single(noting *t, slice spec, slice filter, bool used, bool precise, bool high) {
    slice *specs = arena_array(t->arena, slice, 1);
    specs[0] = spec;
    add_note(t, (query_index_note){used, false, specs, 1, filter, precise, high});
}

/* Most items have a given property, and of a given type: testing for that saves little. */
static bool spares_much(const query_expr *e) {
    return e->kind != EXPR_CALL || !slice_starts(slice_str(e->function ? e->function->name : ""), SLICE_LIT("IS_"));
}

static void note_demand(noting *t, const find_demand *d) {
    const query_expr *e = d->condition;
    if (d->steps) {
        add_single(t, query_note_path(t->arena, d->steps, d->steps_n, "/?"), filter_text(t->arena, t->select, e),
                   index_policy_covers(t->policy, d->steps, d->steps_n), d->exact, spares_much(e));
        return;
    }
    for (size_t i = 0; i < e->items_n && e->kind == EXPR_BINARY; i++) { /* a OR b: the demands of both sides */
        find_demands side = query_demands_in(t->runner, &everything, e->items[i]);
        for (size_t j = 0; j < side.n; j++) {
            note_demand(t, &side.list[j]);
        }
    }
}

static void note_order(noting *t) {
    const query *q = t->page->ask.query;
    bool backward;
    find_path p;
    if (t->select->order_n == 1 && query_path_of(q, t->select->order[0].expr, &p)) {
        bool used = index_policy_covers(t->policy, p.steps, p.n);
        add_single(t, query_note_path(t->arena, p.steps, p.n, "/?"), SLICE_EMPTY, used, true, true);
        return;
    }
    find_order order = query_order_of(t->arena, q);
    const index_composite *c = t->select->order_n > 1 ? find_composite_for(&order, t->policy, &backward) : NULL;
    size_t n = c ? c->n : t->select->order_n;
    slice *specs = arena_array(t->arena, slice, n + 1);
    for (size_t i = 0; i < n; i++) {
        specs[i] = c ? composite_part(t->arena, &c->parts[i]) : order_part(t->arena, q, &t->select->order[i]);
        if (specs[i].n == 0) {
            return;
        }
    }
    if (n > 1) {
        add_note(t, (query_index_note){
                        .used = c != NULL, .composite = true, .specs = specs, .specs_n = n, .precise = true, .impact_high = true});
    }
}

/* ---- composite indexes for filters: equalities first, then one range or the order ---- */

typedef struct candidate {
    index_path paths[PARTS_MAX];
    slice specs[PARTS_MAX];
    size_t n, equalities;
} candidate;

static void add_part(candidate *c, index_path path, slice spec) {
    for (size_t i = 0; i < c->n; i++) {
        if (c->paths[i] == path) {
            return;
        }
    }
    if (c->n < PARTS_MAX) {
        c->paths[c->n] = path;
        c->specs[c->n++] = spec;
    }
}

static bool is_equality(const find_demand *d) {
    const query_expr *e = d->condition;
    return e->kind == EXPR_BINARY && e->op == OP_EQUAL;
}

static bool is_range(const find_demand *d) {
    const query_expr *e = d->condition;
    return e->kind == EXPR_BETWEEN || (e->kind == EXPR_BINARY && e->op >= OP_LESS && e->op <= OP_GREATER_EQUAL);
}

static bool is_single(const find_demand *d) {
    for (size_t i = 0; i < d->steps_n; i++) {
        if (d->steps[i].element) {
            return false;
        }
    }
    return d->steps != NULL;
}

static void take_demands(noting *t, candidate *c, const find_demands *all, bool (*kind)(const find_demand *), size_t most) {
    for (size_t i = 0; i < all->n && most; i++) {
        const find_demand *d = &all->list[i];
        if (kind(d) && is_single(d)) {
            add_part(c, index_path_of(d->steps, d->steps_n), query_note_path(t->arena, d->steps, d->steps_n, " ASC"));
            most--;
        }
    }
}

/* Whether the composite index has the candidate's equalities first, in any order, and then its last path. */
static bool serves(const index_composite *composite, const candidate *c) {
    size_t found = 0;
    for (size_t i = 0; composite->n == c->n && i < c->n; i++) {
        for (size_t j = 0; j < c->n; j++) {
            found += composite->parts[i].hash == c->paths[j] && (i < c->equalities) == (j < c->equalities);
        }
    }
    return found == c->n && c->n > 0;
}

static void note_composite(noting *t, const find_demands *all) {
    candidate *c = arena_new(t->arena, candidate);
    find_path p;
    const query_select *s = t->select;
    take_demands(t, c, all, is_equality, PARTS_MAX);
    c->equalities = c->n;
    bool ordered = s->order_n == 1 && !s->order_by_rank && query_path_of(t->page->ask.query, s->order[0].expr, &p) && p.single;
    if (!ordered || c->n == 0) {
        take_demands(t, c, all, is_range, 1);
    }
    if (ordered) {
        add_part(c, index_path_of(p.steps, p.n), order_part(t->arena, t->page->ask.query, &s->order[0]));
    }
    if (c->n < 2) {
        return;
    }
    bool used = false;
    for (size_t i = 0; i < t->policy->composites_n && !used; i++) {
        const index_composite *composite = &t->policy->composites[i];
        used = serves(composite, c);
        for (size_t j = 0; used && j < c->n; j++) {
            c->specs[j] = composite_part(t->arena, &composite->parts[j]);
        }
    }
    add_note(t,
             (query_index_note){.used = used, .composite = true, .specs = c->specs, .specs_n = c->n, .precise = true, .impact_high = true});
}

void query_note_indexes(query_page *p, query_runner *r, const index_policy *policy) {
    noting t = {p, r, p->ask.query->select, policy, p->ask.op->arena};
    find_demands all = query_demands_of(r, &everything);
    p->outcome.indexes = arena_array(t.arena, query_index_note, NOTES_MAX);
    p->outcome.indexes_n = 0;
    for (size_t i = 0; i < all.n; i++) {
        note_demand(&t, &all.list[i]);
    }
    find_demands own = query_demands_of(r, policy);
    for (size_t i = 0; i < own.n; i++) { /* key indexes are only the container's own */
        if (own.list[i].steps && own.list[i].steps[0].key) {
            note_demand(&t, &own.list[i]);
        }
    }
    if (t.select->order_n && !t.select->order_by_rank) {
        note_order(&t);
    }
    if (t.select->order_n <= 1) {
        note_composite(&t, &all);
    }
}

/* ---- why the index cannot answer a condition ---- */

/* The first call in an expression. */
static const query_expr *call_in(const query_expr *e) {
    const query_expr *found = e->kind == EXPR_CALL ? e : NULL;
    for (size_t i = 0; i < e->items_n && !found; i++) {
        found = call_in(e->items[i]);
    }
    return found;
}

static bool is_path(const query_runner *r, const query_expr *e) {
    find_path p;
    return query_path_of(r->query, e, &p);
}

static query_reason reason(query_reason_id id) {
    return (query_reason){.id = id};
}

static query_reason why_call(const query_expr *call) {
    slice name = call->udf || !call->function ? call->name : slice_str(call->function->name);
    query_reason_id id = call->udf                                          ? REASON_UDF
                         : slice_starts(name, SLICE_LIT("ST_"))             ? REASON_SPATIAL
                         : slice_starts(name, SLICE_LIT("FullText"))        ? REASON_FULL_TEXT
                         : call->function && !call->function->deterministic ? REASON_VOLATILE
                                                                            : REASON_CALL;
    return (query_reason){.id = id, .name = slice_of(name.p, (size_t)slice_shown(name))};
}

static query_reason why_binary(query_runner *r, const query_expr *e) {
    const query_expr *call = call_in(e);
    if (e->op == OP_NOT_EQUAL) {
        return reason(REASON_NOT_EQUAL);
    }
    if (is_path(r, e->items[0]) && is_path(r, e->items[1])) {
        return reason(REASON_BOTH_SIDES);
    }
    if (call) {
        return why_call(call);
    }
    return reason(is_path(r, e->items[0]) || is_path(r, e->items[1]) ? REASON_NO_CONSTANT : REASON_COMPUTED);
}

static query_reason why_not(query_runner *r, const index_policy *policy, const query_expr *part);

/* Of AND and OR, the side that is not answered. */
static query_reason why_side(query_runner *r, const index_policy *policy, const query_expr *e) {
    bool first = query_demands_in(r, policy, e->items[0]).n > 0;
    query_reason why = why_not(r, policy, e->items[first ? 1 : 0]);
    why.side = e->op == OP_OR ? SLICE_LIT("OR") : SLICE_LIT("AND");
    return why;
}

static query_reason why_kind(query_runner *r, const index_policy *policy, const query_expr *e) {
    if (e->negated || (e->kind == EXPR_UNARY && e->op == OP_NOT)) {
        return reason(REASON_NEGATION);
    }
    switch (e->kind) {
    case EXPR_BINARY:
        return e->op == OP_OR || e->op == OP_AND ? why_side(r, policy, e) : why_binary(r, e);
    case EXPR_CALL:
        return why_call(e);
    case EXPR_LIKE:
        return reason(REASON_PATTERN);
    case EXPR_IN:
        return reason(REASON_LIST);
    case EXPR_KEY:
    case EXPR_WITHIN:
        return reason(REASON_NO_KEY_INDEX);
    case EXPR_FILTER:
        return reason(REASON_FILTER);
    case EXPR_LITERAL:
    case EXPR_PARAMETER:
        return reason(REASON_CONSTANT);
    default:
        return reason(REASON_COMPUTED);
    }
}

static query_reason why_not(query_runner *r, const index_policy *policy, const query_expr *part) {
    if (policy->off) {
        return reason(REASON_OFF);
    }
    find_demands all = query_demands_in(r, &everything, part);
    const find_demand *d = all.n ? &all.list[0] : NULL;
    if (d && d->steps && !index_policy_covers(policy, d->steps, d->steps_n)) {
        return (query_reason){.id = REASON_LEFT_OUT, .name = query_note_path(r->op->arena, d->steps, d->steps_n, "/?")};
    }
    return d && d->steps ? reason(REASON_TOO_MANY_CONDITIONS) : why_kind(r, policy, part);
}

/* ---- the conditions of WHERE ---- */

static const find_demand *demand_of(const find_demands *all, const query_expr *e) {
    for (size_t i = 0; i < all->n; i++) {
        if (all->list[i].condition == e) {
            return &all->list[i];
        }
    }
    return NULL;
}

static slice expr_text(arena *a, const query_expr *e) {
    buf b = buf_init(BUF_NO_LIMIT);
    query_print_expr(&b, e);
    slice text = buf_view(&b);
    if (text.n > 2 && text.p[0] == '(' && text.p[text.n - 1] == ')' && (e->kind == EXPR_BINARY || e->kind == EXPR_IN)) {
        text = slice_of(text.p + 1, text.n - 2);
    }
    text = arena_copy(a, text);
    buf_free(&b);
    return text;
}

static void note_part(query_trace *t, query_runner *r, const index_policy *policy, const find_demands *all, const query_expr *e) {
    arena *a = r->op->arena;
    if (e->kind == EXPR_BINARY && e->op == OP_AND) {
        note_part(t, r, policy, all, e->items[0]);
        note_part(t, r, policy, all, e->items[1]);
        return;
    }
    t->where_more = t->where_n == QUERY_WHERE_SHOWN;
    if (t->where_more) {
        return;
    }
    const find_demand *d = demand_of(all, e);
    query_where_part *part = &t->where[t->where_n++];
    *part = (query_where_part){.expr = e, .text = expr_text(a, e), .answered = d != NULL, .exact = d && d->exact};
    if (d && d->steps) {
        part->path = query_note_path(a, d->steps, d->steps_n, "/?");
    }
    if (!d) {
        part->why = why_not(r, policy, e);
    }
}

void query_note_where(query_trace *t, query_runner *r, const index_policy *policy) {
    const query_expr *where = r->query->select->where;
    find_demands all = query_demands_of(r, policy);
    t->no_index = policy->off;
    t->where = arena_array(r->op->arena, query_where_part, QUERY_WHERE_SHOWN);
    if (where) {
        note_part(t, r, policy, &all, where);
    }
}
