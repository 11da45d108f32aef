/* expression_pattern.c — $regexMatch, $regexFind, $regexFindAll. A constant pattern is compiled when the expression is parsed. */
#include "mql/expression_int.h"
#include "text/regex.h"
#include "text/text.h"

enum { INPUT, REGEX, OPTIONS };

/* ---- patterns ---- */

static err take_pattern(op *o, const char *name, mql_value regex, mql_value more, slice *pattern_out, slice *options_out) {
    *options_out = mql_is_text(more) ? mql_as_text(more) : SLICE_EMPTY;
    if (!mql_is_text(regex) && regex.type != BSON_TYPE_REGEX) {
        return mql_fail(o, 51105, "%s needs 'regex' to be of type string or regex", name);
    }
    if (!mql_is_text(more) && !mql_is_nullish(more)) {
        return mql_fail(o, 51106, "%s needs 'options' to be of type string", name);
    }
    if (mql_is_text(regex)) {
        *pattern_out = mql_as_text(regex);
    } else {
        *pattern_out = slice_str(regex.bytes.p);
        slice own = slice_str(regex.bytes.p + pattern_out->n + 1);
        if (own.n && mql_is_text(more)) {
            return mql_fail(o, 51107, "%s: found regex option(s) specified in both 'regex' and 'option' fields", name);
        }
        *options_out = own.n ? own : *options_out;
    }
    if (memchr(pattern_out->p, 0, pattern_out->n)) {
        return mql_fail(o, 51109, "%s: regular expression cannot contain an embedded null byte", name);
    }
    return OK;
}

/* MongoDB also knows `u`, which changes nothing. */
static err known_options(op *o, const char *name, slice options, char kept[static 8], size_t *n_out) {
    *n_out = 0;
    for (size_t i = 0; i < options.n; i++) {
        char c = options.p[i];
        if (!c) {
            return mql_fail(o, 51110, "%s: regular expression options cannot contain an embedded null byte", name);
        }
        if (!strchr("imsxu", c)) {
            return mql_fail(o, 51108, "%s invalid flag in regex options: %c", name, c);
        }
        if (c != 'u' && !memchr(kept, c, *n_out)) {
            kept[(*n_out)++] = c;
        }
    }
    return OK;
}

static err compile(op *o, arena *a, const char *name, mql_value regex, mql_value more, const text_regex **regex_out) {
    slice pattern, options, reason;
    char kept[8];
    size_t n;
    TRY(take_pattern(o, name, regex, more, &pattern, &options));
    TRY(known_options(o, name, options, kept, &n));
    if (!text_regex_compile(a, pattern, slice_of(kept, n), regex_out, &reason)) {
        return mql_fail(o, 51111, "Invalid Regex in %s: %.*s", name, slice_shown(reason), reason.p);
    }
    return OK;
}

/* ---- parsing ---- */

static err parse_regex(mql_scope *s, mql_expression *node, mql_value argument) {
    static const mql__named arguments = {MQL__EXPECTS, 51103, 31024, {{"input", 31022}, {"regex", 31023}, {"options", 0}}};
    mql_value regex, options = mql_missing();
    const text_regex *compiled;
    const char *name = node->operator->name;
    TRY(mql__parse_named(s, node, &arguments, argument));
    bool constant = mql_expression_constant(node->args[REGEX], &regex) &&
                    (!node->args[OPTIONS] || mql_expression_constant(node->args[OPTIONS], &options));
    if (constant && !mql_is_nullish(regex)) {
        TRY(compile(s->op, s->op->arena, name, regex, options, &compiled));
        node->prepared = compiled;
    }
    return OK;
}

/* ---- searching ---- */

typedef struct search {
    const text_regex *regex;
    slice text;
    size_t at, characters; /* where to search from, in bytes and in characters */
    slice groups[TEXT_REGEX_GROUPS_MAX];
} search;

/* `null_out`: there is nothing to search, or nothing to search for. */
static err begin(const mql__call *c, search *s, bool *null_out) {
    const char *name = mql__name(c);
    s->at = s->characters = 0;
    s->regex = c->e->prepared;
    if (!mql_is_nullish(c->args[INPUT]) && !mql_is_text(c->args[INPUT])) {
        return mql__fail(c, 51104, "%s needs 'input' to be of type string", name);
    }
    if (!s->regex && !mql_is_nullish(c->args[REGEX])) {
        TRY(mql_pay(c->run, 1000 + c->args[REGEX].bytes.n * 8));
        TRY(compile(c->run->op, c->run->arena, name, c->args[REGEX], c->args[OPTIONS], &s->regex));
    }
    *null_out = !s->regex || mql_is_nullish(c->args[INPUT]);
    if (*null_out) {
        return OK;
    }
    s->text = mql_as_text(c->args[INPUT]);
    TRY(mql_pay(c->run, 2 + s->text.n / 16));
    return text_is_valid(s->text)
               ? OK
               : mql__fail(c, 51156,
                           "Error occurred while executing the regular expression in %s. Result code: the text is not valid UTF-8", name);
}

