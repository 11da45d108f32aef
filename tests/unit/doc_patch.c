/* Patches: each case has a document, operations, and the expected document or error message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/limits.h"
#include "doc/json.h"
#include "doc/patch.h"
#include "random_document.h"

static buf to_bson(const char *text) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_error why = {0};
    if (json_to_bson(slice_str(text), NULL, &bson, NULL, &why) != OK) {
        fail_msg("%s: %s at %zu", text, why.reason, why.offset);
    }
    return bson;
}

static err run(op *o, const char *document, const char *operations, buf *out) {
    buf bson = to_bson(document);
    buf request = to_bson(operations);
    patch p;
    err code = patch_parse(o, buf_view(&request), &p);
    if (code == OK) {
        code = patch_apply(o, &p, buf_view(&bson), out);
    }
    buf_free(&bson);
    buf_free(&request);
    return code;
}

/* `expected` is the new document if it begins with a brace, otherwise the error message or a prefix of it. */
static void assert_patch(const char *document, const char *operations, const char *expected) {
    arena a = arena_init();
    op o;
    op_init(&o, &a, 0);
    buf out = buf_init(BUF_NO_LIMIT), text = buf_init(BUF_NO_LIMIT);
    err code = run(&o, document, operations, &out);
    o.detail[o.detail_n] = 0;
    if (code == OK) {
        bson_t b;
        assert_true(bson_init_static(&b, (const uint8_t *)out.p, out.n));
        assert_true(bson_validate(&b, BSON_VALIDATE_NONE, NULL) || memmem(out.p, out.n, "\xC0\x80", 2));
        json_from_bson(&text, buf_view(&out));
        buf_add_byte(&text, 0);
        if (strcmp(text.p, expected) != 0) {
            fail_msg("%s %s\nbecame   %s\nexpected %s", document, operations, text.p, expected);
        }
    } else {
        assert_int_equal(code, E_BAD_REQUEST);
        assert_int_equal(out.n, 0);
        if (expected[0] == '{' || strncmp(o.detail, expected, strlen(expected)) != 0) {
            fail_msg("%s %s\nfailed with %s\nexpected    %s", document, operations, o.detail, expected);
        }
    }
    buf_free(&out);
    buf_free(&text);
    arena_free(&a);
}

typedef struct patch_case {
    const char *document;
    const char *operations;
    const char *expected;
} patch_case;

static void assert_cases(const patch_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        assert_patch(cases[i].document, cases[i].operations, cases[i].expected);
    }
}
#define ASSERT_CASES(cases) assert_cases(cases, sizeof(cases) / sizeof *(cases))

