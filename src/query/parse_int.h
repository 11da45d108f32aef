/* parse_int.h — what the two halves of the parser share. For this folder.
 *
 * parse.c reads queries and their clauses, parse_expr.c reads expressions; each calls the other. Reading functions leave `token` on the
 * first token that is not theirs. Those that return a pointer return NULL, and those that return a bool return false, once anything has
 * failed: `code` and the operation's sentence say what, and nothing may be read after it. */
#pragma once

#include "query/lex.h"
#include "query/parse.h"

typedef struct parser {
    op *op;
    arena *arena;
    query_ast *ast;
    query_lexer lexer;
    query_token token;    /* the next one to be read */
    uint32_t last_end;    /* where the one before it ends */
    unsigned nesting;     /* of the functions that call themselves */
    query_select *select; /* whose clauses are being read */
    err code;
} parser;

/* ---- parse.c ---- */

query_select *query__select(parser *p); /* the token is SELECT */

bool query__advance(parser *p);
bool query__expect(parser *p, query_token_kind kind); /* that token, and past it */
bool query__unexpected(parser *p);                    /* always false: there is no place for the token here */

/* Against texts made to exhaust the stack: every function that can meet itself enters and leaves. Trees are bounded too, by
 * QUERY_DEPTH_MAX; this bound is for parentheses and the like, which leave nothing in the tree. */
bool query__enter(parser *p);
void query__leave(parser *p);
bool query__too_deep(parser *p); /* always false */

static inline slice query__text(const parser *p, query_span span) {
    return slice_of(p->ast->text.p + span.start, span.end - span.start);
}

/* The name that the token is; false if it is none. */
bool query__name(parser *p, slice *name_out);

/* ---- parse_expr.c ---- */

query_expr *query__scalar(parser *p);
query_expr *query__literal(parser *p);                   /* a number, a string or a parameter, as FROM, TOP, OFFSET and LIMIT have them */
query_expr *query__call(parser *p);                      /* name(…), LEFT(…), udf.name(…), ALL(SELECT …) */
query_expr *query__subquery(parser *p, query_kind kind); /* the token is the opening parenthesis */

/* Making nodes: one begins at `start`, and is finished with its operands (a list in the arena, which becomes its own), its depth and its
 * end once all of it has been read. */
query_expr *query__node(parser *p, query_kind kind, uint32_t start);
query_expr *query__finish(parser *p, query_expr *e, query_expr **items, size_t n);
query_expr *query__member(parser *p, query_expr *inner, uint32_t start);                     /* the token is the dot */
query_expr *query__element(parser *p, query_expr *inner, query_expr *index, uint32_t start); /* the token is the closing bracket */

/* A list that grows in the arena, for the parser's lists of pointers and of small structs. Doubling keeps the bytes linear. */
void *query__grow(parser *p, void *list, size_t n, size_t size);
