/* parse_expr.c — expressions. Precedence, from the loosest to the tightest:
 *
 *   scalar     a ? b : c, a ?? b            right-associative
 *   logical    OR, then AND                 left-associative
 *   predicate  [NOT] BETWEEN, IN, LIKE      at most one in each operand of AND and OR
 *   binary     = != < <= > >= << >> >>>     one level, left-associative
 *              ||
 *              | ^ & + -                    one level, left-associative
 *              * / %
 *   unary      - + ~ NOT                    so that NOT a = b is (NOT a) = b
 *   postfix    .name [index]
 *
 * This is the service's own grammar, odd as some of it looks. A BETWEEN may end a chain of AND and OR, but nothing may follow it: a BETWEEN
 * 1 AND 2 AND b is an error at the second AND, and needs parentheses around the BETWEEN. */
#include "query/parse_int.h"

/* ---- nodes ---- */

query_expr *query__node(parser *p, query_kind kind, uint32_t start) {
    query_expr *e = arena_new(p->arena, query_expr);
    e->kind = kind;
    e->span.start = start;
    e->slot = -1;
    e->aggregate = -1;
    return e;
}

query_expr *query__finish(parser *p, query_expr *e, query_expr **items, size_t n) {
    unsigned depth = e->select ? e->select->depth : 0;
    for (size_t i = 0; i < n; i++) {
        depth = items[i]->depth > depth ? items[i]->depth : depth;
    }
    e->items = items;
    e->items_n = n;
    e->depth = (uint16_t)(depth + 1);
    e->span.end = p->last_end;
    if (e->depth > QUERY_DEPTH_MAX) {
        query__too_deep(p);
        return NULL;
    }
    return e;
}

/* Makes a node with one to three operands. */
static query_expr *make(parser *p, query_kind kind, uint32_t start, query_expr *a, query_expr *b, query_expr *c) {
    size_t n = c ? 3 : b ? 2 : 1;
    query_expr *operands[] = {a, b, c};
    query_expr **items = arena_array(p->arena, query_expr *, n);
    memcpy(items, operands, n * sizeof *items);
    return query__finish(p, query__node(p, kind, start), items, n);
}

static query_expr *make_binary(parser *p, query_operator op, uint32_t start, query_expr *a, query_expr *b) {
    query_expr *e = make(p, EXPR_BINARY, start, a, b, NULL);
    if (e) {
        e->op = op;
    }
    return e;
}

/* ---- lists ---- */

typedef struct list {
    query_expr **items;
    size_t n;
} list;

static void list_add(parser *p, list *l, query_expr *e) {
    l->items = query__grow(p, l->items, l->n, sizeof *l->items);
    l->items[l->n++] = e;
}

/* Reads scalar, scalar, … up to and including the closing token. */
static bool read_list(parser *p, list *l, query_token_kind closing, bool may_be_empty) {
    if (may_be_empty && p->token.kind == closing) {
        return query__advance(p);
    }
    for (;;) {
        query_expr *e = query__scalar(p);
        if (!e) {
            return false;
        }
        list_add(p, l, e);
        if (p->token.kind != TOKEN_COMMA) {
            return query__expect(p, closing);
        }
        if (!query__advance(p)) {
            return false;
        }
    }
}

/* ---- literals ---- */

query_expr *query__literal(parser *p) {
    query_expr *e = query__node(p, p->token.kind == TOKEN_PARAMETER ? EXPR_PARAMETER : EXPR_LITERAL, p->token.span.start);
    slice text = query__text(p, p->token.span);
    if (p->token.kind == TOKEN_PARAMETER) {
        e->name = text;
    } else if (p->token.kind == TOKEN_STRING) {
        e->value = value_string(query_lex_string(p->arena, text));
    } else if (!query_lex_number(p->arena, text, &e->value)) {
        p->code = query_fail(p->op, query_location(p->ast->text, p->token.span), "SC1011",
                             "Syntax error, invalid numeric value token '%.*s'.", slice_shown(text), text.p);
        return NULL;
    }
    return query__advance(p) ? query__finish(p, e, NULL, 0) : NULL;
}