static void add(void **state) {
    (void)state;
    static const patch_case cases[] = {
        {"{\"id\":\"1\"}", "[{\"op\":\"add\",\"path\":\"/color\",\"value\":\"silver\"}]", "{\"id\":\"1\",\"color\":\"silver\"}"},
        {"{\"a\":1,\"b\":2}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":{\"x\":[1]}}]", "{\"a\":{\"x\":[1]},\"b\":2}"},
        {"{\"a\":{\"b\":{}}}", "[{\"op\":\"add\",\"path\":\"/a/b/c\",\"value\":null}]", "{\"a\":{\"b\":{\"c\":null}}}"},
        {"{\"t\":[1,2]}", "[{\"op\":\"add\",\"path\":\"/t/0\",\"value\":0}]", "{\"t\":[0,1,2]}"},
        {"{\"t\":[1,2]}", "[{\"op\":\"add\",\"path\":\"/t/1\",\"value\":0}]", "{\"t\":[1,0,2]}"},
        {"{\"t\":[1,2],\"u\":3}", "[{\"op\":\"add\",\"path\":\"/t/2\",\"value\":0}]", "{\"t\":[1,2,0],\"u\":3}"},
        {"{\"t\":[1,2],\"u\":3}", "[{\"op\":\"add\",\"path\":\"/t/-\",\"value\":0}]", "{\"t\":[1,2,0],\"u\":3}"},
        {"{\"t\":[]}", "[{\"op\":\"add\",\"path\":\"/t/-\",\"value\":[]}]", "{\"t\":[[]]}"},
        {"{\"t\":[{\"a\":1},{\"a\":2}]}", "[{\"op\":\"add\",\"path\":\"/t/1/b\",\"value\":9}]", "{\"t\":[{\"a\":1},{\"a\":2,\"b\":9}]}"},
        {"{\"t\":[[1],[2]]}", "[{\"op\":\"add\",\"path\":\"/t/1/0\",\"value\":9}]", "{\"t\":[[1],[9,2]]}"},
        {"{\"t\":[0,1,2,3,4,5,6,7,8,9,10]}", "[{\"op\":\"add\",\"path\":\"/t/3\",\"value\":\"x\"}]",
         "{\"t\":[0,1,2,\"x\",3,4,5,6,7,8,9,10]}"},
        {"{\"o\":{\"0\":1}}", "[{\"op\":\"add\",\"path\":\"/o/-\",\"value\":2},{\"op\":\"add\",\"path\":\"/o/0\",\"value\":3}]",
         "{\"o\":{\"0\":3,\"-\":2}}"},
        {"{\"t\":[1]}", "[{\"op\":\"add\",\"path\":\"/t/2\",\"value\":0}]",
         "For Operation(1): Index(2) to operate on is out of array bounds"},
        {"{\"t\":[1]}", "[{\"op\":\"add\",\"path\":\"/t/x\",\"value\":0}]",
         "For Operation(1): Index(x) to operate on is out of array bounds"},
        {"{\"t\":[1]}", "[{\"op\":\"add\",\"path\":\"/t/00\",\"value\":0}]",
         "For Operation(1): Index(00) to operate on is out of array bounds"},
        {"{\"t\":[1]}", "[{\"op\":\"add\",\"path\":\"/t/99999999999999999999\",\"value\":0}]",
         "For Operation(1): Index(99999999999999999999) to operate on is out of array bounds"},
        {"{\"t\":[1]}", "[{\"op\":\"add\",\"path\":\"/t/\",\"value\":0}]",
         "For Operation(1): Index() to operate on is out of array bounds"},
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b/c\",\"value\":0}]",
         "For Operation(1): Add Operation can only create a child object of an existing node(array or object) and cannot create path "
         "recursively, no path found beyond: 'b'"},
        {"{\"a\":{\"x\":{}}}", "[{\"op\":\"add\",\"path\":\"/a/b/c/d\",\"value\":0}]",
         "For Operation(1): Add Operation can only create a child object of an existing node(array or object) and cannot create path "
         "recursively, no path found beyond: 'a/b'"},
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a/c\",\"value\":0}]", "For Operation(1): Add Operation can only create a child object"},
        {"{\"t\":[1]}", "[{\"op\":\"add\",\"path\":\"/t/-/c\",\"value\":0}]",
         "For Operation(1): Add Operation can only create a child object"},
    };
    ASSERT_CASES(cases);
}

