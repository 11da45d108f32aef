/* parse.h — from text to tree. A recursive-descent parser by hand, so that errors say what the service says and where.
 *
 * Words, strings and numbers: lex.h. Operators and what binds tighter: parse_expr.c. Bounded: 512 KB of text (LIMIT_QUERY_BYTES), trees
 * of QUERY_DEPTH_MAX levels, so that walking them is safe; time and memory are linear in the text (up to 100 bytes of tree for one of
 * text, in lists of one-digit numbers). Chains of AND and OR may be of any length: long ones are made into flat trees. */
#pragma once

#include "base/op.h"
#include "query/ast.h"

enum { QUERY_DEPTH_MAX = 256 };

/* E_BAD_QUERY: the operation's sentence is the service's JSON, e.g.
 *   {"errors":[{"severity":"Error","location":{"start":7,"end":11},"code":"SC1001","message":"Syntax error, incorrect syntax near
 * 'FORM'."}]}
 * SC1001 for a token out of place, SC1002 for the end of the text, SC1010 to SC1012 for what is no token, no number and no string, SC3020
 * for too long a text, and of our own SC3021 for too deep a tree. The tree lives in `a`, and points into `text`, which must live as long.
 */
MUST_CHECK err query_parse(op *o, arena *a, slice text, query_ast **ast_out);

/* The condition of a patch, "FROM c WHERE …": as SELECT VALUE true FROM c WHERE …, with spans of the text as it is. */
MUST_CHECK err query_parse_condition(op *o, arena *a, slice text, query_ast **ast_out);

/* For all of query/: notes such a JSON in the operation and returns E_BAD_QUERY. `code` is "SC1001" and so on; `where` is what the client
 * sees, so it comes from query_location. A sentence too long for the operation is cut, and the JSON is whole all the same. */
err query_fail(op *o, query_span where, const char *code, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Bytes of the text as the service counts them: in UTF-16 units. The same for ASCII. */
query_span query_location(slice text, query_span bytes);

/* Back to text, as the service's planner writes it: one space between words, every operator with its operands in parentheses, strings in
 * double quotes as JSON, AS before every alias, members as they were written (.name and ["name"]; the latter also where the name needs it).
 * Reading it again gives the same tree, but for spans. What rewrites are made of. */
void query_print_expr(buf *out, const query_expr *e);
void query_print_select(buf *out, const query_select *s);  /* on one line */
void query_print_lines(buf *out, const query_select *s);   /* each clause and JOIN on its own, subqueries of FROM indented */
void query_print_sources(buf *out, const query_select *s); /* what stands after FROM, likewise in lines */
