/* parse.c — the entry to the parser, its tokens, and the names that all statements share. */
#include "cql/parse.h"

#include <stdio.h>
#include <unistr.h>

#include "cql/parse_int.h"

/* ---- errors ---- */

/* "SELECT * [form]...": the text around the wrong token, from ten tokens before it. */
static void add_snippet(cql__parser *p, buf *out) {
    const char *from = p->passed > CQL__RECENT ? p->recent[p->passed % CQL__RECENT] : p->text.p;
    const char *end = p->text.p + p->text.n, *after = p->now.text.p + p->now.text.n;
    enum { BEFORE = 300 };
    if (p->now.text.n == 0) {
        return;
    }
    if (p->now.text.p - from > BEFORE) {
        for (from = p->now.text.p - BEFORE; (*from & 0xC0) == 0x80; from++) { /* not inside a character */
        }
    }
    buf_addf(out, " (%s", from > p->text.p ? "..." : "");
    buf_add(out, from, (size_t)(p->now.text.p - from));
    buf_addf(out, "[%.*s]%s)", slice_shown(p->now.text), p->now.text.p, after < end ? "..." : "");
}

static bool fail_syntax(cql__parser *p, const char *message) {
    if (p->trying || p->code != OK) {
        return false;
    }
    buf out = buf_init(sizeof p->op->detail);
    buf_addf(&out, "line %u:%u %s", p->now.line, p->now.column, message);
    add_snippet(p, &out);
    slice text = buf_view(&out);
    p->code = op_fail(p->op, E_BAD_QUERY, "%.*s", (int)text.n, text.p);
    buf_free(&out);
    return false;
}

static slice shown(const cql__parser *p) {
    return p->now.kind == CQL_TOKEN_END ? SLICE_LIT("<EOF>") : slice_of(p->now.text.p, (size_t)slice_shown(p->now.text));
}

bool cql__fail_input(cql__parser *p) {
    char message[300];
    slice token = shown(p);
    snprintf(message, sizeof message, "no viable alternative at input '%.*s'", (int)token.n, token.p);
    return fail_syntax(p, message);
}

bool cql__fail_expecting(cql__parser *p, const char *what) {
    char message[300];
    slice token = shown(p);
    snprintf(message, sizeof message, "mismatched input '%.*s' expecting %s", (int)token.n, token.p, what);
    return fail_syntax(p, message);
}

static bool fail_memory(cql__parser *p) {
    if (p->code == OK) {
        p->code = p->memory->budget && p->memory->budget->exceeded ? budget_error(p->memory->budget) : E_MEMORY;
    }
    return false;
}

bool cql__fail_invalid(cql__parser *p, const char *format, ...) {
    if (!p->trying && p->code == OK) {
        char message[600];
        va_list args;
        va_start(args, format);
        vsnprintf(message, sizeof message, format, args);
        va_end(args);
        p->code = op_fail(p->op, E_BAD_REQUEST, "%s", message);
    }
    return false;
}

static bool fail_token(cql__parser *p) {
    char message[100];
    bool character = p->now.text.n == 1 && strncmp(p->now.reason, "no viable", 9) == 0;
    if (character) {
        snprintf(message, sizeof message, "%s '%c'", p->now.reason, p->now.text.p[0]);
    } else {
        snprintf(message, sizeof message, "%s", p->now.reason);
    }
    p->trying = false;
    return fail_syntax(p, message);
}

/* ---- tokens ---- */

bool cql__advance(cql__parser *p) {
    p->recent[p->passed++ % CQL__RECENT] = p->now.text.p;
    p->now = p->next;
    p->next = cql_lexer_next(&p->lexer);
    if (p->now.kind == CQL_TOKEN_BAD) {
        return fail_token(p);
    }
    return !(p->memory->budget && p->memory->budget->exceeded) || fail_memory(p);
}

static bool symbol_is(const cql_token *t, const char *symbol) {
    return t->kind == CQL_TOKEN_SYMBOL && slice_eq(t->text, slice_str(symbol));
}

