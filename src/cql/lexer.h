/* lexer.h — CQL text as tokens.
 *
 * Tokens point into the text. Comments (--, // and the C form) are skipped. Keywords are names: the parser compares them by text, because
 * nearly all are also allowed as identifiers; only the reserved ones are not. A sign is never part of a number's token. Linear in time;
 * keeps no memory. */
#pragma once

#include "base/slice.h"

typedef enum cql_token_kind {
    CQL_TOKEN_END,
    CQL_TOKEN_NAME,     /* letter, then letters, digits and _ ; keywords too */
    CQL_TOKEN_QUOTED,   /* "…", with the quotes */
    CQL_TOKEN_STRING,   /* '…' or $$…$$, with the quotes */
    CQL_TOKEN_INTEGER,  /* digits */
    CQL_TOKEN_FLOAT,    /* digits with a point or exponent */
    CQL_TOKEN_DURATION, /* 1y2mo3d, P1Y2M, P3W, P0001-02-03T04:05:06 */
    CQL_TOKEN_UUID,
    CQL_TOKEN_HEX,    /* 0x… */
    CQL_TOKEN_SYMBOL, /* one of , ; : ? . .. ( ) [ ] { } < <= > >= = != + - * / % += -= */
    CQL_TOKEN_BAD,    /* not CQL; `reason` says why */
} cql_token_kind;

typedef struct cql_token {
    cql_token_kind kind;
    slice text;
    uint32_t line, column; /* lines from 1, columns from 0; columns count bytes */
    const char *reason;    /* of CQL_TOKEN_BAD */
} cql_token;

typedef struct cql_lexer {
    const char *at, *end;
    const char *line_start;
    uint32_t line;
} cql_lexer;

void cql_lexer_init(cql_lexer *l, slice text);
cql_token cql_lexer_next(cql_lexer *l); /* CQL_TOKEN_END at the end, again and again */

bool cql_is_reserved(slice name);     /* a word that cannot be an identifier without quotes; in any case */
bool cql_is_duration_iso(slice word); /* P1Y2M3DT4H5M6S, P3W, P0001-02-03T04:05:06 */
