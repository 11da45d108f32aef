/* Expressions: parsing, paths, variables, folding and limits. The operators have their cases in tests/mql. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mql/accumulator.h"
#include "mql/expression_int.h"
#include "mql_harness.h"

static void literals_and_objects(void **state) {
    (void)state;
    expect("{}", "1", "1");
    expect("{}", "'a'", "'a'");
    expect("{'a': 2}", "{'x': '$a', 'y': '$b', 'z': [1, '$a', '$b']}", "{'x': 2, 'z': [1, 2, null]}");
    expect("{}", "{'$literal': '$a'}", "'$a'");
    expect("{}", "{'$literal': {'$add': [1, 2]}}", "{'$add': [1, 2]}");
    expect_error("{}", "{'a': 1, 'a': 2}", 16406);
    expect_error("{}", "{'a.b': 1}", 16412);
    expect_error("{}", "{'': 1}", 15998);
    expect_error("{}", "{'a': 1, '$b': 2}", 16410);
    expect_error("{}", "{'$eq': [1, 2], 'b': 2}", 15983);
    expect_error("{}", "{'$foo': 1}", 168);
}

static void paths_go_through_arrays(void **state) {
    (void)state;
    expect("{'a': {'b': {'c': 3}}}", "'$a.b.c'", "3");
    expect("{'a': 1}", "'$a.b'", NULL);
    expect("{'a': [{'b': 1}, {'b': 2}, 3, {'c': 4}, [{'b': 5}]]}", "'$a.b'", "[1, 2]");
    expect("{'a': [{'b': [{'c': 1}]}, {'b': [{'c': 2}, {'c': 3}]}]}", "'$a.b.c'", "[[1], [2, 3]]");
    expect("{'a': [10, 20]}", "'$a.0'", "[]");
    expect("{'a': {'0': 5}}", "'$a.0'", "5");
    expect_error("{}", "'$'", 16872);
    expect_error("{}", "'$a.'", 40353);
    expect_error("{}", "'$a..b'", 15998);
    expect_error("{}", "'$a.$b'", 16410);
}

static void variables(void **state) {
    (void)state;
    expect("{'a': 1}", "'$$ROOT'", "{'a': 1}");
    expect("{'a': {'b': 1}}", "'$$CURRENT.a.b'", "1");
    expect("{'a': 1}", "{'x': '$$REMOVE', 'y': 1}", "{'y': 1}");
    expect("{}", "['$$KEEP', '$$PRUNE', '$$DESCEND']", "['keep', 'prune', 'descend']");
    expect("{'a': 5}", "{'$let': {'vars': {'x': '$a', 'y': 7}, 'in': ['$$x', '$$y', '$$ROOT.a']}}", "[5, 7, 5]");
    expect("{'a': {'b': 1}}", "{'$let': {'vars': {'CURRENT': '$a'}, 'in': '$b'}}", "1");
    expect("{}", "{'$let': {'vars': {'x': 1}, 'in': {'$let': {'vars': {'x': 2, 'y': '$$x'}, 'in': ['$$x', '$$y']}}}}", "[2, 1]");
    expect_error("{}", "'$$nowhere'", 17276);
    expect_error("{}", "{'$let': {'vars': {'x': 1}, 'in': 1}, 'b': 1}", 15983);
    expect_error("{}", "{'$let': {'vars': {'X': 1}, 'in': 1}}", 9);
    expect_error("{}", "{'$let': {'vars': {'x-y': 1}, 'in': 1}}", 9);
    expect_error("{}", "'$$'", 9);
    expect_error("{}", "'$$CLUSTER_TIME'", 51144);
    expect_error("{}", "{'$let': {'vars': {'x': 1}, 'in': 1, 'on': 1}}", 16875);
    expect_error("{}", "{'$let': {'in': 1}}", 16876);
    expect_error("{}", "{'$let': 1}", 16874);
}

static void loops(void **state) {
    (void)state;
    expect("{'a': [1, 2, 3]}", "{'$map': {'input': '$a', 'in': ['$$this']}}", "[[1], [2], [3]]");
    expect("{'a': [1, 2, 3]}", "{'$map': {'input': '$a', 'as': 'x', 'in': '$nothing'}}", "[null, null, null]");
    expect("{}", "{'$map': {'input': '$a', 'in': 1}}", "null");
    expect("{'a': [1, 5, 2, 7]}", "{'$filter': {'input': '$a', 'cond': {'$gt': ['$$this', 1]}}}", "[5, 2, 7]");
    expect("{'a': [1, 5, 2, 7]}", "{'$filter': {'input': '$a', 'as': 'x', 'cond': {'$gt': ['$$x', 1]}, 'limit': 2}}", "[5, 2]");
    expect("{'a': [1, 2]}", "{'$reduce': {'input': '$a', 'initialValue': [], 'in': ['$$value', '$$this']}}", "[[[], 1], 2]");
    expect("{'a': []}", "{'$reduce': {'input': '$a', 'initialValue': 'x', 'in': 1}}", "'x'");
    expect_error("{'a': 1}", "{'$map': {'input': '$a', 'in': 1}}", 16883);
    expect_error("{'a': 1}", "{'$filter': {'input': '$a', 'cond': 1}}", 28651);
    expect_error("{'a': 1}", "{'$reduce': {'input': '$a', 'initialValue': 1, 'in': 1}}", 40080);
    expect_error("{'a': [1]}", "{'$filter': {'input': '$a', 'cond': 1, 'limit': 0}}", 327392);
}

static void choices(void **state) {
    (void)state;
    expect("{'a': 1}", "{'$cond': [{'$eq': ['$a', 1]}, 'yes', 'no']}", "'yes'");
    expect("{'a': 2}", "{'$cond': {'if': {'$eq': ['$a', 1]}, 'then': 'yes', 'else': 'no'}}", "'no'");
    expect("{'a': 2}", "{'$switch': {'branches': [{'case': {'$eq': ['$a', 2]}, 'then': 'two'}], 'default': 'd'}}", "'two'");
    expect("{'a': 3}", "{'$switch': {'branches': [{'case': {'$eq': ['$a', 2]}, 'then': 'two'}], 'default': 'd'}}", "'d'");
    expect_error("{'a': 3}", "{'$switch': {'branches': [{'case': {'$eq': ['$a', 2]}, 'then': 'two'}]}}", 40066);
    expect("{'b': null}", "{'$ifNull': ['$a', '$b', 4]}", "4");
    expect("{'b': null}", "{'$ifNull': ['$a', '$b']}", "null");
    expect_error("{}", "{'$ifNull': [1]}", 1257300);
    expect_error("{}", "{'$cond': [1, 2]}", 16020);
    expect_error("{}", "{'$cond': {'if': 1, 'then': 2}}", 17082);
    expect_error("{}", "{'$eq': [1, 2, 3]}", 16020);
    expect("{'a': 0}", "{'$and': [true, 1, '$a']}", "false");
    expect("{'a': 0}", "{'$or': [false, null, '$a', 'x']}", "true");
    expect("{}", "{'$and': []}", "true");
    expect("{}", "{'$or': []}", "false");
    expect("{}", "{'$not': [null]}", "true");
    expect("{}", "{'$cmp': [1, 'a']}", "-1");
    expect("{}", "{'$lt': ['$missing', null]}", "true");
}

static void constants_are_folded(void **state) {
    (void)state;
    mql_value v;
    world w;
    world_open(&w);
    const mql_expression *e = parse(&w, "{'$cond': [{'$eq': [1, 1]}, ['a', {'b': 1}], '$x']}");
    assert_false(mql_expression_constant(e, &v));
    e = parse(&w, "{'$cond': [{'$eq': [1, 1]}, ['a', {'b': 1}], 2]}");
    assert_true(mql_expression_constant(e, &v));
    assert_int_equal(v.type, BSON_TYPE_ARRAY);
    e = parse(&w, "{'$rand': {}}");
    assert_false(mql_expression_constant(e, &v));
    e = parse(&w, "{'$cond': [false, {'$switch': {'branches': [{'case': false, 'then': 1}]}}, 2]}");
    assert_true(mql_evaluate(&w.run, e, &v) == OK); /* an error in a branch that is not evaluated does not count */
    world_close(&w);
}

