#include "query/eval.h"

#include <math.h>
#include <stdlib.h>

#include "query/aggregate.h"
#include "query/filter.h"
#include "query/key.h"
#include "query/like.h"
#include "query/udf.h"

enum { ARGUMENTS_MAX = 8 };

static const budget unbounded = {.max = SIZE_MAX}; /* for the server's own queries */

void query_runner_init(query_runner *r, const query *q, op *o, arena *row_arena, int64_t now_ms) {
    *r = (query_runner){.query = q, .op = o, .budget = o->budget ? o->budget : &unbounded, .random = (uint64_t)now_ms * 2654435761u | 1};
    r->context = (query_context){.arena = row_arena, .now_ms = now_ms, .random = &r->random, .steps = &r->steps};
    query_renew_steps(r, QUERY_ITEM_STEPS);
}

query_value query_fail_value(query_runner *r, err code) {
    r->code = r->code == OK ? code : r->code;
    return value_undefined();
}

static query_value fail(query_runner *r, err code) {
    return query_fail_value(r, code);
}

bool query_check(query_runner *r) {
    if (!query_may_keep(r)) {
        return false;
    }
    r->code = r->steps == 0 ? E_QUERY_TOO_LONG : op_check(r->op);
    query_renew_steps(r, r->steps);
    return r->code == OK;
}

/* ---- three-valued logic ---- */

typedef enum truth { IS_FALSE, IS_TRUE, IS_NEITHER } truth;

static truth truth_of(const query_value *v) {
    return v->type == TYPE_BOOL ? (v->truth ? IS_TRUE : IS_FALSE) : IS_NEITHER;
}

static query_value value_of_truth(truth t) {
    return t == IS_NEITHER ? value_undefined() : value_bool(t == IS_TRUE);
}

static truth both(truth a, truth b) {
    return a == IS_FALSE || b == IS_FALSE ? IS_FALSE : a == IS_TRUE && b == IS_TRUE ? IS_TRUE : IS_NEITHER;
}

static truth opposite(truth t) {
    return t == IS_NEITHER ? t : t == IS_TRUE ? IS_FALSE : IS_TRUE;
}

/* ---- comparing ---- */

/* Costs as much as the shorter value: a comparison goes no further. */
static void pay_comparison(query_runner *r, const query_value *a, const query_value *b) {
    if (a->type == b->type) {
        query_pay_value(r, a->bytes.n < b->bytes.n ? a : b);
    }
}

static truth equals(query_runner *r, const query_value *a, const query_value *b) {
    if (!value_is_defined(a) || !value_is_defined(b)) {
        return IS_NEITHER;
    }
    pay_comparison(r, a, b);
    return value_equal(a, b) ? IS_TRUE : IS_FALSE;
}

/* Compares values of the same non-JSON type, one of which may be given as its extended-JSON object. At least one must be such a value
 * itself: two plain objects have no order. */
static bool order_typed(query_runner *r, const query_value *a, const query_value *b, int *order_out) {
    query_value x, y;
    if (a->type != TYPE_OBJECT || (!a->extended && !b->extended)) {
        return false;
    }
    pay_comparison(r, a, b);
    if (!value_typed(r->context.arena, a, &x) || !value_typed(r->context.arena, b, &y) || x.extended != y.extended) {
        return false;
    }
    *order_out = value_compare(&x, &y);
    return true;
}

/* Values of different types have no order; neither have arrays and objects. */
static truth compare(query_runner *r, const query_value *a, const query_value *b, query_operator op) {
    int order;
    if (a->type != b->type || a->type == TYPE_UNDEFINED) {
        return IS_NEITHER;
    }
    if (a->type < TYPE_ARRAY) {
        pay_comparison(r, a, b);
        order = value_compare(a, b);
    } else if (!order_typed(r, a, b, &order)) {
        return IS_NEITHER;
    }
    bool holds = op == OP_LESS            ? order < 0
                 : op == OP_LESS_EQUAL    ? order <= 0
                 : op == OP_GREATER       ? order > 0
                 : op == OP_GREATER_EQUAL ? order >= 0
                                          : false;
    return holds ? IS_TRUE : IS_FALSE;
}

/* ---- numbers ---- */

