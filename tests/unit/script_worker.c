/* The script worker, from the server's side: what a script can use, the order of events, its answers, and what the process cannot do. Each
 * case plays the server: it lists the exact calls to expect and their answers. */
#include "script_harness.h"

#include <dirent.h>
#include <sys/resource.h>

static worker shared; /* used by all tests that do not end it */

static int start_shared(void **state) {
    (void)state;
    shared = worker_start(NULL);
    return 0;
}

static int end_shared(void **state) {
    (void)state;
    return worker_end(&shared) == 0 ? 0 : -1;
}

typedef struct turn {
    const char *call;   /* CALL's text */
    const char *answer; /* ANSWER's text */
} turn;

#define SELF "\"link\":\"dbs/a==/colls/b==/\""
#define ITEM "\"link\":\"dbs/a==/colls/b==/docs/i==\""
#define FIRST_PAGE "\"options\":{\"pageSize\":100}"

/* Runs a script through its calls and checks the kind and text of its last frame. */
static void check_run(const char *body, const char *more, const turn *turns, script_frame kind, const char *text) {
    worker_run(&shared, slice_of(body, strlen(body)), more);
    for (; turns && turns->call; turns++) {
        assert_int_equal(SCRIPT_CALL, worker_receive(&shared));
        assert_string_equal(turns->call, shared.in.p);
        worker_send(&shared, SCRIPT_ANSWER, slice_of(turns->answer, strlen(turns->answer)));
    }
    int got = worker_receive(&shared);
    assert_string_equal(text, shared.in.p);
    assert_int_equal(kind, got);
}

#define TURNS(...) ((const turn[]){__VA_ARGS__, {0}})

static void done(const char *body, const turn *turns, const char *text) {
    check_run(body, "", turns, SCRIPT_DONE, text);
}

/* Expects a FAULT whose message contains `part`. */
static void fault(const char *body, const turn *turns, const char *part) {
    worker_run(&shared, slice_of(body, strlen(body)), "");
    for (; turns && turns->call; turns++) {
        assert_int_equal(SCRIPT_CALL, worker_receive(&shared));
        assert_string_equal(turns->call, shared.in.p);
        worker_send(&shared, SCRIPT_ANSWER, slice_of(turns->answer, strlen(turns->answer)));
    }
    assert_int_equal(SCRIPT_FAULT, worker_receive(&shared));
    if (!strstr(shared.in.p, part)) {
        assert_string_equal(part, shared.in.p);
    }
}

/* ---- shapes of scripts ---- */

static void test_every_usual_shape_of_a_script_runs(void **state) {
    (void)state;
    const char *const shapes[] = {
        "function f() { __.response.setBody(1) }",
        "function () { __.response.setBody(1) }",
        "() => { __.response.setBody(1) }",
        "async () => { await 0; __.response.setBody(1) }",
        "async function f() { await 0; __.response.setBody(1) }",
        "function f() { __.response.setBody(1) };",
        "// why\n/* and how */ function f() { __.response.setBody(1) } // end",
        "(function f() { __.response.setBody(1) })",
        "'use strict';\nfunction f() { __.response.setBody(1) }",
        "function main() { helper() }\nfunction helper() { __.response.setBody(1) }",
        "function main() { helper() }\nvar helper = function () { __.response.setBody(1) };",
        "const one = 1;\nfunction main() { __.response.setBody(one) }",
        "var main = function () { __.response.setBody(1) };",
        "const main = (x) => __.response.setBody(1);\n",
        "let n = 1;\n(function () { __.response.setBody(n) })",
        "function main() { function inner() { return 1 } __.response.setBody(inner()) }",
        "/*\nfunction for one\nvar if\n*/\nfunction main() { __.response.setBody(one) }\nconst one = 1;",
        "class Counter { one() { return 1 } }\nfunction main() { __.response.setBody(new Counter().one()) }",
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        done(shapes[i], NULL, "{\"body\":1}");
    }
}

static void test_arguments_reach_the_function_and_its_value_is_not_the_body(void **state) {
    (void)state;
    check_run("function f(a, b, c) { __.response.setBody([a, b.x, typeof c, arguments.length]); return 5; }",
              ",\"kind\":\"sproc\",\"args\":[\"one\",{\"x\":[2]}]", NULL, SCRIPT_DONE, "{\"body\":[\"one\",[2],\"undefined\",2]}");
    done("function f() { return 5 }", NULL, "{}");
}

static void test_each_script_has_a_global_of_its_own(void **state) {
    (void)state;
    done("function f() { globalThis.leak = 1; Array.prototype.leak = 1; Object.prototype.x = 2; }", NULL, "{}");
    done("function f() { __.response.setBody([typeof leak, typeof [].leak, typeof ({}).x]) }", NULL,
         "{\"body\":[\"undefined\",\"undefined\",\"undefined\"]}");
}

/* ---- the container ---- */

