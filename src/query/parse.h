/* parse.h — parses a query text into a tree. A hand-written recursive-descent parser, so that errors have the service's messages and
 * locations.
 *
 * Tokens are in lex.h, operators and their precedence in parse_expr.c. Limits: 512 KB of text (LIMIT_QUERY_BYTES) and trees of
 * QUERY_DEPTH_MAX levels, so that recursion over a tree is safe. Time and memory are linear in the text; a list of one-digit numbers takes
 * up to 100 bytes of tree for each byte of text. Chains of AND and OR may have any length: long ones become balanced trees. */
#pragma once

#include "base/op.h"
#include "query/ast.h"

enum { QUERY_DEPTH_MAX = 256 };

/* E_BAD_QUERY: the operation's message is the service's JSON:
 *
 * {"errors":[{"severity":"Error","location":{"start":7,"end":11},"code":"SC1001","message":"Syntax error, …"}]}
 *
 * SC1001: unexpected token; SC1002: unexpected end of the text; SC1010 to SC1012: invalid token, number or string; SC3020: the text is too
 * long; SC3021, our own: the tree is too deep. The tree lives in `a`, and points into `text`. */
MUST_CHECK err query_parse(op *o, arena *a, slice text, query_ast **ast_out);

/* Parses the condition of a patch, "FROM c WHERE …", as SELECT VALUE true FROM c WHERE …; spans refer to the original text. */
MUST_CHECK err query_parse_condition(op *o, arena *a, slice text, query_ast **ast_out);

/* For all of query/: stores such a JSON in the operation and returns E_BAD_QUERY. `code` is "SC1001" and so on; `where` comes from
 * query_location. A message that is too long is cut, but the JSON stays valid. */
err query_fail(op *o, query_span where, const char *code, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Adds a further error to the list that query_fail began, if there is room for all of it. Returns E_BAD_QUERY. */
err query_fail_also(op *o, query_span where, const char *code, slice sentence);

/* Converts a span from bytes to UTF-16 units, in which the service counts. */
query_span query_location(slice text, query_span bytes);

/* Prints a tree as the service's planner does: one space between words, every operator with its operands in parentheses, strings in double
 * quotes as in JSON, AS before every alias, members as they were written (.name or ["name"]; the latter also if the name requires it).
 * Parsing the result gives the same tree, except for spans. Used for rewrites. */
void query_print_expr(buf *out, const query_expr *e);
void query_print_select(buf *out, const query_select *s);  /* on one line */
void query_print_lines(buf *out, const query_select *s);   /* clauses and JOINs on separate lines, subqueries of FROM indented */
void query_print_sources(buf *out, const query_select *s); /* the text after FROM, on such lines */
