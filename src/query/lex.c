#include "query/lex.h"

#include <math.h>
#include <strings.h>

#include "base/hex.h"
#include "doc/number.h"

/* ---- characters ---- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name_char(char c) {
    return is_name_start(c) || is_digit(c);
}

/* The byte at `at`; at the end 0, which begins no token. */
static char peek(const query_lexer *l, uint32_t at) {
    return at < l->text.n ? l->text.p[at] : 0;
}

/* The length of the character that begins at `at`; 0: not valid UTF-8 (RFC 3629). */
static uint32_t character_bytes(const query_lexer *l, uint32_t at) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)l->text.p[at];
    if (first < 0x80) {
        return 1;
    }
    uint32_t n = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    uint32_t c = first & (0xFFu >> (n + 1));
    if (first < 0xC2 || first > 0xF4 || l->text.n - at < n) {
        return 0;
    }
    for (uint32_t i = 1; i < n; i++) {
        unsigned char next = (unsigned char)l->text.p[at + i];
        if ((next & 0xC0) != 0x80) {
            return 0;
        }
        c = c << 6 | (next & 0x3F);
    }
    return c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000) ? 0 : n;
}

/* ---- words ---- */

typedef struct word {
    slice text;
    query_token_kind kind;
    bool exact; /* case-sensitive */
} word;

#define ANY_CASE(text, kind)                                                                                                               \
    { {text, sizeof(text) - 1}, kind, false }
#define EXACT(text, kind)                                                                                                                  \
    { {text, sizeof(text) - 1}, kind, true }

/* In alphabetical order, for the binary search. */
static const word words[] = {
    ANY_CASE("AND", TOKEN_AND),
    ANY_CASE("ARRAY", TOKEN_ARRAY),
    ANY_CASE("AS", TOKEN_AS),
    ANY_CASE("ASC", TOKEN_ASC),
    ANY_CASE("BETWEEN", TOKEN_BETWEEN),
    ANY_CASE("BY", TOKEN_BY),
    ANY_CASE("CASE", TOKEN_RESERVED),
    ANY_CASE("CAST", TOKEN_RESERVED),
    ANY_CASE("CONVERT", TOKEN_RESERVED),
    ANY_CASE("CROSS", TOKEN_RESERVED),
    ANY_CASE("DESC", TOKEN_DESC),
    ANY_CASE("DISTINCT", TOKEN_DISTINCT),
    ANY_CASE("ELSE", TOKEN_RESERVED),
    ANY_CASE("END", TOKEN_RESERVED),
    ANY_CASE("ESCAPE", TOKEN_ESCAPE),
    ANY_CASE("EXISTS", TOKEN_EXISTS),
    EXACT("false", TOKEN_FALSE),
    ANY_CASE("FOR", TOKEN_RESERVED),
    ANY_CASE("FROM", TOKEN_FROM),
    ANY_CASE("GROUP", TOKEN_GROUP),
    ANY_CASE("HAVING", TOKEN_RESERVED),
    ANY_CASE("IN", TOKEN_IN),
    ANY_CASE("INNER", TOKEN_RESERVED),
    ANY_CASE("INSERT", TOKEN_RESERVED),
    ANY_CASE("INTO", TOKEN_RESERVED),
    ANY_CASE("IS", TOKEN_RESERVED),
    ANY_CASE("JOIN", TOKEN_JOIN),
    ANY_CASE("LEFT", TOKEN_LEFT),
    ANY_CASE("LIKE", TOKEN_LIKE),
    ANY_CASE("LIMIT", TOKEN_LIMIT),
    ANY_CASE("NOT", TOKEN_NOT),
    EXACT("null", TOKEN_NULL),
    ANY_CASE("OFFSET", TOKEN_OFFSET),
    ANY_CASE("ON", TOKEN_RESERVED),
    ANY_CASE("OR", TOKEN_OR),
    ANY_CASE("ORDER", TOKEN_ORDER),
    ANY_CASE("OUTER", TOKEN_RESERVED),
    ANY_CASE("OVER", TOKEN_RESERVED),
    ANY_CASE("RIGHT", TOKEN_RIGHT),
    ANY_CASE("SELECT", TOKEN_SELECT),
    ANY_CASE("SET", TOKEN_RESERVED),
    ANY_CASE("THEN", TOKEN_RESERVED),
    ANY_CASE("TOP", TOKEN_TOP),
    EXACT("true", TOKEN_TRUE),
    EXACT("udf", TOKEN_UDF),
    EXACT("undefined", TOKEN_UNDEFINED),
    ANY_CASE("UPDATE", TOKEN_RESERVED),
    ANY_CASE("VALUE", TOKEN_VALUE),
    ANY_CASE("WHEN", TOKEN_RESERVED),
    ANY_CASE("WHERE", TOKEN_WHERE),
    ANY_CASE("WITH", TOKEN_RESERVED),
};

