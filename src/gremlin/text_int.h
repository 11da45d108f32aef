/* text_int.h — the reader of script text. For this folder. */
#pragma once

#include "gremlin/build_int.h"

typedef struct reader {
    op *op;
    arena *arena;
    gremlin_builder *builder;
    const gremlin_limits *limits;
    slice text;
    size_t at;
    unsigned depth; /* of lists, maps and calls */
    gremlin_value bindings;
    const gremlin_list *range; /* the list that was last written as a range */
} reader;

/* Blanks and comments are skipped before each token. */
void gremlin__skip(reader *r);
char gremlin__peek(reader *r); /* the next character that is not blank; 0: the end */
bool gremlin__eat(reader *r, char c);
MUST_CHECK err gremlin__expect(reader *r, char c);
slice gremlin__word(reader *r); /* an identifier; empty: there is none */

/* An error at a position of the text. */
err gremlin__refuse(reader *r, size_t at, const char *format, ...) __attribute__((format(printf, 3, 4)));
err gremlin__located(reader *r, size_t at, err e); /* adds the position to the message of `e` */

MUST_CHECK err gremlin__read_literal(reader *r, gremlin_value *value_out, bool *found_out); /* numbers, strings */
MUST_CHECK err gremlin__read_date(arena *a, slice text, gremlin_value *date_out);           /* ISO 8601 */
MUST_CHECK err gremlin__read_value(reader *r, gremlin_value *value_out);                    /* any argument */
MUST_CHECK err gremlin__read_arguments(reader *r, gremlin_items *items_out);                /* ( … ) */
