/* Updates: laws over random documents, and limits of size, depth, steps and memory. The operators' behaviour is in
 * tests/mql/update-*.cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "extended_json.h"
#include "mql/update.h"
#include "rounds.h"

enum { STEPS = 1000 * 1000 * 1000 };

typedef struct world {
    arena arena;
    budget budget;
    op op;
    random_source random;
} world;

static int begin(void **state) {
    static world w;
    w.budget = budget_init(NULL, 256 << 20);
    w.arena = arena_init_counted(&w.budget);
    op_init(&w.op, &w.arena, 0);
    random_seed(&w.random, 7);
    *state = &w;
    return 0;
}

static int end(void **state) {
    arena_free(&((world *)*state)->arena);
    return 0;
}

static slice bson_of(world *w, const char *json) {
    return extended_json(&w->arena, json);
}

static err apply(world *w, const char *update, slice document, uint64_t steps, mql_updated *updated) {
    mql_scope s = mql_scope_of(&w->op, false);
    const mql_update *u;
    mql_update_spec spec = {.update = mql_document(bson_of(w, update))};
    mql_run r = {.op = &w->op, .arena = &w->arena, .steps = steps, .root = mql_document(document), .now_ms = 1};
    TRY(mql_update_parse(&s, &spec, &u));
    return mql_update_apply(&r, u, updated);
}

static slice applied(world *w, const char *update, slice document) {
    mql_updated updated;
    assert_int_equal(apply(w, update, document, STEPS, &updated), OK);
    return updated.document;
}

static const char *text(world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *text(world *w, const char *format, ...) {
    char made[512];
    va_list args;
    va_start(args, format);
    vsnprintf(made, sizeof made, format, args);
    va_end(args);
    return arena_text(&w->arena, slice_str(made));
}

/* A document with numbers, texts, arrays and documents at few names, so that updates meet them. */
static slice random_document(world *w) {
    char json[512];
    int n = 0;
    n += snprintf(json, sizeof json, "{\"_id\":1");
    for (char name = 'a'; name <= 'e'; name++) {
        int k = (int)random_below(&w->random, 100) - 50;
        switch (random_below(&w->random, 5)) {
        case 0:
            n += snprintf(json + n, sizeof json - (size_t)n, ",\"%c\":%d", name, k);
            break;
        case 1:
            n += snprintf(json + n, sizeof json - (size_t)n, ",\"%c\":[%d,%d,{\"a\":%d}]", name, k, k + 1, k);
            break;
        case 2:
            n += snprintf(json + n, sizeof json - (size_t)n, ",\"%c\":{\"a\":%d,\"b\":[%d]}", name, k, k);
            break;
        case 3:
            n += snprintf(json + n, sizeof json - (size_t)n, ",\"%c\":\"x%d\"", name, k);
            break;
        default:
            break;
        }
    }
    snprintf(json + n, sizeof json - (size_t)n, "}");
    return bson_of(w, json);
}

static void twice_is_the_sum(void **state) {
    world *w = *state;
    for (int i = 0; i < ROUNDS(300); i++) {
        int x = (int)random_below(&w->random, 1000), y = (int)random_below(&w->random, 1000);
        slice start = bson_of(w, text(w, "{\"a\":%d}", (int)random_below(&w->random, 1000)));
        slice twice = applied(w, text(w, "{\"$inc\":{\"a\":%d}}", y), applied(w, text(w, "{\"$inc\":{\"a\":%d}}", x), start));
        assert_true(slice_eq(twice, applied(w, text(w, "{\"$inc\":{\"a\":%d}}", x + y), start)));
    }
}

static void set_and_unset_leave_no_trace(void **state) {
    world *w = *state;
    for (int i = 0; i < ROUNDS(300); i++) {
        slice document = random_document(w);
        slice set = applied(w, "{\"$set\":{\"new\":{\"x\":[1]}}}", document);
        assert_true(slice_eq(document, applied(w, "{\"$unset\":{\"new\":1}}", set)));
    }
}

static void state_setting_is_idempotent(void **state) {
    static const char *const updates[] = {
        "{\"$set\":{\"a\":5,\"f.g\":1}}", "{\"$unset\":{\"a\":1,\"b.a\":1}}", "{\"$min\":{\"a\":3}}",
        "{\"$max\":{\"c\":[1]}}",         "{\"$pull\":{\"zz\":1}}",           "{\"$addToSet\":{\"h\":{\"$each\":[1,2]}}}",
    };
    world *w = *state;
    for (int i = 0; i < ROUNDS(600); i++) {
        const char *update = updates[random_below(&w->random, sizeof updates / sizeof *updates)];
        mql_updated again;
        slice once = applied(w, update, random_document(w));
        assert_int_equal(apply(w, update, once, STEPS, &again), OK);
        assert_false(again.modified);
        assert_true(slice_eq(again.document, once));
    }
}