static query_expr *read_constant(parser *p) {
    query_expr *e = query__node(p, EXPR_LITERAL, p->token.span.start);
    e->value = p->token.kind == TOKEN_NULL        ? value_null()
               : p->token.kind == TOKEN_UNDEFINED ? value_undefined()
                                                  : value_bool(p->token.kind == TOKEN_TRUE);
    return query__advance(p) ? query__finish(p, e, NULL, 0) : NULL;
}

static query_expr *read_array(parser *p) {
    query_expr *e = query__node(p, EXPR_ARRAY, p->token.span.start);
    list l = {0};
    return query__advance(p) && read_list(p, &l, TOKEN_RIGHT_BRACKET, true) ? query__finish(p, e, l.items, l.n) : NULL;
}

static bool read_property_name(parser *p, slice *name_out) {
    if (p->token.kind != TOKEN_STRING) {
        return query__name(p, name_out);
    }
    *name_out = query_lex_string(p->arena, query__text(p, p->token.span));
    return query__advance(p);
}

/* "name": scalar, name: scalar, … */
static bool read_properties(parser *p, list *l, slice **names) {
    for (;;) {
        slice name;
        if (!read_property_name(p, &name) || !query__expect(p, TOKEN_COLON)) {
            return false;
        }
        query_expr *value = query__scalar(p);
        if (!value) {
            return false;
        }
        *names = query__grow(p, *names, l->n, sizeof name);
        (*names)[l->n] = name;
        list_add(p, l, value);
        if (p->token.kind != TOKEN_COMMA) {
            return query__expect(p, TOKEN_RIGHT_BRACE);
        }
        if (!query__advance(p)) {
            return false;
        }
    }
}

static query_expr *read_object(parser *p) {
    query_expr *e = query__node(p, EXPR_OBJECT, p->token.span.start);
    list l = {0};
    slice *names = NULL;
    if (!query__advance(p)) {
        return NULL;
    }
    bool good = p->token.kind == TOKEN_RIGHT_BRACE ? query__advance(p) : read_properties(p, &l, &names);
    e->names = names;
    return good ? query__finish(p, e, l.items, l.n) : NULL;
}

/* ---- calls and subqueries ---- */

/* Reads SELECT … and the closing parenthesis. */
static query_expr *read_subquery_rest(parser *p, query_kind kind, uint32_t start) {
    query_expr *e = query__node(p, kind, start);
    e->select = query__select(p);
    return e->select && query__expect(p, TOKEN_RIGHT_PAREN) ? query__finish(p, e, NULL, 0) : NULL;
}

query_expr *query__subquery(parser *p, query_kind kind) {
    uint32_t start = p->token.span.start;
    return query__advance(p) ? read_subquery_rest(p, kind, start) : NULL;
}

/* EXISTS(SELECT …), ARRAY(SELECT …) */
static query_expr *read_exists(parser *p) {
    query_kind kind = p->token.kind == TOKEN_EXISTS ? EXPR_EXISTS : EXPR_ARRAY_OF;
    uint32_t start = p->token.span.start;
    return query__advance(p) && query__expect(p, TOKEN_LEFT_PAREN) ? read_subquery_rest(p, kind, start) : NULL;
}

/* ALL, FIRST and LAST before (SELECT are functions of a subquery; otherwise they are names. */
static query_kind subquery_kind(slice name) {
    return slice_eq_nocase(name, SLICE_LIT("ALL"))     ? EXPR_ALL
           : slice_eq_nocase(name, SLICE_LIT("FIRST")) ? EXPR_FIRST
           : slice_eq_nocase(name, SLICE_LIT("LAST"))  ? EXPR_LAST
                                                       : EXPR_CALL;
}