static err find(const mql__call *c, search *s, bool *found_out) {
    text_regex_answer answer = text_regex_find(s->regex, s->text, s->at, s->groups, &c->run->steps);
    *found_out = answer == REGEX_YES;
    if (answer != REGEX_TOO_LONG) {
        return OK;
    }
    return c->run->steps
               ? mql__fail(c, 51156, "Error occurred while executing the regular expression in %s. Result code: match limit exceeded",
                           mql__name(c))
               : E_QUERY_TOO_LONG;
}

static size_t count_characters(slice text) {
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        n += !mql__is_continuation(text, i);
    }
    return n;
}

static err captures_of(const mql__call *c, const search *s, mql_value *value_out) {
    mql__maker m = mql__make(c->run);
    for (unsigned i = 1; i <= text_regex_groups(s->regex); i++) {
        mql__make_next(&m, s->groups[i].p ? mql_text(c->run->arena, s->groups[i]) : mql_null());
    }
    return mql__made(c->run, &m, BSON_TYPE_ARRAY, OK, value_out);
}

static err match_document(const mql__call *c, search *s, mql_value *value_out) {
    mql_value captures;
    size_t at = (size_t)(s->groups[0].p - s->text.p);
    TRY(mql__check_room(c->run, s->groups[0].n * 2 + 64));
    s->characters += count_characters(slice_of(s->text.p + s->at, at - s->at));
    s->at = at;
    TRY(captures_of(c, s, &captures));
    mql__maker m = mql__make(c->run);
    mql__make_member(&m, SLICE_LIT("match"), mql_text(c->run->arena, s->groups[0]));
    mql__make_member(&m, SLICE_LIT("idx"), mql_int32(c->run->arena, (int32_t)s->characters));
    mql__make_member(&m, SLICE_LIT("captures"), captures);
    return mql__made(c->run, &m, BSON_TYPE_DOCUMENT, OK, value_out);
}

/* ---- operators ---- */

static err regex_match(const mql__call *c, mql_value *value_out) {
    search s;
    bool null, found = false;
    TRY(begin(c, &s, &null));
    if (!null) {
        TRY(find(c, &s, &found));
    }
    *value_out = mql_bool(found);
    return OK;
}

static err regex_find(const mql__call *c, mql_value *value_out) {
    search s;
    bool null, found = false;
    TRY(begin(c, &s, &null));
    *value_out = mql_null();
    if (!null) {
        TRY(find(c, &s, &found));
    }
    return found ? match_document(c, &s, value_out) : OK;
}

/* After an empty match the search goes on one character further. */
static void advance(search *s) {
    size_t n = s->groups[0].n;
    if (n == 0) {
        n = s->at < s->text.n ? mql__character(s->text, s->at) : 1;
    }
    s->characters += n <= s->text.n - s->at ? count_characters(slice_of(s->text.p + s->at, n)) : 0;
    s->at += n;
}

static err find_all(const mql__call *c, search *s, mql__maker *m) {
    arena_mark mark = arena_marked(c->run->arena);
    while (s->at <= s->text.n && buf_ok(&m->bytes)) {
        bool found;
        mql_value match;
        TRY(find(c, s, &found));
        if (!found) {
            return OK;
        }
        TRY(match_document(c, s, &match));
        mql__make_next(m, match);
        arena_release(c->run->arena, mark);
        advance(s);
    }
    return OK;
}

static err regex_find_all(const mql__call *c, mql_value *value_out) {
    search s;
    bool null;
    TRY(begin(c, &s, &null));
    mql__maker m = mql__make(c->run);
    err e = null ? OK : find_all(c, &s, &m);
    return mql__made(c->run, &m, BSON_TYPE_ARRAY, e, value_out);
}

static const mql__operator rows[] = {
    {"$regexMatch", .flags = MQL__SERVICE, .function = regex_match, .parse = parse_regex},
    {"$regexFind", .flags = MQL__SERVICE, .function = regex_find, .parse = parse_regex},
    {"$regexFindAll", .flags = MQL__SERVICE, .function = regex_find_all, .parse = parse_regex},
};
const mql__operators mql__pattern_operators = MQL__OPERATORS(rows);