static void test_items_are_written_and_read(void **state) {
    (void)state;
    done("function f() {"
         "  const c = getContext().getCollection();"
         "  c.createDocument(c.getSelfLink(), {id: 'i', x: 1}, (e, d, o) => {"
         "    c.readDocument(d._self, (e, d, o) => {"
         "      c.replaceDocument(d._self, {id: 'i', x: 2}, {etag: 'e'}, (e, d) => {"
         "        c.upsertDocument(c.getAltLink(), {id: 'i', x: 3}, (e, d) => {"
         "          c.deleteDocument(d._self, (e, o) => { __.response.setBody([e === undefined, o.statusCode]) }) }) }) }) }) }",
         TURNS(
             {"{\"op\":\"create\"," SELF ",\"body\":{\"id\":\"i\",\"x\":1}}",
              "{\"status\":201,\"body\":{\"_self\":\"dbs/a==/colls/b==/docs/i==\"}}"},
             {"{\"op\":\"read\"," ITEM "}", "{\"status\":200,\"body\":{\"_self\":\"dbs/a==/colls/b==/docs/i==\"}}"},
             {"{\"op\":\"replace\"," ITEM ",\"body\":{\"id\":\"i\",\"x\":2},\"options\":{\"etag\":\"e\"}}", "{\"status\":200,\"body\":{}}"},
             {"{\"op\":\"upsert\",\"link\":\"dbs/d/colls/c\",\"body\":{\"id\":\"i\",\"x\":3}}",
              "{\"status\":200,\"body\":{\"_self\":\"dbs/d/colls/c/docs/i\"}}"},
             {"{\"op\":\"delete\",\"link\":\"dbs/d/colls/c/docs/i\"}", "{\"status\":204}"}),
         "{\"body\":[true,204]}");
}

static void test_feeds_and_queries_have_pages(void **state) {
    (void)state;
    done("function f() {"
         "  __.readDocuments(__.getSelfLink(), {pageSize: 2}, (e, rows, o) => {"
         "    __.queryDocuments(__.getSelfLink(), 'SELECT 1', {continuation: o.continuation, enableScan: true}, (e, more) => {"
         "      __.queryDocuments(__.getSelfLink(), {query: 'SELECT @a', parameters: [{name: '@a', value: 1}]}, (e, last, o) => {"
         "        __.response.setBody([rows, more, last, o.continuation]) }) }) }) }",
         TURNS({"{\"op\":\"list\"," SELF ",\"options\":{\"pageSize\":2}}", "{\"status\":200,\"body\":[1,2],\"continuation\":\"next\"}"},
               {"{\"op\":\"query\"," SELF
                ",\"query\":{\"query\":\"SELECT 1\"},\"options\":{\"pageSize\":100,\"continuation\":\"next\",\"enableScan\":true}}",
                "{\"status\":200,\"body\":[3]}"},
               {"{\"op\":\"query\"," SELF ",\"query\":{\"query\":\"SELECT @a\",\"parameters\":[{\"name\":\"@a\",\"value\":1}]}," FIRST_PAGE
                "}",
                "{\"status\":200,\"body\":[]}"}),
         "{\"body\":[[1,2],[3],[],null]}");
}

static void test_options_are_passed_on(void **state) {
    (void)state;
    done("function f() {"
         "  __.createDocument(__.getSelfLink(), '{\"id\": \"t\"}', {indexAction: 'exclude'});"
         "  __.createDocument(__.getSelfLink(), {x: 1}, {disableAutomaticIdGeneration: true});"
         "  __.deleteDocument(__.getSelfLink() + 'docs/i==', {accessCondition: {type: 'IfMatch', condition: 'c'}});"
         "  __.readDocument(__.getSelfLink() + 'docs/i==', {ifNoneMatch: 'n'}, (e, d, o) => __.response.setBody([d === undefined, "
         "o.notModified])); }",
         TURNS({"{\"op\":\"create\"," SELF ",\"body\":{\"id\":\"t\"},\"options\":{\"indexAction\":\"exclude\"}}", "{\"status\":201}"},
               {"{\"op\":\"create\"," SELF ",\"body\":{\"x\":1}}", "{\"status\":201}"},
               {"{\"op\":\"delete\"," ITEM ",\"options\":{\"etag\":\"c\"}}", "{\"status\":204}"},
               {"{\"op\":\"read\"," ITEM ",\"options\":{\"ifNoneMatch\":\"n\"}}", "{\"status\":304}"}),
         "{\"body\":[true,true]}");
}

static void test_an_item_without_id_gets_one(void **state) {
    (void)state;
    const char script[] = "function f() { const item = {x: 1}; __.createDocument(__.getSelfLink(), item); __.response.setBody(item) }";
    worker_run(&shared, slice_of(script, sizeof script - 1), "");
    assert_int_equal(SCRIPT_CALL, worker_receive(&shared));
    const char *at = strstr(shared.in.p, "\"x\":1,\"id\":\"");
    assert_non_null(at);
    at += strlen("\"x\":1,\"id\":\"");
    assert_int_equal(36, strcspn(at, "\""));
    assert_int_equal(36, strspn(at, "0123456789abcdef-"));
    worker_send(&shared, SCRIPT_ANSWER, SLICE_LIT("{\"status\":201,\"body\":{}}"));
    assert_int_equal(SCRIPT_DONE, worker_receive(&shared));
    assert_string_equal("{\"body\":{\"x\":1}}", shared.in.p); /* the script's own object is not changed */
}

/* ---- order and acceptance ---- */

