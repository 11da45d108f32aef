/* What the adviser reads: paths of any name, values of any type, logs; and what it writes. */
#include "advise_harness.h"

#include "partition/epk.h"

static void nested_and_quoted_paths_are_candidates(void **state) {
    (void)state;
    advise *a = advise_new(&advise_defaults);
    for (unsigned i = 0; i < 500; i++) {
        operation(a, "{\"query\":\"SELECT * FROM c WHERE c.properties[\\\"nombre de departamento\\\"] = 'd%u'\"}", i % 100);
        item(a,
             "{\"id\":\"%u\",\"properties\":{\"nombre de departamento\":\"d%u\",\"say "
             "\\\"hi\\\"\":%u},\"list\":[1],\"_ts\":1,\"a\":{\"b\":{\"c\":{\"d\":{\"e\":1}}}}}",
             i, i % 100, i % 7);
    }
    const advise_report *r = advise_finish(a);
    assert_recommends(r, "/properties/\"nombre de departamento\"");
    assert_true(r->keys[0]->one_partition == 1 && r->keys[0]->values == 100);
    assert_true(key_named(r, "/properties/\"say \\\"hi\\\"\"")->values == 7);
    for (size_t i = 0; i < r->n; i++) {
        assert_null(memmem(r->keys[i]->name.p, r->keys[i]->name.n, "list", 4)); /* a key is no array */
        assert_null(memmem(r->keys[i]->name.p, r->keys[i]->name.n, "_ts", 3));
        assert_null(memmem(r->keys[i]->name.p, r->keys[i]->name.n, "/e", 2)); /* too deep */
    }
    advise_free(a);
}

/* The bytes of each physical partition are those that the service's hash gives. */
static void partitions_are_those_of_the_hash(void **state) {
    (void)state;
    enum { PARTITIONS = 4 };
    double expected[PARTITIONS] = {0};
    advise_options o = advise_defaults;
    o.partitions = PARTITIONS;
    advise *a = advise_new(&o);
    for (unsigned i = 0; i < 300; i++) {
        char device[16];
        epk e;
        snprintf(device, sizeof device, "d-%03u", i);
        epk_hash_v2(&(pkey_value){.type = PKEY_STRING, .text = slice_str(device)}, 1, &e);
        expected[(unsigned char)e.bytes[0] >> 4]++;
        item(a, "{\"deviceId\":\"%s\"}", device);
    }
    const advise_key *k = key_named(advise_finish(a), "/deviceId");
    for (unsigned i = 0; i < PARTITIONS; i++) {
        assert_true(k->byte_parts[i] == expected[i] * (double)sizeof "{\"deviceId\":\"d-000\"}" - expected[i]);
    }
    advise_free(a);
}

static bool accepts(advise *a, const char *json, const char **why) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    assert_int_equal(json_to_bson(slice_str(json), NULL, &bson, &root, NULL), OK);
    bool good = advise_add_operation(a, buf_view(&bson), why);
    buf_free(&bson);
    return good;
}

static void lines_of_a_log_that_are_none_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"{}", "{\"operation\":\"dance\"}", "{\"operation\":7}", "{\"query\":\"SELECT * FORM c\"}",
                                      "{\"query\":[]}"};
    static const char *const good[] = {
        "{\"operation\":\"create\"}",
        "{\"operation\":\"feed\",\"charge\":-3}",
        "{\"query\":\"SELECT 1\"}",
        "{\"query\":\"SELECT * FROM c JOIN t IN c.tags WHERE t = 1 OR c.a = 2\"}",
        "{\"query\":\"SELECT * FROM c WHERE c.a IN (1, 2) AND @x = c.b\",\"parameters\":[{\"name\":\"@x\"},7]}",
        "{\"operation\":\"read\",\"key\":{\"/a\":{\"digest\":\"9F\"},\"/b\":[1]}}",
    };
    advise *a = advise_new(&advise_defaults);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *why = NULL;
        assert_false(accepts(a, bad[i], &why));
        assert_non_null(why);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const char *why = NULL;
        assert_true(accepts(a, good[i], &why));
    }
    advise_add_long_operation(a);
    assert_null(advise_finish(a)); /* no items */
    advise_free(a);
}

/* Which reads stay in one partition, by kind of key. */
static void reads_are_told_apart(void **state) {
    (void)state;
    advise *a = advise_new(&advise_defaults);
    operation(a, "{\"query\":\"SELECT * FROM c WHERE c.a = 'a1'\",\"count\":2}");
    operation(a, "{\"query\":\"SELECT * FROM c WHERE c.a = 'a1' AND c.b = 'b1'\",\"count\":3}");
    operation(a, "{\"query\":\"SELECT * FROM c WHERE c.a IN ('a1', 'a2')\",\"count\":4}");
    operation(a, "{\"query\":\"SELECT * FROM c WHERE c.a > 'a1'\",\"count\":1}");
    for (unsigned i = 0; i < 1000; i++) {
        item(a, "{\"id\":\"i%u\",\"a\":\"a%u\",\"b\":\"b%u\"}", i, i % 50, i % 300);
    }
    const advise_report *r = advise_finish(a);
    const advise_key *path = key_named(r, "/a"), *levels = key_named(r, "/a, /b"), *joined = key_named(r, "/a-/b"),
                     *suffix = key_named(r, "/a.hash(/b)"), *any = key_named(r, "/a.random");
    assert_true(path->one_partition == 0.5 && path->known_keys == 0.4);
    assert_true(levels->one_partition == 0.5 && levels->known_keys == 0.4);
    assert_true(joined->one_partition == 0.3 && joined->known_keys == 0);
    assert_true(suffix->one_partition == 0.3 && suffix->known_keys == 0.2);
    assert_true(any->one_partition == 0 && any->known_keys == 0.5);
    assert_true(any->values == 1000 || any->values > 900);
    advise_free(a);
}

/* Memory stays the same, whatever the items look like. */
static void hostile_items_are_bounded(void **state) {
    (void)state;
    random_source random;
    random_seed(&random, 9);
    advise *a = advise_new(&advise_defaults);
    for (unsigned i = 0; i < 6000; i++) {
        item(a, "{\"p%u\":%u,\"\":1,\"a\\u0000b\":\"\\u001b[2J\",\"n\":{\"%lu\":null},\"long\":\"%0*u\"}", i, i,
             (unsigned long)random_u64(&random), i % 5000, i);
    }
    const advise_report *r = advise_finish(a);
    assert_non_null(r);
    assert_true(r->paths_left_out > 0 && r->items == 6000);
    buf text = buf_init(BUF_NO_LIMIT), bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    advise_show(&text, r, 200);
    buf_clear(&text);
    advise_write_json(&text, r);
    assert_int_equal(json_to_bson(buf_view(&text), NULL, &bson, &root, NULL), OK);
    buf_free(&text);
    buf_free(&bson);
    advise_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_and_quoted_paths_are_candidates),
        cmocka_unit_test(partitions_are_those_of_the_hash),
        cmocka_unit_test(lines_of_a_log_that_are_none_are_refused),
        cmocka_unit_test(reads_are_told_apart),
        cmocka_unit_test(hostile_items_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
