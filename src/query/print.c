#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "doc/json.h"
#include "doc/number.h"
#include "query/filter.h"
#include "query/key.h"
#include "query/lex.h"
#include "query/parse.h"

typedef struct printer {
    buf *out;
    bool lines;      /* each clause on its own line */
    unsigned indent; /* how far the lines are indented */
} printer;

static void print_expr(printer *p, const query_expr *e);
static void print_select(printer *p, const query_select *s);

static void add(printer *p, const char *text) {
    buf_add(p->out, text, strlen(text));
}

/* Printed between clauses. */
static void add_break(printer *p) {
    if (!p->lines) {
        buf_add_byte(p->out, ' ');
        return;
    }
    buf_add_byte(p->out, '\n');
    for (unsigned i = 0; i < p->indent; i++) {
        add(p, "    ");
    }
}

static void print_list(printer *p, query_expr *const *items, size_t n) {
    for (size_t i = 0; i < n; i++) {
        add(p, i ? ", " : "");
        print_expr(p, items[i]);
    }
}

/* ---- leaves ---- */

static void print_number(printer *p, const query_value *v) {
    char text[NUMBER_TEXT_MAX];
    size_t n = v->is_integer ? number_write_integer(text, v->integer) : number_write_double(text, v->number);
    if (!v->is_integer && n > 17 && v->number != trunc(v->number)) { /* as the service: 15 digits if they are exact, otherwise 17 */
        char fifteen[NUMBER_TEXT_MAX];
        snprintf(fifteen, sizeof fifteen, "%.15g", v->number);
        n = strtod(fifteen, NULL) == v->number ? n : (size_t)snprintf(text, sizeof text, "%.17g", v->number);
    }
    buf_add(p->out, text, n);
}

static void print_literal(printer *p, const query_expr *e) {
    switch (e->value.type) {
    case TYPE_NULL:
        add(p, "null");
        break;
    case TYPE_BOOL:
        add(p, e->value.truth ? "true" : "false");
        break;
    case TYPE_NUMBER:
        print_number(p, &e->value);
        break;
    case TYPE_STRING:
        json_add_string(p->out, e->value.bytes);
        break;
    case TYPE_UNDEFINED:
        add(p, "undefined");
        break;
    default:
        value_write(p->out, &e->value);
    }
}

static void print_filter(printer *p, const query_expr *e) {
    buf_addf(p->out, "filter(\"%s\")", e->filter->kind->name);
}

static void print_key(printer *p, const query_expr *e) {
    buf_addf(p->out, "%s(", e->kind == EXPR_KEY ? "key" : "has_key");
    json_add_string(p->out, e->key->name);
    buf_add_byte(p->out, ')');
}

static void print_name(printer *p, const query_expr *e) {
    buf_add_slice(p->out, e->name);
}

/* Prints an alias: a name if it can be written as one, otherwise a string. */
static void print_alias(printer *p, slice alias) {
    add(p, " AS ");
    if (query_lex_is_name(alias)) {
        buf_add_slice(p->out, alias);
    } else {
        json_add_string(p->out, alias);
    }
}

/* ---- paths ---- */

/* Prints the expression before a dot or a bracket. Numbers need parentheses: 5.x and -5["x"] would be parsed differently. */
static void print_inner(printer *p, const query_expr *e) {
    bool number = e->kind == EXPR_LITERAL && e->value.type == TYPE_NUMBER;
    add(p, number ? "(" : "");
    print_expr(p, e);
    add(p, number ? ")" : "");
}

static void print_member(printer *p, const query_expr *e) {
    print_inner(p, e->items[0]);
    if (!e->quoted && query_lex_is_name(e->name)) {
        buf_add_byte(p->out, '.');
        buf_add_slice(p->out, e->name);
    } else {
        buf_add_byte(p->out, '[');
        json_add_string(p->out, e->name);
        buf_add_byte(p->out, ']');
    }
}

static void print_index(printer *p, const query_expr *e) {
    print_inner(p, e->items[0]);
    buf_add_byte(p->out, '[');
    print_expr(p, e->items[1]);
    buf_add_byte(p->out, ']');
}

/* ---- operators ---- */