static void test_callbacks_come_later_and_in_order(void **state) {
    (void)state;
    done("function f() {"
         "  const seen = [];"
         "  const call = (n, then) => seen.push('call ' + n + __.createDocument(__.getSelfLink(), {id: n}, () => { seen.push(n); then && "
         "then(); }));"
         "  call('a', () => call('c')); call('b');"
         "  Promise.resolve().then(() => seen.push('promise'));"
         "  seen.push('returned'); __.response.setBody(seen); }",
         TURNS({"{\"op\":\"create\"," SELF ",\"body\":{\"id\":\"a\"}}", "{\"status\":201}"},
               {"{\"op\":\"create\"," SELF ",\"body\":{\"id\":\"b\"}}", "{\"status\":201}"},
               {"{\"op\":\"create\"," SELF ",\"body\":{\"id\":\"c\"}}", "{\"status\":201}"}),
         "{\"body\":[\"call atrue\",\"call btrue\",\"returned\",\"promise\",\"a\",\"call ctrue\",\"b\",\"c\"]}");
}

static void test_a_call_that_is_not_accepted_returns_false(void **state) {
    (void)state;
    done("function f() {"
         "  __.response.setBody([__.createDocument(__.getSelfLink(), {id: '1'}, () => { throw 1 }),"
         "                       __.filter(() => true, () => { throw 1 }).isAccepted]) }",
         TURNS({"{\"op\":\"create\"," SELF ",\"body\":{\"id\":\"1\"}}", "{\"accepted\":false}"},
               {"{\"op\":\"list\"," SELF "," FIRST_PAGE "}", "{\"accepted\":false}"}),
         "{\"body\":[false,false]}");
}

static void test_async_functions_wait_for_calls(void **state) {
    (void)state;
    done("async function f() {"
         "  const create = (item) => new Promise((yes, no) => {"
         "    if (!__.createDocument(__.getSelfLink(), item, (e, d) => e ? no(e) : yes(d))) no(new Error('not accepted')); });"
         "  const first = await create({id: 'a'});"
         "  try { await create({id: 'b'}) } catch (e) { __.response.setBody([first, e.number, e.body]) } }",
         TURNS({"{\"op\":\"create\"," SELF ",\"body\":{\"id\":\"a\"}}", "{\"status\":201,\"body\":{\"n\":1}}"},
               {"{\"op\":\"create\"," SELF ",\"body\":{\"id\":\"b\"}}", "{\"status\":409,\"message\":\"taken\"}"}),
         "{\"body\":[{\"n\":1},409,\"taken\"]}");
}

/* ---- errors ---- */

static void test_a_callback_gets_the_error_of_its_call(void **state) {
    (void)state;
    done("function f() { __.createDocument(__.getSelfLink(), {id: '1'}, (e, d) => {"
         "  __.response.setBody([e instanceof Error, e.number, e.body, e.message, JSON.stringify(e), typeof d]) }) }",
         TURNS({"{\"op\":\"create\"," SELF ",\"body\":{\"id\":\"1\"}}", "{\"status\":409,\"message\":\"there\"}"}),
         "{\"body\":[true,409,\"there\",\"there\",\"{\\\"number\\\":409,\\\"body\\\":\\\"there\\\"}\",\"undefined\"]}");
}

static void test_an_error_without_callback_ends_the_script(void **state) {
    (void)state;
    fault("function f() { __.createDocument(__.getSelfLink(), {id: '1'}); }",
          TURNS({"{\"op\":\"create\"," SELF ",\"body\":{\"id\":\"1\"}}", "{\"status\":409,\"message\":\"there\"}"}),
          "\"message\":\"Encountered exception while executing function. Exception = Error: there\",\"number\":409}");
}

static void test_what_is_thrown_is_told_as_the_service_does(void **state) {
    (void)state;
    fault("function named() {\n  throw new Error('why');\n}", NULL,
          "{\"compile\":false,\"message\":\"Encountered exception while executing function. Exception = Error: why\\r\\n"
          "Stack trace: Error: why\\n   at named (s.js:2:18)\"}");
    fault("function f() { throw 'just text' }", NULL, "Exception = just text\"}");
    fault("function f() { throw {code: 5} }", NULL, "Exception = {\\\"code\\\":5}\"}");
    fault("function f() { throw new Error(404, 'gone') }", NULL, "Exception = Error: gone\\r\\n");
    assert_non_null(strstr(shared.in.p, "\"number\":404"));
    fault("function f() { throw new RangeError('far') }", NULL, "Exception = RangeError: far");
    fault("function f() { class Own extends Error { get name() { return 'Own' } } throw new Own('mine') }", NULL, "Exception = Own: mine");
    fault("function f() { null.x }", NULL, "Exception = TypeError: null is not an object");
    fault("function f() { console.log('seen'); throw 1 }", NULL, "\"log\":\"seen\"");
}

static void test_what_is_thrown_later_ends_the_script_too(void **state) {
    (void)state;
    const turn *created = TURNS({"{\"op\":\"create\"," SELF ",\"body\":{\"id\":\"1\"}}", "{\"status\":201}"});
    fault("function f() { __.createDocument(__.getSelfLink(), {id: '1'}, () => { throw new Error('late') }) }", created, "Error: late");
    fault("async function f() { throw new Error('promised') }", NULL, "Error: promised");
    fault("function f() { (async () => { throw new Error('nobody waits') })() }", NULL, "Error: nobody waits");
    fault("function f() { getContext().abort(new Error('aborted')) }", NULL, "Error: aborted");
    fault("function f() { Promise.reject(1).catch(() => getContext().abort('in a promise')) }", NULL, "Exception = in a promise");
    done("function f() { Promise.reject(1).catch(() => __.response.setBody('handled')) }", NULL, "{\"body\":\"handled\"}");
}