static void set_and_replace(void **state) {
    (void)state;
    static const patch_case cases[] = {
        {"{\"a\":1,\"b\":2}", "[{\"op\":\"set\",\"path\":\"/a\",\"value\":\"x\"}]", "{\"a\":\"x\",\"b\":2}"},
        {"{\"a\":1}", "[{\"op\":\"set\",\"path\":\"/b\",\"value\":2}]", "{\"a\":1,\"b\":2}"},
        {"{\"t\":[1,2,3]}", "[{\"op\":\"set\",\"path\":\"/t/1\",\"value\":\"x\"}]", "{\"t\":[1,\"x\",3]}"},
        {"{\"t\":[1,2,3]}", "[{\"op\":\"set\",\"path\":\"/t/-\",\"value\":4}]", "{\"t\":[1,2,3,4]}"},
        {"{\"t\":[1,2,3]}", "[{\"op\":\"set\",\"path\":\"/t/3\",\"value\":4}]", "{\"t\":[1,2,3,4]}"},
        {"{\"t\":[1,2,3]}", "[{\"op\":\"set\",\"path\":\"/t/4\",\"value\":4}]",
         "For Operation(1): Index(4) to operate on is out of array bounds"},
        {"{}", "[{\"op\":\"set\",\"path\":\"/a/b\",\"value\":4}]", "For Operation(1): Given Operation can only create a child object"},
        {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":{\"b\":{}}}]", "{\"a\":{\"b\":{}}}"},
        {"{\"t\":[1,2]}", "[{\"op\":\"replace\",\"path\":\"/t/1\",\"value\":{\"b\":{}}}]", "{\"t\":[1,{\"b\":{}}]}"},
        {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":1}]", "For Operation(1): Node(/b) to be replaced is absent."},
        {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b/c\",\"value\":1}]", "For Operation(1): Node(/b/c) to be replaced is absent."},
        {"{\"t\":[1]}", "[{\"op\":\"replace\",\"path\":\"/t/1\",\"value\":1}]",
         "For Operation(1): Index(1) to operate on is out of array bounds"},
        {"{\"t\":[1]}", "[{\"op\":\"replace\",\"path\":\"/t/-\",\"value\":1}]",
         "For Operation(1): Index(-) to operate on is out of array bounds"},
    };
    ASSERT_CASES(cases);
}

static void remove_(void **state) {
    (void)state;
    static const patch_case cases[] = {
        {"{\"a\":1,\"b\":2,\"c\":3}", "[{\"op\":\"remove\",\"path\":\"/b\"}]", "{\"a\":1,\"c\":3}"},
        {"{\"a\":{\"b\":1}}", "[{\"op\":\"remove\",\"path\":\"/a/b\"}]", "{\"a\":{}}"},
        {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", "{}"},
        {"{\"t\":[1,2,3]}", "[{\"op\":\"remove\",\"path\":\"/t/0\"}]", "{\"t\":[2,3]}"},
        {"{\"t\":[1,2,3]}", "[{\"op\":\"remove\",\"path\":\"/t/2\"}]", "{\"t\":[1,2]}"},
        {"{\"t\":[0,1,2,3,4,5,6,7,8,9,10,11]}", "[{\"op\":\"remove\",\"path\":\"/t/2\"}]", "{\"t\":[0,1,3,4,5,6,7,8,9,10,11]}"},
        {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/b\"}]",
         "For Operation(1): Node(/b) to be removed is absent. Note: it may also have been removed earlier in the transaction."},
        {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/a\"},{\"op\":\"remove\",\"path\":\"/a\"}]",
         "For Operation(2): Node(/a) to be removed is absent."},
        {"{\"t\":[1]}", "[{\"op\":\"remove\",\"path\":\"/t/1\"}]", "For Operation(1): Index(1) to operate on is out of array bounds"},
    };
    ASSERT_CASES(cases);
}

static void increment(void **state) {
    (void)state;
    static const patch_case cases[] = {
        {"{\"n\":1}", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":10}]", "{\"n\":11}"},
        {"{\"n\":1}", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":-10}]", "{\"n\":-9}"},
        {"{\"n\":1.5}", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}]", "{\"n\":2.5}"},
        {"{\"n\":1}", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":0.25}]", "{\"n\":1.25}"},
        {"{\"n\":2147483647}", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}]", "{\"n\":2147483648}"},
        {"{\"n\":9223372036854775806}", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}]", "{\"n\":9223372036854775807}"},
        {"{\"n\":9223372036854775807}", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}]", "{\"n\":9223372036854776000}"},
        {"{\"n\":-9223372036854775808}", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":-1}]", "{\"n\":-9223372036854776000}"},
        {"{\"n\":9223372036854775807}", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":-9223372036854775807}]", "{\"n\":0}"},
        {"{}", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":5}]", "{\"n\":5}"},
        {"{\"t\":[5]}", "[{\"op\":\"incr\",\"path\":\"/t/0\",\"value\":13}]", "{\"t\":[18]}"},
        {"{\"t\":[5]}", "[{\"op\":\"incr\",\"path\":\"/t/-\",\"value\":13}]", "{\"t\":[5,13]}"},
        {"{\"a\":{\"n\":1},\"b\":0}", "[{\"op\":\"incr\",\"path\":\"/a/n\",\"value\":1},{\"op\":\"incr\",\"path\":\"/a/n\",\"value\":1}]",
         "{\"a\":{\"n\":3},\"b\":0}"},
        {"{\"n\":\"1\"}", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}]", "For Operation(1): Node(/n) is not a number."},
        {"{\"n\":null}", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}]", "For Operation(1): Node(/n) is not a number."},
        {"{\"n\":1}", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":\"1\"}]",
         "For Operation(1): the value to increment by is not a number."},
        {"{\"n\":1.7e308}", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":1.7e308}]",
         "For Operation(1): Node(/n) would become too large a number."},
    };
    ASSERT_CASES(cases);
}