static bool word_is(const cql_token *t, const char *word) {
    return t->kind == CQL_TOKEN_NAME && slice_eq_nocase(t->text, slice_str(word));
}

bool cql__is(const cql__parser *p, const char *symbol) {
    return symbol_is(&p->now, symbol);
}

bool cql__is_word(const cql__parser *p, const char *word) {
    return word_is(&p->now, word);
}

bool cql__next_is(const cql__parser *p, const char *symbol) {
    return symbol_is(&p->next, symbol);
}

bool cql__next_is_word(const cql__parser *p, const char *word) {
    return word_is(&p->next, word);
}

bool cql__accept(cql__parser *p, const char *symbol) {
    return cql__is(p, symbol) && cql__advance(p);
}

bool cql__accept_word(cql__parser *p, const char *word) {
    return cql__is_word(p, word) && cql__advance(p);
}

bool cql__accept_words(cql__parser *p, const char *first, const char *second) {
    return cql__is_word(p, first) && cql__next_is_word(p, second) && cql__advance(p) && cql__advance(p);
}

bool cql__expect(cql__parser *p, const char *symbol) {
    char what[8];
    if (cql__is(p, symbol)) {
        return cql__advance(p);
    }
    snprintf(what, sizeof what, "'%s'", symbol);
    return cql__fail_expecting(p, what);
}

bool cql__expect_word(cql__parser *p, const char *word) {
    char what[40];
    if (cql__is_word(p, word)) {
        return cql__advance(p);
    }
    snprintf(what, sizeof what, "K_%s", word);
    return cql__fail_expecting(p, what);
}

bool cql__if_not_exists(cql__parser *p, bool *found_out) {
    *found_out = cql__is_word(p, "IF");
    return !*found_out || (cql__advance(p) && cql__expect_word(p, "NOT") && cql__expect_word(p, "EXISTS"));
}

bool cql__if_exists(cql__parser *p, bool *found_out) {
    *found_out = cql__is_word(p, "IF");
    return !*found_out || (cql__advance(p) && cql__expect_word(p, "EXISTS"));
}

bool cql__enter(cql__parser *p) {
    if (p->depth++ < CQL_PARSE_DEPTH) {
        return true;
    }
    p->trying = false;
    return fail_syntax(p, "the statement is nested too deeply");
}

void *cql__push(cql__parser *p, cql__list *list, size_t item_bytes) {
    if (list->n == list->room) {
        uint32_t room = list->room ? list->room * 2 : 4;
        if (!arena_fits(p->memory, room * item_bytes)) {
            fail_memory(p);
            return NULL;
        }
        char *items = arena_zero(p->memory, room * item_bytes);
        if (list->n) {
            memcpy(items, list->items, list->n * item_bytes);
        }
        list->items = items;
        list->room = room;
    }
    return (char *)list->items + item_bytes * list->n++;
}

/* ---- names and strings ---- */

/* The text between quotes, doubled ones undone. */
static slice unquote(cql__parser *p, slice quoted) {
    char quote = quoted.p[0];
    slice inner = slice_of(quoted.p + 1, quoted.n - 2);
    if (!inner.n || !memchr(inner.p, quote, inner.n)) {
        return inner;
    }
    if (!arena_fits(p->memory, inner.n)) {
        fail_memory(p);
        return SLICE_EMPTY;
    }
    char *text = arena_alloc_aligned(p->memory, inner.n, 1);
    size_t n = 0;
    for (size_t i = 0; i < inner.n; i++) {
        text[n++] = inner.p[i];
        i += inner.p[i] == quote;
    }
    return slice_of(text, n);
}