static void note(void *context, slice path) {
    buf *out = context;
    buf_addf(out, "[%.*s]", (int)path.n, path.p);
}

static void paths_are_listed(void **state) {
    (void)state;
    world w;
    buf out = buf_init(BUF_NO_LIMIT);
    world_open(&w);
    const mql_expression *e = parse(&w, "{'$map': {'input': '$a.b', 'in': {'x': '$$this.c', 'y': '$d', 'z': '$$ROOT'}}}");
    mql_expression_paths(e, note, &out);
    buf_add_byte(&out, 0);
    assert_string_equal(out.p, "[a.b][d][]");
    assert_true(slice_eq(mql_expression_path(parse(&w, "'$a.b'")), SLICE_LIT("a.b")));
    assert_int_equal(mql_expression_path(parse(&w, "'$$NOW'")).n, 0);
    buf_free(&out);
    world_close(&w);
}

/* {$not: {$not: … "$a"}}, n levels deep. */
static mql_value nested(arena *a, int n) {
    mql_value v = mql_text(a, SLICE_LIT("$a"));
    for (int i = 0; i < n; i++) {
        buf out = buf_init(BUF_NO_LIMIT);
        mql_builder b = mql_build(&out);
        mql_add(&b, SLICE_LIT("$not"), v);
        assert_true(mql_keep(a, &b, &v.bytes));
        v.type = BSON_TYPE_DOCUMENT;
        buf_free(&out);
    }
    return v;
}

