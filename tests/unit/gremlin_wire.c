/* Messages and values on the wire: what drivers send, what they are answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "gremlin/wire.h"
#include "gremlin_graph.h"

typedef struct world {
    budget budget;
    arena memory;
    op op;
} world;

static void open_world(world *w) {
    w->budget = budget_init(NULL, 16 * 1024 * 1024);
    w->memory = arena_init_counted(&w->budget);
    op_init(&w->op, &w->memory, 0);
}

static void close_world(world *w) {
    arena_free(&w->memory);
    assert_int_equal(w->budget.used, 0);
}

static err read_message(world *w, const char *mime, const void *payload, size_t n, gremlin_request *r) {
    buf message = buf_init(1 << 20);
    buf_add_byte(&message, (char)strlen(mime));
    buf_add(&message, mime, strlen(mime));
    buf_add(&message, payload, n);
    err e = gremlin_request_read(&w->op, &gremlin_limits_of_service, buf_view(&message), false, r);
    buf_free(&message);
    return e;
}

static err read_json(world *w, const char *mime, const char *json, gremlin_request *r) {
    return read_message(w, mime, json, strlen(json), r);
}

static void assert_text(buf *out, const char *expected) {
    buf_add_byte(out, 0);
    assert_true(buf_ok(out));
    assert_string_equal(out->p, expected);
    buf_free(out);
}

/* ---- requests ---- */

static void eval_with_bindings(void **state) {
    world w;
    gremlin_request r;
    (void)state;
    open_world(&w);
    assert_int_equal(
        read_json(
            &w, "application/vnd.gremlin-v2.0+json",
            "{\"requestId\":{\"@type\":\"g:UUID\",\"@value\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\"},\"op\":\"eval\",\"processor\":\"\","
            "\"args\":{\"gremlin\":\"g.V(x)\",\"bindings\":{\"x\":{\"@type\":\"g:Int64\",\"@value\":5},\"y\":1.5,\"b\":true},"
            "\"language\":\"gremlin-groovy\",\"aliases\":{\"g\":\"g\"},\"batchSize\":7,\"evaluationTimeout\":{\"@type\":\"g:Int64\",\"@"
            "value\":900}}}",
            &r),
        OK);
    assert_true(r.has_id && r.id[0] == 0x41 && r.id[15] == 0x86);
    assert_true(slice_eq(r.op, SLICE_LIT("eval")) && slice_eq(r.script, SLICE_LIT("g.V(x)")));
    assert_int_equal(r.format, GREMLIN_GRAPHSON_2);
    assert_int_equal(r.batch_size, 7);
    assert_int_equal(r.timeout_ms, 900);
    const gremlin_value *x = gremlin_map_get(r.bindings, gremlin_string(SLICE_LIT("x")));
    assert_true(x && x->type == GREMLIN_LONG && x->i == 5);
    gremlin_script script;
    assert_int_equal(gremlin_parse(&w.op, &gremlin_limits_of_service, r.script, r.bindings, &script), OK);
    assert_int_equal(script.traversals[0]->steps[0].args[0].i, 5);
    close_world(&w);
}

static void count_rows(void *context, gremlin_value result, int64_t bulk) {
    (void)result;
    *(int64_t *)context += bulk;
}

static int64_t rows_of(world *w, const gremlin_traversal *t) {
    graph *g = graph_open("modern");
    int64_t n = 0;
    gremlin_run_options options = {.bare_results = true};
    assert_int_equal(graph_run(g, &w->op, t, &options, count_rows, &n), OK);
    graph_close(g);
    return n;
}

static void bytecode_of_graphson(void **state) {
    world w;
    gremlin_request r;
    (void)state;
    open_world(&w);
    assert_int_equal(read_json(&w, "application/vnd.gremlin-v3.0+json",
                               "{\"requestId\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\",\"op\":\"bytecode\",\"processor\":\"traversal\","
                               "\"args\":{\"@type\":\"g:Map\",\"@value\":["
                               "\"gremlin\",{\"@type\":\"g:Bytecode\",\"@value\":{\"source\":[[\"withStrategies\",{\"@type\":\"g:"
                               "OptionsStrategy\",\"@value\":{\"evaluationTimeout\":5}}]],"
                               "\"step\":[[\"V\"],[\"has\",\"age\",{\"@type\":\"g:P\",\"@value\":{\"predicate\":\"gt\",\"value\":{\"@"
                               "type\":\"g:Int32\",\"@value\":30}}}],"
                               "[\"where\",{\"@type\":\"g:Bytecode\",\"@value\":{\"step\":[[\"out\",\"created\"]]}}]]}},\"aliases\",{\"@"
                               "type\":\"g:Map\",\"@value\":[\"g\",\"g\"]}]}}",
                               &r),
                     OK);
    assert_non_null(r.traversal);
    assert_int_equal(rows_of(&w, r.traversal), 2);
    assert_int_equal(r.traversal->source->given_n, 1);
    close_world(&w);
}

