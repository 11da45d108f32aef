/* Events of change streams: each kind of write, images, document keys, and resume tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/mongo/change_event.h"
#include "base/op.h"
#include "extended_json.h"

static arena a;

static int set_up(void **state) {
    (void)state;
    a = arena_init();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(&a);
    return 0;
}

static slice bson_of(const char *json) {
    return extended_json(&a, json);
}

static const mongo_watch plain = {.database = SLICE_LIT("d"), .collection = SLICE_LIT("c")};

static err event(const mongo_watch *w, const follow_change *change, char **json_out) {
    buf out = buf_init(BUF_NO_LIMIT);
    op o;
    bson_t b;
    op_init(&o, &a, 0);
    *json_out = NULL;
    err code = mongo_change_event(&o, w, change, slice_of("\x01\xAB", 2), &out);
    if (code == OK) {
        assert_true(bson_init_static(&b, (const uint8_t *)out.p, out.n));
        char *json = bson_as_relaxed_extended_json(&b, NULL);
        *json_out = arena_text(&a, slice_str(json));
        bson_free(json);
    } else {
        assert_int_equal(o.protocol_code, 47);
    }
    buf_free(&out);
    return code;
}

static follow_change change_of(follow_kind kind, const char *body) {
    return (follow_change){.kind = kind, .lsn = 7, .ts = 1800000000, .body = bson_of(body)};
}

#define HEAD(type)                                                                                                                         \
    "{ \"_id\" : { \"_data\" : \"01AB\" }, \"operationType\" : \"" type                                                                    \
    "\", \"clusterTime\" : { \"$timestamp\" : { \"t\" : 1800000000, \"i\" : 7 } }, \"wallTime\" : { \"$date\" : \"2027-01-15T08:00:00Z\" " \
    "}, "
#define TAIL "\"ns\" : { \"db\" : \"d\", \"coll\" : \"c\" }, \"documentKey\" : { \"_id\" : 1 }"

static void expect(const mongo_watch *w, const follow_change *change, const char *json) {
    char *found;
    assert_int_equal(event(w, change, &found), OK);
    assert_string_equal(found, json);
}

static void each_kind(void **state) {
    (void)state;
    follow_change inserted = change_of(FOLLOW_CREATED, "{\"_id\":1,\"x\":2}"), replaced = change_of(FOLLOW_REPLACED, "{\"_id\":1,\"x\":2}");
    follow_change deleted = change_of(FOLLOW_DELETED, "{\"_id\":1,\"x\":2}"), updated = replaced;
    updated.note = mongo_change_note(&a, bson_of("{\"updatedFields\":{\"x\":2}}"), SLICE_EMPTY);
    expect(&plain, &inserted, HEAD("insert") "\"fullDocument\" : { \"_id\" : 1, \"x\" : 2 }, " TAIL " }");
    expect(&plain, &replaced, HEAD("replace") "\"fullDocument\" : { \"_id\" : 1, \"x\" : 2 }, " TAIL " }");
    expect(&plain, &deleted, HEAD("delete") TAIL " }");
    expect(&plain, &updated, HEAD("update") TAIL ", \"updateDescription\" : { \"updatedFields\" : { \"x\" : 2 } } }");
    mongo_watch full = plain;
    full.full_document = true;
    expect(&full, &updated,
           HEAD("update") "\"fullDocument\" : { \"_id\" : 1, \"x\" : 2 }, " TAIL
                          ", \"updateDescription\" : { \"updatedFields\" : { \"x\" : 2 } } }");
}

static void images_before(void **state) {
    (void)state;
    char *json;
    mongo_watch available = plain, required = plain;
    available.before = MONGO_IMAGE_WHEN_AVAILABLE;
    required.before = MONGO_IMAGE_REQUIRED;
    follow_change deleted = change_of(FOLLOW_DELETED, "{\"_id\":1}"), replaced = change_of(FOLLOW_REPLACED, "{\"_id\":1}");
    follow_change inserted = change_of(FOLLOW_CREATED, "{\"_id\":1}");
    expect(&required, &deleted, HEAD("delete") "\"fullDocumentBeforeChange\" : { \"_id\" : 1 }, " TAIL " }");
    expect(&required, &inserted, HEAD("insert") "\"fullDocument\" : { \"_id\" : 1 }, " TAIL " }");
    expect(&available, &replaced, HEAD("replace") "\"fullDocument\" : { \"_id\" : 1 }, \"fullDocumentBeforeChange\" : null, " TAIL " }");
    assert_int_equal(event(&required, &replaced, &json), E_BAD_REQUEST);
    replaced.note = mongo_change_note(&a, SLICE_EMPTY, bson_of("{\"_id\":1,\"old\":true}"));
    expect(&required, &replaced,
           HEAD("replace") "\"fullDocument\" : { \"_id\" : 1 }, \"fullDocumentBeforeChange\" : { \"_id\" : 1, \"old\" : true }, " TAIL
                           " }");
}

static void the_shard_key_is_in_the_document_key(void **state) {
    (void)state;
    char *json;
    mongo_watch w = plain;
    w.shard_key = SLICE_LIT("a.b");
    follow_change deleted = change_of(FOLLOW_DELETED, "{\"_id\":1,\"a\":{\"b\":\"x\"}}");
    assert_int_equal(event(&w, &deleted, &json), OK);
    assert_non_null(strstr(json, "\"documentKey\" : { \"a.b\" : \"x\", \"_id\" : 1 }"));
    deleted = change_of(FOLLOW_DELETED, "{\"_id\":1,\"a\":[{\"b\":1}]}");
    assert_int_equal(event(&w, &deleted, &json), OK);
    assert_non_null(strstr(json, "\"documentKey\" : { \"_id\" : 1 }"));
}

static void tokens_are_read_back(void **state) {
    (void)state;
    static const char *const bad[] = {
        "{}", "{\"_data\":\"\"}", "{\"_data\":\"0\"}", "{\"_data\":\"0G\"}", "{\"_data\":12}", "{\"_data\":null}"};
    slice position;
    assert_true(mongo_token_read(&a, mql_document(bson_of("{\"_data\":\"01ab\"}")), &position));
    assert_true(slice_eq(position, slice_of("\x01\xAB", 2)));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(mongo_token_read(&a, mql_document(bson_of(bad[i])), &position));
    }
    assert_false(mongo_token_read(&a, mql_null(), &position));
}

static void a_note_of_nothing_is_empty(void **state) {
    (void)state;
    assert_int_equal(mongo_change_note(&a, SLICE_EMPTY, SLICE_EMPTY).n, 0);
}

int main(void) {
#define ONE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ONE(each_kind),
        ONE(images_before),
        ONE(the_shard_key_is_in_the_document_key),
        ONE(tokens_are_read_back),
        ONE(a_note_of_nothing_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
