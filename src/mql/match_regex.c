/* match_regex.c — regular expressions in filters: {a: /^b/i}, {a: {$regex: "^b", $options: "i"}}, and in $in, $all and $not.
 *
 * They match strings, and regular expressions with the same pattern and options. */
#include <ctype.h>

#include "mql/match_int.h"
#include "text/regex.h"
#include "text/text.h"

static slice pattern_of(mql_value regex) {
    return slice_str(regex.bytes.p);
}

static slice options_of(mql_value regex) {
    return slice_str(regex.bytes.p + strlen(regex.bytes.p) + 1);
}

static mql_value regex_value(mql__filter_parser *p, slice pattern, slice options) {
    return (mql_value){BSON_TYPE_REGEX,
                       arena_printf(mql__arena(p), "%.*s%c%.*s%c", (int)pattern.n, pattern.p, 0, (int)options.n, options.p, 0)};
}

/* ---- parsing ---- */

/* The options without `u`, which asks for UTF-8 and changes nothing. */
static err check_options(mql__filter_parser *p, slice options, char kept[static 8], size_t *kept_n) {
    *kept_n = 0;
    for (size_t i = 0; i < options.n; i++) {
        char c = options.p[i];
        if (!c || !strchr("imsxu", c)) {
            return mql_fail(mql__op(p), 51108, "invalid flag in regex options: %c", c);
        }
        if (c != 'u' && !memchr(kept, c, *kept_n)) {
            kept[(*kept_n)++] = c;
        }
    }
    return OK;
}

static err make_node(mql__filter_parser *p, slice path, mql_value regex, mql_node **node_out) {
    char kept[8];
    size_t kept_n;
    const text_regex *compiled;
    slice reason;
    TRY(check_options(p, options_of(regex), kept, &kept_n));
    if (!text_regex_compile(mql__arena(p), pattern_of(regex), slice_of(kept, kept_n), &compiled, &reason)) {
        return mql_fail(mql__op(p), 51091, "Regular expression is invalid: %.*s", (int)reason.n, reason.p);
    }
    mql_node *n = *node_out = mql__node(p, MQL_REGEX, path, regex);
    n->detail = compiled;
    return OK;
}

err mql__parse_regex_value(mql__filter_parser *p, slice path, mql_value regex, mql_node **node_out) {
    return make_node(p, path, regex, node_out);
}

static err pattern_operand(mql__filter_parser *p, mql_value operand, slice *pattern, slice *options) {
    if (operand.type == BSON_TYPE_REGEX) {
        *pattern = pattern_of(operand);
        *options = options_of(operand);
        return OK;
    }
    if (operand.type != BSON_TYPE_UTF8) {
        return mql_fail(mql__op(p), 2, "$regex has to be a string");
    }
    *pattern = mql_as_text(operand);
    *options = SLICE_EMPTY;
    return OK;
}

static err no_zero_bytes(mql__filter_parser *p, slice text, const char *what) {
    return text.n && memchr(text.p, 0, text.n) ? mql_fail(mql__op(p), 51109, "%s cannot contain an embedded null byte", what) : OK;
}

err mql__parse_regex(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    mql_value also = mql_member(mql_document(of->siblings), SLICE_LIT("$options"));
    slice pattern = SLICE_EMPTY, options = SLICE_EMPTY;
    TRY(pattern_operand(p, mql_of(of->e), &pattern, &options));
    if (!mql_is_missing(also)) {
        if (also.type != BSON_TYPE_UTF8) {
            return mql_fail(mql__op(p), 2, "$options has to be a string");
        }
        if (options.n) {
            return mql_fail(mql__op(p), 51074, "options set in both $regex and $options");
        }
        options = mql_as_text(also);
    }
    TRY(no_zero_bytes(p, pattern, "Regular expression"));
    TRY(no_zero_bytes(p, options, "Regular expression options string"));
    if (!arena_fits(mql__arena(p), pattern.n + options.n + 2)) {
        return mql__room(p);
    }
    return make_node(p, of->path, regex_value(p, pattern, options), node_out);
}

/* $options belongs to $regex, which reads it. */
err mql__parse_options(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    *node_out = NULL;
    return mql_is_missing(mql_member(mql_document(of->siblings), SLICE_LIT("$regex"))) ? mql_fail(mql__op(p), 2, "$options needs a $regex")
                                                                                       : OK;
}

/* ---- prefixes ---- */

static bool is_plain(char c) {
    return !strchr("\\^$.[]|()?*+{}", c);
}

static bool makes_optional(slice rest) {
    return rest.n && strchr("?*{", rest.p[0]) != NULL;
}

/* The next character that is matched literally; 0: none. `*taken` is the length of its spelling. */
static size_t literal_at(slice rest, slice *literal, size_t *taken) {
    bool escaped = rest.n > 1 && rest.p[0] == '\\' && ispunct((unsigned char)rest.p[1]);
    if (!rest.n || (!escaped && !is_plain(rest.p[0]))) {
        return 0;
    }
    size_t n = 1;
    while (!escaped && n < rest.n && ((unsigned char)rest.p[n] & 0xC0) == 0x80) {
        n++;
    }
    *literal = slice_of(rest.p + escaped, n);
    *taken = n + escaped;
    return n;
}

slice mql_regex_prefix(arena *a, const mql_node *regex) {
    slice pattern = pattern_of(regex->value), options = options_of(regex->value), literal;
    size_t taken;
    if (pattern.n < 2 || pattern.p[0] != '^' || memchr(pattern.p, '|', pattern.n) || strpbrk(options.p, "imx")) {
        return SLICE_EMPTY;
    }
    char *prefix = arena_alloc(a, pattern.n);
    size_t n = 0;
    for (slice rest = slice_skip(pattern, 1); literal_at(rest, &literal, &taken);) {
        rest = slice_skip(rest, taken);
        if (makes_optional(rest)) {
            break;
        }
        memcpy(prefix + n, literal.p, literal.n);
        n += literal.n;
    }
    return slice_of(prefix, n);
}

/* ---- testing ---- */

static bool same_regex(mql_value a, mql_value b) {
    return a.bytes.n == b.bytes.n && memcmp(a.bytes.p, b.bytes.p, a.bytes.n) == 0;
}

err mql__test_regex(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out) {
    *matches_out = v.type == BSON_TYPE_REGEX && same_regex(v, n->value);
    if (v.type != BSON_TYPE_UTF8 && v.type != BSON_TYPE_SYMBOL) {
        return OK;
    }
    slice text = mql_as_text(v);
    TRY(mql_pay(t->run, 2 + text.n / 16));
    if (!bson_utf8_validate(text.p, text.n, true)) {
        return OK;
    }
    text_regex_answer answer = text_regex_find(n->detail, text, 0, NULL, &t->run->steps);
    *matches_out = answer == REGEX_YES;
    if (answer == REGEX_TOO_LONG) {
        return t->run->steps ? mql_fail(t->run->op, 51156, "Error occurred while executing regular expression: match limit exceeded")
                             : E_QUERY_TOO_LONG;
    }
    return OK;
}
