/* Databases, containers, items, batches, bulk, scripts, throughput. */
#include "harness.h"

static void arguments(void **state) {
    (void)state;
    tesela_client *c;
    tesela_container *k;
    fails(tesela_client_open(&(tesela_client_options){.endpoint = "localhost:1", .key = KEY}, &c, &error), TESELA_BAD_ARGUMENT);
    assert_null(c);
    fails(tesela_client_open(&(tesela_client_options){.endpoint = endpoint, .key = "no base64"}, &c, &error), TESELA_BAD_ARGUMENT);
    fails(tesela_client_open(&(tesela_client_options){.endpoint = endpoint}, &c, &error), TESELA_BAD_ARGUMENT);
    fails(tesela_container_open(client, "d", "a/b", &k, &error), TESELA_BAD_ARGUMENT);
    assert_null(k);
    assert_string_equal(tesela_status_text(TESELA_THROTTLED), "throttled");
    assert_string_equal(tesela_status_text((tesela_status)999), "unknown");
    assert_true(strlen(tesela_version()) > 0);
}

static void connection_strings(void **state) {
    (void)state;
    char text[256];
    tesela_client *c;
    tesela_response *r;
    snprintf(text, sizeof text, "AccountEndpoint=%s/;AccountKey=%s;", endpoint, KEY);
    ok(tesela_client_open(&(tesela_client_options){.connection_string = text, .application = "test", .stay = true}, &c, &error));
    ok(tesela_account_read(c, &r, &error));
    assert_non_null(strstr(tesela_response_body(r, NULL), "writableLocations"));
    tesela_response_free(r);
    tesela_client_close(c);
    ok(tesela_client_open(&(tesela_client_options){.endpoint = endpoint, .key = "AAAA"}, &c, &error));
    fails(tesela_database_read(c, "d", NULL, &error), TESELA_UNAUTHORIZED);
    assert_int_equal(error.http_status, 401);
    assert_true(strlen(error.activity_id) > 10);
    tesela_client_close(c);
}

static void databases(void **state) {
    (void)state;
    tesela_cursor *cursor;
    tesela_throughput t;
    size_t n;
    ok(tesela_database_create(client, "shared", &(tesela_throughput){.manual = 500}, NULL, &error));
    fails(tesela_database_create(client, "shared", NULL, NULL, &error), TESELA_CONFLICT);
    ok(tesela_database_throughput(client, "shared", &t, &error));
    assert_int_equal(t.manual, 500);
    ok(tesela_database_set_throughput(client, "shared", &(tesela_throughput){.manual = 700}, &error));
    ok(tesela_database_throughput(client, "shared", &t, &error));
    assert_int_equal(t.manual, 700);
    fails(tesela_database_throughput(client, "d", &t, &error), TESELA_NOT_FOUND);
    ok(tesela_databases(client, &cursor, &error));
    char *rows = rows_of(cursor, &n);
    assert_int_equal(n, 2);
    assert_non_null(strstr(rows, "\"shared\""));
    free(rows);
    ok(tesela_database_delete(client, "shared", NULL, &error));
    fails(tesela_database_read(client, "shared", NULL, &error), TESELA_NOT_FOUND);
}

static void containers(void **state) {
    (void)state;
    tesela_container *k = container_new("containers", 400);
    tesela_throughput t;
    tesela_response *r;
    tesela_cursor *cursor;
    size_t n;
    int64_t count;
    assert_string_equal(tesela_container_name(k), "containers");
    assert_string_equal(tesela_container_database(k), "d");
    ok(tesela_container_replace(
        k, "{\"id\":\"containers\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},\"defaultTtl\":77}", NULL,
        &error));
    ok(tesela_container_read(k, &r, &error));
    assert_non_null(strstr(tesela_response_body(r, NULL), "\"defaultTtl\":77"));
    tesela_response_free(r);
    ok(tesela_container_set_throughput(k, &(tesela_throughput){.autoscale_max = 4000}, &error));
    ok(tesela_container_throughput(k, &t, &error));
    assert_int_equal(t.autoscale_max, 4000);
    ok(tesela_container_set_throughput(k, &(tesela_throughput){.manual = 900}, &error));
    ok(tesela_container_throughput(k, &t, &error));
    assert_int_equal(t.manual, 900);
    ok(tesela_container_item_count(k, &count, &error));
    assert_int_equal(count, 0);
    ok(tesela_item_create(k, "{\"id\":\"1\",\"pk\":\"a\"}", NULL, NULL, NULL, &error));
    ok(tesela_container_item_count(k, &count, &error));
    assert_int_equal(count, 1);
    ok(tesela_containers(client, "d", &cursor, &error));
    free(rows_of(cursor, &n));
    assert_true(n >= 1);
    ok(tesela_container_delete(k, NULL, &error));
    fails(tesela_container_read(k, NULL, &error), TESELA_NOT_FOUND);
    fails(tesela_container_item_count(k, &count, &error), TESELA_NOT_FOUND);
    assert_int_equal(count, -1);
    tesela_container_close(k);
}

