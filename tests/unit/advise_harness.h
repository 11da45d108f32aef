/* advise_harness.h — items and operations for the adviser, given as JSON. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "advise/advise.h"
#include "base/random.h"
#include "doc/json.h"

__attribute__((format(printf, 1, 0))) static inline buf bson_of(const char *format, va_list args, size_t *json_bytes) {
    buf text = buf_init(BUF_NO_LIMIT), bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    buf_addv(&text, format, args);
    assert_int_equal(json_to_bson(buf_view(&text), NULL, &bson, &root, NULL), OK);
    *json_bytes = text.n;
    buf_free(&text);
    return bson;
}

__attribute__((format(printf, 2, 3))) static inline void item(advise *a, const char *format, ...) {
    va_list args;
    size_t n;
    va_start(args, format);
    buf bson = bson_of(format, args, &n);
    va_end(args);
    advise_add_item(a, buf_view(&bson), n);
    buf_free(&bson);
}

__attribute__((format(printf, 2, 3))) static inline void operation(advise *a, const char *format, ...) {
    va_list args;
    size_t n;
    const char *why = "";
    va_start(args, format);
    buf bson = bson_of(format, args, &n);
    va_end(args);
    if (!advise_add_operation(a, buf_view(&bson), &why)) {
        fail_msg("%s", why);
    }
    buf_free(&bson);
}

static inline const advise_key *key_named(const advise_report *r, const char *name) {
    size_t i = 0;
    while (i < r->n && !slice_eq(r->keys[i]->name, slice_str(name))) {
        i++;
    }
    if (i == r->n) {
        fail_msg("no candidate %s", name); /* does not return */
    }
    return r->keys[i];
}

/* Prints the report if it is not what is expected, to show why. */
static inline void assert_recommends(const advise_report *r, const char *name) {
    if (!slice_eq(r->keys[0]->name, slice_str(name))) {
        buf text = buf_init(BUF_NO_LIMIT);
        advise_show(&text, r, 20);
        print_message("%.*s\n", (int)text.n, text.p);
        buf_free(&text);
        fail_msg("%.*s is recommended, not %s", (int)r->keys[0]->name.n, r->keys[0]->name.p, name);
    }
}
