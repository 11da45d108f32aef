/* functions_harness.h — for tests of system functions by tables: name, arguments, expected value. Arguments and values are written as in a
 * query, strings in single quotes. */
#pragma once

#include <math.h>
#include <stdlib.h>

#include "doc/number.h"
#include "query/function.h"

static arena row, keep;
static uint64_t steps, random_state;

static inline query_context context(void) {
    steps = 1000000000;
    random_state = 88172645463325252;
    /* 2024-10-14T14:20:30.666Z, the time in the documentation's examples, cut to milliseconds */
    return (query_context){.arena = &row, .keep = &keep, .now_ms = 1728915630666, .random = &random_state, .steps = &steps};
}

static inline int set_up(void **state) {
    (void)state;
    row = arena_init();
    keep = arena_init();
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    arena_free(&row);
    arena_free(&keep);
    return 0;
}

/* ---- values as text ---- */

static inline void blanks(const char **p) {
    while (**p == ' ' || **p == '\n') {
        ++*p;
    }
}

static inline bool word(const char **p, const char *w) {
    size_t n = strlen(w);
    if (strncmp(*p, w, n) != 0) {
        return false;
    }
    *p += n;
    return true;
}

static inline void add_character(buf *out, unsigned c) {
    if (c < 0x80) {
        buf_add_byte(out, (char)c);
    } else if (c < 0x800) {
        buf_add(out, (char[]){(char)(0xC0 | c >> 6), (char)(0x80 | (c & 63))}, 2);
    } else {
        buf_add(out, (char[]){(char)(0xE0 | c >> 12), (char)(0x80 | (c >> 6 & 63)), (char)(0x80 | (c & 63))}, 3);
    }
}

static inline slice read_text(const char **p) {
    buf out = buf_init(BUF_NO_LIMIT);
    char quote = *(*p)++;
    for (; **p != quote; ++*p) {
        assert_int_not_equal(**p, 0);
        if (**p != '\\') {
            buf_add_byte(&out, **p);
            continue;
        }
        switch (*++*p) {
        case 'n':
            buf_add_byte(&out, '\n');
            break;
        case 't':
            buf_add_byte(&out, '\t');
            break;
        case 'u': {
            char digits[5] = {0};
            memcpy(digits, *p + 1, 4);
            add_character(&out, (unsigned)strtoul(digits, NULL, 16));
            *p += 4;
            break;
        }
        default:
            buf_add_byte(&out, **p);
        }
    }
    ++*p;
    slice made = arena_copy(&row, buf_view(&out));
    buf_free(&out);
    return made;
}

static inline slice read_name(const char **p) {
    if (**p == '\'' || **p == '"') {
        return read_text(p);
    }
    const char *from = *p;
    while (**p != ':' && **p != ' ') {
        ++*p;
    }
    return slice_of(from, (size_t)(*p - from));
}

enum { MEMBERS_MAX = 64 };

static inline query_value read_value(const char **p);

/* Reads values up to a closing character, or to the end of the text. */
static inline size_t read_list(const char **p, char close, slice *names, query_value *values) {
    size_t n = 0;
    for (blanks(p); **p != close; blanks(p)) {
        if (names) {
            names[n] = read_name(p);
            blanks(p);
            assert_true(word(p, ":"));
        }
        assert_true(n < MEMBERS_MAX);
        values[n++] = read_value(p);
        blanks(p);
        if (!word(p, ",")) {
            break;
        }
    }
    assert_int_equal(**p, close);
    *p += close != 0;
    return n;
}

static inline query_value read_value(const char **p) {
    query_value values[MEMBERS_MAX];
    slice names[MEMBERS_MAX];
    blanks(p);
    if (**p == '\'' || **p == '"') {
        return value_string(read_text(p));
    }
    if (word(p, "[")) {
        size_t n = read_list(p, ']', NULL, values);
        return value_array(&row, values, n);
    }
    if (word(p, "{")) {
        size_t n = read_list(p, '}', names, values);
        return value_object(&row, names, values, n);
    }
    static const struct {
        const char *text;
        query_value value;
    } words[] = {
        {"undefined", {.type = TYPE_UNDEFINED}},
        {"null", {.type = TYPE_NULL}},
        {"true", {.type = TYPE_BOOL, .truth = true}},
        {"false", {.type = TYPE_BOOL}},
        {"NaN", {.type = TYPE_NUMBER, .number = NAN}},
        {"Infinity", {.type = TYPE_NUMBER, .number = INFINITY}},
        {"-Infinity", {.type = TYPE_NUMBER, .number = -INFINITY}},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (word(p, words[i].text)) {
            return words[i].value;
        }
    }
    number_value number;
    const char *reason = "", *end = number_read(*p, *p + strlen(*p), &number, &reason);
    if (!end) {
        fail_msg("no value at «%s»: %s", *p, reason);
    }
    *p = end;
    return number.integer ? value_integer(number.i) : value_number(number.d);
}

static inline query_value value(const char *text) {
    return read_value(&text);
}

/* ---- calling ---- */

static inline query_value call_with(query_context *c, const char *name, const query_value *args, size_t n) {
    const query_function *f = query_function_find(slice_str(name));
    if (!f) {
        fail_msg("there is no function %s", name);
    }
    if (n < f->least || (f->most != QUERY_ANY_NUMBER && n > f->most)) {
        fail_msg("%s takes %d to %d arguments, not %zu", name, f->least, f->most, n);
    }
    for (size_t i = 0; i < n && !f->sees_undefined; i++) {
        if (!value_is_defined(&args[i])) {
            return value_undefined();
        }
    }
    return f->call(c, args, n);
}

static inline query_value call(const char *name, const char *text) {
    query_value args[MEMBERS_MAX];
    query_context c = context();
    size_t n = read_list(&text, 0, NULL, args);
    return call_with(&c, name, args, n);
}

typedef struct one_call {
    const char *name, *args, *expected;
} one_call;

static inline void json_of(buf *out, const query_value *v) {
    if (value_is_defined(v)) {
        value_write(out, v);
    } else {
        buf_add_lit(out, "undefined");
    }
    buf_add_byte(out, 0);
}

static size_t failures;

static inline void check(const one_call *c) {
    query_value got = call(c->name, c->args), expected = value(c->expected);
    buf a = buf_init(BUF_NO_LIMIT), b = buf_init(BUF_NO_LIMIT);
    json_of(&a, &got);
    json_of(&b, &expected);
    if (strcmp(a.p, b.p) != 0) {
        print_error("%s(%s) is %s, expected %s\n", c->name, c->args, a.p, b.p);
        failures++;
    }
    buf_free(&a);
    buf_free(&b);
    arena_reset(&row);
}

static inline void check_all(const one_call *calls, size_t n) {
    failures = 0;
    for (size_t i = 0; i < n; i++) {
        check(&calls[i]);
    }
    assert_int_equal(failures, 0);
}

#define CHECK(table) check_all((table), sizeof(table) / sizeof *(table))
