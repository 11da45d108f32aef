/* lex.h — splits a query text into tokens, one at a time. For the parser.
 *
 * Keywords are the service's, and are reserved everywhere, even after a dot: c.order is an error, c["order"] is not. They are
 * case-insensitive, except true, false, null, undefined and udf, which are names in any other case. RANK, LET, ALL, FIRST and LAST are
 * names; the parser decides where they have a special meaning.
 *
 * Strings are in single or double quotes with JSON's escapes and \'; numbers are decimal (007, 1., .5 and 1e9 too) or hexadecimal. A
 * number's sign is a token of its own. Comments go from -- to the end of the line. Time is linear in the text; nothing is allocated but the
 * values of literals. */
#pragma once

#include "query/ast.h"

typedef enum query_token_kind {
    TOKEN_END,
    TOKEN_NAME,
    TOKEN_PARAMETER, /* @name */
    TOKEN_NUMBER,
    TOKEN_STRING,

    TOKEN_LEFT_PAREN,
    TOKEN_RIGHT_PAREN,
    TOKEN_LEFT_BRACKET,
    TOKEN_RIGHT_BRACKET,
    TOKEN_LEFT_BRACE,
    TOKEN_RIGHT_BRACE,
    TOKEN_DOT,
    TOKEN_COMMA,
    TOKEN_COLON,
    TOKEN_QUESTION,
    TOKEN_COALESCE, /* ?? */

    TOKEN_STAR,
    TOKEN_SLASH,
    TOKEN_PERCENT,
    TOKEN_PLUS,
    TOKEN_MINUS,
    TOKEN_AMPERSAND,
    TOKEN_CARET,
    TOKEN_PIPE,
    TOKEN_CONCAT, /* || */
    TOKEN_TILDE,
    TOKEN_EQUAL,
    TOKEN_NOT_EQUAL, /* != and <> */
    TOKEN_LESS,
    TOKEN_LESS_EQUAL,
    TOKEN_GREATER,
    TOKEN_GREATER_EQUAL,
    TOKEN_SHIFT_LEFT,
    TOKEN_SHIFT_RIGHT,
    TOKEN_SHIFT_RIGHT_ZERO,

    TOKEN_AND,
    TOKEN_ARRAY,
    TOKEN_AS,
    TOKEN_ASC,
    TOKEN_BETWEEN,
    TOKEN_BY,
    TOKEN_DESC,
    TOKEN_DISTINCT,
    TOKEN_ESCAPE,
    TOKEN_EXISTS,
    TOKEN_FALSE,
    TOKEN_FROM,
    TOKEN_GROUP,
    TOKEN_IN,
    TOKEN_JOIN,
    TOKEN_LEFT,
    TOKEN_LIKE,
    TOKEN_LIMIT,
    TOKEN_NOT,
    TOKEN_NULL,
    TOKEN_OFFSET,
    TOKEN_OR,
    TOKEN_ORDER,
    TOKEN_RESERVED, /* reserved by the service for later: CASE, HAVING, OVER, SET, … */
    TOKEN_RIGHT,
    TOKEN_SELECT,
    TOKEN_TOP,
    TOKEN_TRUE,
    TOKEN_UDF,
    TOKEN_UNDEFINED,
    TOKEN_VALUE,
    TOKEN_WHERE
} query_token_kind;

typedef struct query_token {
    query_token_kind kind;
    query_span span;
} query_token;

/* The lexer's place in the text. Copy it to look ahead. */
typedef struct query_lexer {
    slice text; /* at most 4 GB; the parser accepts much less */
    uint32_t at;
} query_lexer;

/* The result of reading a token. If it is invalid, the token's span covers the invalid text. */
typedef enum query_lex_result {
    LEX_OK,
    LEX_BAD_TOKEN, /* a character that no token begins with */
    LEX_BAD_NUMBER,
    LEX_BAD_STRING
} query_lex_result;

query_lex_result query_lex_next(query_lexer *l, query_token *token_out);

/* The value of a TOKEN_NUMBER or TOKEN_STRING. A string without escapes points into the text; others are decoded into the arena. False: the
 * number is too large for a double. */
bool query_lex_number(arena *a, slice text, query_value *value_out);
slice query_lex_string(arena *a, slice text);

/* Whether the text is one TOKEN_NAME and nothing else. */
bool query_lex_is_name(slice text);