static const char *operator_text(query_operator op) {
    static const char *const texts[] = {
        [OP_PLUS] = "+",
        [OP_MINUS] = "-",
        [OP_NOT] = "NOT",
        [OP_BIT_NOT] = "~",
        [OP_MULTIPLY] = "*",
        [OP_DIVIDE] = "/",
        [OP_MODULO] = "%",
        [OP_ADD] = "+",
        [OP_SUBTRACT] = "-",
        [OP_CONCAT] = "||",
        [OP_SHIFT_LEFT] = "<<",
        [OP_SHIFT_RIGHT] = ">>",
        [OP_SHIFT_RIGHT_ZERO] = ">>>",
        [OP_BIT_AND] = "&",
        [OP_BIT_XOR] = "^",
        [OP_BIT_OR] = "|",
        [OP_EQUAL] = "=",
        [OP_NOT_EQUAL] = "!=",
        [OP_LESS] = "<",
        [OP_LESS_EQUAL] = "<=",
        [OP_GREATER] = ">",
        [OP_GREATER_EQUAL] = ">=",
        [OP_AND] = "AND",
        [OP_OR] = "OR",
    };
    return texts[op];
}

static void print_unary(printer *p, const query_expr *e) {
    buf_add_byte(p->out, '(');
    add(p, operator_text(e->op));
    buf_add_byte(p->out, ' ');
    print_expr(p, e->items[0]);
    buf_add_byte(p->out, ')');
}

/* (a first b), (a first b then c) */
static void print_infix(printer *p, const query_expr *e, const char *first, const char *then) {
    buf_add_byte(p->out, '(');
    print_expr(p, e->items[0]);
    add(p, e->negated ? " NOT " : " ");
    add(p, first);
    buf_add_byte(p->out, ' ');
    print_expr(p, e->items[1]);
    if (e->items_n > 2) {
        buf_add_byte(p->out, ' ');
        add(p, then);
        buf_add_byte(p->out, ' ');
        print_expr(p, e->items[2]);
    }
    buf_add_byte(p->out, ')');
}

static void print_binary(printer *p, const query_expr *e) {
    print_infix(p, e, operator_text(e->op), "");
}

static void print_conditional(printer *p, const query_expr *e) {
    print_infix(p, e, "?", ":");
}

static void print_coalesce(printer *p, const query_expr *e) {
    print_infix(p, e, "??", "");
}

static void print_between(printer *p, const query_expr *e) {
    print_infix(p, e, "BETWEEN", "AND");
}

static void print_like(printer *p, const query_expr *e) {
    print_infix(p, e, "LIKE", "ESCAPE");
}

static void print_in(printer *p, const query_expr *e) {
    buf_add_byte(p->out, '(');
    print_expr(p, e->items[0]);
    add(p, e->negated ? " NOT IN (" : " IN (");
    print_list(p, e->items + 1, e->items_n - 1);
    add(p, "))");
}

/* ---- calls, arrays, objects, subqueries ---- */

static void print_call(printer *p, const query_expr *e) {
    add(p, e->udf ? "udf." : "");
    buf_add_slice(p->out, e->name);
    buf_add_byte(p->out, '(');
    print_list(p, e->items, e->items_n);
    buf_add_byte(p->out, ')');
}

static void print_array(printer *p, const query_expr *e) {
    buf_add_byte(p->out, '[');
    print_list(p, e->items, e->items_n);
    buf_add_byte(p->out, ']');
}

static void print_object(printer *p, const query_expr *e) {
    buf_add_byte(p->out, '{');
    for (size_t i = 0; i < e->items_n; i++) {
        add(p, i ? ", " : "");
        json_add_string(p->out, e->names[i]);
        add(p, ": ");
        print_expr(p, e->items[i]);
    }
    buf_add_byte(p->out, '}');
}

static void print_subquery(printer *p, const query_expr *e) {
    printer on_one_line = {.out = p->out};
    add(p, e->kind == EXPR_EXISTS     ? "EXISTS("
           : e->kind == EXPR_ARRAY_OF ? "ARRAY("
           : e->kind == EXPR_ALL      ? "ALL("
           : e->kind == EXPR_FIRST    ? "FIRST("
           : e->kind == EXPR_LAST     ? "LAST("
                                      : "(");
    print_select(&on_one_line, e->select);
    buf_add_byte(p->out, ')');
}