static void depth_is_limited(void **state) {
    (void)state;
    world w;
    mql_value v;
    const mql_expression *e;
    world_open(&w);
    assert_int_equal(mql_expression_parse(&w.scope, nested(&w.parsing, 151), &e), OK);
    assert_int_equal(mql_evaluate(&w.run, e, &v), OK);
    assert_true(mql_truth(v));
    assert_int_equal(mql_expression_parse(&w.scope, nested(&w.parsing, MQL_DEPTH_MAX), &e), E_BAD_REQUEST);
    assert_int_equal(w.op.protocol_code, 15);
    world_close(&w);
}

static void nesting_of_values_is_limited(void **state) {
    (void)state;
    expect_error("{}", "{'$reduce': {'input': {'$range': [0, 1000]}, 'initialValue': {}, 'in': {'a': '$$value'}}}", 15);
    expect_error("{}", "{'$reduce': {'input': {'$range': [0, 1000]}, 'initialValue': 1, 'in': ['$$value']}}", 15);
}

static void steps_are_limited(void **state) {
    (void)state;
    world w;
    mql_value v;
    world_open(&w);
    const mql_expression *e = parse(&w, "{'$and': ['$a', '$b', '$c']}");
    w.run.steps = 3;
    assert_int_equal(mql_evaluate(&w.run, e, &v), E_QUERY_TOO_LONG);
    world_close(&w);
}

/* ---- memory ---- */

static const char thousand[] =
    "{'$reduce': {'input': {'$range': [0, 10]}, 'initialValue': 'x', 'in': {'$concat': ['$$value', '$$value']}}}";

