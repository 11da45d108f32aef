/* Pipelines: many documents, limits of memory and steps, what the caller is told. Stages' behaviour is in tests/mql/pipeline-*.cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "extended_json.h"
#include "mql/pipeline.h"

enum { STEPS = 1000 * 1000 * 1000, SLOTS = 16 };

typedef struct world {
    arena arena;
    op op;
    mql_scope scope;
    mql_value slots[SLOTS];
    budget budget;
    uint64_t steps;
    size_t finds, found; /* lookups that were asked for, and documents given */
    size_t taken;
    slice last;
} world;

static int begin(void **state) {
    static world w;
    w = (world){.arena = arena_init(), .budget = budget_init(NULL, 256 << 20), .steps = STEPS};
    op_init(&w.op, &w.arena, 0);
    w.scope = mql_scope_of(&w.op, false);
    *state = &w;
    return 0;
}

static int end(void **state) {
    world *w = *state;
    assert_int_equal(w->budget.used, 0);
    arena_free(&w->arena);
    return 0;
}

static slice bson_of(world *w, const char *json) {
    return extended_json(&w->arena, json);
}

static const mql_pipeline *parsed(world *w, const char *json) {
    const mql_pipeline *p;
    slice wrapped = bson_of(w, arena_text(&w->arena, arena_printf(&w->arena, "{\"p\":%s}", json)));
    assert_int_equal(mql_pipeline_parse(&w->scope, mql_member(mql_document(wrapped), SLICE_LIT("p")).bytes, &p), OK);
    return p;
}

/* {_id: i, k: i % 1000, t: i * 7919 % n} */
static slice numbered(buf *out, arena *a, size_t i, size_t n) {
    buf_clear(out);
    mql_builder b = mql_build(out);
    mql_add(&b, SLICE_LIT("_id"), mql_int32(a, (int32_t)i));
    mql_add(&b, SLICE_LIT("k"), mql_int32(a, (int32_t)(i % 1000)));
    mql_add(&b, SLICE_LIT("t"), mql_int32(a, (int32_t)(i * 7919 % n)));
    return mql_built(&b);
}

static err answer_lookup(world *w, mql_flow *f, size_t n) {
    mql_lookup lookup;
    const mql_match *m;
    arena a = arena_init();
    buf out = buf_init(BUF_NO_LIMIT);
    mql_flow_lookup(f, &lookup);
    w->finds++;
    err e = mql_match_parse(&w->scope, lookup.filter, &m);
    for (size_t i = 0; e == OK && i < n; i++) {
        bool matches = false;
        mql_run r = {.op = &w->op, .arena = &a, .steps = STEPS, .root = mql_document(numbered(&out, &a, i, n))};
        e = mql_matches(&r, m, &matches, NULL);
        w->found += matches;
        e = e == OK && matches ? mql_flow_lookup_push(f, r.root.bytes) : e;
    }
    mql_flow_lookup_end(f);
    arena_free(&a);
    buf_free(&out);
    return e;
}

/* Runs the pipeline over n numbered documents, in pages of 100. */
static err run(world *w, const char *json, size_t n) {
    mql_flow *f = mql_flow_begin(parsed(w, json), 0, &w->budget);
    mql_run r = {.op = &w->op, .arena = &w->arena, .steps = w->steps, .variables = w->slots};
    arena a = arena_init();
    buf out = buf_init(BUF_NO_LIMIT);
    mql_need need = MQL_NEED_INPUT;
    size_t pushed = 0;
    err e = OK;
    while (e == OK && need != MQL_NEED_NOTHING) {
        e = mql_flow_step(f, &r, &need);
        if (e != OK) {
            break;
        }
        if (need == MQL_NEED_INPUT && pushed == n) {
            mql_flow_end(f);
        } else if (need == MQL_NEED_INPUT) {
            for (size_t i = 0; e == OK && i < 100 && pushed < n; i++) {
                e = mql_flow_push(f, numbered(&out, &a, pushed++, n));
            }
        } else if (need == MQL_NEED_LOOKUP) {
            e = answer_lookup(w, f, 1000);
        } else if (need == MQL_NEED_TAKE) {
            w->taken++;
            w->last = arena_copy(&w->arena, mql_flow_take(f));
        }
    }
    mql_flow_free(f);
    arena_free(&a);
    buf_free(&out);
    return e;
}