/* What npm gremlin 3.8 sends for g.V().has('name','marko').out(): the steps, then no source instructions. */
static void bytecode_of_graphbinary(void **state) {
    static const char payload[] = "\x81"
                                  "\x41\xd2\xe2\x8a\x20\xa4\x4a\xb0\xb3\x79\xd8\x10\xde\xde\x37\x86"
                                  "\0\0\0\x08"
                                  "bytecode"
                                  "\0\0\0\x09"
                                  "traversal"
                                  "\0\0\0\x01"
                                  "\x03\0\0\0\0\x07gremlin"
                                  "\x15\0"
                                  "\0\0\0\x03"
                                  "\0\0\0\x01V\0\0\0\0"
                                  "\0\0\0\x03has\0\0\0\x02"
                                  "\x03\0\0\0\0\x04name"
                                  "\x03\0\0\0\0\x05marko"
                                  "\0\0\0\x03out\0\0\0\0"
                                  "\0\0\0\0";
    world w;
    gremlin_request r;
    (void)state;
    open_world(&w);
    assert_int_equal(read_message(&w, "application/vnd.graphbinary-v1.0", payload, sizeof payload - 1, &r), OK);
    assert_non_null(r.traversal);
    assert_int_equal(rows_of(&w, r.traversal), 3);
    for (size_t n = 0; n < sizeof payload - 1; n++) { /* cut anywhere, it is refused */
        assert_int_not_equal(read_message(&w, "application/vnd.graphbinary-v1.0", payload, n, &r), OK);
    }
    close_world(&w);
}

static void malformed_requests(void **state) {
    static const char *const payloads[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"requestId\":5}",
        "{\"requestId\":\"x\"}",
        "{\"requestId\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\",\"args\":{\"a\":{\"@type\":\"g:Nonsense\",\"@value\":1}}}",
        "{\"requestId\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\",\"args\":{\"a\":{\"@type\":\"g:Int32\",\"@value\":99999999999}}}"};
    world w;
    gremlin_request r;
    (void)state;
    open_world(&w);
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        assert_int_equal(read_json(&w, "application/vnd.gremlin-v2.0+json", payloads[i], &r), E_BAD_REQUEST);
        assert_true(w.op.detail_n > 0);
    }
    assert_int_equal(read_json(&w, "text/plain", "{}", &r), E_BAD_REQUEST);
    close_world(&w);
}

/* ---- responses ---- */

static void write_response(world *w, gremlin_format format, buf *out) {
    gremlin_request r = {.format = format, .has_id = true};
    memset(r.id, 0x11, sizeof r.id);
    gremlin_pair attributes[] = {{gremlin_string(SLICE_LIT("x-ms-request-charge")), gremlin_double(2.5)},
                                 {gremlin_string(SLICE_LIT("x-ms-activity-id")), gremlin_string(SLICE_LIT("a"))}};
    gremlin_results results = gremlin_results_init(format, false, NULL);
    assert_true(gremlin_results_add(&results, gremlin_int(1), 2));
    gremlin_response_write(out, &r, 200, SLICE_EMPTY, gremlin_map_of(&w->memory, GREMLIN_MAP, attributes, 2), &results);
    gremlin_results_free(&results);
}

static void responses(void **state) {
    world w;
    buf out = buf_init(4096);
    (void)state;
    open_world(&w);
    write_response(&w, GREMLIN_GRAPHSON_1, &out);
    assert_text(&out, "{\"requestId\":\"11111111-1111-1111-1111-111111111111\",\"status\":{\"message\":\"\",\"code\":200,\"attributes\":"
                      "{\"x-ms-request-charge\":2.5,\"x-ms-activity-id\":\"a\"}},\"result\":{\"data\":[1,1],\"meta\":{}}}");
    out = buf_init(4096);
    write_response(&w, GREMLIN_GRAPHSON_3, &out);
    assert_text(
        &out,
        "{\"requestId\":\"11111111-1111-1111-1111-111111111111\",\"status\":{\"message\":\"\",\"code\":200,\"attributes\":"
        "{\"@type\":\"g:Map\",\"@value\":[\"x-ms-request-charge\",{\"@type\":\"g:Double\",\"@value\":2.5},\"x-ms-activity-id\",\"a\"]}},"
        "\"result\":{\"data\":{\"@type\":\"g:List\",\"@value\":[{\"@type\":\"g:Int32\",\"@value\":1},{\"@type\":\"g:Int32\",\"@value\":1}]}"
        ","
        "\"meta\":{\"@type\":\"g:Map\",\"@value\":[]}}}");
    out = buf_init(4096);
    write_response(&w, GREMLIN_GRAPHBINARY_1, &out);
    assert_int_equal(out.n, 1 + 1 + 16 + 4 + 1 + 4 + 4 + (6 + 19 + 10) + (6 + 16 + 7) + 4 + 6 + 12);
    buf_free(&out);
    close_world(&w);
}