/* Modulo 2^32, as in JavaScript. */
static int32_t to_int32(double number) {
    double whole = isfinite(number) ? fmod(trunc(number), 4294967296.0) : 0;
    return (int32_t)(uint32_t)(int64_t)(whole < 0 ? whole + 4294967296.0 : whole);
}

static query_value bits(query_operator op, double x, double y) {
    int32_t a = to_int32(x), b = to_int32(y);
    unsigned shift = (uint32_t)b & 31;
    switch (op) {
    case OP_BIT_AND:
        return value_number(a & b);
    case OP_BIT_OR:
        return value_number(a | b);
    case OP_BIT_XOR:
        return value_number(a ^ b);
    case OP_SHIFT_LEFT:
        return value_number((int32_t)((uint32_t)a << shift));
    case OP_SHIFT_RIGHT:
        return value_number(a >> shift);
    default:
        return value_number((uint32_t)a >> shift);
    }
}

static query_value arithmetic(query_operator op, const query_value *a, const query_value *b) {
    if (a->type != TYPE_NUMBER || b->type != TYPE_NUMBER) {
        return value_undefined();
    }
    double x = a->number, y = b->number;
    switch (op) {
    case OP_ADD:
        return value_number(x + y);
    case OP_SUBTRACT:
        return value_number(x - y);
    case OP_MULTIPLY:
        return value_number(x * y);
    case OP_DIVIDE:
        return value_number(x / y);
    case OP_MODULO:
        return value_number(fmod(x, y));
    default:
        return bits(op, x, y);
    }
}

static query_value concat(query_runner *r, const query_value *a, const query_value *b) {
    if (a->type != TYPE_STRING || b->type != TYPE_STRING) {
        return value_undefined();
    }
    size_t n = a->bytes.n + b->bytes.n;
    if (n > VALUE_BYTES_MAX || !arena_fits(r->context.arena, n)) {
        return query_made(r, value_undefined());
    }
    query_pay(r, n / 32);
    char *p = arena_alloc_aligned(r->context.arena, n + 1, 1);
    memcpy(p, a->bytes.p ? a->bytes.p : "", a->bytes.n);
    memcpy(p + a->bytes.n, b->bytes.p ? b->bytes.p : "", b->bytes.n);
    return value_string(slice_of(p, n));
}

/* ---- operators ---- */

static query_value eval_unary(query_runner *r, const query_expr *e) {
    query_value v = query_eval(r, e->items[0]);
    if (e->op == OP_NOT) {
        return value_of_truth(opposite(truth_of(&v)));
    }
    if (v.type != TYPE_NUMBER) {
        return value_undefined();
    }
    return e->op == OP_MINUS ? value_number(-v.number) : e->op == OP_BIT_NOT ? value_number(~to_int32(v.number)) : v;
}

static query_value eval_logic(query_runner *r, const query_expr *e) {
    unsigned waits = r->waits;
    query_value left = query_eval(r, e->items[0]);
    truth a = truth_of(&left);
    if (r->waits != waits) {
        return value_undefined();
    }
    if (a == (e->op == OP_AND ? IS_FALSE : IS_TRUE)) {
        return value_bool(a == IS_TRUE);
    }
    query_value right = query_eval(r, e->items[1]);
    truth b = truth_of(&right);
    return value_of_truth(e->op == OP_AND ? both(a, b) : opposite(both(opposite(a), opposite(b))));
}

static query_value eval_conditional(query_runner *r, const query_expr *e) {
    unsigned waits = r->waits;
    query_value v = query_eval(r, e->items[0]);
    return r->waits != waits ? value_undefined() : query_eval(r, e->items[value_is_true(&v) ? 1 : 2]);
}

static query_value eval_coalesce(query_runner *r, const query_expr *e) {
    unsigned waits = r->waits;
    query_value v = query_eval(r, e->items[0]);
    return value_is_defined(&v) || r->waits != waits ? v : query_eval(r, e->items[1]);
}