static int64_t last_number(world *w, const char *name) {
    int64_t number;
    assert_true(mql_as_integer(mql_member(mql_document(w->last), slice_str(name)), &number));
    return number;
}

static void top_k_of_many_needs_little_memory(void **state) {
    world *w = *state;
    w->budget.max = 2 << 20; /* all documents take 5 MB */
    assert_int_equal(run(w, "[{\"$sort\":{\"t\":-1}},{\"$skip\":2},{\"$limit\":3}]", 100000), OK);
    assert_int_equal(w->taken, 3);
    assert_int_equal(last_number(w, "t"), 100000 - 5);
}

static void a_sort_beyond_the_memory_fails(void **state) {
    world *w = *state;
    w->budget.max = 2 << 20;
    assert_int_equal(run(w, "[{\"$sort\":{\"t\":-1}}]", 100000), E_BAD_REQUEST);
    assert_int_equal(w->op.protocol_code, 292);
    assert_int_equal(w->taken, 0);
}

static void many_groups(void **state) {
    world *w = *state;
    assert_int_equal(run(w, "[{\"$group\":{\"_id\":\"$k\",\"n\":{\"$sum\":1},\"max\":{\"$max\":\"$t\"}}},{\"$sort\":{\"_id\":1}}]", 50000),
                     OK);
    assert_int_equal(w->taken, 1000);
    assert_int_equal(last_number(w, "_id"), 999);
    assert_int_equal(last_number(w, "n"), 50);
}

static void groups_beyond_the_memory_fail(void **state) {
    world *w = *state;
    w->budget.max = 1 << 20;
    assert_int_equal(run(w, "[{\"$group\":{\"_id\":\"$t\",\"n\":{\"$push\":\"$k\"}}}]", 100000), E_BAD_REQUEST);
    assert_int_equal(w->op.protocol_code, 292);
}

static void lookups_come_in_batches(void **state) {
    world *w = *state;
    assert_int_equal(run(w,
                         "[{\"$lookup\":{\"from\":\"o\",\"localField\":\"k\",\"foreignField\":\"_id\",\"as\":\"f\"}},{\"$unwind\":\"$f\"},"
                         "{\"$match\":{\"$expr\":{\"$eq\":[\"$k\",\"$f._id\"]}}}]",
                         3500),
                     OK);
    assert_int_equal(w->taken, 3500);
    assert_int_equal(w->finds, 4); /* of 1000 documents at most */
    assert_int_equal(w->found, 3500);
}

static void steps_end_a_pipeline(void **state) {
    world *w = *state;
    w->steps = 1000;
    assert_int_equal(run(w, "[{\"$match\":{\"k\":5}}]", 100000), E_QUERY_TOO_LONG);
}

static void a_limit_ends_the_reading(void **state) {
    world *w = *state;
    w->steps = 10000;
    assert_int_equal(run(w, "[{\"$project\":{\"k\":1}},{\"$limit\":5}]", 100000), OK);
    assert_int_equal(w->taken, 5);
}

static void unwinding_a_long_array_needs_little_memory(void **state) {
    world *w = *state;
    w->budget.max = 4 << 20;
    assert_int_equal(run(w,
                         "[{\"$limit\":1},{\"$set\":{\"a\":{\"$range\":[0,20000]},\"b\":{\"$range\":[0,1000]}}},{\"$unwind\":\"$a\"},"
                         "{\"$unwind\":\"$b\"},{\"$limit\":20000},{\"$count\":\"n\"}]",
                         10),
                     OK);
    assert_int_equal(last_number(w, "n"), 20000);
}

/* ---- what the caller is told ---- */

