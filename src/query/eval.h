/* eval.h — evaluates expressions for one row, and visits the rows of a SELECT over one item.
 *
 * Three-valued logic, with undefined as the third value; see docs/query.md. Memory comes from the row's arena only. */
#pragma once

#include "query/bind.h"
#include "query/function.h"

typedef struct query_runner {
    const query *query;
    query_context context;     /* its `arena` is the row's */
    struct query_calls *calls; /* the calls of UDFs (query/udf.h); NULL: they fail */
    unsigned waits;            /* UDF values that were needed and are not there yet; nothing may be decided by such a value */
    uint64_t steps;            /* budget of expressions and rows to evaluate; at 0 the query ends with E_QUERY_TOO_LONG */
    uint64_t check_at;         /* op_check is called when `steps` falls to this */
    const budget *budget;      /* the operation's; never NULL */
    uint64_t random;
    op *op;
    err code; /* the first error: a failed UDF, too many steps, a value that is too large; values are undefined after it */
    query_value slots[QUERY_SLOTS_MAX];
    const query_value *item;       /* the item of the current row, which FROM names */
    const query_value *aggregates; /* the current group's values, by index; NULL: not grouped */
    const query_value *keys;       /* the current group's values; NULL: not grouped */
} query_runner;

/* The limit for one item, however many rows it has: about a third of a second. The operation's budget bounds the memory of rows, and of
 * what is kept of them: groups, distinct values, ordered rows. op_check is called every QUERY_CHECK_STEPS, about 100 µs. */
enum { QUERY_ITEM_STEPS = 5000000, QUERY_CHECK_STEPS = 2000 };

void query_runner_init(query_runner *r, const query *q, op *o, arena *row_arena, int64_t now_ms);

query_value query_eval(query_runner *r, const query_expr *e);

/* Sets the budget of steps. */
static inline void query_renew_steps(query_runner *r, uint64_t steps) {
    r->steps = steps;
    r->check_at = steps > QUERY_CHECK_STEPS ? steps - QUERY_CHECK_STEPS : 0;
}

/* Sets the runner's error if it has none; returns undefined. */
query_value query_fail_value(query_runner *r, err code);

/* Passes on a document that value_array or value_object made. If it is undefined, it was too large, and the query fails. */
query_value query_made(query_runner *r, query_value document);

/* Checks steps, memory and op_check. False: the runner has the error. */
bool query_check(query_runner *r);

/* The same for each expression and row. Cheap, because it calls query_check only every QUERY_CHECK_STEPS. */
static inline bool query_may_step(query_runner *r) {
    return (r->steps > r->check_at && !r->budget->exceeded) || query_check(r);
}

/* Work beyond the evaluation of an expression is paid for in steps of about 10 ns: members passed on the way to the one wanted, and
 * comparing or hashing values, which may be as long as an item. */
static inline void query_pay(query_runner *r, uint64_t steps) {
    r->steps = r->steps > steps ? r->steps - steps : 0;
}
static inline void query_pay_looked(query_runner *r, uint64_t looked) {
    query_pay(r, looked / 4);
}
static inline void query_pay_value(query_runner *r, const query_value *v) {
    if (v->type >= TYPE_STRING && v->bytes.n >= 64) {
        query_pay(r, v->type == TYPE_STRING ? v->bytes.n / 64 : v->bytes.n / 4);
    }
}

/* To be called after something of a row was kept. False: the budget is exceeded, and the query ends. */
static inline bool query_may_keep(query_runner *r) {
    if (r->budget->exceeded && r->code == OK) {
        r->code = budget_error(r->budget);
    }
    return r->code == OK;
}

/* The member of `inner` that the expression `e` names; of an item, also computed properties. */
query_value query_eval_member(query_runner *r, const query_expr *e, const query_value *inner);
query_value query_at(query_runner *r, const query_value *inner, const query_value *at); /* inner[at] */

/* Visits the rows of a select that pass its WHERE: all combinations of its sources. At top level `item` is the item, otherwise NULL. The
 * slots are set while the visitor runs; it returns false to stop. At top level the row's arena is released after each visit. */
typedef bool (*query_row)(void *context);
void query_each_row(query_runner *r, const query_select *s, const query_value *item, query_row visit, void *context);

/* The same, but with this value as the first source (for x IN …, its elements) instead of what FROM says. */
void query_each_row_from(query_runner *r, const query_select *s, const query_value *first, query_row visit, void *context);

/* ALL(SELECT …): WHERE is false for no row. */
bool query_all_rows_pass(query_runner *r, const query_select *s);

/* The value of a row: SELECT VALUE's, or an object of the columns; undefined: there is no row. */
query_value query_project(query_runner *r, const query_select *s);

/* Runs a subquery with the current slots; `visit` gets the value of each row. */
typedef bool (*query_result)(void *context, const query_value *value);
void query_run_subquery(query_runner *r, const query_select *s, query_result visit, void *context);