static void items(void **state) {
    (void)state;
    tesela_container *k = container_new("items", 4000);
    tesela_key ana = tesela_key_string("ana"), none = tesela_key_none();
    tesela_response *r;
    char etag[128];
    ok(tesela_item_create(k, "{\"id\":\"1\",\"pk\":\"ana\",\"total\":1}", NULL, NULL, &r, &error));
    assert_int_equal(tesela_response_http_status(r), 201);
    assert_true(tesela_response_charge(r) > 1);
    assert_true(strlen(tesela_response_session_token(r)) > 2);
    assert_non_null(tesela_response_header(r, "X-MS-Request-Charge"));
    assert_null(tesela_response_header(r, "x-no-such"));
    assert_int_equal(tesela_response_retries(r), 0);
    assert_true(strlen(tesela_response_activity_id(r)) > 10);
    snprintf(etag, sizeof etag, "%s", tesela_response_etag(r));
    tesela_response_free(r);
    fails(tesela_item_create(k, "{\"id\":\"1\",\"pk\":\"ana\"}", &ana, NULL, NULL, &error), TESELA_CONFLICT);
    fails(tesela_item_create(k, "not json", NULL, NULL, NULL, &error), TESELA_BAD_ARGUMENT);
    fails(tesela_item_read(k, "2", &ana, NULL, &r, &error), TESELA_NOT_FOUND);
    assert_null(r);
    fails(tesela_item_read(k, "1", &ana, &(tesela_item_options){.if_none_match = etag}, NULL, &error), TESELA_NOT_MODIFIED);
    ok(tesela_item_replace(k, "1", "{\"id\":\"1\",\"pk\":\"ana\",\"total\":2}", NULL, &(tesela_item_options){.if_match = etag}, NULL,
                           &error));
    fails(tesela_item_upsert(k, "{\"id\":\"1\",\"pk\":\"ana\"}", NULL, &(tesela_item_options){.if_match = etag}, NULL, &error),
          TESELA_PRECONDITION_FAILED);
    ok(tesela_item_patch(k, "1", &ana, "{\"operations\":[{\"op\":\"incr\",\"path\":\"/total\",\"value\":5}]}", NULL, &r, &error));
    assert_non_null(strstr(tesela_response_body(r, NULL), "\"total\":7"));
    tesela_response_free(r);
    ok(tesela_item_upsert(k, "{\"id\":\"\xC3\xA1 ?#&+%\",\"pk\":true}", NULL, &(tesela_item_options){.no_body = true}, NULL, &error));
    tesela_key yes = tesela_key_bool(true);
    ok(tesela_item_read(k, "\xC3\xA1 ?#&+%", &yes, NULL, NULL, &error));
    tesela_key null = tesela_key_null();
    ok(tesela_item_upsert(k, "{\"id\":\"of null\",\"pk\":null}", NULL, NULL, NULL, &error));
    ok(tesela_item_read(k, "of null", &null, NULL, NULL, &error));
    ok(tesela_item_upsert(k, "{\"id\":\"keyless\"}", NULL, NULL, NULL, &error));
    ok(tesela_item_read(k, "keyless", &none, NULL, NULL, &error));
    ok(tesela_item_delete(k, "1", &ana, NULL, NULL, &error));
    fails(tesela_item_delete(k, "1", &ana, NULL, NULL, &error), TESELA_NOT_FOUND);
    tesela_container_close(k);
}

