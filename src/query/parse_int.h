/* parse_int.h — shared by the two files of the parser. Private to query/.
 *
 * parse.c reads queries and their clauses, parse_expr.c reads expressions; each calls the other. A reading function leaves `token` on the
 * first token that it does not consume. After a failure, functions return NULL or false; `code` and the operation's message say why, and
 * nothing more may be read. */
#pragma once

#include "query/lex.h"
#include "query/parse.h"

typedef struct parser {
    op *op;
    arena *arena;
    query_ast *ast;
    query_lexer lexer;
    query_token token;    /* the next token */
    uint32_t last_end;    /* end of the previous token */
    unsigned nesting;     /* current depth of recursive calls */
    query_select *select; /* the select being read */
    err code;
} parser;

/* ---- parse.c ---- */

query_select *query__select(parser *p); /* the token is SELECT */

bool query__advance(parser *p);
bool query__expect(parser *p, query_token_kind kind); /* consumes a token of this kind */
bool query__unexpected(parser *p);                    /* fails: the token is not allowed here; returns false */

/* Protects the stack from hostile texts: every recursive function calls enter and leave. Trees are bounded by QUERY_DEPTH_MAX as well; this
 * limit also counts parentheses and the like, which leave no node in the tree. */
bool query__enter(parser *p);
void query__leave(parser *p);
bool query__too_deep(parser *p); /* fails; returns false */

static inline slice query__text(const parser *p, query_span span) {
    return slice_of(p->ast->text.p + span.start, span.end - span.start);
}

/* Consumes a name; fails if the token is none. */
bool query__name(parser *p, slice *name_out);

/* ---- parse_expr.c ---- */

query_expr *query__scalar(parser *p);
query_expr *query__literal(parser *p);                   /* a number, a string or a parameter, as FROM, TOP, OFFSET and LIMIT take them */
query_expr *query__call(parser *p);                      /* name(…), LEFT(…), udf.name(…), ALL(SELECT …) */
query_expr *query__subquery(parser *p, query_kind kind); /* the token is the opening parenthesis */

/* Making nodes: query__node begins a node at `start`. After all of it was read, query__finish sets its operands (a list in the arena, which
 * the node takes over), its depth and its end. */
query_expr *query__node(parser *p, query_kind kind, uint32_t start);
query_expr *query__finish(parser *p, query_expr *e, query_expr **items, size_t n);
query_expr *query__member(parser *p, query_expr *inner, uint32_t start);                     /* the token is the dot */
query_expr *query__element(parser *p, query_expr *inner, query_expr *index, uint32_t start); /* the token is the closing bracket */

/* Makes room for one more entry in a list of the arena. Doubling keeps memory linear. */
void *query__grow(parser *p, void *list, size_t n, size_t size);