static void results_are_limited(void **state) {
    (void)state;
    expect_error("{}", "{'$reduce': {'input': {'$range': [0, 40]}, 'initialValue': 'x', 'in': {'$concat': ['$$value', '$$value']}}}",
                 10334);
    expect_error("{}", "{'$reduce': {'input': {'$range': [0, 40]}, 'initialValue': [1], 'in': {'$concatArrays': ['$$value', '$$value']}}}",
                 10334);
    expect_error("{}", "{'$reduce': {'input': {'$range': [0, 40]}, 'initialValue': {}, 'in': {'a': '$$value', 'b': '$$value'}}}", 10334);
    /* a thousand letters for one, so that few replacements are needed: AddressSanitizer checks the rest of the text at each */
    char text[1024];
    snprintf(text, sizeof text,
             "{'$reduce': {'input': {'$range': [0, 3]}, 'initialValue': 'x', "
             "'in': {'$replaceAll': {'input': '$$value', 'find': 'x', 'replacement': %s}}}}",
             thousand);
    expect_error("{}", text, 10334);
}

/* With a budget of 1 MB. Afterwards all memory was given back. */
static err evaluate_within(const char *text, bool *true_out) {
    world w;
    mql_value v = mql_null();
    budget memory = budget_init(NULL, 1024 * 1024);
    world_open(&w);
    const mql_expression *e = parse(&w, text);
    w.running = arena_init_counted(&memory);
    err code = mql_evaluate(&w.run, e, &v);
    *true_out = mql_truth(v);
    assert_true(memory.overrun <= 64 * 1024);
    world_close(&w);
    assert_int_equal(memory.used, 0);
    return code;
}

static void memory_is_counted(void **state) {
    (void)state;
    char text[1024];
    bool truth;
    /* 20000 times a kilobyte, which is freed each time */
    snprintf(text, sizeof text, "{'$eq': [20480000, {'$sum': {'$map': {'input': {'$range': [0, 20000]}, 'in': {'$strLenCP': %s}}}}]}",
             thousand);
    assert_int_equal(evaluate_within(text, &truth), OK);
    assert_true(truth);
    /* and kept */
    snprintf(text, sizeof text, "{'$map': {'input': {'$range': [0, 20000]}, 'in': %s}}", thousand);
    assert_int_equal(evaluate_within(text, &truth), E_MEMORY);
    snprintf(text, sizeof text,
             "{'$reduce': {'input': {'$range': [0, 40]}, 'initialValue': 'x', 'in': {'$concat': ['$$value', '$$value']}}}");
    assert_int_equal(evaluate_within(text, &truth), E_MEMORY);
    assert_int_equal(evaluate_within("{'$sortArray': {'input': {'$range': [0, 60000]}, 'sortBy': 1}}", &truth), E_MEMORY);
}

static void tally_memory_is_counted(void **state) {
    (void)state;
    static const char *const accumulators[] = {"{'$push': '$a'}", "{'$addToSet': '$a'}", "{'$lastN': {'n': 100000, 'input': '$a'}}"};
    for (size_t i = 0; i < 3; i++) {
        world w;
        budget memory = budget_init(NULL, 1024 * 1024);
        arena tallies = arena_init_counted(&memory);
        const mql_accumulator *a;
        err code = OK;
        world_open(&w);
        mql_value text = read_value(&w, accumulators[i]);
        assert_int_equal(mql_accumulator_parse(&w.scope, text, &a), OK);
        mql_tally *t = mql_tally_begin(&tallies, a);
        for (int n = 0; n < 100000 && code == OK; n++) {
            buf out = buf_init(BUF_NO_LIMIT);
            mql_builder b = mql_build(&out);
            mql_add(&b, SLICE_LIT("a"), mql_int32(&w.running, n));
            w.run.root = mql_document(mql_built(&b));
            code = mql_tally_add(&w.run, t);
            buf_free(&out);
            arena_reset(&w.running);
        }
        assert_int_equal(code, E_MEMORY);
        assert_true(memory.overrun <= 64 * 1024);
        mql_tally_free(t);
        arena_free(&tallies);
        assert_int_equal(memory.used, 0);
        world_close(&w);
    }
}

static void names_in_the_table_are_unique(void **state) {
    (void)state;
    const mql__operator *row;
    for (size_t i = 0; (row = mql__operator_at(i)); i++) {
        assert_true(row->name[0] == '$' && (row->function || row->parse));
        assert_ptr_equal(mql__operator_find(slice_str(row->name)), row);
    }
}