static void move(void **state) {
    (void)state;
    static const patch_case cases[] = {
        {"{\"a\":1,\"b\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b/c\"}]", "{\"b\":{\"c\":1}}"},
        {"{\"a\":1,\"b\":2}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b\"}]", "{\"b\":1}"},
        {"{\"a\":1,\"b\":2}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a\"}]", "{\"a\":1,\"b\":2}"},
        {"{\"a\":{\"b\":{\"c\":1}},\"d\":2}", "[{\"op\":\"move\",\"from\":\"/a/b\",\"path\":\"/a\"}]", "{\"a\":{\"c\":1},\"d\":2}"},
        {"{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]",
         "For Operation(1): Node(/a/b) is inside of what is to be moved."},
        {"{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/x\"}]",
         "For Operation(1): Node(/a/x) is inside of what is to be moved."},
        {"{\"a\":1,\"ab\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/ab/c\"}]", "{\"ab\":{\"c\":1}}"},
        /* indices in the target path count before the removal */
        {"{\"foo\":[\"all\",\"grass\",\"cows\",\"eat\"]}", "[{\"op\":\"move\",\"from\":\"/foo/1\",\"path\":\"/foo/3\"}]",
         "{\"foo\":[\"all\",\"cows\",\"grass\",\"eat\"]}"},
        {"{\"t\":[1,2,3]}", "[{\"op\":\"move\",\"from\":\"/t/2\",\"path\":\"/t/0\"}]", "{\"t\":[3,1,2]}"},
        {"{\"t\":[1,2,3]}", "[{\"op\":\"move\",\"from\":\"/t/0\",\"path\":\"/t/-\"}]", "{\"t\":[2,3,1]}"},
        {"{\"t\":[1,2,3]}", "[{\"op\":\"move\",\"from\":\"/t/0\",\"path\":\"/t/3\"}]", "{\"t\":[2,3,1]}"},
        {"{\"t\":[1,{\"x\":2}]}", "[{\"op\":\"move\",\"from\":\"/t/1/x\",\"path\":\"/t/0\"}]", "{\"t\":[2,1,{}]}"},
        {"{\"t\":[1,{\"x\":2}]}", "[{\"op\":\"move\",\"from\":\"/t/1/x\",\"path\":\"/t/1\"}]", "{\"t\":[1,2,{}]}"},
        {"{\"t\":[{\"x\":2},1]}", "[{\"op\":\"move\",\"from\":\"/t/0/x\",\"path\":\"/t/1\"}]", "{\"t\":[{},2,1]}"},
        {"{\"t\":[1,2],\"u\":[3]}", "[{\"op\":\"move\",\"from\":\"/t/0\",\"path\":\"/u/0\"}]", "{\"t\":[2],\"u\":[1,3]}"},
        {"{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/b\",\"path\":\"/c\"}]", "For Operation(1): Node(/b) to be moved is absent."},
        {"{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/b/c\",\"path\":\"/c\"}]", "For Operation(1): Node(/b/c) to be moved is absent."},
        {"{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/b\",\"path\":\"/b\"}]", "For Operation(1): Node(/b) to be moved is absent."},
        {"{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b/c\"}]",
         "For Operation(1): Given Operation can only create a child object"},
        {"{\"t\":[1,2]}", "[{\"op\":\"move\",\"from\":\"/t/0\",\"path\":\"/t/5\"}]",
         "For Operation(1): Index(5) to operate on is out of array bounds"},
    };
    ASSERT_CASES(cases);
}