static void fixed_and_hierarchical(void **state) {
    (void)state;
    tesela_container *fixed, *levels;
    ok(tesela_container_create(client, "d", "{\"id\":\"fixed\"}", NULL, NULL, &error));
    ok(tesela_container_open(client, "d", "fixed", &fixed, &error));
    ok(tesela_item_create(fixed, "{\"id\":\"1\"}", NULL, NULL, NULL, &error));
    ok(tesela_item_read(fixed, "1", NULL, NULL, NULL, &error));
    tesela_container_close(fixed);
    ok(tesela_container_create(
        client, "d", "{\"id\":\"levels\",\"partitionKey\":{\"paths\":[\"/tenant\",\"/user\"],\"kind\":\"MultiHash\",\"version\":2}}", NULL,
        NULL, &error));
    ok(tesela_container_open(client, "d", "levels", &levels, &error));
    for (int i = 0; i < 20; i++) {
        char item[128];
        snprintf(item, sizeof item, "{\"id\":\"%d\",\"tenant\":\"t%d\",\"user\":%d}", i, i % 2, i);
        ok(tesela_item_create(levels, item, NULL, NULL, NULL, &error));
    }
    tesela_key key = tesela_key_string("t1"), whole = key;
    size_t n;
    free(query_rows(levels, "SELECT * FROM c", NULL, &(tesela_query_options){.key = &key}, &n));
    assert_int_equal(n, 10);
    split("levels");
    free(query_rows(levels, "SELECT * FROM c", NULL, &(tesela_query_options){.key = &key, .parallelism = -1}, &n));
    assert_int_equal(n, 10);
    assert_true(tesela_key_add(&whole, tesela_key_number(3)));
    ok(tesela_item_read(levels, "3", &whole, NULL, NULL, &error));
    char text[TESELA_EPK_TEXT], prefix[TESELA_EPK_TEXT];
    ok(tesela_container_epk(levels, &whole, text, &error));
    ok(tesela_container_epk(levels, &key, prefix, &error));
    assert_int_equal(strlen(text), 64);
    assert_memory_equal(text, prefix, 32);
    tesela_container_close(levels);
}

static void batches(void **state) {
    (void)state;
    tesela_container *k = container_new("batches", 4000);
    tesela_key key = tesela_key_number(7);
    tesela_batch *batch;
    tesela_batch_result *result;
    ok(tesela_batch_open(k, &key, &batch, &error));
    fails(tesela_batch_run(batch, NULL, &error), TESELA_BAD_ARGUMENT);
    tesela_batch_create(batch, "{\"id\":\"a\",\"pk\":7,\"n\":1}");
    tesela_batch_upsert(batch, "{\"id\":\"b\",\"pk\":7}", NULL);
    tesela_batch_patch(batch, "a", "{\"operations\":[{\"op\":\"add\",\"path\":\"/n\",\"value\":2}]}", NULL);
    tesela_batch_replace(batch, "b", "{\"id\":\"b\",\"pk\":7,\"m\":1}", NULL);
    tesela_batch_read(batch, "b");
    tesela_batch_delete(batch, "b", NULL);
    ok(tesela_batch_run(batch, &result, &error));
    assert_int_equal(tesela_batch_result_count(result), 6);
    assert_int_equal(tesela_batch_result_http_status(result, 0), 201);
    assert_non_null(strstr(tesela_batch_result_body(result, 4, NULL), "\"m\":1"));
    assert_true(strlen(tesela_batch_result_etag(result, 0)) > 4);
    assert_true(tesela_batch_result_charge(result) > 10);
    assert_int_equal(tesela_batch_result_http_status(result, 6), 0);
    tesela_batch_result_free(result);
    tesela_batch_close(batch);
    ok(tesela_batch_open(k, &key, &batch, &error));
    tesela_batch_create(batch, "{\"id\":\"c\",\"pk\":7}");
    tesela_batch_create(batch, "{\"id\":\"a\",\"pk\":7}");
    fails(tesela_batch_run(batch, &result, &error), TESELA_CONFLICT);
    assert_int_equal(tesela_batch_result_http_status(result, 0), 424);
    tesela_batch_result_free(result);
    tesela_batch_close(batch);
    fails(tesela_item_read(k, "c", &key, NULL, NULL, &error), TESELA_NOT_FOUND);
    ok(tesela_batch_open(k, &key, &batch, &error));
    tesela_batch_create(batch, "{\"id\":\"x\",\"pk\":7}},{\"operationType\":\"Delete\",\"id\":\"a\"");
    fails(tesela_batch_run(batch, NULL, &error), TESELA_BAD_ARGUMENT);
    tesela_batch_close(batch);
    tesela_container_close(k);
}

