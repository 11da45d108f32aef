/* expression_string.c — strings: joining, splitting, case, trimming, replacing. Parts and positions: expression_substring.c. */
#include <stdlib.h>

#include "mql/expression_int.h"

size_t mql__find_text(slice text, slice part, size_t from) {
    if (from > text.n || part.n > text.n - from) {
        return SIZE_MAX;
    }
    const char *p = part.n ? memmem(text.p + from, text.n - from, part.p, part.n) : text.p + from;
    return p ? (size_t)(p - text.p) : SIZE_MAX;
}

/* ---- texts that are built: a buffer outside of the arena, as large as a result may be ---- */

static buf text_buffer(const mql__call *c) {
    return buf_init_counted(16 * 1024 * 1024 + 16 * 1024, c->run->arena->budget);
}

static err built_text(const mql__call *c, buf *text, mql_value *value_out) {
    err e = buf_ok(text) ? mql__text_result(c, buf_view(text), value_out) : mql__check_room(c->run, SIZE_MAX);
    buf_free(text);
    return e;
}

/* ---- $concat ---- */

static err concat(const mql__call *c, mql_value *value_out) {
    for (size_t i = 0; i < c->n; i++) {
        if (mql_is_nullish(c->args[i])) {
            *value_out = mql_null();
            return OK;
        }
        if (!mql_is_text(c->args[i])) {
            return mql__fail(c, 16702, "$concat only supports strings, not %s", mql_type_name(c->args[i].type));
        }
    }
    buf text = text_buffer(c);
    for (size_t i = 0; i < c->n; i++) {
        buf_add_slice(&text, mql_as_text(c->args[i]));
    }
    return built_text(c, &text, value_out);
}

/* ---- $split ---- */

static err check_split(const mql__call *c) {
    static const char *const places[] = {"first", "second"};
    for (int i = 0; i < 2; i++) {
        if (!mql_is_text(c->args[i])) {
            return mql__fail(c, 40085 + i, "$split requires an expression that evaluates to a string as a %s argument, found: %s",
                             places[i], mql_type_name(c->args[i].type));
        }
    }
    return mql_as_text(c->args[1]).n ? OK : mql__fail(c, 40087, "$split requires a non-empty separator");
}

static void add_text(const mql__call *c, mql__maker *m, slice text) {
    mql__make_next(m, mql_text(c->run->arena, text));
}

static err split(const mql__call *c, mql_value *value_out) {
    size_t from = 0, at;
    TRY(check_split(c));
    slice text = mql_as_text(c->args[0]), separator = mql_as_text(c->args[1]);
    TRY(mql_pay(c->run, 2 + text.n / 4));
    TRY(mql__check_room(c->run, text.n));
    mql__maker m = mql__make(c->run);
    arena_mark mark = arena_marked(c->run->arena);
    while ((at = mql__find_text(text, separator, from)) != SIZE_MAX) {
        add_text(c, &m, slice_of(text.p + from, at - from));
        arena_release(c->run->arena, mark);
        from = at + separator.n;
    }
    add_text(c, &m, slice_skip(text, from));
    arena_release(c->run->arena, mark);
    return mql__made(c->run, &m, BSON_TYPE_ARRAY, OK, value_out);
}

/* ---- case: ASCII's letters only ---- */

static char changed(char c, bool upper) {
    return upper ? (c >= 'a' && c <= 'z' ? (char)(c - 32) : c) : (c >= 'A' && c <= 'Z' ? (char)(c + 32) : c);
}

static err change_case(const mql__call *c, mql_value *value_out) {
    slice text;
    TRY(mql__coerce_text(c, c->args[0], &text));
    buf out = text_buffer(c);
    for (size_t i = 0; i < text.n && buf_ok(&out); i++) {
        buf_add_byte(&out, changed(text.p[i], c->e->operator->variant));
    }
    return built_text(c, &out, value_out);
}

static err compare_nocase(const mql__call *c, mql_value *value_out) {
    slice a, b;
    TRY(mql__coerce_text(c, c->args[0], &a));
    TRY(mql__coerce_text(c, c->args[1], &b));
    TRY(mql_pay(c->run, 1 + a.n / 16));
    size_t n = a.n < b.n ? a.n : b.n, i = 0;
    while (i < n && changed(a.p[i], true) == changed(b.p[i], true)) {
        i++;
    }
    int by = i < n ? (unsigned char)changed(a.p[i], true) - (unsigned char)changed(b.p[i], true) : (a.n > b.n) - (a.n < b.n);
    *value_out = mql_int32(c->run->arena, by < 0 ? -1 : by > 0);
    return OK;
}

/* ---- $trim, $ltrim, $rtrim ---- */

enum { LEFT = 1, RIGHT = 2 };

static const slice blanks = SLICE_LIT("\0 \t\n\v\f\r\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A");

/* Length of the character at the beginning or end of `text` if it is one of `characters`; otherwise 0. */
static size_t trimmable(slice text, slice characters, bool at_end) {
    for (size_t i = 0, n; i < characters.n; i += n) {
        n = mql__character(characters, i);
        if (n <= text.n && memcmp(at_end ? text.p + text.n - n : text.p, characters.p + i, n) == 0) {
            return n;
        }
    }
    return 0;
}