/* Below, equal to or above 0, as the name comes before, is or comes after the word. Most are told apart by their first letters. */
static int compare_with_word(slice name, slice word) {
    int c = (name.p[0] | 0x20) - (word.p[0] | 0x20);
    c = c ? c : strncasecmp(name.p, word.p, name.n < word.n ? name.n : word.n);
    return c ? c : (name.n > word.n) - (name.n < word.n);
}

static query_token_kind word_kind(slice text) {
    size_t low = 0;
    size_t high = text.n > 1 ? sizeof words / sizeof *words : 0; /* no keyword has one letter */
    while (low < high) {
        size_t middle = (low + high) / 2;
        const word *w = &words[middle];
        int c = compare_with_word(text, w->text);
        if (c == 0) {
            return w->exact && !slice_eq(text, w->text) ? TOKEN_NAME : w->kind;
        }
        high = c < 0 ? middle : high;
        low = c < 0 ? low : middle + 1;
    }
    return TOKEN_NAME;
}

static uint32_t name_end(const query_lexer *l, uint32_t at) {
    while (is_name_char(peek(l, at))) {
        at++;
    }
    return at;
}

bool query_lex_is_name(slice text) {
    query_lexer l = {.text = text};
    return text.n && text.n < UINT32_MAX && is_name_start(text.p[0]) && name_end(&l, 0) == text.n && word_kind(text) == TOKEN_NAME;
}

/* ---- numbers ---- */

static uint32_t digits_end(const query_lexer *l, uint32_t at) {
    while (is_digit(peek(l, at))) {
        at++;
    }
    return at;
}

static uint32_t decimal_end(const query_lexer *l, uint32_t at) {
    at = digits_end(l, at);
    if (peek(l, at) == '.') {
        at = digits_end(l, at + 1);
    }
    if (peek(l, at) == 'e' || peek(l, at) == 'E') {
        uint32_t exponent = at + 1 + (peek(l, at + 1) == '+' || peek(l, at + 1) == '-');
        at = is_digit(peek(l, exponent)) ? digits_end(l, exponent) : at;
    }
    return at;
}

static query_lex_result lex_number(query_lexer *l) {
    uint32_t end = l->at;
    if (peek(l, end) == '0' && (peek(l, end + 1) == 'x' || peek(l, end + 1) == 'X')) {
        for (end += 2; hex_digit(peek(l, end)) >= 0;) {
            end++;
        }
        end -= end == l->at + 2; /* 0x alone is invalid: the x counts as a name after the 0 */
    } else {
        end = decimal_end(l, end);
    }
    l->at = name_end(l, end);
    return l->at == end ? LEX_OK : LEX_BAD_NUMBER;
}

static bool hexadecimal_value(slice digits, query_value *value_out) {
    uint64_t exact = 0;
    double number = 0;
    bool fits = true;
    for (size_t i = 0; i < digits.n; i++) {
        unsigned digit = (unsigned)hex_digit(digits.p[i]);
        fits = fits && exact < (uint64_t)1 << 59;
        exact = exact << 4 | digit;
        number = number * 16 + digit;
    }
    *value_out = fits ? value_integer((int64_t)exact) : value_number(number);
    return isfinite(number);
}

/* Rewrites 007, .5, 1. and 1.e9 as JSON numbers. */
static slice decimal_as_json(arena *a, slice text) {
    while (text.n > 1 && text.p[0] == '0' && is_digit(text.p[1])) {
        text = slice_skip(text, 1);
    }
    const char *dot = memchr(text.p, '.', text.n);
    bool whole = dot && dot > text.p;
    bool fraction = dot && dot + 1 < text.p + text.n && is_digit(dot[1]);
    if (!dot || (whole && fraction)) {
        return text;
    }
    slice before = whole ? slice_of(text.p, (size_t)(dot - text.p)) : SLICE_LIT("0");
    slice after = slice_skip(text, (size_t)(dot - text.p) + !fraction);
    char *copy = arena_alloc(a, before.n + after.n);
    memcpy(copy, before.p, before.n);
    memcpy(copy + before.n, after.p, after.n);
    return slice_of(copy, before.n + after.n);
}