static query_value eval_binary(query_runner *r, const query_expr *e) {
    if (e->op == OP_AND || e->op == OP_OR) {
        return eval_logic(r, e);
    }
    query_value a = query_eval(r, e->items[0]), b = query_eval(r, e->items[1]);
    switch (e->op) {
    case OP_EQUAL:
        return value_of_truth(equals(r, &a, &b));
    case OP_NOT_EQUAL:
        return value_of_truth(opposite(equals(r, &a, &b)));
    case OP_LESS:
    case OP_LESS_EQUAL:
    case OP_GREATER:
    case OP_GREATER_EQUAL:
        return value_of_truth(compare(r, &a, &b, e->op));
    case OP_CONCAT:
        return concat(r, &a, &b);
    default:
        return arithmetic(e->op, &a, &b);
    }
}

static query_value eval_between(query_runner *r, const query_expr *e) {
    query_value v = query_eval(r, e->items[0]), low = query_eval(r, e->items[1]), high = query_eval(r, e->items[2]);
    truth t = both(compare(r, &v, &low, OP_GREATER_EQUAL), compare(r, &v, &high, OP_LESS_EQUAL));
    return value_of_truth(e->negated ? opposite(t) : t);
}

/* A list of literal strings, sorted once for all rows; without texts if it has other values too. */
typedef struct known_texts {
    size_t n;
    slice *texts;
} known_texts;

static int by_text(const void *a, const void *b) {
    return slice_cmp(*(const slice *)a, *(const slice *)b);
}

static const known_texts *know_texts(arena *a, const query_expr *e) {
    size_t n = e->items_n - 1;
    known_texts *known = arena_new(a, known_texts);
    slice *texts = arena_array(a, slice, n);
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        const query_expr *item = e->items[i + 1];
        if (item->kind != EXPR_LITERAL || item->value.type != TYPE_STRING) {
            return known;
        }
        texts[i] = item->value.bytes;
        sorted = sorted && (i == 0 || slice_cmp(texts[i - 1], texts[i]) <= 0);
    }
    if (!sorted) {
        qsort(texts, n, sizeof *texts, by_text);
    }
    *known = (known_texts){n, texts};
    return known;
}

/* NULL: the list is short, or not of literal strings only. */
static const known_texts *texts_of(query_runner *r, const query_expr *e) {
    enum { FEW = 4 };
    const void **place = (const void **)(uintptr_t)e->prepared;
    if (e->items_n <= FEW || !place || !r->context.keep) {
        return NULL;
    }
    if (!*place) {
        *place = know_texts(r->context.keep, e);
    }
    const known_texts *known = *place;
    return known->n ? known : NULL;
}

static query_value eval_in(query_runner *r, const query_expr *e) {
    unsigned waits = r->waits;
    query_value v = query_eval(r, e->items[0]);
    if (!value_is_defined(&v)) {
        return value_undefined();
    }
    bool found = false;
    const known_texts *known = v.type == TYPE_STRING ? texts_of(r, e) : NULL;
    if (known) {
        query_pay_value(r, &v);
        found = bsearch(&v.bytes, known->texts, known->n, sizeof *known->texts, by_text) != NULL;
        return value_bool(found != e->negated);
    }
    for (size_t i = 1; i < e->items_n && !found && r->waits == waits; i++) {
        query_value each = query_eval(r, e->items[i]);
        found = equals(r, &v, &each) == IS_TRUE;
    }
    return value_bool(found != e->negated);
}

static bool is_constant(const query_expr *e) {
    return e->kind == EXPR_LITERAL || e->kind == EXPR_PARAMETER;
}

/* A pattern that is the same for all rows is compiled once. */
static const query_like_pattern *like_pattern(query_runner *r, const query_expr *e, slice pattern, slice escape) {
    const void **place = (const void **)(uintptr_t)e->prepared;
    if (!r->context.keep || !is_constant(e->items[1]) || (e->items_n > 2 && !is_constant(e->items[2]))) {
        return query_like_compile(r->context.arena, pattern, escape);
    }
    if (!*place) {
        *place = query_like_compile(r->context.keep, pattern, escape);
    }
    return *place;
}