typedef struct seen {
    unsigned good, conflicts, missing;
    char body[256];
} seen;

static void on_result(void *context, const tesela_bulk_result *r) {
    seen *s = context;
    s->good += r->status == TESELA_OK;
    s->conflicts += r->status == TESELA_CONFLICT;
    s->missing += r->status == TESELA_NOT_FOUND;
    if (r->tag == s) {
        snprintf(s->body, sizeof s->body, "%s", r->body);
        assert_string_equal(r->id, "i5");
    }
}

static void on_found(void *context, size_t index, const tesela_bulk_result *r) {
    unsigned *found = context;
    assert_int_equal(r->status, index < 50 ? TESELA_OK : TESELA_NOT_FOUND);
    ++*found;
}

static void bulk(void **state) {
    (void)state;
    tesela_container *k = container_new("bulk", 40000);
    tesela_key five = tesela_key_string("p5");
    tesela_bulk *b;
    seen s = {0};
    tesela_cursor *cursor;
    size_t n;
    fill(k, 1000, 40);
    ok(tesela_bulk_open(k, &(tesela_bulk_options){.done = on_result, .context = &s, .queued = 64}, &b, &error));
    for (int i = 0; i < 300; i++) {
        char item[64];
        snprintf(item, sizeof item, "{\"id\":\"i%d\",\"pk\":\"p%d\"}", 990 + i, (990 + i) % 40);
        ok(tesela_bulk_add(b, &(tesela_bulk_operation){.kind = TESELA_BULK_CREATE, .body = item}, &error));
    }
    ok(tesela_bulk_add(b, &(tesela_bulk_operation){.kind = TESELA_BULK_READ, .id = "i5", .key = &five, .tag = &s}, &error));
    ok(tesela_bulk_add(b, &(tesela_bulk_operation){.kind = TESELA_BULK_DELETE, .id = "nobody", .key = &five}, &error));
    fails(tesela_bulk_add(b, &(tesela_bulk_operation){.kind = TESELA_BULK_DELETE, .id = "nobody"}, &error), TESELA_BAD_ARGUMENT);
    fails(tesela_bulk_add(b, &(tesela_bulk_operation){.kind = TESELA_BULK_CREATE, .body = "[1"}, &error), TESELA_BAD_ARGUMENT);
    tesela_status failure = tesela_bulk_finish(b, &error); /* whichever of the failures was answered first */
    assert_true(failure == TESELA_CONFLICT || failure == TESELA_NOT_FOUND);
    assert_int_equal(s.good, 291);
    assert_int_equal(s.conflicts, 10);
    assert_int_equal(s.missing, 1);
    assert_non_null(strstr(s.body, "\"id\":\"i5\""));
    tesela_bulk_close(b);
    tesela_item_name names[60];
    char ids[60][8], keys[60][8];
    for (int i = 0; i < 60; i++) {
        snprintf(ids[i], sizeof ids[i], "i%d", i < 50 ? i : i + 9000);
        snprintf(keys[i], sizeof keys[i], "p%d", i % 40);
        names[i] = (tesela_item_name){ids[i], tesela_key_string(keys[i])};
    }
    unsigned found = 0;
    ok(tesela_items_read(k, names, 60, on_found, &found, &error));
    assert_int_equal(found, 60);
    ok(tesela_items(k, 100, NULL, &cursor, &error));
    free(rows_of(cursor, &n));
    assert_int_equal(n, 1290);
    tesela_container_close(k);
}