bool query_lex_number(arena *a, slice text, query_value *value_out) {
    if (text.n > 2 && (text.p[1] == 'x' || text.p[1] == 'X')) {
        return hexadecimal_value(slice_skip(text, 2), value_out);
    }
    number_value number = {0};
    const char *reason;
    text = decimal_as_json(a, text);
    if (number_read(text.p, text.p + text.n, &number, &reason) != text.p + text.n) {
        return false;
    }
    *value_out = number.integer ? value_integer(number.i) : value_number(number.d);
    return true;
}

/* ---- strings ---- */

static bool is_escape(const query_lexer *l, uint32_t at) {
    if (peek(l, at) != 'u') {
        return peek(l, at) && strchr("\"'\\/bfnrt", peek(l, at));
    }
    for (uint32_t i = 1; i <= 4; i++) {
        if (hex_digit(peek(l, at + i)) < 0) {
            return false;
        }
    }
    return true;
}

/* An invalid string ends at its closing quote, or at the end of the text if there is none. */
static query_lex_result lex_string(query_lexer *l) {
    char quote = l->text.p[l->at++];
    bool good = true;
    while (l->at < l->text.n && l->text.p[l->at] != quote) {
        if (l->text.p[l->at] == '\\') {
            l->at++;
            good = good && is_escape(l, l->at);
        }
        uint32_t n = l->at < l->text.n ? character_bytes(l, l->at) : 0;
        good = good && n;
        l->at += l->at < l->text.n ? (n ? n : 1) : 0;
    }
    if (l->at == l->text.n) {
        return LEX_BAD_STRING;
    }
    l->at++;
    return good ? LEX_OK : LEX_BAD_STRING;
}

static uint32_t four_digits(const char *p) {
    uint32_t c = 0;
    for (int i = 0; i < 4; i++) {
        c = c << 4 | (uint32_t)hex_digit(p[i]);
    }
    return c;
}

/* Reads \uXXXX, or a surrogate pair of two. An unpaired surrogate becomes U+FFFD, as in documents. */
static const char *read_unicode(const char *p, const char *end, uint32_t *character_out) {
    uint32_t c = four_digits(p + 1);
    p += 5;
    if (c >= 0xD800 && c < 0xDC00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
        uint32_t low = four_digits(p + 2);
        if (low >= 0xDC00 && low < 0xE000) {
            *character_out = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
            return p + 6;
        }
    }
    *character_out = c >= 0xD800 && c < 0xE000 ? 0xFFFD : c;
    return p;
}

static char *write_character(char *to, uint32_t c) {
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *to++ = (char)((0xF00u >> (more + 1) & 0xFF) | c >> (6 * more)); /* 110…, 1110…, 11110… */
    while (more--) {
        *to++ = (char)(0x80 | (c >> (6 * more) & 0x3F));
    }
    return to;
}

slice query_lex_string(arena *a, slice text) {
    static const char names[] = "bfnrt";
    static const char means[] = "\b\f\n\r\t";
    const char *p = text.p + 1;
    const char *end = text.p + text.n - 1;
    if (!memchr(p, '\\', (size_t)(end - p))) {
        return slice_of(p, (size_t)(end - p));
    }
    char *start = arena_alloc(a, text.n); /* an escape is at least as long as its character */
    char *to = start;
    while (p < end) {
        if (*p != '\\') {
            *to++ = *p++;
        } else if (*++p == 'u') {
            uint32_t c;
            p = read_unicode(p, end, &c);
            to = write_character(to, c);
        } else {
            const char *name = strchr(names, *p);
            *to++ = name ? means[name - names] : *p;
            p++;
        }
    }
    return slice_of(start, (size_t)(to - start));
}

/* ---- tokens ---- */

/* White space, including what pasted texts may have instead: a no-break space, a byte order mark. */
static uint32_t blank_bytes(const query_lexer *l) {
    char c = peek(l, l->at);
    slice rest = slice_skip(l->text, l->at);
    return c == ' ' || (c >= '\t' && c <= '\r')            ? 1
           : slice_starts(rest, SLICE_LIT("\xC2\xA0"))     ? 2
           : slice_starts(rest, SLICE_LIT("\xEF\xBB\xBF")) ? 3
                                                           : 0;
}