static void test_no_call_is_made_after_the_end(void **state) {
    (void)state;
    fault("function f() { Promise.resolve().then(() => __.createDocument(__.getSelfLink(), {id: '1'})); throw 'over' }", NULL, "over");
    fault("function f() { try { getContext().abort('over') } catch (e) {} __.createDocument(__.getSelfLink(), {id: '1'}) }", NULL, "over");
}

static void test_a_text_that_is_no_script_is_told_as_such(void **state) {
    (void)state;
    fault("function f() {\n  return 1 +;\n}", NULL,
          "{\"compile\":true,\"message\":\"Encountered exception while compiling Javascript. Exception = SyntaxError: ");
    assert_non_null(strstr(shared.in.p, "(s.js:2"));
    fault("function (a { }", NULL, "{\"compile\":true,");
    fault("5", NULL, "{\"compile\":true,");
    fault("var x = 5;", NULL, "{\"compile\":true,");
    fault("throw new Error('on top')", NULL,
          "{\"compile\":false,\"message\":\"Encountered exception while executing function. Exception = Error: on top");
}

static void test_wrong_arguments_are_refused_as_on_the_service(void **state) {
    (void)state;
    fault("function f() { __.createDocument(__.getSelfLink()) }", NULL,
          "The function \\\"createDocument\\\" requires at least 2 argument(s) but was called with 1 argument(s).");
    assert_non_null(strstr(shared.in.p, "\"number\":400"));
    fault("function f() { __.createDocument('x', {}) }", NULL, "Invalid collection link: \\\"x\\\".");
    fault("function f() { __.readDocument(__.getSelfLink()) }", NULL, "Invalid document link: ");
    fault("function f() { __.deleteDocument('dbs/a==/colls/other==/docs/i==') }", NULL,
          "Function is not allowed to operate on resources outside current collection.");
    fault("function f() { __.createDocument(__.getSelfLink(), 5) }", NULL, "The document body must be an object or a string");
    fault("function f() { __.createDocument(__.getSelfLink(), {}, {}, 5) }", NULL,
          "The \\\"callback\\\" parameter must be of type \\\"function\\\". Actual type is: \\\"number\\\".");
    fault("function f() { __.createAttachment(__.getSelfLink(), {}) }", NULL, "Attachments cannot be used in a script.");
}

/* ---- request and response ---- */

static void test_a_pre_trigger_changes_its_request(void **state) {
    (void)state;
    check_run("function f() { const r = getContext().getRequest(); const b = r.getBody(); b.at = r.getOperationType(); r.setBody(b);"
              "  b.context = typeof getContext().getResponse; b.header = r.getValue('x-ms-a'); }",
              ",\"kind\":\"pre\",\"request\":{\"body\":{\"id\":\"1\"},\"operation\":\"Create\",\"headers\":{\"x-ms-a\":\"b\"}}", NULL,
              SCRIPT_DONE, "{\"body\":{\"id\":\"1\",\"at\":\"Create\",\"context\":\"undefined\",\"header\":\"b\"}}");
    check_run("function f() { __.request.setValue('x-ms-new', 1) }", ",\"kind\":\"pre\",\"request\":{\"body\":{\"id\":\"1\"}}", NULL,
              SCRIPT_FAULT,
              "{\"compile\":false,\"message\":\"Encountered exception while executing function. Exception = Error: Cannot set new values: "
              "x-ms-new\\r\\n"
              "Stack trace: Error: Cannot set new values: x-ms-new\\n   at f (s.js:1:36)\",\"number\":400}");
}

static void test_a_post_trigger_sees_both(void **state) {
    (void)state;
    check_run(
        "function f() { const r = getContext().getResponse(); r.setBody([__.request.getBody(), r.getBody(), typeof __.request.setBody,"
        "  r.getResourceQuotaCurrentUsage(), r.getMaxResourceQuota()]) }",
        ",\"kind\":\"post\",\"request\":{\"body\":1,\"operation\":\"Replace\"},\"response\":{\"body\":2,\"usage\":\"u\",\"quota\":\"q\"}",
        NULL, SCRIPT_DONE, "{\"body\":[1,2,\"undefined\",\"u\",\"q\"]}");
    check_run("function f() { }", ",\"kind\":\"post\",\"response\":{\"body\":{\"kept\":true}}", NULL, SCRIPT_DONE,
              "{}"); /* a body that was not set is not sent */
}

static void test_the_body_can_be_appended_to(void **state) {
    (void)state;
    done("function f() { const r = __.response; r.appendBody('a'); r.appendBody('b'); r.appendBody(1); r.setValue('Body', "
         "r.getValue('Body') + '!') }",
         NULL, "{\"body\":\"ab1!\"}");
    fault("function f() { const r = __.response; const mega = 'x'.repeat(1024 * 1024); for (;;) r.appendBody(mega) }", NULL,
          "Resulting message would be too large because of \\\"Body\\\".");
    assert_non_null(strstr(shared.in.p, "\"number\":413"));
}

