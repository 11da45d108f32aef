/* parse_int.h — the parser's state and the rules that its files share.
 *
 * A rule is a function that returns false after it has stored the error; callers return false at once. So every rule reads as its grammar:
 *
 *   return cql__expect_word(p, "FROM") && cql__table_name(p, &s->table) && where_opt(p, s);
 */
#pragma once

#include "cql/lexer.h"
#include "cql/parse.h"

enum { CQL__RECENT = 10 }; /* tokens before the wrong one that an error shows */

typedef struct cql__list { /* a growing array in the arena */
    void *items;
    uint32_t n, room;
} cql__list;

typedef struct cql__parser {
    op *op;
    arena *memory;
    slice text;
    cql_lexer lexer;
    cql_token now, next;
    err code;                        /* of the first failure */
    const char *recent[CQL__RECENT]; /* where the last tokens begin, in a ring */
    uint32_t passed;                 /* number of tokens passed */
    unsigned depth;
    bool selecting; /* columns are terms */
    bool assigning; /* UPDATE: `value + column` is not a sum */
    bool trying;    /* looking ahead: a failure is not reported */
    cql__list markers;
} cql__parser;

/* ---- tokens (parse.c) ---- */

bool cql__advance(cql__parser *p);
bool cql__is(const cql__parser *p, const char *symbol); /* the current token is this symbol */
bool cql__is_word(const cql__parser *p, const char *word);
bool cql__next_is(const cql__parser *p, const char *symbol);
bool cql__next_is_word(const cql__parser *p, const char *word);
bool cql__accept(cql__parser *p, const char *symbol); /* true: it was this symbol, and is passed */
bool cql__accept_word(cql__parser *p, const char *word);
bool cql__expect(cql__parser *p, const char *symbol); /* false: stores the error */
bool cql__expect_word(cql__parser *p, const char *word);
bool cql__accept_words(cql__parser *p, const char *first, const char *second); /* both or none */

/* An optional IF NOT EXISTS, or IF EXISTS. */
bool cql__if_not_exists(cql__parser *p, bool *found_out);
bool cql__if_exists(cql__parser *p, bool *found_out);

bool cql__fail_input(cql__parser *p);                       /* "no viable alternative at input 'x'" */
bool cql__fail_expecting(cql__parser *p, const char *what); /* "mismatched input 'x' expecting what" */
bool cql__fail_invalid(cql__parser *p, const char *format, ...) __attribute__((format(printf, 2, 3))); /* not a syntax error */

/* Begins and ends a level of nesting; begin fails if there are too many. */
bool cql__enter(cql__parser *p);
static inline bool cql__leave(cql__parser *p) {
    p->depth--;
    return true;
}

/* A new last item, zeroed; NULL: no memory, with the error stored. */
void *cql__push(cql__parser *p, cql__list *list, size_t item_bytes);

/* ---- shared rules ---- */

bool cql__name(cql__parser *p, slice *name_out);                           /* an identifier, folded */
bool cql__is_name(const cql__parser *p);                                   /* the current token can be one */
bool cql__names(cql__parser *p, const slice **names_out, uint32_t *n_out); /* a, b, c */
bool cql__table_name(cql__parser *p, cql_table_name *name_out);
bool cql__string(cql__parser *p, slice *text_out);    /* '…', unquoted */
bool cql__role_name(cql__parser *p, slice *name_out); /* a name or a string */

bool cql__type(cql__parser *p, const cql_type **type_out);                           /* parse_type.c */
bool cql__types(cql__parser *p, const cql_type *const **types_out, uint32_t *n_out); /* possibly none, up to ) */
bool cql__term(cql__parser *p, const cql_term **term_out);                           /* parse_term.c */
bool cql__simple_term(cql__parser *p, const cql_term **term_out);                    /* without operators */
bool cql__selector_term(cql__parser *p, const cql_term **term_out);
bool cql__marker(cql__parser *p, const cql_term **term_out); /* ? or :name */
bool cql__is_marker(const cql__parser *p);
bool cql__where(cql__parser *p, const cql_relation **where_out, uint32_t *n_out); /* parse_where.c; after WHERE */
bool cql__conditions(cql__parser *p, const cql_relation **conditions_out, uint32_t *n_out);
bool cql__properties(cql__parser *p, cql_properties *properties_out); /* parse_schema.c; after WITH */
bool cql__property(cql__parser *p, cql__list *list);
bool cql__order_by(cql__parser *p, const cql_order **order_out, uint32_t *n_out); /* a ASC, b DESC */
bool cql__selectors(cql__parser *p, const cql_selector **selectors_out, uint32_t *n_out, bool *star_out);

/* ---- statements, each after its first words ---- */

bool cql__select(cql__parser *p, cql_statement *s); /* parse_data.c */
bool cql__insert(cql__parser *p, cql_statement *s);
bool cql__update(cql__parser *p, cql_statement *s);
bool cql__delete(cql__parser *p, cql_statement *s);
bool cql__batch(cql__parser *p, cql_statement *s);
bool cql__create(cql__parser *p, cql_statement *s); /* parse_schema.c */
bool cql__alter(cql__parser *p, cql_statement *s);  /* parse_alter.c */
bool cql__drop(cql__parser *p, cql_statement *s);
bool cql__create_function(cql__parser *p, cql_statement *s, bool replace); /* parse_function.c */
bool cql__create_aggregate(cql__parser *p, cql_statement *s, bool replace);
bool cql__create_role(cql__parser *p, cql_statement *s, bool user); /* parse_role.c */
bool cql__alter_role(cql__parser *p, cql_statement *s, bool user);
bool cql__grant(cql__parser *p, cql_statement *s, bool revoke);
bool cql__list_statement(cql__parser *p, cql_statement *s);
bool cql__describe(cql__parser *p, cql_statement *s);