static void skip_blanks(query_lexer *l) {
    for (;;) {
        char c = peek(l, l->at);
        uint32_t blank = blank_bytes(l);
        if (blank) {
            l->at += blank;
        } else if (c == '-' && peek(l, l->at + 1) == '-') {
            while (l->at < l->text.n && l->text.p[l->at] != '\n' && l->text.p[l->at] != '\r') {
                l->at++;
            }
        } else {
            return;
        }
    }
}

static query_token_kind mark_kind(char c) {
    static const uint8_t kinds[128] = {
        ['('] = TOKEN_LEFT_PAREN, [')'] = TOKEN_RIGHT_PAREN, ['['] = TOKEN_LEFT_BRACKET, [']'] = TOKEN_RIGHT_BRACKET,
        ['{'] = TOKEN_LEFT_BRACE, ['}'] = TOKEN_RIGHT_BRACE, ['.'] = TOKEN_DOT,          [','] = TOKEN_COMMA,
        [':'] = TOKEN_COLON,      ['?'] = TOKEN_QUESTION,    ['*'] = TOKEN_STAR,         ['/'] = TOKEN_SLASH,
        ['%'] = TOKEN_PERCENT,    ['+'] = TOKEN_PLUS,        ['-'] = TOKEN_MINUS,        ['&'] = TOKEN_AMPERSAND,
        ['^'] = TOKEN_CARET,      ['|'] = TOKEN_PIPE,        ['~'] = TOKEN_TILDE,        ['='] = TOKEN_EQUAL,
        ['<'] = TOKEN_LESS,       ['>'] = TOKEN_GREATER,
    };
    return (unsigned char)c < 128 ? (query_token_kind)kinds[(unsigned char)c] : TOKEN_END;
}

/* Longer marks come before their prefixes, since the first match is taken. */
static const struct {
    char text[4];
    uint8_t n;
    query_token_kind kind;
} long_marks[] = {
    {">>>", 3, TOKEN_SHIFT_RIGHT_ZERO}, {"!=", 2, TOKEN_NOT_EQUAL},     {"<>", 2, TOKEN_NOT_EQUAL},
    {"<=", 2, TOKEN_LESS_EQUAL},        {">=", 2, TOKEN_GREATER_EQUAL}, {"<<", 2, TOKEN_SHIFT_LEFT},
    {">>", 2, TOKEN_SHIFT_RIGHT},       {"||", 2, TOKEN_CONCAT},        {"??", 2, TOKEN_COALESCE},
};

static bool lex_long_mark(query_lexer *l, query_token *token_out) {
    slice rest = slice_skip(l->text, l->at);
    for (size_t i = 0; i < sizeof long_marks / sizeof *long_marks; i++) {
        if (slice_starts(rest, slice_of(long_marks[i].text, long_marks[i].n))) {
            token_out->kind = long_marks[i].kind;
            l->at += long_marks[i].n;
            return true;
        }
    }
    return false;
}

static query_lex_result lex_mark(query_lexer *l, query_token *token_out) {
    char c = l->text.p[l->at];
    if (strchr("<>!|?", c) && c && lex_long_mark(l, token_out)) {
        return LEX_OK;
    }
    token_out->kind = mark_kind(c);
    uint32_t n = character_bytes(l, l->at);
    l->at += n ? n : 1;
    return token_out->kind == TOKEN_END ? LEX_BAD_TOKEN : LEX_OK;
}

static query_lex_result lex_token(query_lexer *l, query_token *token_out) {
    char c = peek(l, l->at);
    char next = peek(l, l->at + 1);
    if (is_name_start(c)) {
        uint32_t start = l->at;
        l->at = name_end(l, start);
        token_out->kind = word_kind(slice_of(l->text.p + start, l->at - start));
        return LEX_OK;
    }
    if (is_digit(c) || (c == '.' && is_digit(next))) {
        token_out->kind = TOKEN_NUMBER;
        return lex_number(l);
    }
    if (c == '"' || c == '\'') {
        token_out->kind = TOKEN_STRING;
        return lex_string(l);
    }
    if (c == '@' && is_name_start(next)) {
        token_out->kind = TOKEN_PARAMETER;
        l->at = name_end(l, l->at + 1);
        return LEX_OK;
    }
    return lex_mark(l, token_out);
}

query_lex_result query_lex_next(query_lexer *l, query_token *token_out) {
    skip_blanks(l);
    *token_out = (query_token){.kind = TOKEN_END, .span = {l->at, l->at}};
    query_lex_result result = l->at < l->text.n ? lex_token(l, token_out) : LEX_OK;
    token_out->span.end = l->at;
    return result;
}