static void test_the_log_is_gathered_when_asked_for(void **state) {
    (void)state;
    done("function f() { console.log('a'); console.log('%s and %s, 100%%', 'b', 3) }", NULL, "{\"log\":\"ab and 3, 100%\"}");
    check_run("function f() { console.log('a') }", ",\"kind\":\"sproc\",\"logging\":false", NULL, SCRIPT_DONE, "{}");
    const char script[] = "function f() { for (let i = 0; i < 1000; i++) console.log('x'.repeat(1000)) }";
    worker_run(&shared, slice_of(script, sizeof script - 1), "");
    assert_int_equal(SCRIPT_DONE, worker_receive(&shared));
    assert_int_equal(strlen("{\"log\":\"\"}") + 64 * 1024, shared.in.n);
}

/* ---- queries written as JavaScript ---- */

#define PEOPLE                                                                                                                             \
    "{\"status\":200,\"body\":[{\"n\":\"Ann\",\"age\":40,\"kids\":[{\"n\":\"x\"},{\"n\":\"y\"}]},{\"n\":\"Bob\",\"age\":20,\"kids\":[]},"  \
    "{\"n\":\"Cid\",\"age\":30,\"tags\":[1,[2,[3]]]}]}"

static void query(const char *expression, const char *expected) {
    char script[1024], body[1024];
    snprintf(script, sizeof script, "function f() { const r = __%s; if (r.isAccepted !== true) throw 'refused' }", expression);
    snprintf(body, sizeof body, "{\"body\":%s}", expected);
    done(script, TURNS({"{\"op\":\"list\"," SELF "," FIRST_PAGE "}", PEOPLE}), body);
}

static void sorted(const char *expression, const char *expected) {
    char script[1024], body[1024];
    snprintf(script, sizeof script, "function f() { __%s }", expression);
    snprintf(body, sizeof body, "{\"body\":%s}", expected);
    done(script, TURNS({"{\"op\":\"list\"," SELF ",\"options\":{\"pageSize\":-1}}", PEOPLE}), body);
}

static void test_each_function_of_the_query_api(void **state) {
    (void)state;
    query(".filter((d) => d.age === 20)", "[{\"n\":\"Bob\",\"age\":20,\"kids\":[]}]");
    query(".map((d) => d.age)", "[40,20,30]");
    query(".map((d) => d.tags)", "[[1,[2,[3]]]]");
    query(".pluck('n')", "[\"Ann\",\"Bob\",\"Cid\"]");
    query(".chain().filter((d) => d.age > 25).pluck('n').value()", "[\"Ann\",\"Cid\"]");
    query(".chain().map((d) => d.tags).flatten().value()", "[1,2,3]");
    query(".chain().map((d) => d.tags).flatten(true).value()", "[1,[2,[3]]]");
    query(".unwind((d) => d.kids)", "[{\"n\":\"x\"},{\"n\":\"y\"}]");
    query(".chain().unwind((d) => d.kids, (d, k) => d.n + k.n).value()", "[\"Annx\",\"Anny\"]");
    query(".filter(__, (d) => d.age < 30, {}, (e, rows) => __.response.setBody(rows.length))", "1");
    query(".chain().pluck('age').value((e, rows, o) => __.response.setBody([rows, o.statusCode]))", "[[40,20,30],200]");
    query(".map((d) => null.x, (e) => __.response.setBody(e.name))", "\"TypeError\"");
    sorted(".chain().sortBy((d) => d.age).pluck('n').value()", "[\"Bob\",\"Cid\",\"Ann\"]");
    sorted(".chain().sortByDescending((d) => d.age).pluck('n').value()", "[\"Ann\",\"Cid\",\"Bob\"]");
    sorted(".sortBy((d) => d.tags && 1, {}, (e, rows) => __.response.setBody(rows.map((r) => r.n)))", "[\"Ann\",\"Bob\",\"Cid\"]");
    sorted(".chain().sortBy((d) => d.n).pluck('n').value({pageSize: 2}, (e, rows, o) => __.response.setBody([rows, o.continuation]))",
           "[[\"Ann\",\"Bob\"],\"sorted:2\"]");
    sorted(".chain().sortBy((d) => d.n).pluck('n').value({pageSize: 2, continuation: 'sorted:2'}, (e, rows, o) => "
           "__.response.setBody([rows, o.continuation]))",
           "[[\"Cid\"],null]");
}

static void test_a_query_asks_for_pages_until_it_has_enough(void **state) {
    (void)state;
    done("function f() { __.filter((n) => n % 2, {pageSize: 3}, (e, rows, o) => __.response.setBody([rows, o.continuation])) }",
         TURNS({"{\"op\":\"list\"," SELF ",\"options\":{\"pageSize\":3}}", "{\"status\":200,\"body\":[1,2,3],\"continuation\":\"p2\"}"},
               {"{\"op\":\"list\"," SELF ",\"options\":{\"pageSize\":1,\"continuation\":\"p2\"}}",
                "{\"status\":200,\"body\":[4],\"continuation\":\"p3\"}"},
               {"{\"op\":\"list\"," SELF ",\"options\":{\"pageSize\":1,\"continuation\":\"p3\"}}",
                "{\"status\":200,\"body\":[5],\"continuation\":\"p4\"}"}),
         "{\"body\":[[1,3,5],\"p4\"]}");
    done("function f() { __.filter((n) => n > 3, (e, rows, o) => __.response.setBody([rows, o.continuation])) }",
         TURNS({"{\"op\":\"list\"," SELF "," FIRST_PAGE "}", "{\"status\":200,\"body\":[1,4],\"continuation\":\"p2\"}"},
               {"{\"op\":\"list\"," SELF ",\"options\":{\"pageSize\":99,\"continuation\":\"p2\"}}", "{\"accepted\":false}"}),
         "{\"body\":[[4],\"p2\"]}");
}