static void the_target_of_merge(void **state) {
    world *w = *state;
    mql_target t;
    const mql_pipeline *p =
        parsed(w, "[{\"$merge\":{\"into\":{\"db\":\"d\",\"coll\":\"c\"},\"on\":[\"a\",\"b\"],\"let\":{\"x\":\"$n\"},"
                  "\"whenMatched\":[{\"$set\":{\"n\":{\"$add\":[\"$n\",\"$$new.n\",\"$$x\"]}}}],\"whenNotMatched\":\"fail\"}}]");
    mql_pipeline_target(p, &t);
    assert_int_equal(t.kind, MQL_TARGET_MERGE);
    assert_true(slice_eq(t.database, SLICE_LIT("d")) && slice_eq(t.collection, SLICE_LIT("c")));
    assert_int_equal(t.on_n, 2);
    assert_true(slice_eq(t.on[1], SLICE_LIT("b")));
    assert_int_equal(t.when_matched, MQL_MATCHED_PIPELINE);
    assert_int_equal(t.when_not_matched, MQL_NOT_MATCHED_FAIL);
    assert_true(w->scope.slots <= SLOTS);
    mql_run r = {.op = &w->op, .arena = &w->arena, .steps = STEPS, .variables = w->slots};
    mql_updated updated;
    assert_int_equal(mql_target_bind(&r, p, bson_of(w, "{\"n\":10}")), OK);
    r.root = mql_document(bson_of(w, "{\"_id\":1,\"n\":5}"));
    assert_int_equal(mql_update_apply(&r, t.update, &updated), OK);
    assert_true(slice_eq(updated.document, bson_of(w, "{\"_id\":1,\"n\":25}")));
}

static void the_target_by_default(void **state) {
    world *w = *state;
    mql_target t;
    mql_pipeline_target(parsed(w, "[{\"$merge\":\"c\"}]"), &t);
    assert_true(t.on_n == 1 && slice_eq(t.on[0], SLICE_LIT("_id")));
    assert_true(t.when_matched == MQL_MATCHED_MERGE && t.when_not_matched == MQL_NOT_MATCHED_INSERT);
    mql_pipeline_target(parsed(w, "[{\"$out\":\"c\"}]"), &t);
    assert_int_equal(t.kind, MQL_TARGET_OUT);
    mql_pipeline_target(parsed(w, "[{\"$match\":{}}]"), &t);
    assert_int_equal(t.kind, MQL_TARGET_NONE);
}

static void count_collection(void *context, slice collection) {
    (void)collection;
    ++*(int *)context;
}

static void collections_of_sub_pipelines(void **state) {
    world *w = *state;
    int n = 0;
    mql_pipeline_collections(parsed(w, "[{\"$lookup\":{\"from\":\"a\",\"as\":\"x\",\"pipeline\":[{\"$unionWith\":{\"coll\":\"b\"}}]}},"
                                       "{\"$facet\":{\"f\":[{\"$graphLookup\":{\"from\":\"c\",\"startWith\":1,\"connectFromField\":\"a\","
                                       "\"connectToField\":\"b\",\"as\":\"c\"}}]}}]"),
                             count_collection, &n);
    assert_int_equal(n, 3);
}

static void sources_of_the_front_end(void **state) {
    world *w = *state;
    mql_source source;
    size_t stages;
    assert_int_equal(mql_pipeline_source(&w->scope,
                                         parsed(w, "[{\"$changeStream\":{\"fullDocument\":\"updateLookup\"}},{\"$match\":{\"a\":1}}]"),
                                         &source, &stages),
                     OK);
    assert_int_equal(source.kind, MQL_SOURCE_CHANGE_STREAM);
    assert_int_equal(mql_length(source.argument), 1);
    assert_int_equal(stages, 0);
    assert_int_equal(mql_pipeline_source(&w->scope, parsed(w, "[{\"$documents\":[]}]"), &source, &stages), OK);
    assert_int_equal(source.kind, MQL_SOURCE_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(top_k_of_many_needs_little_memory, begin, end),
        cmocka_unit_test_setup_teardown(a_sort_beyond_the_memory_fails, begin, end),
        cmocka_unit_test_setup_teardown(many_groups, begin, end),
        cmocka_unit_test_setup_teardown(groups_beyond_the_memory_fail, begin, end),
        cmocka_unit_test_setup_teardown(lookups_come_in_batches, begin, end),
        cmocka_unit_test_setup_teardown(steps_end_a_pipeline, begin, end),
        cmocka_unit_test_setup_teardown(a_limit_ends_the_reading, begin, end),
        cmocka_unit_test_setup_teardown(unwinding_a_long_array_needs_little_memory, begin, end),
        cmocka_unit_test_setup_teardown(the_target_of_merge, begin, end),
        cmocka_unit_test_setup_teardown(the_target_by_default, begin, end),
        cmocka_unit_test_setup_teardown(collections_of_sub_pipelines, begin, end),
        cmocka_unit_test_setup_teardown(sources_of_the_front_end, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