/* Reads arguments from after the opening parenthesis. */
static query_expr *read_arguments(parser *p, slice name, bool udf, uint32_t start) {
    if (!udf && p->token.kind == TOKEN_SELECT && subquery_kind(name) != EXPR_CALL) {
        return read_subquery_rest(p, subquery_kind(name), start);
    }
    query_expr *e = query__node(p, EXPR_CALL, start);
    list l = {0};
    e->name = name;
    e->udf = udf;
    e->site = udf && p->ast->udf_calls < UINT8_MAX ? (uint8_t)p->ast->udf_calls : 0;
    p->ast->udf_calls += udf;
    return read_list(p, &l, TOKEN_RIGHT_PAREN, true) ? query__finish(p, e, l.items, l.n) : NULL;
}

query_expr *query__call(parser *p) {
    uint32_t start = p->token.span.start;
    slice name = query__text(p, p->token.span);
    bool udf = p->token.kind == TOKEN_UDF;
    bool good;
    if (udf) {
        good = query__advance(p) && query__expect(p, TOKEN_DOT) && query__name(p, &name);
    } else if (p->token.kind == TOKEN_LEFT || p->token.kind == TOKEN_RIGHT) {
        good = query__advance(p);
    } else {
        good = query__name(p, &name);
    }
    return good && query__expect(p, TOKEN_LEFT_PAREN) ? read_arguments(p, name, udf, start) : NULL;
}

static query_expr *read_name_or_call(parser *p) {
    query_lexer ahead = p->lexer;
    query_token next;
    if (query_lex_next(&ahead, &next) == LEX_OK && next.kind == TOKEN_LEFT_PAREN) {
        return query__call(p);
    }
    query_expr *e = query__node(p, EXPR_NAME, p->token.span.start);
    return query__name(p, &e->name) ? query__finish(p, e, NULL, 0) : NULL;
}

static query_expr *read_parentheses(parser *p) {
    uint32_t start = p->token.span.start;
    if (!query__advance(p)) {
        return NULL;
    }
    if (p->token.kind == TOKEN_SELECT) {
        return read_subquery_rest(p, EXPR_SUBQUERY, start);
    }
    query_expr *e = query__scalar(p);
    return e && query__expect(p, TOKEN_RIGHT_PAREN) ? e : NULL;
}

/* ---- primary, postfix, unary ---- */

static query_expr *read_nothing(parser *p) {
    query__unexpected(p);
    return NULL;
}

static query_expr *read_primary(parser *p) {
    static query_expr *(*const readers[TOKEN_WHERE + 1])(parser *) = {
        [TOKEN_NAME] = read_name_or_call,
        [TOKEN_PARAMETER] = query__literal,
        [TOKEN_NUMBER] = query__literal,
        [TOKEN_STRING] = query__literal,
        [TOKEN_LEFT_PAREN] = read_parentheses,
        [TOKEN_LEFT_BRACKET] = read_array,
        [TOKEN_LEFT_BRACE] = read_object,
        [TOKEN_TRUE] = read_constant,
        [TOKEN_FALSE] = read_constant,
        [TOKEN_NULL] = read_constant,
        [TOKEN_UNDEFINED] = read_constant,
        [TOKEN_EXISTS] = read_exists,
        [TOKEN_ARRAY] = read_exists,
        [TOKEN_UDF] = query__call,
        [TOKEN_LEFT] = query__call,
        [TOKEN_RIGHT] = query__call,
    };
    query_expr *(*reader)(parser *) = readers[p->token.kind];
    return reader ? reader(p) : read_nothing(p);
}

query_expr *query__member(parser *p, query_expr *inner, uint32_t start) {
    slice name;
    if (!query__advance(p) || !query__name(p, &name)) {
        return NULL;
    }
    query_expr *e = make(p, EXPR_MEMBER, start, inner, NULL, NULL);
    if (e) {
        e->name = name;
    }
    return e;
}

