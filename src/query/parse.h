/* parse.h — from text to tree. A recursive-descent parser by hand, so that errors say what the service says and where.
 *
 * Keywords are case-insensitive but for true, false, null, undefined and udf. Comments are "-- to the end of the line"; ';' is an error
 * (SC1010). Strings are in single or double quotes with JSON's escapes; numbers as JSON's and hexadecimal. Bounded: 512 KB of text
 * (LIMIT_QUERY_BYTES), nesting of QUERY_DEPTH_MAX, so the stack is safe; time and memory are linear in the text. */
#pragma once

#include "base/op.h"
#include "query/ast.h"

enum { QUERY_DEPTH_MAX = 256 };

/* E_BAD_QUERY: the operation's sentence is the service's JSON, e.g.
 *   {"errors":[{"severity":"Error","location":{"start":7,"end":11},"code":"SC1001","message":"Syntax error, incorrect syntax near
 * 'FORM'."}]} The tree lives in `a`, and points into `text`, which must live as long. */
MUST_CHECK err query_parse(op *o, arena *a, slice text, query_ast **ast_out);

/* For all of query/: notes such a JSON in the operation and returns E_BAD_QUERY. `code` is "SC1001" and so on. */
err query_fail(op *o, query_span where, const char *code, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Back to text, canonical: one space between words, strings in double quotes as JSON, names as `.name` where they can be, else ["name"].
 * What rewrites are made of. */
void query_print_expr(buf *out, const query_expr *e);
void query_print_select(buf *out, const query_select *s);
void query_print_sources(buf *out, const query_select *s); /* what stands after FROM */