static query_value eval_like(query_runner *r, const query_expr *e) {
    query_value v = query_eval(r, e->items[0]), pattern = query_eval(r, e->items[1]);
    query_value escape = e->items_n > 2 ? query_eval(r, e->items[2]) : value_undefined();
    if (v.type != TYPE_STRING || pattern.type != TYPE_STRING) {
        return value_undefined();
    }
    const query_like_pattern *compiled = like_pattern(r, e, pattern.bytes, escape.type == TYPE_STRING ? escape.bytes : SLICE_EMPTY);
    if (!compiled) {
        return value_undefined();
    }
    bool matches = query_like_match(compiled, v.bytes, &r->steps);
    return r->steps ? value_bool(matches != e->negated) : fail(r, E_QUERY_TOO_LONG);
}

/* ---- calls ---- */

static query_value call_function(query_runner *r, const query_expr *e, const query_value *args) {
    for (size_t i = 0; i < e->items_n && !e->function->sees_undefined; i++) {
        if (!value_is_defined(&args[i])) {
            return value_undefined();
        }
    }
    r->context.prepared = (const void **)(uintptr_t)e->prepared;
    r->context.setting = e->setting;
    query_value v = e->function->call(&r->context, args, e->items_n);
    if (r->context.too_large) {
        r->context.too_large = false;
        return query_made(r, value_undefined());
    }
    return r->steps ? v : fail(r, E_QUERY_TOO_LONG); /* it gave up: its value is meaningless */
}

static query_value eval_call(query_runner *r, const query_expr *e) {
    if (e->aggregate >= 0) {
        return r->aggregates ? r->aggregates[e->aggregate] : value_undefined();
    }
    query_value few[ARGUMENTS_MAX];
    unsigned waits = r->waits;
    query_value *args = e->items_n <= ARGUMENTS_MAX ? few : arena_array(r->context.arena, query_value, e->items_n);
    for (size_t i = 0; i < e->items_n; i++) {
        args[i] = query_eval(r, e->items[i]);
    }
    if (r->waits != waits || r->code != OK) { /* not all arguments are known */
        return value_undefined();
    }
    if (e->udf) {
        return r->calls ? query_calls_value(r, e, args) : fail(r, E_NOT_IMPLEMENTED);
    }
    return call_function(r, e, args);
}

/* ---- array and object literals ---- */

/* Without its value the query's result would be wrong, so the query fails. */
query_value query_made(query_runner *r, query_value document) {
    if (!value_is_defined(&document)) {
        return fail(r, r->budget->exceeded ? budget_error(r->budget) : E_VALUE_TOO_LARGE);
    }
    query_pay(r, document.bytes.n / 32);
    return document;
}

static query_value eval_array(query_runner *r, const query_expr *e) {
    query_value *items = arena_array(r->context.arena, query_value, e->items_n + 1);
    for (size_t i = 0; i < e->items_n; i++) {
        items[i] = query_eval(r, e->items[i]);
    }
    return query_made(r, value_array(r->context.arena, items, e->items_n));
}

static query_value eval_object(query_runner *r, const query_expr *e) {
    query_value *items = arena_array(r->context.arena, query_value, e->items_n + 1);
    for (size_t i = 0; i < e->items_n; i++) {
        items[i] = query_eval(r, e->items[i]);
    }
    return query_made(r, value_object(r->context.arena, e->names, items, e->items_n));
}

/* ---- paths ---- */

static query_value member(query_runner *r, const query_value *inner, slice name) {
    uint64_t looked = 0;
    query_value v = value_member_counted(r->context.arena, inner, name, &looked);
    query_pay_looked(r, looked);
    return v;
}

query_value query_eval_member(query_runner *r, const query_expr *e, const query_value *inner) {
    if (!e->computed) {
        return member(r, inner, e->name);
    }
    r->slots[e->computed->first_slot] = *inner;
    return query_eval(r, e->computed->columns[0].expr);
}

query_value query_at(query_runner *r, const query_value *inner, const query_value *at) {
    if (at->type == TYPE_STRING) {
        return member(r, inner, at->bytes);
    }
    if (at->type != TYPE_NUMBER || at->number < 0 || at->number != floor(at->number) || at->number > INT32_MAX) {
        return value_undefined();
    }
    uint64_t looked = 0;
    query_value v = value_element_counted(inner, (int64_t)at->number, &looked);
    query_pay_looked(r, looked);
    return v;
}

static query_value eval_index(query_runner *r, const query_expr *e) {
    query_value inner = query_eval(r, e->items[0]), at = query_eval(r, e->items[1]);
    return query_at(r, &inner, &at);
}