static void test_wrong_queries_are_refused(void **state) {
    (void)state;
    fault("function f() { __.filter(5) }", NULL, "The predicate/transform function must be provided.");
    fault("function f() { __.pluck('') }", NULL, "The property name must be a string and cannot be empty.");
    fault("function f() { __.unwind() }", NULL, "\\\"collectionSelector\\\" must be used.");
    fault("function f() { __.unwind((a, b) => a) }", NULL, "\\\"collectionSelector\\\" requires one argument.");
    fault("function f() { __.chain().filter((d) => d, {}).value() }", NULL, "options can only be provided on the call to the");
    fault("function f() { __.chain().filter((d) => d, () => 1).value() }", NULL, "the callback parameter can only be provided on the");
}

/* ---- functions of queries ---- */

static void define(const char *functions) {
    worker_send(&shared, SCRIPT_DEFINE, slice_of(functions, strlen(functions)));
}

static void rows(const char *calls, const char *results) {
    worker_send(&shared, SCRIPT_ROWS, slice_of(calls, strlen(calls)));
    assert_int_equal(SCRIPT_RESULTS, worker_receive(&shared));
    assert_string_equal(results, shared.in.p);
}

static void test_functions_of_a_query_are_called_in_batches(void **state) {
    (void)state;
    define("{\"functions\":[{\"id\":\"sum\",\"body\":\"function sum(a, b) { return a + b }\"},"
           "{\"id\":\"kind\",\"body\":\"(x) => x === undefined ? 'undefined' : Array.isArray(x) ? 'array' : typeof x\"},"
           "{\"id\":\"same\",\"body\":\"function same(x) { return twice(x) }\\nfunction twice(x) { return x }\"},"
           "{\"id\":\"count\",\"body\":\"function () { return arguments.length }\"}]}");
    assert_int_equal(SCRIPT_READY, worker_receive(&shared));
    rows("[[0,1,2],[0,\"a\",\"b\"],[0,[{\"x\":1}],1]]", "[3,\"ab\",\"[object Object]1\"]");
    rows("[[1,null],[1,[]],[1,[[1]]],[1,[[]]],[1,[{}]],[1,true],[1]]",
         "[\"object\",\"undefined\",\"array\",\"array\",\"object\",\"boolean\",\"undefined\"]");
    rows("[[2,[{\"a\":[1]}]],[2,[[1,2]]],[2,[]],[2,null],[2,false],[2,1e400],[2,-0],[2,\"\\u00e9\\ud83d\\ude00\"]]",
         "[[{\"a\":[1]}],[[1,2]],[],null,false,null,0,\"é😀\"]");
    rows("[[3],[3,1],[3,1,1],[3,1,1,1],[3,1,1,1,1],[3,1,1,1,1,1,[]]]", "[0,1,2,3,4,6]");
}

static void test_a_function_that_throws_ends_its_own_row_only(void **state) {
    (void)state;
    define("{\"functions\":[{\"id\":\"u\",\"body\":\"function u(x) { if (x > 1) throw new Error('big'); return x }\"},"
           "{\"id\":\"n\",\"body\":\"() => 5n\"}]}");
    assert_int_equal(SCRIPT_READY, worker_receive(&shared));
    worker_send(&shared, SCRIPT_ROWS, SLICE_LIT("[[0,1],[0,2],[1],[0,0]]"));
    assert_int_equal(SCRIPT_RESULTS, worker_receive(&shared));
    assert_non_null(
        strstr(shared.in.p, "[1,{\"threw\":\"Encountered exception while executing Javascript. Exception = Error: big\\r\\nStack trace: "));
    assert_non_null(strstr(shared.in.p, "TypeError"));
    assert_string_equal(",0]", shared.in.p + shared.in.n - 3);
}

static void test_functions_that_do_not_compile_are_told(void **state) {
    (void)state;
    define("{\"functions\":[{\"id\":\"ok\",\"body\":\"() => 1\"},{\"id\":\"bad\",\"body\":\"function bad( {\"}]}");
    assert_int_equal(SCRIPT_FAULT, worker_receive(&shared));
    assert_non_null(strstr(shared.in.p, "{\"compile\":true,"));
    assert_non_null(strstr(shared.in.p, "bad.js"));
}

static void test_slow_rows_are_answered_in_parts(void **state) {
    (void)state;
    define("{\"functions\":[{\"id\":\"slow\",\"body\":\"function slow(x) { const end = Date.now() + 40; while (Date.now() < end); return x "
           "}\"}]}");
    assert_int_equal(SCRIPT_READY, worker_receive(&shared));
    worker_send(&shared, SCRIPT_ROWS, SLICE_LIT("[[0,1],[0,2],[0,3],[0,4],[0,5],[0,6],[0,7],[0,8]]"));
    assert_int_equal(SCRIPT_RESULTS, worker_receive(&shared));
    assert_true(shared.in.n < strlen("[1,2,3,4,5]"));
    assert_int_equal(0, strncmp("[1", shared.in.p, 2));
}