static void results_as_texts(void **state) {
    gremlin_request r;
    world w;
    (void)state;
    open_world(&w);
    static const char message[] = "\x28"
                                  "application/vnd.graphbinary-v1.0-stringd\x81";
    assert_int_not_equal(gremlin_request_read(&w.op, &gremlin_limits_of_service, SLICE_LIT(message), false, &r), OK);
    assert_int_equal(r.format, GREMLIN_GRAPHBINARY_1);
    assert_true(r.texts);
    assert_int_equal(read_json(&w, "application/vnd.gremlin-v3.0+json-stringd", "{}", &r), E_BAD_REQUEST);
    gremlin_results results = gremlin_results_init(GREMLIN_GRAPHBINARY_1, false, NULL);
    results.texts = true;
    assert_true(gremlin_results_add(&results, gremlin_int(7), 2));
    assert_int_equal(results.n, 2);
    assert_int_equal(results.bytes.n, 14);
    assert_memory_equal(results.bytes.p,
                        "\3\0\0\0\0\1"
                        "7"
                        "\3\0\0\0\0\1"
                        "7",
                        14);
    gremlin_results_free(&results);
    close_world(&w);
}

/* A request that is refused while it is read is answered by its id. */
static void id_of_a_refused_request(void **state) {
    static const char *const ids[] = {"\"41d2e28a-20a4-4ab0-b379-d810dede3786\"",
                                      "{\"@type\":\"g:UUID\",\"@value\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\"}"};
    static const char rest[] = ",\"args\":{\"gremlin\":{\"@type\":\"g:Bytecode\",\"@value\":{\"step\":[[\"nothing\"]]}}}}";
    gremlin_request r;
    world w;
    char text[400];
    (void)state;
    open_world(&w);
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "{\"requestId\":%s%s", ids[i], rest);
        assert_int_equal(read_json(&w, "application/vnd.gremlin-v2.0+json", text, &r), E_BAD_QUERY);
        assert_true(r.has_id);
        assert_int_equal(r.id[0], 0x41);
        assert_int_equal(r.id[15], 0x86);
    }
    close_world(&w);
}

/* ---- elements ---- */

typedef struct written {
    gremlin_format format;
    buf out;
} written;

static void write_row(void *context, gremlin_value result, int64_t bulk) {
    written *x = context;
    (void)bulk;
    assert_true(gremlin_value_write(&x->out, x->format, result));
}

static void check_written(world *w, gremlin_format format, const char *graph_name, const char *script, const char *expected) {
    graph *g = graph_open(graph_name);
    gremlin_script parsed;
    written x = {format, buf_init(1 << 16)};
    gremlin_run_options options = {0};
    assert_int_equal(gremlin_parse(&w->op, &gremlin_limits_of_service, slice_str(script), gremlin_null(), &parsed), OK);
    assert_int_equal(graph_run(g, &w->op, parsed.traversals[0], &options, write_row, &x), OK);
    graph_close(g);
    assert_text(&x.out, expected);
}