/* ---- subqueries ---- */

typedef struct gathered {
    query_runner *runner;
    query_value *list;
    size_t n, cap;
    bool first_only;
} gathered;

static bool gather(void *context, const query_value *v) {
    gathered *g = context;
    if (g->n == g->cap) {
        size_t cap = g->cap ? 2 * g->cap : 8;
        if (!arena_fits(g->runner->context.arena, cap * sizeof *g->list)) {
            return query_may_keep(g->runner);
        }
        query_value *list = arena_array(g->runner->context.arena, query_value, cap);
        memcpy(list, g->n ? (const void *)g->list : "", g->n * sizeof *list);
        g->list = list;
        g->cap = cap;
    }
    g->list[g->n++] = *v;
    return !g->first_only;
}

static query_value eval_subquery(query_runner *r, const query_expr *e) {
    if (e->kind == EXPR_ALL) {
        return value_bool(query_all_rows_pass(r, e->select));
    }
    unsigned waits = r->waits;
    gathered g = {.runner = r, .first_only = e->kind == EXPR_EXISTS || e->kind == EXPR_FIRST};
    query_run_subquery(r, e->select, gather, &g);
    if (r->waits != waits) { /* there may be more rows than known yet */
        return value_undefined();
    }
    switch (e->kind) {
    case EXPR_EXISTS:
        return value_bool(g.n > 0);
    case EXPR_ARRAY_OF:
        return query_made(r, value_array(r->context.arena, g.list, g.n));
    case EXPR_LAST:
        return g.n ? g.list[g.n - 1] : value_undefined();
    case EXPR_FIRST:
        return g.n ? g.list[0] : value_undefined();
    default:
        return g.n > 1 ? fail(r, E_QUERY_CARDINALITY) : g.n ? g.list[0] : value_undefined();
    }
}

/* ---- filters ---- */

static query_value eval_filter(query_runner *r, const query_expr *e) {
    const query_filter *f = e->filter;
    const query_item *item = r->item ? r->item->item : NULL;
    bool passes = false;
    if (!item) {
        return value_undefined();
    }
    query_filter_input in = {.body = item->body,
                             .number = item->number,
                             .version = item->version,
                             .ts = item->ts,
                             .argument = f->argument,
                             .ready = f->ready,
                             .arena = r->context.arena};
    err code = f->kind->passes(r->op, &in, &r->steps, &passes);
    if (code != OK) {
        return fail(r, code);
    }
    return query_may_step(r) ? value_bool(passes) : value_undefined();
}

/* ---- any expression ---- */

query_value query_eval(query_runner *r, const query_expr *e) {
    if (!query_may_step(r)) {
        return value_undefined();
    }
    r->steps--;
    if (r->keys && e->group) {
        return r->keys[e->group - 1];
    }
    query_value v;
    switch (e->kind) {
    case EXPR_LITERAL:
        return e->value;
    case EXPR_PARAMETER:
        return e->slot < 0 ? value_undefined() : r->query->parameters[e->slot].value;
    case EXPR_NAME:
        return r->slots[e->slot];
    case EXPR_MEMBER:
        v = query_eval(r, e->items[0]);
        return query_eval_member(r, e, &v);
    case EXPR_INDEX:
        return eval_index(r, e);
    case EXPR_UNARY:
        return eval_unary(r, e);
    case EXPR_BINARY:
        return eval_binary(r, e);
    case EXPR_CONDITIONAL:
        return eval_conditional(r, e);
    case EXPR_COALESCE:
        return eval_coalesce(r, e);
    case EXPR_BETWEEN:
        return eval_between(r, e);
    case EXPR_IN:
        return eval_in(r, e);
    case EXPR_LIKE:
        return eval_like(r, e);
    case EXPR_CALL:
        return eval_call(r, e);
    case EXPR_ARRAY:
        return eval_array(r, e);
    case EXPR_OBJECT:
        return eval_object(r, e);
    case EXPR_FILTER:
        return eval_filter(r, e);
    case EXPR_KEY:
        return query__eval_key(r, e);
    case EXPR_WITHIN:
        return query__eval_within(r, e);
    default:
        return eval_subquery(r, e);
    }
}