static err trim_with(const mql__call *c, slice text, slice characters, mql_value *value_out) {
    int sides = c->e->operator->variant;
    size_t n;
    while (sides & LEFT && text.n && (n = trimmable(text, characters, false))) {
        TRY(mql_pay(c->run, 1 + characters.n / 4));
        text = slice_skip(text, n);
    }
    while (sides & RIGHT && text.n && (n = trimmable(text, characters, true))) {
        TRY(mql_pay(c->run, 1 + characters.n / 4));
        text.n -= n;
    }
    return mql__text_result(c, text, value_out);
}

static err trim(const mql__call *c, mql_value *value_out) {
    mql_value input = c->args[0], characters = c->args[1];
    bool own = c->e->args[1];
    if (mql_is_nullish(input)) {
        *value_out = mql_null();
        return OK;
    }
    if (!mql_is_text(input)) {
        return mql__fail(c, 50699, "%s requires its input to be a string, got %s (of type %s) instead.", mql__name(c),
                         mql__show(c->run->arena, input), mql_type_name(input.type));
    }
    if (own && mql_is_nullish(characters)) {
        *value_out = mql_null();
        return OK;
    }
    if (own && !mql_is_text(characters)) {
        return mql__fail(c, 50700, "%s requires 'chars' to be a string, got %s (of type %s) instead.", mql__name(c),
                         mql__show(c->run->arena, characters), mql_type_name(characters.type));
    }
    return trim_with(c, mql_as_text(input), own ? mql_as_text(characters) : blanks, value_out);
}

/* ---- $replaceOne, $replaceAll ---- */

static err check_replace(const mql__call *c, bool *null_out) {
    static const char *const names[] = {"input", "find", "replacement"};
    *null_out = false;
    for (int i = 0; i < 3; i++) {
        if (!mql_is_text(c->args[i]) && !mql_is_nullish(c->args[i])) {
            return mql__fail(c, 51746 - i, "%s requires that '%s' be a string, found: %s", mql__name(c), names[i],
                             mql__show(c->run->arena, c->args[i]));
        }
        *null_out |= mql_is_nullish(c->args[i]);
    }
    return OK;
}

static err replace_into(const mql__call *c, buf *out) {
    slice text = mql_as_text(c->args[0]), part = mql_as_text(c->args[1]), by = mql_as_text(c->args[2]);
    bool all = c->e->operator->variant;
    size_t from = 0, at = mql__find_text(text, part, 0);
    while (at != SIZE_MAX && buf_ok(out)) {
        TRY(mql_pay(c->run, 2 + (by.n + at - from) / 64));
        buf_add(out, text.p + from, at - from);
        buf_add_slice(out, by);
        size_t next = at + part.n;
        if (part.n == 0 && at < text.n) {
            buf_add_byte(out, text.p[at]);
            next++;
        }
        from = next;
        bool more = all && (part.n || at < text.n);
        at = more ? mql__find_text(text, part, from) : SIZE_MAX;
    }
    buf_add_slice(out, slice_skip(text, from));
    return OK;
}

static err replace(const mql__call *c, mql_value *value_out) {
    bool null;
    TRY(check_replace(c, &null));
    if (null) {
        *value_out = mql_null();
        return OK;
    }
    TRY(mql_pay(c->run, mql__reading(c->args[0]) * 4));
    buf out = text_buffer(c);
    err e = replace_into(c, &out);
    if (e) {
        buf_free(&out);
        return e;
    }
    return built_text(c, &out, value_out);
}

static const mql__named trim_arguments = {MQL__FOUND, 50696, 50694, {{"input", 50695}, {"chars", 0}}};
static const mql__named replace_arguments = {MQL__REQUIRES, 51751, 51750, {{"input", 51749}, {"find", 51748}, {"replacement", 51747}}};

static const mql__operator rows[] = {
    {"$concat", 0, MQL__ANY, MQL__SERVICE, .function = concat},
    {"$split", 2, 2, MQL__SERVICE | MQL__NULLS, .function = split},
    {"$toLower", 1, 1, MQL__SERVICE, .function = change_case, .variant = false},
    {"$toUpper", 1, 1, MQL__SERVICE, .function = change_case, .variant = true},
    {"$strcasecmp", 2, 2, MQL__SERVICE, .function = compare_nocase},
    {"$trim", .flags = MQL__SERVICE, .function = trim, .named = &trim_arguments, .variant = LEFT | RIGHT},
    {"$ltrim", .flags = MQL__SERVICE, .function = trim, .named = &trim_arguments, .variant = LEFT},
    {"$rtrim", .flags = MQL__SERVICE, .function = trim, .named = &trim_arguments, .variant = RIGHT},
    {"$replaceOne", .flags = 0, .function = replace, .named = &replace_arguments, .variant = false},
    {"$replaceAll", .flags = 0, .function = replace, .named = &replace_arguments, .variant = true},
};
const mql__operators mql__string_operators = MQL__OPERATORS(rows);