static void every_kind_of_script(tesela_container *k) {
    static const char *const definitions[] = {
        "{\"id\":\"one\",\"body\":\"function () {}\"}",
        "{\"id\":\"one\",\"body\":\"function () {}\",\"triggerType\":\"Pre\",\"triggerOperation\":\"All\"}",
        "{\"id\":\"one\",\"body\":\"function (x) { return x + 1; }\"}",
    };
    for (unsigned kind = TESELA_PROCEDURE; kind <= TESELA_FUNCTION; kind++) {
        tesela_cursor *cursor;
        size_t n;
        for (int again = 0; again < 2; again++) {
            ok(tesela_script_define(k, (tesela_script_kind)kind, "one", definitions[kind], NULL, &error));
        }
        ok(tesela_scripts(k, (tesela_script_kind)kind, &cursor, &error));
        char *rows = rows_of(cursor, &n);
        assert_int_equal(n, kind == TESELA_PROCEDURE ? 2 : 1);
        assert_non_null(strstr(rows, "\"id\":\"one\""));
        free(rows);
    }
    tesela_cursor *none;
    fails(tesela_scripts(k, (tesela_script_kind)7, &none, &error), TESELA_BAD_ARGUMENT);
    fails(tesela_script_define(k, TESELA_TRIGGER, "a/b", definitions[1], NULL, &error), TESELA_BAD_ARGUMENT);
    fails(tesela_script_define(k, TESELA_TRIGGER, "t", definitions[0], NULL, &error), TESELA_BAD_REQUEST);
}

static void scripts(void **state) {
    (void)state;
    tesela_container *k = container_new("scripts", 1000);
    tesela_key key = tesela_key_string("a");
    tesela_response *r;
    ok(tesela_script_put(k, "sum", "function (a, b) { getContext().getResponse().setBody(a - b); }", NULL, &error));
    ok(tesela_script_put(k, "sum", "function (a, b) { getContext().getResponse().setBody(a + b); }", NULL, &error));
    every_kind_of_script(k);
    ok(tesela_script_run(k, "sum", &key, "[3,4]", &r, &error));
    assert_string_equal(tesela_response_body(r, NULL), "7");
    tesela_response_free(r);
    ok(tesela_script_delete(k, "sum", NULL, &error));
    fails(tesela_script_run(k, "sum", &key, NULL, NULL, &error), TESELA_NOT_FOUND);
    tesela_container_close(k);
}

static void synthetic(void **state) {
    (void)state;
    char room[64], again[64];
    const char *parts[] = {"device-7", "2018-03-01"};
    assert_int_equal(tesela_synthetic_join(parts, 2, "-", room, sizeof room), TESELA_OK);
    assert_string_equal(room, "device-7-2018-03-01");
    assert_int_equal(tesela_synthetic_join(parts, 2, "-", room, 12), TESELA_LIMIT);
    assert_int_equal(tesela_synthetic_suffix("2018-03-01", 400, room, sizeof room), TESELA_OK);
    assert_string_equal(room, "2018-03-01.400");
    bool seen_suffix[401] = {false};
    unsigned distinct = 0;
    for (int i = 0; i < 8000; i++) {
        assert_int_equal(tesela_synthetic_random("day", 400, room, sizeof room), TESELA_OK);
        int suffix = atoi(room + 4);
        assert_in_range(suffix, 1, 400);
        distinct += !seen_suffix[suffix];
        seen_suffix[suffix] = true;
    }
    assert_int_equal(distinct, 400);
    assert_int_equal(tesela_synthetic_hashed("day", "VIN-1", 400, room, sizeof room), TESELA_OK);
    assert_int_equal(tesela_synthetic_hashed("day", "VIN-1", 400, again, sizeof again), TESELA_OK);
    assert_string_equal(room, again);
    assert_in_range(atoi(room + 4), 1, 400);
    assert_int_equal(tesela_synthetic_hashed("day", "VIN-1", 0, room, sizeof room), TESELA_BAD_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments), cmocka_unit_test(connection_strings),
        cmocka_unit_test(databases), cmocka_unit_test(containers),
        cmocka_unit_test(items),     cmocka_unit_test(fixed_and_hierarchical),
        cmocka_unit_test(batches),   cmocka_unit_test(bulk),
        cmocka_unit_test(scripts),   cmocka_unit_test(synthetic),
    };
    server_start(NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    server_stop();
    return failed;
}