static void test_hostile_functions_cannot_forge_results(void **state) {
    (void)state;
    define("{\"functions\":[{\"id\":\"u\",\"body\":\"function u(x) { Array.prototype.toJSON = () => 'forged'; Object.prototype.toJSON = () "
           "=> 'forged';"
           "Array.isArray = () => true; JSON.stringify = () => ']]'; return x }\"}]}");
    assert_int_equal(SCRIPT_READY, worker_receive(&shared));
    rows("[[0,1],[0,\"a\"],[0,null],[0,[]],[0,true]]", "[1,\"a\",null,[],true]");
    rows("[[0,1],[0,[{\"a\":1}]]]", "[1,[\"forged\"]]");
}

/* ---- limits, and the process ---- */

static void test_a_script_that_takes_too_long_is_told_so(void **state) {
    (void)state;
    worker w = worker_start((const char *const[]){"--limit-ms", "100", NULL});
    worker_run(&w, SLICE_LIT("function f() { for (;;); }"), "");
    assert_int_equal(SCRIPT_FAULT, worker_receive(&w));
    assert_string_equal(
        "{\"last\":true,\"compile\":false,\"message\":\"The script exceeded its time limit of 0.1 seconds.\",\"number\":408}", w.in.p);
    assert_int_equal(0, worker_receive(&w));
    assert_true(WIFEXITED(worker_end(&w)));
}

static void test_waiting_for_the_server_does_not_count(void **state) {
    (void)state;
    worker w = worker_start((const char *const[]){"--limit-ms", "150", NULL});
    worker_run(&w, SLICE_LIT("function f() { __.createDocument(__.getSelfLink(), {id: '1'}); __.response.setBody(1) }"), "");
    assert_int_equal(SCRIPT_CALL, worker_receive(&w));
    usleep(700000);
    worker_send(&w, SCRIPT_ANSWER, SLICE_LIT("{\"status\":201}"));
    assert_int_equal(SCRIPT_DONE, worker_receive(&w));
    worker_end(&w);
}

static void test_the_time_of_all_steps_counts_together(void **state) {
    (void)state;
    worker w = worker_start((const char *const[]){"--limit-ms", "200", NULL});
    worker_run(
        &w,
        SLICE_LIT(
            "function f() { const end = Date.now() + 5; while (Date.now() < end); __.createDocument(__.getSelfLink(), {id: '1'}, f) }"),
        "");
    int kind, calls = 0;
    while ((kind = worker_receive(&w)) == SCRIPT_CALL) {
        worker_send(&w, SCRIPT_ANSWER, SLICE_LIT("{\"status\":201}"));
        assert_true(++calls < 10000);
    }
    assert_int_equal(SCRIPT_FAULT, kind);
    assert_non_null(strstr(w.in.p, "time limit"));
    worker_end(&w);
}

static void test_many_runs_leave_nothing_behind(void **state) {
    (void)state;
    struct rusage used;
    worker w = worker_start(NULL);
    for (int i = 0; i < 700; i++) {
        worker_run(
            &w, SLICE_LIT("async function f() { globalThis.kept = Array(1000).fill({}); await 0; __.response.setBody(kept.length) }"), "");
        assert_int_equal(SCRIPT_DONE, worker_receive(&w));
        assert_string_equal("{\"body\":1000}", w.in.p);
    }
    close(w.fd);
    int status;
    assert_int_equal(w.pid, wait4(w.pid, &status, 0, &used));
    assert_int_equal(0, status);
    assert_true(used.ru_maxrss < 120 * 1024);
    buf_free(&w.in);
}

/* Tries a forbidden action from inside the process. */
static int attempt(const char *name) {
    static const char *const environment[] = {SCRIPT_ENVIRONMENT, NULL};
    worker w = worker_start_with((const char *const[]){"--try", name, NULL}, environment);
    int status;
    assert_int_equal(w.pid, waitpid(w.pid, &status, 0));
    close(w.fd);
    return status;
}

static void test_the_sandbox_refuses(void **state) {
    (void)state;
    const char *const refused[] = {"open",         "create",          "proc", "list",   "unlink",      "socket",
                                   "local-socket", "pass-descriptor", "fork", "clone",  "kill-parent", "kill-all",
                                   "tgkill",       "raise-limit",     "root", "memory", "prctl"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        int status = attempt(refused[i]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            fail_msg("%s: status %x", refused[i], (unsigned)status);
        }
    }
    const char *const deadly[] = {"ptrace", "exec", "read-process"};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        int status = attempt(deadly[i]);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS) {
            fail_msg("%s: status %x", deadly[i], (unsigned)status);
        }
    }
}

/* Checks every thread of the process, including the engine's. */
static void test_no_thread_is_outside_the_sandbox(void **state) {
    (void)state;
    char path[300], line[256];
    snprintf(path, sizeof path, "/proc/%d/task", (int)shared.pid);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    int threads = 0, filtered = 0, unprivileged = 0, powerless = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)shared.pid, entry->d_name);
        FILE *f = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        while (f && fgets(line, sizeof line, f)) {
            threads += strncmp(line, "Name:", 5) == 0;
            filtered += strcmp(line, "Seccomp:\t2\n") == 0;
            unprivileged += strcmp(line, "NoNewPrivs:\t1\n") == 0;
            powerless += strcmp(line, "CapEff:\t0000000000000000\n") == 0;
        }
        if (f) {
            fclose(f);
        }
    }
    closedir(folder);
    assert_true(threads > 1);
    assert_int_equal(threads, filtered);
    assert_int_equal(threads, unprivileged);
    assert_int_equal(threads, powerless);
}