query_expr *query__element(parser *p, query_expr *inner, query_expr *index, uint32_t start) {
    bool named = index->kind == EXPR_LITERAL && index->value.type == TYPE_STRING;
    if (!query__expect(p, TOKEN_RIGHT_BRACKET)) {
        return NULL;
    }
    query_expr *e = make(p, named ? EXPR_MEMBER : EXPR_INDEX, start, inner, named ? NULL : index, NULL);
    if (e && named) {
        e->name = index->value.bytes;
        e->quoted = true;
    }
    return e;
}

static query_expr *read_index(parser *p, query_expr *inner, uint32_t start) {
    query_expr *index = query__advance(p) ? query__scalar(p) : NULL;
    return index ? query__element(p, inner, index, start) : NULL;
}

static query_expr *read_postfix(parser *p) {
    uint32_t start = p->token.span.start;
    query_expr *e = read_primary(p);
    while (e && (p->token.kind == TOKEN_DOT || p->token.kind == TOKEN_LEFT_BRACKET)) {
        e = p->token.kind == TOKEN_DOT ? query__member(p, e, start) : read_index(p, e, start);
    }
    return e;
}

/* -5 becomes a literal, for indexes and rewrites. */
static query_expr *negate(parser *p, query_expr *e, uint32_t start) {
    if (slice_eq(query__text(p, e->span), SLICE_LIT("9223372036854775808"))) {
        e->value = value_integer(INT64_MIN); /* fits an integer only with its sign */
    } else if (e->value.is_integer && e->value.integer != 0 && e->value.integer != INT64_MIN) {
        e->value = value_integer(-e->value.integer);
    } else {
        e->value = value_number(-e->value.number);
    }
    e->span = (query_span){start, p->last_end};
    return e;
}

static query_expr *read_unary(parser *p);

static query_expr *read_operand(parser *p, query_operator op) {
    uint32_t start = p->token.span.start;
    query_expr *e = query__advance(p) && query__enter(p) ? read_unary(p) : NULL;
    query__leave(p);
    if (!e) {
        return NULL;
    }
    if (op == OP_MINUS && e->kind == EXPR_LITERAL && e->value.type == TYPE_NUMBER) {
        return negate(p, e, start);
    }
    e = make(p, EXPR_UNARY, start, e, NULL, NULL);
    if (e) {
        e->op = op;
    }
    return e;
}

static query_expr *read_unary(parser *p) {
    switch (p->token.kind) {
    case TOKEN_MINUS:
        return read_operand(p, OP_MINUS);
    case TOKEN_PLUS:
        return read_operand(p, OP_PLUS);
    case TOKEN_TILDE:
        return read_operand(p, OP_BIT_NOT);
    case TOKEN_NOT:
        return read_operand(p, OP_NOT);
    default:
        return read_postfix(p);
    }
}

/* ---- binary operators ---- */

enum { LEVEL_COMPARISON = 1, LEVEL_CONCAT, LEVEL_ADDITIVE, LEVEL_MULTIPLICATIVE };

typedef struct binary_operator {
    uint8_t level; /* 0: not a binary operator */
    uint8_t op;
} binary_operator;

