/* lexer.c — see lexer.h. */
#include "cql/lexer.h"

#include "base/hex.h"

static const char *const reserved[] = {
    "add",    "allow",   "alter",  "and",         "apply",    "asc",   "authorize", "batch",    "begin", "by",           "columnfamily",
    "create", "default", "delete", "desc",        "describe", "drop",  "entries",   "execute",  "from",  "full",         "grant",
    "if",     "in",      "index",  "infinity",    "insert",   "into",  "is",        "keyspace", "limit", "materialized", "mbean",
    "mbeans", "modify",  "nan",    "norecursive", "not",      "null",  "of",        "on",       "or",    "order",        "primary",
    "rename", "replace", "revoke", "schema",      "select",   "set",   "table",     "to",       "token", "truncate",     "unlogged",
    "unset",  "update",  "use",    "using",       "view",     "where", "with",
};

bool cql_is_reserved(slice name) {
    for (size_t i = 0; name.n && i < sizeof reserved / sizeof *reserved; i++) {
        if ((name.p[0] | 0x20) == reserved[i][0] && slice_eq_nocase(name, slice_str(reserved[i]))) {
            return true;
        }
    }
    return false;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_word(char c) {
    return is_letter(c) || is_digit(c) || c == '_';
}

void cql_lexer_init(cql_lexer *l, slice text) {
    *l = (cql_lexer){.at = text.p, .end = text.p + text.n, .line_start = text.p, .line = 1};
}

static char peek(const cql_lexer *l, size_t ahead) {
    return (size_t)(l->end - l->at) > ahead ? l->at[ahead] : 0;
}

static void new_line(cql_lexer *l, const char *after) {
    l->line++;
    l->line_start = after;
}

/* Counts the lines of a token that may have several, a string or comment. */
static void pass(cql_lexer *l, const char *to) {
    while (l->at < to) {
        if (*l->at++ == '\n') {
            new_line(l, l->at);
        }
    }
}

/* ---- blanks and comments ---- */

static bool skip_comment(cql_lexer *l, bool *unclosed_out) {
    char a = peek(l, 0), b = peek(l, 1);
    if ((a == '-' && b == '-') || (a == '/' && b == '/')) {
        const char *stop = memchr(l->at, '\n', (size_t)(l->end - l->at));
        l->at = stop ? stop : l->end;
        return true;
    }
    if (a != '/' || b != '*') {
        return false;
    }
    const char *stop = memmem(l->at + 2, (size_t)(l->end - l->at) - 2, "*/", 2);
    *unclosed_out = stop == NULL;
    if (stop) {
        pass(l, stop + 2);
    }
    return stop != NULL;
}

static bool skip_blank(cql_lexer *l) {
    char c = peek(l, 0);
    if (l->at == l->end || (c != ' ' && c != '\t' && c != '\r' && c != '\n')) {
        return false;
    }
    pass(l, l->at + 1);
    return true;
}

/* ---- tokens ---- */

static size_t digits_at(const char *p, const char *end) {
    size_t n = 0;
    while (p + n < end && is_digit(p[n])) {
        n++;
    }
    return n;
}

static bool is_uuid(const cql_lexer *l) {
    if (l->end - l->at < 36 || (l->end - l->at > 36 && is_word(l->at[36]))) {
        return false;
    }
    for (size_t i = 0; i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? l->at[i] != '-' : hex_digit(l->at[i]) < 0) {
            return false;
        }
    }
    return true;
}

/* The length of a unit of a duration at `p`: y mo w d h m s ms us µs ns. */
static size_t unit_at(const char *p, const char *end) {
    static const char *const units[] = {"mo", "ms", "us", "ns", "\xC2\xB5s", "y", "w", "d", "h", "m", "s"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t n = strlen(units[i]);
        if ((size_t)(end - p) >= n && slice_eq_nocase(slice_of(p, n), slice_of(units[i], n))) {
            return n;
        }
    }
    return 0;
}

/* The length of a duration like 1y2mo at `p`, or 0. */
static size_t duration_at(const char *p, const char *end) {
    const char *at = p;
    while (at < end) {
        size_t digits = digits_at(at, end), unit = digits ? unit_at(at + digits, end) : 0;
        if (!unit) {
            break;
        }
        at += digits + unit;
    }
    return at < end && is_word(*at) ? 0 : (size_t)(at - p);
}

static size_t number_at(const cql_lexer *l, cql_token_kind *kind_out) {
    const char *at = l->at + digits_at(l->at, l->end);
    *kind_out = CQL_TOKEN_INTEGER;
    if (at < l->end && *at == '.' && !(at + 1 < l->end && at[1] == '.')) {
        at += 1 + digits_at(at + 1, l->end);
        *kind_out = CQL_TOKEN_FLOAT;
    }
    if (at < l->end && (*at == 'e' || *at == 'E')) {
        size_t sign = at + 1 < l->end && (at[1] == '+' || at[1] == '-');
        size_t digits = digits_at(at + 1 + sign, l->end);
        if (digits) {
            at += 1 + sign + digits;
            *kind_out = CQL_TOKEN_FLOAT;
        }
    }
    return (size_t)(at - l->at);
}