static void test_another_environment_is_not_taken(void **state) {
    (void)state;
    worker w = worker_start_with(NULL, (const char *const[]){"HOME=/root", "TZ=Asia/Tokyo", "SECRET=1", NULL});
    assert_int_equal(SCRIPT_READY, worker_receive(&w));
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)w.pid);
    FILE *f = fopen(path, "rb"); /* readable by root */
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) {
        fclose(f);
    }
    assert_null(memmem(text, n, "SECRET", 6));
    worker_run(&w, SLICE_LIT("function f() { __.response.setBody(new Date(0).toString()) }"), "");
    assert_int_equal(SCRIPT_DONE, worker_receive(&w));
    assert_non_null(strstr(w.in.p, "1970 00:00:00 GMT+0000"));
    worker_end(&w);
}

static void test_it_ends_with_its_server(void **state) {
    (void)state;
    worker idle = worker_start(NULL);
    assert_int_equal(0, worker_end(&idle));
    worker waiting = worker_start(NULL);
    worker_run(&waiting, SLICE_LIT("function f() { __.createDocument(__.getSelfLink(), {}) }"), "");
    assert_int_equal(SCRIPT_CALL, worker_receive(&waiting));
    assert_int_equal(0, worker_end(&waiting));
    worker busy = worker_start((const char *const[]){"--limit-ms", "600000", NULL});
    worker_run(&busy, SLICE_LIT("async function f() { for (;;) await 0; }"), "");
    usleep(100000);
    assert_int_equal(0, worker_end(&busy)); /* not killed: it ended by itself */
}

static void test_frames_that_make_no_sense_end_it(void **state) {
    (void)state;
    const script_frame kinds[] = {SCRIPT_ANSWER, SCRIPT_DONE, (script_frame)'?'};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        worker w = worker_start(NULL);
        worker_send(&w, kinds[i], SLICE_LIT("{}"));
        assert_int_equal(0, worker_receive(&w));
        int status = worker_end(&w);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    }
    worker w = worker_start(NULL);
    assert_int_equal(5, send(w.fd, "\xff\xff\xff\xffR", 5, 0));
    assert_int_equal(0, worker_receive(&w));
    worker_end(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_usual_shape_of_a_script_runs),
        cmocka_unit_test(test_arguments_reach_the_function_and_its_value_is_not_the_body),
        cmocka_unit_test(test_each_script_has_a_global_of_its_own),
        cmocka_unit_test(test_items_are_written_and_read),
        cmocka_unit_test(test_feeds_and_queries_have_pages),
        cmocka_unit_test(test_options_are_passed_on),
        cmocka_unit_test(test_an_item_without_id_gets_one),
        cmocka_unit_test(test_callbacks_come_later_and_in_order),
        cmocka_unit_test(test_a_call_that_is_not_accepted_returns_false),
        cmocka_unit_test(test_async_functions_wait_for_calls),
        cmocka_unit_test(test_a_callback_gets_the_error_of_its_call),
        cmocka_unit_test(test_an_error_without_callback_ends_the_script),
        cmocka_unit_test(test_what_is_thrown_is_told_as_the_service_does),
        cmocka_unit_test(test_what_is_thrown_later_ends_the_script_too),
        cmocka_unit_test(test_no_call_is_made_after_the_end),
        cmocka_unit_test(test_a_text_that_is_no_script_is_told_as_such),
        cmocka_unit_test(test_wrong_arguments_are_refused_as_on_the_service),
        cmocka_unit_test(test_a_pre_trigger_changes_its_request),
        cmocka_unit_test(test_a_post_trigger_sees_both),
        cmocka_unit_test(test_the_body_can_be_appended_to),
        cmocka_unit_test(test_the_log_is_gathered_when_asked_for),
        cmocka_unit_test(test_each_function_of_the_query_api),
        cmocka_unit_test(test_a_query_asks_for_pages_until_it_has_enough),
        cmocka_unit_test(test_wrong_queries_are_refused),
        cmocka_unit_test(test_functions_of_a_query_are_called_in_batches),
        cmocka_unit_test(test_a_function_that_throws_ends_its_own_row_only),
        cmocka_unit_test(test_functions_that_do_not_compile_are_told),
        cmocka_unit_test(test_slow_rows_are_answered_in_parts),
        cmocka_unit_test(test_hostile_functions_cannot_forge_results),
        cmocka_unit_test(test_a_script_that_takes_too_long_is_told_so),
        cmocka_unit_test(test_waiting_for_the_server_does_not_count),
        cmocka_unit_test(test_the_time_of_all_steps_counts_together),
        cmocka_unit_test(test_many_runs_leave_nothing_behind),
        cmocka_unit_test(test_the_sandbox_refuses),
        cmocka_unit_test(test_no_thread_is_outside_the_sandbox),
        cmocka_unit_test(test_another_environment_is_not_taken),
        cmocka_unit_test(test_it_ends_with_its_server),
        cmocka_unit_test(test_frames_that_make_no_sense_end_it),
    };
    return cmocka_run_group_tests(tests, start_shared, end_shared);
}