/* MongoDB 7's operators; those after the bar are not offered by Azure's service. */
static const char operators[] =
    "abs acos acosh add allElementsTrue and anyElementTrue arrayElemAt arrayToObject asin asinh atan atan2 atanh avg ceil cmp concat "
    "concatArrays cond const convert cos cosh dateFromParts dateFromString dateToParts dateToString dayOfMonth dayOfWeek dayOfYear "
    "degreesToRadians divide eq exp filter floor gt gte hour ifNull in indexOfArray indexOfBytes indexOfCP isArray isoDayOfWeek isoWeek "
    "isoWeekYear let literal ln log log10 lt lte ltrim map max mergeObjects millisecond min minute mod month multiply ne not "
    "objectToArray or pow radiansToDegrees range reduce regexFind regexFindAll regexMatch reverseArray round rtrim second setDifference "
    "setEquals setIntersection setIsSubset setUnion sin sinh size slice split sqrt stdDevPop stdDevSamp strLenBytes strLenCP strcasecmp "
    "substr substrBytes substrCP subtract sum switch tan tanh toBool toDate toDecimal toDouble toInt toLong toLower toObjectId toString "
    "toUpper trim trunc type week year zip | accumulator binarySize bitAnd bitNot bitOr bitXor bsonSize dateAdd dateDiff dateSubtract "
    "dateTrunc first firstN function getField isNumber last lastN maxN median meta minN percentile rand replaceAll replaceOne setField "
    "sortArray toHashedIndexKey tsIncrement tsSecond unsetField";

static void all_operators_are_there(void **state) {
    (void)state;
    char text[sizeof operators], name[64], *rest;
    bool service = true;
    size_t n = 0;
    memcpy(text, operators, sizeof operators);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (word[0] == '|') {
            service = false;
            continue;
        }
        snprintf(name, sizeof name, "$%s", word);
        const mql__operator *row = mql__operator_find(slice_str(name));
        if (!row || !(row->flags & MQL__SERVICE) != !service) {
            fail_msg("%s", name);
        }
        n++;
    }
    assert_null(mql__operator_at(n)); /* and no others */
}

/* {$let: {vars: {a0: 1, a1: 1, …}, in: 1}} */
static void variables_in_scope_are_limited(void **state) {
    (void)state;
    for (int n = MQL__VISIBLE_MAX; n <= MQL__VISIBLE_MAX + 1; n++) {
        buf text = buf_init(BUF_NO_LIMIT);
        world w;
        const mql_expression *e;
        buf_addf(&text, "{'$let': {'vars': {'x': 1");
        for (int i = 1; i < n; i++) {
            buf_addf(&text, ", 'a%d': 1", i);
        }
        buf_addf(&text, "}, 'in': 1}}");
        buf_add_byte(&text, 0);
        world_open(&w);
        assert_int_equal(mql_expression_parse(&w.scope, read_value(&w, text.p), &e), n == MQL__VISIBLE_MAX ? OK : E_BAD_REQUEST);
        world_close(&w);
        buf_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(literals_and_objects),
        cmocka_unit_test(paths_go_through_arrays),
        cmocka_unit_test(variables),
        cmocka_unit_test(loops),
        cmocka_unit_test(choices),
        cmocka_unit_test(constants_are_folded),
        cmocka_unit_test(paths_are_listed),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(nesting_of_values_is_limited),
        cmocka_unit_test(steps_are_limited),
        cmocka_unit_test(results_are_limited),
        cmocka_unit_test(memory_is_counted),
        cmocka_unit_test(tally_memory_is_counted),
        cmocka_unit_test(all_operators_are_there),
        cmocka_unit_test(variables_in_scope_are_limited),
        cmocka_unit_test(names_in_the_table_are_unique),
    };
    return cmocka_run_group_tests_name("mql_expression", tests, NULL, NULL);
}