static size_t hex_at(const cql_lexer *l) {
    size_t n = 2;
    while (l->at + n < l->end && hex_digit(l->at[n]) >= 0) {
        n++;
    }
    return n;
}

static size_t digit_token(const cql_lexer *l, cql_token_kind *kind_out) {
    size_t n = duration_at(l->at, l->end);
    if (peek(l, 0) == '0' && (peek(l, 1) | 0x20) == 'x') {
        *kind_out = CQL_TOKEN_HEX;
        return hex_at(l);
    }
    if (n) {
        *kind_out = CQL_TOKEN_DURATION;
        return n;
    }
    return number_at(l, kind_out);
}

/* P, then digits with Y M W D, then T and digits with H M S. */
static bool iso_designators(slice word) {
    static const char *const letters[] = {"YMWD", "HMS"};
    const char *at = word.p + 1, *end = word.p + word.n, *units = letters[0];
    bool any = false;
    while (at < end) {
        if (*at == 'T' && units == letters[0] && at + 1 < end) {
            units = letters[1];
            at++;
        }
        size_t digits = digits_at(at, end);
        if (!digits || at + digits == end || !strchr(units, at[digits])) {
            return false;
        }
        at += digits + 1;
        any = true;
    }
    return any;
}

static bool iso_alternative(slice word) {
    static const char form[] = "P0000-00-00T00:00:00";
    if (word.n != sizeof form - 1) {
        return false;
    }
    for (size_t i = 0; i < word.n; i++) {
        if (form[i] == '0' ? !is_digit(word.p[i]) : word.p[i] != form[i]) {
            return false;
        }
    }
    return true;
}

bool cql_is_duration_iso(slice word) {
    return word.n > 2 && word.p[0] == 'P' && (iso_alternative(word) || iso_designators(word));
}

static size_t name_token(const cql_lexer *l, cql_token_kind *kind_out) {
    enum { ALTERNATIVE = 20 };
    size_t n = 1;
    while (l->at + n < l->end && is_word(l->at[n])) {
        n++;
    }
    *kind_out = CQL_TOKEN_NAME;
    if (l->at[0] == 'P' && l->end - l->at >= ALTERNATIVE && iso_alternative(slice_of(l->at, ALTERNATIVE))) {
        n = ALTERNATIVE;
        *kind_out = CQL_TOKEN_DURATION;
    } else if (cql_is_duration_iso(slice_of(l->at, n))) {
        *kind_out = CQL_TOKEN_DURATION;
    }
    return n;
}

/* The end of '…' or "…", where a doubled quote stands for one; 0: not closed. */
static size_t quoted_at(const cql_lexer *l, char quote) {
    const char *at = l->at + 1;
    while ((at = memchr(at, quote, (size_t)(l->end - at))) != NULL) {
        if (at + 1 == l->end || at[1] != quote) {
            return (size_t)(at + 1 - l->at);
        }
        at += 2;
    }
    return 0;
}

static size_t dollars_at(const cql_lexer *l) {
    const char *stop = memmem(l->at + 2, (size_t)(l->end - l->at) - 2, "$$", 2);
    return stop ? (size_t)(stop + 2 - l->at) : 0;
}

static size_t symbol_at(const cql_lexer *l) {
    static const char *const pairs[] = {"..", "<=", ">=", "!=", "+=", "-="};
    char c = peek(l, 0), next = peek(l, 1);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (c == pairs[i][0] && next == pairs[i][1]) {
            return 2;
        }
    }
    return c && strchr(",;:?.()[]{}<>=+-*/%", c) ? 1 : 0;
}

static size_t token_at(const cql_lexer *l, cql_token_kind *kind_out) {
    char c = *l->at;
    if (hex_digit(c) >= 0 && is_uuid(l)) {
        *kind_out = CQL_TOKEN_UUID;
        return 36;
    }
    if (is_letter(c)) {
        return name_token(l, kind_out);
    }
    if (is_digit(c)) {
        return digit_token(l, kind_out);
    }
    if (c == '\'' || c == '"') {
        *kind_out = c == '"' ? CQL_TOKEN_QUOTED : CQL_TOKEN_STRING;
        return quoted_at(l, c);
    }
    if (c == '$' && peek(l, 1) == '$') {
        *kind_out = CQL_TOKEN_STRING;
        return dollars_at(l);
    }
    *kind_out = CQL_TOKEN_SYMBOL;
    return symbol_at(l);
}

cql_token cql_lexer_next(cql_lexer *l) {
    bool unclosed = false;
    while (skip_blank(l) || skip_comment(l, &unclosed)) {
    }
    cql_token t = {.kind = CQL_TOKEN_END, .text = {l->at, 0}, .line = l->line, .column = (uint32_t)(l->at - l->line_start)};
    if (l->at == l->end) {
        return t;
    }
    size_t n = unclosed ? 0 : token_at(l, &t.kind);
    if (n == 0) {
        t.reason = unclosed || t.kind != CQL_TOKEN_SYMBOL ? "mismatched character '<EOF>'" : "no viable alternative at character";
        t.kind = CQL_TOKEN_BAD;
        n = 1;
    }
    t.text = slice_of(l->at, n);
    pass(l, l->at + n);
    return t;
}
