/* parse.h — reads CQL text into a tree (cql/ast.h).
 *
 * The grammar is that of Cassandra 4.1 (CQL 3.4.5), with the service's additions: properties named cosmosdb_…, and
 * COSMOS_CHANGEFEED_START_TIME() in WHERE. A text is one statement; a semicolon may follow it.
 *
 * The text is hostile. Terms and types nest CQL_PARSE_DEPTH levels at most, a text has LIMIT_CQL_BYTES at most, and the tree's memory is
 * counted by the operation's budget. Parsing takes time linear in the text. Any thread. */
#pragma once

#include "cql/ast.h"

enum {
    LIMIT_CQL_BYTES = 16 * 1024 * 1024, /* a frame may carry more, in values; batches of text are long */
    CQL_PARSE_DEPTH = 64,
    CQL_MARKERS_MAX = 65535, /* the protocol counts them in a [short] */
};

/* Parses one statement into the operation's arena. The tree also points into `text`, which must live as long. E_BAD_QUERY with a message in
 * the form that Cassandra's has: "line 1:9 mismatched input 'form' expecting K_FROM (SELECT * [form]...)". E_MEMORY: the budget is
 * exceeded. */
MUST_CHECK err cql_parse(op *o, slice text, const cql_statement **statement_out);

/* Appends a term or selector in CQL, in one spelling: for logs, and for names of result columns (cql_term_name). */
void cql_term_write(buf *out, const cql_term *term);

/* The name that a result column has without an alias: `count`, `system.token(id)`, `writetime(v)`, `m['a']`, `cast(v as int)`. */
void cql_term_name(buf *out, const cql_term *term);

/* Appends a whole relation: `a = 1`, `token(a) > ?`. */
void cql_relation_write(buf *out, const cql_relation *relation);