static void several_operations_and_escapes(void **state) {
    (void)state;
    static const patch_case cases[] = {
        {"{\"id\":\"e\",\"name\":\"R-410\",\"price\":455.95,\"inventory\":{\"quantity\":15},\"used\":false,\"tags\":[\"r-series\"]}",
         "{\"operations\":[{\"op\":\"add\",\"path\":\"/color\",\"value\":\"silver\"},{\"op\":\"remove\",\"path\":\"/used\"},"
         "{\"op\":\"set\",\"path\":\"/price\",\"value\":355.45},{\"op\":\"incr\",\"path\":\"/inventory/quantity\",\"value\":10},"
         "{\"op\":\"add\",\"path\":\"/tags/-\",\"value\":\"featured-bikes\"},{\"op\":\"move\",\"from\":\"/color\",\"path\":\"/inventory/"
         "color\"}]}",
         "{\"id\":\"e\",\"name\":\"R-410\",\"price\":355.45,\"inventory\":{\"quantity\":25,\"color\":\"silver\"},"
         "\"tags\":[\"r-series\",\"featured-bikes\"]}"},
        {"{\"a/b\":1,\"c~d\":2,\"~1\":3}",
         "[{\"op\":\"set\",\"path\":\"/a~1b\",\"value\":10},{\"op\":\"set\",\"path\":\"/c~0d\",\"value\":20},{\"op\":\"set\",\"path\":\"/"
         "~01\",\"value\":30}]",
         "{\"a/b\":10,\"c~d\":20,\"~1\":30}"},
        {"{\"\":1}", "[{\"op\":\"set\",\"path\":\"/\",\"value\":2}]", "{\"\":2}"},
        {"{\"a\\u0000b\":1}", "[{\"op\":\"set\",\"path\":\"/a\\u0000b\",\"value\":2},{\"op\":\"add\",\"path\":\"/\\u0000\",\"value\":3}]",
         "{\"a\\u0000b\":2,\"\\u0000\":3}"},
        {"{\"ñ\":1}", "[{\"op\":\"incr\",\"path\":\"/ñ\",\"value\":2}]", "{\"ñ\":3}"},
        {"{}",
         "[{\"op\":\"add\",\"path\":\"/a\",\"value\":{}},{\"op\":\"add\",\"path\":\"/a/b\",\"value\":[]},{\"op\":\"add\",\"path\":\"/a/b/"
         "-\",\"value\":1}]",
         "{\"a\":{\"b\":[1]}}"},
        {"{\"a\":1}", "[{\"op\":\"set\",\"path\":\"/a\",\"value\":2},{\"op\":\"replace\",\"path\":\"/b\",\"value\":3}]",
         "For Operation(2): Node(/b) to be replaced is absent."},
    };
    ASSERT_CASES(cases);
}

