/* eval.h — expressions of one row, and the rows of a SELECT over one item.
 *
 * Three-valued logic with undefined as the third; see docs/query.md. No allocation but in the row's arena. */
#pragma once

#include "query/bind.h"
#include "query/function.h"

typedef struct query_runner {
    const query *query;
    query_context context;     /* arena: of the row */
    struct query_calls *calls; /* of user-defined functions (query/udf.h); NULL: they are refused */
    unsigned waits;            /* for values of such calls that are not there yet: nothing may be decided by them */
    uint64_t steps;            /* expressions and rows that may still be evaluated; at 0 the query ends with E_QUERY_TOO_LONG */
    uint64_t check_at;         /* when so many steps are left, op_check is asked */
    const budget *budget;      /* of the operation; never NULL */
    uint64_t random;
    op *op;
    err code; /* of what cannot be expressed as undefined: a division by zero, a failed UDF, too many steps; then values are undefined */
    query_value slots[QUERY_SLOTS_MAX];
    const query_value *item;       /* of the row at top level: what FROM names */
    const query_value *aggregates; /* of the group being shown, by number; NULL: not grouped */
    const query_value *keys;       /* its values; NULL: not grouped */
} query_runner;

/* What one item may take, however its rows multiply: about a third of a second. The operation's budget bounds the memory of rows, and of
 * what rows leave behind: groups, distinct values, rows in order. After QUERY_CHECK_STEPS, some 100 µs, op_check is asked.
 */
enum { QUERY_ITEM_STEPS = 5000000, QUERY_CHECK_STEPS = 2000 };

void query_runner_init(query_runner *r, const query *q, op *o, arena *row_arena, int64_t now_ms);

query_value query_eval(query_runner *r, const query_expr *e);

/* Sets how many steps may follow. */
static inline void query_renew_steps(query_runner *r, uint64_t steps) {
    r->steps = steps;
    r->check_at = steps > QUERY_CHECK_STEPS ? steps - QUERY_CHECK_STEPS : 0;
}

/* Notes the error, unless there is one; returns undefined. */
query_value query_fail_value(query_runner *r, err code);

/* A document that value_array or value_object made; undefined: it was too large, and the query ends. */
query_value query_made(query_runner *r, query_value document);

/* Are there steps and memory left, and does whoever runs the query let it go on? If not, the runner has the error. */
bool query_check(query_runner *r);

/* The same, for each expression and row: nearly free, since query_check is called only every QUERY_CHECK_STEPS. */
static inline bool query_may_step(query_runner *r) {
    return (r->steps > r->check_at && !r->budget->exceeded) || query_check(r);
}

/* Work beyond the evaluation of an expression is paid for in steps of about 10 ns: members looked at before the one that was wanted, and
 * values that are compared or hashed, which may be as long as an item. */
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

/* Whoever keeps something of a row asks afterwards: false, and the query ends, when it is too much. */
static inline bool query_may_keep(query_runner *r) {
    if (r->budget->exceeded && r->code == OK) {
        r->code = budget_error(r->budget);
    }
    return r->code == OK;
}

/* A property of a value, computed ones of an item included: what the member expression `e` is of it. */
query_value query_eval_member(query_runner *r, const query_expr *e, const query_value *inner);
query_value query_at(query_runner *r, const query_value *inner, const query_value *at); /* inner[at] */

/* Visits the rows of a select, its WHERE passed: all combinations of its sources, the first being `item` at top level. The slots are set
 * while the visitor runs; it returns false to stop. At top level what a visitor allocates in the row's arena is gone when it returns. */
typedef bool (*query_row)(void *context);
void query_each_row(query_runner *r, const query_select *s, const query_value *item, query_row visit, void *context);

/* The same, the first source being this value (of x IN …: its elements), whatever FROM says. */
void query_each_row_from(query_runner *r, const query_select *s, const query_value *first, query_row visit, void *context);

/* ALL(SELECT …): no row of its sources fails its WHERE. */
bool query_all_rows_pass(query_runner *r, const query_select *s);

/* The value of a row: SELECT VALUE's, or an object of the columns; undefined: the row has none. */
query_value query_project(query_runner *r, const query_select *s);

/* Runs a subquery over the slots as they are; `visit` gets each row's value. */
typedef bool (*query_result)(void *context, const query_value *value);
void query_run_subquery(query_runner *r, const query_select *s, query_result visit, void *context);