static void print_expr(printer *p, const query_expr *e) {
    static void (*const printers[])(printer *, const query_expr *) = {
        [EXPR_LITERAL] = print_literal,
        [EXPR_PARAMETER] = print_name,
        [EXPR_NAME] = print_name,
        [EXPR_MEMBER] = print_member,
        [EXPR_INDEX] = print_index,
        [EXPR_UNARY] = print_unary,
        [EXPR_BINARY] = print_binary,
        [EXPR_CONDITIONAL] = print_conditional,
        [EXPR_COALESCE] = print_coalesce,
        [EXPR_BETWEEN] = print_between,
        [EXPR_IN] = print_in,
        [EXPR_LIKE] = print_like,
        [EXPR_CALL] = print_call,
        [EXPR_ARRAY] = print_array,
        [EXPR_OBJECT] = print_object,
        [EXPR_SUBQUERY] = print_subquery,
        [EXPR_EXISTS] = print_subquery,
        [EXPR_ARRAY_OF] = print_subquery,
        [EXPR_ALL] = print_subquery,
        [EXPR_FIRST] = print_subquery,
        [EXPR_LAST] = print_subquery,
        [EXPR_FILTER] = print_filter,
        [EXPR_KEY] = print_key,
        [EXPR_WITHIN] = print_key,
    };
    printers[e->kind](p, e);
}

/* ---- clauses ---- */

static void print_columns(printer *p, const query_select *s) {
    if (s->star) {
        buf_add_byte(p->out, '*');
        return;
    }
    add(p, s->value ? "VALUE " : "");
    for (size_t i = 0; i < s->columns_n; i++) {
        add(p, i ? ", " : "");
        print_expr(p, s->columns[i].expr);
        if (s->columns[i].alias_given) {
            print_alias(p, s->columns[i].alias);
        }
    }
}

static void print_nested(printer *p, const query_select *s) {
    buf_add_byte(p->out, '(');
    p->indent++;
    if (p->lines) {
        add_break(p);
    }
    print_select(p, s);
    p->indent--;
    if (p->lines) {
        add_break(p);
    }
    buf_add_byte(p->out, ')');
}

static void print_source(printer *p, const query_source *source) {
    if (source->kind == SOURCE_ITEMS) {
        buf_add_slice(p->out, source->alias);
        add(p, " IN ");
    }
    if (source->select) {
        print_nested(p, source->select);
    } else {
        print_expr(p, source->from);
    }
    if (source->alias_given && source->kind != SOURCE_ITEMS) {
        add(p, " AS ");
        buf_add_slice(p->out, source->alias);
    }
}

static void print_sources(printer *p, const query_select *s) {
    for (size_t i = 0; i < s->sources_n; i++) {
        if (i) {
            add_break(p);
            add(p, "JOIN ");
        }
        print_source(p, &s->sources[i]);
    }
}

static void print_order(printer *p, const query_select *s) {
    add_break(p);
    add(p, s->order_by_rank ? "ORDER BY RANK " : "ORDER BY ");
    for (size_t i = 0; i < s->order_n; i++) {
        const query_order *item = &s->order[i];
        add(p, i ? ", " : "");
        print_expr(p, item->expr);
        add(p, !item->direction_given ? "" : item->descending ? " DESC" : " ASC"); /* scores are ordered best first by default */
    }
}

static void print_filters(printer *p, const query_select *s) {
    if (s->sources_n) {
        add_break(p);
        add(p, "FROM ");
        print_sources(p, s);
    }
    if (s->where) {
        add_break(p);
        add(p, "WHERE ");
        print_expr(p, s->where);
    }
}

static void print_select(printer *p, const query_select *s) {
    add(p, s->distinct ? "SELECT DISTINCT " : "SELECT ");
    if (s->top.given) {
        add(p, "TOP ");
        print_expr(p, s->top.expr);
        buf_add_byte(p->out, ' ');
    }
    print_columns(p, s);
    print_filters(p, s);
    if (s->group_n) {
        add_break(p);
        add(p, "GROUP BY ");
        print_list(p, s->group, s->group_n);
    }
    if (s->order_n) {
        print_order(p, s);
    }
    if (s->limit.given) {
        add_break(p);
        add(p, "OFFSET ");
        print_expr(p, s->offset.expr);
        add(p, " LIMIT ");
        print_expr(p, s->limit.expr);
    }
}

/* ---- public functions ---- */

void query_print_expr(buf *out, const query_expr *e) {
    print_expr(&(printer){.out = out}, e);
}

void query_print_select(buf *out, const query_select *s) {
    print_select(&(printer){.out = out}, s);
}

void query_print_lines(buf *out, const query_select *s) {
    print_select(&(printer){.out = out, .lines = true}, s);
}

void query_print_sources(buf *out, const query_select *s) {
    print_sources(&(printer){.out = out, .lines = true}, s);
}