static void what_is_no_patch(void **state) {
    (void)state;
    static const char bad_syntax[] = "Invalid patch request: check syntax of patch specification.";
    static const patch_case cases[] = {
        {"{}", "{}", bad_syntax},
        {"{}", "[]", bad_syntax},
        {"{}", "{\"operations\":[]}", bad_syntax},
        {"{}", "{\"operations\":{}}", bad_syntax},
        {"{}", "{\"operations\":1}", bad_syntax},
        {"{}", "[1]", bad_syntax},
        {"{}", "[{}]", bad_syntax},
        {"{}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1}]", bad_syntax},
        {"{}", "[{\"op\":\"ADD\",\"path\":\"/a\",\"value\":1}]", bad_syntax},
        {"{}", "[{\"op\":1,\"path\":\"/a\",\"value\":1}]", bad_syntax},
        {"{}", "[{\"op\":\"add\",\"value\":1}]", bad_syntax},
        {"{}", "[{\"op\":\"add\",\"path\":1,\"value\":1}]", bad_syntax},
        {"{}", "[{\"op\":\"add\",\"path\":\"\",\"value\":1}]", bad_syntax},
        {"{}", "[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]", bad_syntax},
        {"{}", "[{\"op\":\"add\",\"path\":\"/a~\",\"value\":1}]", bad_syntax},
        {"{}", "[{\"op\":\"add\",\"path\":\"/a~2\",\"value\":1}]", bad_syntax},
        {"{}", "[{\"op\":\"add\",\"path\":\"/a\"}]", bad_syntax},
        {"{}", "[{\"op\":\"move\",\"path\":\"/a\"}]", bad_syntax},
        {"{}", "[{\"op\":\"move\",\"path\":\"/a\",\"from\":\"b\"}]", bad_syntax},
        {"{}", "[{\"op\":\"set\",\"path\":\"/_ts\",\"value\":1}]", "Invalid patch request: Cannot patch system property _ts."},
        {"{}", "[{\"op\":\"set\",\"path\":\"/_rid\",\"value\":1}]", "Invalid patch request: Cannot patch system property _rid."},
        {"{}", "[{\"op\":\"set\",\"path\":\"/_self/x\",\"value\":1}]", "Invalid patch request: Cannot patch system property _self."},
        {"{}", "[{\"op\":\"remove\",\"path\":\"/_etag\"}]", "Invalid patch request: Cannot patch system property _etag."},
        {"{}", "[{\"op\":\"move\",\"from\":\"/_attachments\",\"path\":\"/a\"}]",
         "Invalid patch request: Cannot patch system property _attachments."},
        {"{\"id\":\"1\"}", "[{\"op\":\"set\",\"path\":\"/id\",\"value\":\"2\"}]", "For Operation(1): Updating the id is not allowed."},
        {"{\"id\":\"1\"}", "[{\"op\":\"move\",\"from\":\"/id\",\"path\":\"/x\"}]", "For Operation(1): Updating the id is not allowed."},
        {"{\"a\":{}}", "[{\"op\":\"set\",\"path\":\"/a/id\",\"value\":\"2\"},{\"op\":\"set\",\"path\":\"/a/_ts\",\"value\":1}]",
         "{\"a\":{\"id\":\"2\",\"_ts\":1}}"},
    };
    ASSERT_CASES(cases);
}

static void ten_operations_at_most(void **state) {
    (void)state;
    for (int n = 9; n <= 12; n++) {
        buf operations = buf_init(BUF_NO_LIMIT), expected = buf_init(BUF_NO_LIMIT);
        for (int i = 0; i < n; i++) {
            buf_addf(&operations, "%s{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}", i ? "," : "[");
        }
        buf_add(&operations, "]", 2);
        buf_addf(&expected, n <= 10 ? "{\"n\":%d}" : "The number of patch operations can't exceed '10'.", n);
        buf_add_byte(&expected, 0);
        assert_patch("{\"n\":0}", operations.p, expected.p);
        buf_free(&operations);
        buf_free(&expected);
    }
}

static void conditions_are_handed_on(void **state) {
    (void)state;
    arena a = arena_init();
    op o;
    op_init(&o, &a, 0);
    buf request = to_bson("{\"condition\":\"from c where c.x = 1\",\"operations\":[{\"op\":\"remove\",\"path\":\"/a\"}]}");
    patch p;
    assert_int_equal(patch_parse(&o, buf_view(&request), &p), OK);
    assert_true(slice_eq(p.condition, SLICE_LIT("from c where c.x = 1")));
    assert_int_equal(p.n, 1);
    assert_int_equal(p.operations[0].kind, PATCH_REMOVE);
    assert_true(slice_eq(p.operations[0].path, SLICE_LIT("/a")));
    buf_free(&request);
    arena_free(&a);
}