static binary_operator operator_of(query_token_kind kind) {
    static const binary_operator operators[TOKEN_WHERE + 1] = {
        [TOKEN_EQUAL] = {LEVEL_COMPARISON, OP_EQUAL},
        [TOKEN_NOT_EQUAL] = {LEVEL_COMPARISON, OP_NOT_EQUAL},
        [TOKEN_LESS] = {LEVEL_COMPARISON, OP_LESS},
        [TOKEN_LESS_EQUAL] = {LEVEL_COMPARISON, OP_LESS_EQUAL},
        [TOKEN_GREATER] = {LEVEL_COMPARISON, OP_GREATER},
        [TOKEN_GREATER_EQUAL] = {LEVEL_COMPARISON, OP_GREATER_EQUAL},
        [TOKEN_SHIFT_LEFT] = {LEVEL_COMPARISON, OP_SHIFT_LEFT},
        [TOKEN_SHIFT_RIGHT] = {LEVEL_COMPARISON, OP_SHIFT_RIGHT},
        [TOKEN_SHIFT_RIGHT_ZERO] = {LEVEL_COMPARISON, OP_SHIFT_RIGHT_ZERO},
        [TOKEN_CONCAT] = {LEVEL_CONCAT, OP_CONCAT},
        [TOKEN_PIPE] = {LEVEL_ADDITIVE, OP_BIT_OR},
        [TOKEN_CARET] = {LEVEL_ADDITIVE, OP_BIT_XOR},
        [TOKEN_AMPERSAND] = {LEVEL_ADDITIVE, OP_BIT_AND},
        [TOKEN_PLUS] = {LEVEL_ADDITIVE, OP_ADD},
        [TOKEN_MINUS] = {LEVEL_ADDITIVE, OP_SUBTRACT},
        [TOKEN_STAR] = {LEVEL_MULTIPLICATIVE, OP_MULTIPLY},
        [TOKEN_SLASH] = {LEVEL_MULTIPLICATIVE, OP_DIVIDE},
        [TOKEN_PERCENT] = {LEVEL_MULTIPLICATIVE, OP_MODULO},
    };
    return operators[kind];
}

static query_expr *read_binary(parser *p, unsigned least) {
    uint32_t start = p->token.span.start;
    query_expr *left = read_unary(p);
    for (binary_operator o; left && (o = operator_of(p->token.kind)).level && o.level >= least;) {
        query_expr *right = query__advance(p) ? read_binary(p, o.level + 1u) : NULL;
        left = right ? make_binary(p, (query_operator)o.op, start, left, right) : NULL;
    }
    return left;
}

/* ---- predicates ---- */

/* AND and OR cannot follow: in the service's grammar BETWEEN is outside of them. */
static query_expr *read_between(parser *p, query_expr *value, uint32_t start) {
    query_expr *low = query__advance(p) ? read_binary(p, LEVEL_COMPARISON) : NULL;
    query_expr *high = low && query__expect(p, TOKEN_AND) ? read_binary(p, LEVEL_COMPARISON) : NULL;
    if (!high) {
        return NULL;
    }
    if (p->token.kind == TOKEN_AND || p->token.kind == TOKEN_OR) {
        return read_nothing(p);
    }
    return make(p, EXPR_BETWEEN, start, value, low, high);
}

static query_expr *read_in(parser *p, query_expr *value, uint32_t start) {
    list l = {0};
    list_add(p, &l, value);
    if (!query__advance(p) || !query__expect(p, TOKEN_LEFT_PAREN) || !read_list(p, &l, TOKEN_RIGHT_PAREN, false)) {
        return NULL;
    }
    return query__finish(p, query__node(p, EXPR_IN, start), l.items, l.n);
}

static query_expr *read_like(parser *p, query_expr *value, uint32_t start) {
    query_expr *pattern = query__advance(p) ? read_binary(p, LEVEL_COMPARISON) : NULL;
    if (!pattern || p->token.kind != TOKEN_ESCAPE) {
        return pattern ? make(p, EXPR_LIKE, start, value, pattern, NULL) : NULL;
    }
    if (!query__advance(p)) {
        return NULL;
    }
    query_expr *escape = p->token.kind == TOKEN_STRING ? query__literal(p) : read_nothing(p);
    return escape ? make(p, EXPR_LIKE, start, value, pattern, escape) : NULL;
}