static void elements_as_graphson(void **state) {
    world w;
    (void)state;
    open_world(&w);
    check_written(&w, GREMLIN_GRAPHSON_1, "modern", "g.V(1)",
                  "{\"id\":1,\"label\":\"person\",\"type\":\"vertex\",\"properties\":{\"name\":[{\"id\":5000,\"value\":\"marko\"}],"
                  "\"age\":[{\"id\":5001,\"value\":29}]}}");
    check_written(&w, GREMLIN_GRAPHSON_1, "modern", "g.E(7)",
                  "{\"id\":7,\"label\":\"knows\",\"type\":\"edge\",\"inVLabel\":\"person\",\"outVLabel\":\"person\",\"inV\":2,\"outV\":1,"
                  "\"properties\":{\"weight\":0.5}}");
    check_written(
        &w, GREMLIN_GRAPHSON_2, "modern", "g.E(7)",
        "{\"@type\":\"g:Edge\",\"@value\":{\"id\":{\"@type\":\"g:Int32\",\"@value\":7},\"label\":\"knows\",\"inVLabel\":\"person\","
        "\"outVLabel\":\"person\",\"inV\":{\"@type\":\"g:Int32\",\"@value\":2},\"outV\":{\"@type\":\"g:Int32\",\"@value\":1},"
        "\"properties\":{\"weight\":{\"@type\":\"g:Property\",\"@value\":{\"key\":\"weight\",\"value\":{\"@type\":\"g:Double\",\"@value\":"
        "0.5}}}}}}");
    check_written(&w, GREMLIN_GRAPHSON_1, "crew", "g.V(1).properties('location').limit(1)",
                  "{\"id\":5006,\"value\":\"san diego\",\"label\":\"location\",\"properties\":{\"startTime\":1997,\"endTime\":2001}}");
    check_written(&w, GREMLIN_GRAPHSON_1, "modern", "g.V(1).as('a').out('knows').limit(1).path().by('name')",
                  "{\"labels\":[[\"a\"],[]],\"objects\":[\"marko\",\"vadas\"]}");
    check_written(&w, GREMLIN_GRAPHSON_1, "modern", "g.V(1).out('knows').limit(1).tree().by('name')",
                  "{\"marko\":{\"key\":\"marko\",\"value\":{\"vadas\":{\"key\":\"vadas\",\"value\":{}}}}}");
    check_written(&w, GREMLIN_GRAPHSON_3, "modern", "g.V(2).valueMap('age')",
                  "{\"@type\":\"g:Map\",\"@value\":[\"age\",{\"@type\":\"g:List\",\"@value\":[{\"@type\":\"g:Int32\",\"@value\":27}]}]}");
    check_written(&w, GREMLIN_GRAPHSON_1, "modern", "g.V(2).valueMap(true)",
                  "{\"id\":2,\"label\":\"person\",\"name\":[\"vadas\"],\"age\":[27]}");
    close_world(&w);
}

/* ---- values of all types, there and back ---- */

static void round_trips(void **state) {
    static const char *const scripts[] = {"g.inject(null)",
                                          "g.inject(true)",
                                          "g.inject(1b)",
                                          "g.inject(-2s)",
                                          "g.inject(3)",
                                          "g.inject(-4L)",
                                          "g.inject(5n)",
                                          "g.inject(-99999999999999n)",
                                          "g.inject(1.5f)",
                                          "g.inject(-2.25d)",
                                          "g.inject(12.50m)",
                                          "g.inject(-1e-20m)",
                                          "g.inject('h\\u00e9')",
                                          "g.inject([1,'a',[2]])",
                                          "g.inject({1,2})",
                                          "g.inject([a:1,(T.id):2L,(3):[:]])",
                                          "g.inject(NaN)",
                                          "g.inject(Infinity)",
                                          "g.inject(T.label)",
                                          "g.inject(Direction.OUT)",
                                          "g.inject(datetime('2024-05-06T07:08:09.123Z'))",
                                          "g.inject(UUID.fromString('41d2e28a-20a4-4ab0-b379-d810dede3786'))"};
    world w;
    (void)state;
    open_world(&w);
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        gremlin_script script;
        assert_int_equal(gremlin_parse(&w.op, &gremlin_limits_of_service, slice_str(scripts[i]), gremlin_null(), &script), OK);
        gremlin_value v = script.traversals[0]->steps[0].args[0], again;
        static const gremlin_format formats[] = {GREMLIN_GRAPHSON_3, GREMLIN_GRAPHBINARY_1};
        for (size_t j = 0; j < 2; j++) {
            buf out = buf_init(4096);
            buf_add_slice(&out, j ? SLICE_EMPTY : SLICE_LIT("["));
            assert_true(gremlin_value_write(&out, formats[j], v));
            buf_add_slice(&out, j ? SLICE_EMPTY : SLICE_LIT("]"));
            assert_int_equal(gremlin_value_read(&w.op, &gremlin_limits_of_service, formats[j], buf_view(&out), &again), OK);
            again = j ? again : again.list->at[0];
            assert_int_equal(again.type, v.type);
            assert_true(gremlin_same(again, v));
            buf_free(&out);
        }
    }
    close_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eval_with_bindings),
        cmocka_unit_test(bytecode_of_graphson),
        cmocka_unit_test(bytecode_of_graphbinary),
        cmocka_unit_test(malformed_requests),
        cmocka_unit_test(responses),
        cmocka_unit_test(results_as_texts),
        cmocka_unit_test(id_of_a_refused_request),
        cmocka_unit_test(elements_as_graphson),
        cmocka_unit_test(round_trips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