/* Puts an object at the end of a path with this many steps: the document stays within the depth limit, or the patch fails. */
static void depth_is_bounded(void **state) {
    (void)state;
    for (unsigned levels = LIMIT_JSON_DEPTH - 3; levels <= LIMIT_JSON_DEPTH + 1; levels++) {
        buf document = buf_init(BUF_NO_LIMIT), operations = buf_init(BUF_NO_LIMIT), text = buf_init(BUF_NO_LIMIT),
            out = buf_init(BUF_NO_LIMIT);
        buf_add_lit(&operations, "[{\"op\":\"add\",\"path\":\"");
        buf_add_lit(&document, "{");
        for (unsigned i = 1; i < LIMIT_JSON_DEPTH - 4; i++) {
            buf_add_lit(&document, "\"a\":{");
            buf_add_lit(&operations, "/a");
        }
        buf_add_lit(&operations, "/v\",\"value\":");
        unsigned inner = levels - (LIMIT_JSON_DEPTH - 4);
        for (unsigned i = 0; i < inner; i++) {
            buf_add_lit(&operations, "[");
        }
        for (unsigned i = 0; i < inner; i++) {
            buf_add_lit(&operations, "]");
        }
        buf_add(&operations, "}]", 3);
        for (unsigned i = 0; i < LIMIT_JSON_DEPTH - 4; i++) {
            buf_add_byte(&document, '}');
        }
        buf_add_byte(&document, 0);
        arena a = arena_init();
        op o;
        op_init(&o, &a, 0);
        err code = run(&o, document.p, operations.p, &out);
        assert_int_equal(code, levels <= LIMIT_JSON_DEPTH ? OK : E_BAD_REQUEST);
        if (code == OK) {
            json_from_bson(&text, buf_view(&out));
            buf_clear(&out);
            assert_int_equal(json_to_bson(buf_view(&text), NULL, &out, NULL, NULL), OK);
        }
        buf_free(&document);
        buf_free(&operations);
        buf_free(&text);
        buf_free(&out);
        arena_free(&a);
    }
}

static void size_is_bounded(void **state) {
    (void)state;
    arena a = arena_init();
    op o;
    op_init(&o, &a, 0);
    const char *document = "{\"a\":\"0123456789\"}";
    const char *operations = "[{\"op\":\"add\",\"path\":\"/b\",\"value\":\"0123456789\"}]";
    buf whole = buf_init(BUF_NO_LIMIT);
    assert_int_equal(run(&o, document, operations, &whole), OK);
    for (size_t max = 3; max < whole.n + 6; max++) {
        buf out = buf_init(max);
        buf_add_lit(&out, "xxx");
        assert_int_equal(run(&o, document, operations, &out), max >= whole.n + 3 ? OK : E_TOO_LARGE);
        assert_int_equal(out.n, max >= whole.n + 3 ? whole.n + 3 : 3);
        assert_true(buf_ok(&out));
        buf_free(&out);
    }
    buf_free(&whole);
    arena_free(&a);
}

static void long_paths_are_shortened_in_sentences(void **state) {
    (void)state;
    buf operations = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&operations, "[{\"op\":\"remove\",\"path\":\"/x");
    for (int i = 0; i < 3000; i++) {
        buf_add_lit(&operations, "é");
    }
    buf_add(&operations, "\"}]", 4);
    arena a = arena_init();
    op o;
    op_init(&o, &a, 0);
    buf out = buf_init(BUF_NO_LIMIT);
    assert_int_equal(run(&o, "{}", operations.p, &out), E_BAD_REQUEST);
    assert_true(o.detail_n < 400);
    assert_true(bson_utf8_validate(o.detail, o.detail_n, false));
    buf_free(&operations);
    buf_free(&out);
    arena_free(&a);
}