static query_expr *read_predicate(parser *p) {
    uint32_t start = p->token.span.start;
    query_expr *e = read_binary(p, LEVEL_COMPARISON);
    bool negated = e && p->token.kind == TOKEN_NOT;
    if (!e || (negated && !query__advance(p))) {
        return NULL;
    }
    switch (p->token.kind) {
    case TOKEN_BETWEEN:
        e = read_between(p, e, start);
        break;
    case TOKEN_IN:
        e = read_in(p, e, start);
        break;
    case TOKEN_LIKE:
        e = read_like(p, e, start);
        break;
    default:
        return negated ? read_nothing(p) : e;
    }
    if (e) {
        e->negated = negated;
    }
    return e;
}

/* ---- AND, OR ---- */

/* The operands of a chain of ANDs or ORs; a span includes the parentheses around its operand. */
typedef struct chain {
    query_operator op;
    list operands;
    query_span *spans;
} chain;

/* Short chains become left-deep trees, as the service prints them. Long ones, which programs write, would become too deep to walk; they
 * become balanced trees, since AND and OR are associative. */
enum { CHAIN_TO_THE_LEFT = 64 };

static query_expr *fold(parser *p, const chain *c, size_t from, size_t to) {
    if (to - from == 1) {
        return c->operands.items[from];
    }
    size_t middle = c->operands.n <= CHAIN_TO_THE_LEFT ? to - 1 : from + (to - from) / 2;
    query_expr *left = fold(p, c, from, middle);
    query_expr *right = left ? fold(p, c, middle, to) : NULL;
    query_expr *e = right ? make_binary(p, c->op, c->spans[from].start, left, right) : NULL;
    if (e) {
        e->span.end = c->spans[to - 1].end;
    }
    return e;
}

static void chain_add(parser *p, chain *c, query_expr *e, uint32_t start) {
    c->spans = query__grow(p, c->spans, c->operands.n, sizeof *c->spans);
    c->spans[c->operands.n] = (query_span){start, p->last_end};
    list_add(p, &c->operands, e);
}

static query_expr *read_chain(parser *p, query_token_kind word, query_operator op, query_expr *(*read)(parser *)) {
    chain c = {.op = op};
    uint32_t start = p->token.span.start;
    query_expr *e = read(p);
    if (!e || p->token.kind != word) {
        return e;
    }
    chain_add(p, &c, e, start);
    while (p->token.kind == word) {
        if (!query__advance(p)) {
            return NULL;
        }
        start = p->token.span.start;
        e = read(p);
        if (!e) {
            return NULL;
        }
        chain_add(p, &c, e, start);
    }
    return fold(p, &c, 0, c.operands.n);
}

static query_expr *read_and(parser *p) {
    return read_chain(p, TOKEN_AND, OP_AND, read_predicate);
}

static query_expr *read_or(parser *p) {
    return read_chain(p, TOKEN_OR, OP_OR, read_and);
}

/* ---- ?? and ? : ---- */

static query_expr *read_coalesce(parser *p) {
    uint32_t start = p->token.span.start;
    query_expr *e = read_or(p);
    if (!e || p->token.kind != TOKEN_COALESCE) {
        return e;
    }
    query_expr *other = query__advance(p) && query__enter(p) ? read_coalesce(p) : NULL;
    query__leave(p);
    return other ? make(p, EXPR_COALESCE, start, e, other, NULL) : NULL;
}

static query_expr *read_conditional(parser *p) {
    uint32_t start = p->token.span.start;
    query_expr *e = read_coalesce(p);
    if (!e || p->token.kind != TOKEN_QUESTION) {
        return e;
    }
    query_expr *yes = query__advance(p) ? query__scalar(p) : NULL;
    query_expr *no = yes && query__expect(p, TOKEN_COLON) ? query__scalar(p) : NULL;
    return no ? make(p, EXPR_CONDITIONAL, start, e, yes, no) : NULL;
}

query_expr *query__scalar(parser *p) {
    query_expr *e = query__enter(p) ? read_conditional(p) : NULL;
    query__leave(p);
    return e;
}