static void push_and_pop_leave_no_trace(void **state) {
    world *w = *state;
    slice document = bson_of(w, "{\"a\":[1,{\"b\":2}]}");
    assert_true(slice_eq(document, applied(w, "{\"$pop\":{\"a\":1}}", applied(w, "{\"$push\":{\"a\":\"x\"}}", document))));
    slice front = applied(w, "{\"$push\":{\"a\":{\"$each\":[9],\"$position\":0}}}", document);
    assert_true(slice_eq(document, applied(w, "{\"$pop\":{\"a\":-1}}", front)));
}

static void a_rename_there_and_back(void **state) {
    world *w = *state;
    slice document = bson_of(w, "{\"_id\":1,\"b\":2,\"a\":{\"x\":1}}");
    assert_true(slice_eq(document, applied(w, "{\"$rename\":{\"z\":\"a\"}}", applied(w, "{\"$rename\":{\"a\":\"z\"}}", document))));
}

/* ---- limits ---- */

static void sixteen_megabytes_are_the_limit(void **state) {
    world *w = *state;
    enum { BYTES = 10 << 20 };
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    char *big = calloc(1, BYTES);
    memset(big, 'x', BYTES - 1);
    mql_add(&b, SLICE_LIT("a"), mql_text(&w->arena, slice_of(big, BYTES - 1)));
    slice document, update;
    assert_true(mql_keep(&w->arena, &b, &document));
    buf_clear(&out);
    b = mql_build(&out);
    mql_open(&b, SLICE_LIT("$set"), BSON_TYPE_DOCUMENT);
    mql_add(&b, SLICE_LIT("b"), mql_text(&w->arena, slice_of(big, BYTES - 1)));
    mql_close(&b);
    assert_true(mql_keep(&w->arena, &b, &update));
    mql_scope s = mql_scope_of(&w->op, false);
    const mql_update *u;
    mql_updated updated;
    mql_run r = {.op = &w->op, .arena = &w->arena, .steps = STEPS, .root = mql_document(document), .now_ms = 1};
    assert_int_equal(mql_update_parse(&s, &(mql_update_spec){.update = mql_document(update)}, &u), OK);
    assert_int_equal(mql_update_apply(&r, u, &updated), E_BAD_REQUEST);
    assert_int_equal(w->op.protocol_code, 17419);
    free(big);
    buf_free(&out);
}

static const char *nested(world *w, const char *before, unsigned depth, const char *after) {
    char json[2048];
    int n = snprintf(json, sizeof json, "%s", before);
    for (unsigned i = 0; i < depth; i++) {
        n += snprintf(json + n, sizeof json - (size_t)n, "{\"a\":");
    }
    n += snprintf(json + n, sizeof json - (size_t)n, "1");
    for (unsigned i = 0; i < depth; i++) {
        n += snprintf(json + n, sizeof json - (size_t)n, "}");
    }
    snprintf(json + n, sizeof json - (size_t)n, "%s", after);
    return arena_text(&w->arena, slice_str(json));
}

static void nesting_is_limited(void **state) {
    world *w = *state;
    mql_updated updated;
    slice deep = applied(w, nested(w, "{\"$set\":{\"x\":", 90, "}}"), bson_of(w, "{}"));
    deep = applied(w, nested(w, "{\"$set\":{\"y\":", 89, "}}"), deep);
    char path[512] = "x";
    for (int i = 0; i < 89; i++) {
        strcat(path, ".a");
    }
    const char *update = nested(w, text(w, "{\"$set\":{\"%s\":", path), 95, "}}");
    assert_int_equal(apply(w, update, deep, STEPS, &updated), E_BAD_REQUEST);
    assert_int_equal(w->op.protocol_code, 15);
}

static void steps_are_paid(void **state) {
    world *w = *state;
    mql_updated updated;
    slice document = bson_of(w, "{\"a\":[]}");
    assert_int_equal(apply(w, "{\"$set\":{\"a.400000\":1}}", document, 1000, &updated), E_QUERY_TOO_LONG);
    assert_int_equal(apply(w, "{\"$set\":{\"a.400\":1}}", document, 100000, &updated), OK);
}

static void memory_is_counted(void **state) {
    world *w = *state;
    mql_updated updated;
    slice document = bson_of(w, "{\"a\":[]}");
    w->budget.max = w->budget.used + (1 << 20);
    assert_int_equal(apply(w, "{\"$set\":{\"a.1000000\":1}}", document, STEPS, &updated), E_MEMORY);
    assert_true(w->budget.overrun < 64 * 1024);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(twice_is_the_sum, begin, end),
        cmocka_unit_test_setup_teardown(set_and_unset_leave_no_trace, begin, end),
        cmocka_unit_test_setup_teardown(state_setting_is_idempotent, begin, end),
        cmocka_unit_test_setup_teardown(push_and_pop_leave_no_trace, begin, end),
        cmocka_unit_test_setup_teardown(a_rename_there_and_back, begin, end),
        cmocka_unit_test_setup_teardown(sixteen_megabytes_are_the_limit, begin, end),
        cmocka_unit_test_setup_teardown(nesting_is_limited, begin, end),
        cmocka_unit_test_setup_teardown(steps_are_paid, begin, end),
        cmocka_unit_test_setup_teardown(memory_is_counted, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