/* Random patches on random documents: every result is a valid document, and a failed patch leaves no output. */
static void random_patches(void **state) {
    (void)state;
    static const char *const words[] = {"add", "set", "replace", "remove", "incr", "move"};
    static const char *const steps[] = {"/0", "/1", "/2", "/-", "/a", "/b", "/c", "/3", "/12"};
    random_source r;
    random_seed(&r, 21);
    int applied = 0;
    for (int i = 0; i < 20000; i++) {
        buf request = buf_init(BUF_NO_LIMIT), out = buf_init(BUF_NO_LIMIT);
        buf_add_lit(&request, "[");
        for (uint64_t k = 0, n = 1 + random_below(&r, 3); k < n; k++) {
            buf_addf(&request, "%s{\"op\":\"%s\"", k ? "," : "", words[random_below(&r, 6)]);
            for (int which = 0; which < 2; which++) {
                buf_add_slice(&request, which ? SLICE_LIT(",\"path\":\"") : SLICE_LIT(",\"from\":\""));
                for (uint64_t s = 0, depth = 1 + random_below(&r, 3); s < depth; s++) {
                    const char *step = steps[random_below(&r, sizeof steps / sizeof *steps)];
                    buf_add(&request, step, strlen(step));
                }
                buf_add_byte(&request, '"');
            }
            buf_add_lit(&request, ",\"value\":");
            random_json_value(&r, &request, 4);
            buf_add_lit(&request, "}");
        }
        buf_add(&request, "]", 2);
        arena a = arena_init();
        op o;
        op_init(&o, &a, 0);
        static const char document[] =
            "{\"a\":[1,{\"a\":2,\"b\":[3]},[4,5]],\"b\":{\"a\":{\"c\":1.5},\"0\":[[0],1,2,3,4,5,6,7,8,9,10,11]},\"c\":7}";
        if (run(&o, document, request.p, &out) == OK) {
            applied++;
            bson_t b;
            assert_true(bson_init_static(&b, (const uint8_t *)out.p, out.n));
            bson_iter_t iter;
            assert_true(bson_iter_init(&iter, &b));
            while (bson_iter_next(&iter)) {
            }
            assert_int_equal(iter.err_off, 0);
            buf text = buf_init(BUF_NO_LIMIT), again = buf_init(BUF_NO_LIMIT);
            json_from_bson(&text, buf_view(&out));
            assert_int_equal(json_to_bson(buf_view(&text), NULL, &again, NULL, NULL), OK);
            buf_clear(&out);
            json_from_bson(&out, buf_view(&again));
            assert_true(slice_eq(buf_view(&text), buf_view(&out)));
            buf_free(&text);
            buf_free(&again);
        } else {
            assert_int_equal(out.n, 0);
            assert_true(o.detail_n > 0);
        }
        arena_free(&a);
        buf_free(&request);
        buf_free(&out);
    }
    assert_true(applied > 1000);
}

static void a_corrupt_document_is_told(void **state) {
    (void)state;
    arena a = arena_init();
    op o;
    op_init(&o, &a, 0);
    buf request = to_bson("[{\"op\":\"set\",\"path\":\"/a/b/c\",\"value\":1}]");
    buf document = to_bson("{\"x\":1,\"a\":{\"b\":{\"c\":\"text\"}}}");
    patch p;
    assert_int_equal(patch_parse(&o, buf_view(&request), &p), OK);
    int corrupt = 0;
    for (size_t n = 0; n < document.n; n++) {
        char *bytes = malloc(document.n);
        memcpy(bytes, document.p, document.n);
        bytes[n] = (char)(bytes[n] + 3);
        buf out = buf_init(BUF_NO_LIMIT);
        err code = patch_apply(&o, &p, slice_of(bytes, document.n), &out);
        assert_true(code == OK || code == E_STORE_CORRUPT || code == E_BAD_REQUEST);
        corrupt += code == E_STORE_CORRUPT;
        buf_clear(&out);
        assert_int_equal(patch_apply(&o, &p, slice_of(document.p, n), &out), E_STORE_CORRUPT);
        buf_free(&out);
        free(bytes);
    }
    assert_true(corrupt > 10);
    buf_free(&request);
    buf_free(&document);
    arena_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add),
        cmocka_unit_test(set_and_replace),
        cmocka_unit_test(remove_),
        cmocka_unit_test(increment),
        cmocka_unit_test(move),
        cmocka_unit_test(several_operations_and_escapes),
        cmocka_unit_test(what_is_no_patch),
        cmocka_unit_test(ten_operations_at_most),
        cmocka_unit_test(conditions_are_handed_on),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(size_is_bounded),
        cmocka_unit_test(long_paths_are_shortened_in_sentences),
        cmocka_unit_test(random_patches),
        cmocka_unit_test(a_corrupt_document_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