static slice fold(cql__parser *p, slice name) {
    size_t i = 0;
    while (i < name.n && !(name.p[i] >= 'A' && name.p[i] <= 'Z')) {
        i++;
    }
    if (i == name.n) {
        return name;
    }
    if (!arena_fits(p->memory, name.n)) {
        fail_memory(p);
        return SLICE_EMPTY;
    }
    char *folded = arena_alloc_aligned(p->memory, name.n, 1);
    for (i = 0; i < name.n; i++) {
        char c = name.p[i];
        folded[i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    return slice_of(folded, name.n);
}

bool cql__is_name(const cql__parser *p) {
    return p->now.kind == CQL_TOKEN_QUOTED || (p->now.kind == CQL_TOKEN_NAME && !cql_is_reserved(p->now.text));
}

bool cql__name(cql__parser *p, slice *name_out) {
    if (!cql__is_name(p)) {
        return cql__fail_input(p);
    }
    *name_out = p->now.kind == CQL_TOKEN_QUOTED ? unquote(p, p->now.text) : fold(p, p->now.text);
    return cql__advance(p);
}

bool cql__names(cql__parser *p, const slice **names_out, uint32_t *n_out) {
    cql__list list = {0};
    do {
        slice *name = cql__push(p, &list, sizeof *name);
        if (!name || !cql__name(p, name)) {
            return false;
        }
    } while (cql__accept(p, ","));
    *names_out = list.items;
    *n_out = list.n;
    return p->code == OK;
}

bool cql__table_name(cql__parser *p, cql_table_name *name_out) {
    if (!cql__name(p, &name_out->name)) {
        return false;
    }
    if (!cql__is(p, ".")) {
        return true;
    }
    name_out->keyspace = name_out->name;
    return cql__advance(p) && cql__name(p, &name_out->name);
}

bool cql__string(cql__parser *p, slice *text_out) {
    if (p->now.kind != CQL_TOKEN_STRING) {
        return cql__fail_expecting(p, "STRING_LITERAL");
    }
    slice text = p->now.text;
    *text_out = text.p[0] == '$' ? slice_of(text.p + 2, text.n - 4) : unquote(p, text);
    return cql__advance(p);
}

bool cql__role_name(cql__parser *p, slice *name_out) {
    return p->now.kind == CQL_TOKEN_STRING ? cql__string(p, name_out) : cql__name(p, name_out);
}

/* ---- statements ---- */

static bool use(cql__parser *p, cql_statement *s) {
    s->verb = CQL_USE;
    return cql__name(p, &s->drop.target.keyspace);
}

static bool truncate_table(cql__parser *p, cql_statement *s) {
    s->verb = CQL_TRUNCATE;
    if (cql__is_word(p, "COLUMNFAMILY") || cql__is_word(p, "TABLE")) {
        cql__advance(p);
    }
    return p->code == OK && cql__table_name(p, &s->drop.target);
}

static bool grant(cql__parser *p, cql_statement *s) {
    return cql__grant(p, s, false);
}

static bool revoke(cql__parser *p, cql_statement *s) {
    return cql__grant(p, s, true);
}

static bool statement(cql__parser *p, cql_statement *s) {
    static const struct {
        const char *word;
        bool (*parse)(cql__parser *p, cql_statement *s);
    } verbs[] = {
        {"SELECT", cql__select},
        {"INSERT", cql__insert},
        {"UPDATE", cql__update},
        {"DELETE", cql__delete},
        {"BEGIN", cql__batch},
        {"USE", use},
        {"TRUNCATE", truncate_table},
        {"CREATE", cql__create},
        {"ALTER", cql__alter},
        {"DROP", cql__drop},
        {"GRANT", grant},
        {"REVOKE", revoke},
        {"LIST", cql__list_statement},
        {"DESCRIBE", cql__describe},
        {"DESC", cql__describe},
    };
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (cql__is_word(p, verbs[i].word)) {
            return cql__advance(p) && verbs[i].parse(p, s);
        }
    }
    return cql__fail_input(p);
}

static bool whole(cql__parser *p, cql_statement *s) {
    if (p->code != OK || !statement(p, s)) {
        return false;
    }
    while (cql__accept(p, ";")) {
    }
    if (p->code == OK && p->now.kind != CQL_TOKEN_END) {
        char message[300];
        snprintf(message, sizeof message, "missing EOF at '%.*s'", slice_shown(p->now.text), p->now.text.p);
        return fail_syntax(p, message);
    }
    s->markers = p->markers.items;
    s->markers_n = p->markers.n;
    return p->code == OK;
}

err cql_parse(op *o, slice text, const cql_statement **statement_out) {
    cql__parser p = {.op = o, .memory = o->arena, .text = text};
    cql_statement *s = arena_new(o->arena, cql_statement);
    *statement_out = s;
    if (text.n > LIMIT_CQL_BYTES) {
        return op_fail(o, E_BAD_QUERY, "The statement is longer than %d bytes", LIMIT_CQL_BYTES);
    }
    if (text.n && u8_check((const uint8_t *)text.p, text.n)) {
        return op_fail(o, E_BAD_QUERY, "The statement is not valid UTF-8");
    }
    cql_lexer_init(&p.lexer, text);
    p.now = cql_lexer_next(&p.lexer);
    p.next = cql_lexer_next(&p.lexer);
    if (p.now.kind == CQL_TOKEN_BAD) {
        fail_token(&p);
    }
    if (whole(&p, s)) {
        return OK;
    }
    return p.code != OK ? p.code : E_BAD_QUERY;
}

err cql_type_read(op *o, slice text, const cql_type **type_out) {
    cql__parser p = {.op = o, .memory = o->arena, .text = text};
    cql_lexer_init(&p.lexer, text);
    p.now = cql_lexer_next(&p.lexer);
    p.next = cql_lexer_next(&p.lexer);
    bool class_name = slice_starts(text, SLICE_LIT("org.apache.cassandra."));
    *type_out = class_name ? cql_type_by_class(o->arena, text) : NULL;
    if (*type_out) {
        return OK;
    }
    if (p.now.kind == CQL_TOKEN_BAD) {
        fail_token(&p);
    } else if (cql__type(&p, type_out) && p.now.kind != CQL_TOKEN_END) {
        cql__fail_input(&p);
    }
    return p.code;
}

/* ---- words ---- */

const char *cql_operator_text(cql_operator op) {
    static const char *const texts[CQL_OPERATORS] = {"=", "<", "<=", ">", ">=", "!=", "IN", "CONTAINS", "CONTAINS KEY", "LIKE", "IS NOT"};
    return texts[op];
}

const char *cql_verb_text(cql_verb verb) {
    static const char *const texts[CQL_VERBS] = {"SELECT",
                                                 "INSERT",
                                                 "UPDATE",
                                                 "DELETE",
                                                 "BATCH",
                                                 "USE",
                                                 "TRUNCATE",
                                                 "CREATE KEYSPACE",
                                                 "ALTER KEYSPACE",
                                                 "DROP KEYSPACE",
                                                 "CREATE TABLE",
                                                 "ALTER TABLE",
                                                 "DROP TABLE",
                                                 "CREATE TYPE",
                                                 "ALTER TYPE",
                                                 "DROP TYPE",
                                                 "CREATE INDEX",
                                                 "DROP INDEX",
                                                 "CREATE MATERIALIZED VIEW",
                                                 "ALTER MATERIALIZED VIEW",
                                                 "DROP MATERIALIZED VIEW",
                                                 "CREATE FUNCTION",
                                                 "DROP FUNCTION",
                                                 "CREATE AGGREGATE",
                                                 "DROP AGGREGATE",
                                                 "CREATE TRIGGER",
                                                 "DROP TRIGGER",
                                                 "CREATE ROLE",
                                                 "ALTER ROLE",
                                                 "DROP ROLE",
                                                 "LIST ROLES",
                                                 "LIST USERS",
                                                 "GRANT",
                                                 "REVOKE",
                                                 "GRANT",
                                                 "REVOKE",
                                                 "LIST PERMISSIONS",
                                                 "DESCRIBE"};
    return texts[verb];
}

const cql_term *cql_property_find(const cql_properties *properties, slice name) {
    for (uint32_t i = 0; i < properties->n; i++) {
        if (slice_eq(properties->items[i].name, name)) {
            return properties->items[i].value;
        }
    }
    return NULL;
}
