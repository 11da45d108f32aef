/* Script transactions without a script: sends calls and checks the answers, on a store in memory that can fail on demand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "item_harness.h"
#include "script/transaction.h"

#define PROPERTIES                                                                                                                         \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},\"defaultTtl\":-1,"                              \
    "\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/u\"]}]}}"

static harness h;
static container *c;
static item_key key;
static op *request;

/* ---- minimal continuation tokens ---- */

static err read_token(arena *a, const container *in, slice text, const query *query, query_position *position, item_cursor *cursor) {
    (void)a, (void)in, (void)query, (void)position;
    return slice_to_u64(text, &cursor->stretches[0].after) ? OK : E_BAD_CONTINUATION;
}

static void write_token(buf *out, arena *a, const container *in, const query *query, const query_position *position,
                        const item_cursor *cursor, size_t rows) {
    (void)a, (void)in, (void)query, (void)position, (void)rows;
    buf_add_u64(out, cursor->stretches[0].after);
}

static const script_tokens tokens = {read_token, write_token};

/* ---- set up ---- */

static void find_key(const char *text) {
    pkey *header = arena_new(&h.arena, pkey);
    assert_int_equal(pkey_parse(request, arena_copy(&h.arena, slice_str(text)), header), OK);
    assert_int_equal(item_check_key(request, c, header, SLICE_EMPTY, &key), OK);
}

static void open_with(const char *properties, const char *partition) {
    harness_open(&h);
    c = harness_container(&h, properties, 2000);
    request = harness_op(&h);
    find_key(partition);
}

static int set_up(void **state) {
    (void)state;
    open_with(PROPERTIES, "[\"a\"]");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    container_give(c);
    harness_close(&h);
    return 0;
}

static void make(const char *id, int u) {
    char text[200];
    snprintf(text, sizeof text, "{\"id\":\"%s\",\"pk\":\"a\",\"u\":%d,\"n\":%d}", id, u, u);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, text), OK);
}

static script_transaction *begin(void) {
    script_scope scope = {.items = harness_items(&h), .container = c, .key = &key, .tokens = &tokens};
    return script_transaction_begin(&scope, request);
}

/* Sends a call and returns the answer, in the harness's arena. Single quotes in `text` stand for double quotes. */
static const char *ask(script_transaction *t, const char *text) {
    char *json = arena_text(&h.arena, slice_str(text));
    for (char *p = json; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    buf answer = buf_init(BUF_NO_LIMIT);
    err code = script_transaction_call(t, harness_bson(&h, json), &answer);
    const char *said = code == OK ? arena_text(&h.arena, buf_view(&answer)) : err_lookup(code)->name;
    buf_free(&answer);
    return said;
}

static void says(const char *answer, const char *begins) {
    if (strncmp(answer, begins, strlen(begins)) != 0) {
        fail_msg("%s does not begin with %s", answer, begins);
    }
}

static err end(script_transaction *t) {
    item_mark mark;
    err code = script_transaction_commit(t, &mark);
    script_transaction_end(t);
    return code;
}

static const char *stored(const char *id) {
    return harness_read(&h, c, "[\"a\"]", id);
}

#define LINK "dbs/d/colls/c"
#define CREATE(id, u) "{'op':'create','link':'" LINK "','body':{'id':'" id "','pk':'a','u':" #u "}}"
#define REPLACE(id, u) "{'op':'replace','link':'" LINK "/docs/" id "','body':{'id':'" id "','pk':'a','u':" #u "}}"
#define DELETE(id) "{'op':'delete','link':'" LINK "/docs/" id "'}"
#define READ(id) "{'op':'read','link':'" LINK "/docs/" id "'}"

/* ---- the calls ---- */

static void own_writes_are_read_by_link_and_committed_together(void **state) {
    (void)state;
    make("1", 1);
    make("2", 2);
    script_transaction *t = begin();
    says(ask(t, CREATE("3", 3)), "{\"status\":201,\"body\":{\"id\":\"3\"");
    says(ask(t, REPLACE("1", 10)), "{\"status\":200");
    says(ask(t, DELETE("2")), "{\"status\":204}");
    says(ask(t, READ("1")), "{\"status\":200,\"body\":{\"id\":\"1\",\"pk\":\"a\",\"u\":10,");
    says(ask(t, READ("2")), "{\"status\":404,");
    says(ask(t, READ("3")), "{\"status\":200,\"body\":{\"id\":\"3\"");
    says(ask(t, CREATE("3", 4)), "{\"status\":409,");
    says(ask(t, REPLACE("2", 4)), "{\"status\":404,");
    says(ask(t, CREATE("2", 2)), "{\"status\":201");
    assert_string_equal(stored("1"), "{\"id\":\"1\",\"pk\":\"a\",\"u\":1,\"n\":1}"); /* not visible to others yet */
    assert_null(stored("3"));
    assert_int_equal(end(t), OK);
    assert_string_equal(stored("1"), "{\"id\":\"1\",\"pk\":\"a\",\"u\":10}");
    assert_string_equal(stored("2"), "{\"id\":\"2\",\"pk\":\"a\",\"u\":2}");
    assert_string_equal(stored("3"), "{\"id\":\"3\",\"pk\":\"a\",\"u\":3}");
    harness_check(&h, c);
}

static void what_is_not_committed_never_was(void **state) {
    (void)state;
    make("1", 1);
    buf before = dump_store(h.store, NULL), after;
    script_transaction *t = begin();
    says(ask(t, CREATE("2", 2)), "{\"status\":201");
    says(ask(t, DELETE("1")), "{\"status\":204");
    script_transaction_end(t);
    after = dump_store(h.store, NULL);
    assert_true(slice_eq(buf_view(&before), buf_view(&after)));
    buf_free(&before);
    buf_free(&after);
    harness_check(&h, c);
    make("3", 3); /* its number must be new */
    harness_check(&h, c);
}

/* The stored item is exactly what the script was told. */
static void scripts_are_told_the_truth(void **state) {
    (void)state;
    make("1", 1);
    script_transaction *t = begin();
    const char *made = ask(t, CREATE("2", 2)), *changed = ask(t, REPLACE("1", 5));
    clock_manual_advance(&h.clock, 3000);
    make("3", 3); /* by others, meanwhile */
    assert_int_equal(end(t), OK);
    t = begin();
    const char *now_made = ask(t, READ("2")), *now_changed = ask(t, READ("1"));
    assert_string_equal(strstr(made, "body"), strstr(now_made, "body"));
    assert_string_equal(strstr(changed, "body"), strstr(now_changed, "body"));
    script_transaction_end(t);
    harness_check(&h, c);
    container_give(c);
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
    t = begin();
    assert_string_equal(now_made, ask(t, READ("2")));
    script_transaction_end(t);
    assert_string_equal(harness_feed(&h, c, "[\"a\"]", 10, 100), "1 2 3 "); /* in the order of the reserved numbers */
}

static void links_are_names_or_rids_of_this_container(void **state) {
    (void)state;
    make("1", 1);
    script_transaction *t = begin();
    const char *self = strstr(ask(t, READ("1")), "\"_self\":\"") + 9;
    char call[400];
    snprintf(call, sizeof call, "{'op':'read','link':'%.*s'}", (int)(strchr(self, '"') - self), self);
    says(ask(t, call), "{\"status\":200,\"body\":{\"id\":\"1\"");
    snprintf(call, sizeof call, "{'op':'delete','link':'/%.*s'}", (int)(strchr(self, '"') - self), self);
    says(ask(t, call), "{\"status\":204");
    says(ask(t, call), "{\"status\":404");
    const char *made = strstr(ask(t, CREATE("2", 2)), "\"_self\":\"") + 9; /* the link of an item that the transaction created */
    snprintf(call, sizeof call, "{'op':'read','link':'%.*s'}", (int)(strchr(made, '"') - made), made);
    says(ask(t, call), "{\"status\":200,\"body\":{\"id\":\"2\"");
    static const char *const bad[] = {"",
                                      "dbs",
                                      "dbs/d/colls/other/docs/1",
                                      "dbs/other/colls/c/docs/1",
                                      "dbs/d/colls/c/docs",
                                      "1",
                                      "dbs/d",
                                      "dbs/d/colls/c/sprocs/1",
                                      "colls/c/docs/1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(call, sizeof call, "{'op':'read','link':'%s'}", bad[i]);
        says(ask(t, call), "{\"status\":400,");
    }
    says(ask(t, "{'op':'create','link':'dbs/d/colls/other','body':{'id':'x','pk':'a'}}"), "{\"status\":400,");
    says(ask(t, "{'op':'list','link':'dbs/d/colls/c/docs/1'}"), "{\"status\":400,");
    script_transaction_end(t);
}

static void bad_calls_are_answered(void **state) {
    (void)state;
    static const char *const bad[] = {
        "{}",
        "{'op':7}",
        "{'op':'drop','link':'" LINK "'}",
        "{'op':'create','link':'" LINK "'}",
        "{'op':'create','link':'" LINK "','body':[1]}",
        "{'op':'create','link':'" LINK "','body':{'id':7,'pk':'a'}}",
        "{'op':'create','link':'" LINK "','body':{'id':'a/b','pk':'a'}}",
        "{'op':'create','link':'" LINK "','body':{'pk':'a'},'options':{'disableAutomaticIdGeneration':true}}",
        "{'op':'create','link':'" LINK "','body':{'id':'x','pk':'b'}}",
        "{'op':'create','link':'" LINK "','body':{'id':'x','pk':'a'},'options':{'indexAction':'maybe'}}",
        "{'op':'replace','link':'" LINK "/docs/1','body':{'id':'a/b','pk':'a'}}",
        "{'op':'query','link':'" LINK "'}",
        "{'op':'query','link':'" LINK "','query':'SELEC'}",
        "{'op':'query','link':'" LINK "','query':{'query':'SELECT * FROM c','parameters':[1]}}",
        "{'op':'list','link':'" LINK "','options':{'continuation':'x'}}",
    };
    make("1", 1);
    script_transaction *t = begin();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *said = ask(t, bad[i]);
        if (strncmp(said, "{\"status\":400,\"message\":\"", 24) != 0) {
            fail_msg("%s: %s", bad[i], said);
        }
    }
    assert_non_null(
        strstr(ask(t, "{'op':'create','link':'" LINK "','body':{'id':'x','pk':'b'}}"), "Requests originating from scripts cannot"));
    char long_id[2200];
    memset(long_id, 'x', sizeof long_id);
    memcpy(long_id, "{'op':'delete','link':'" LINK "/docs/", 41);
    memcpy(long_id + sizeof long_id - 3, "'}", 3);
    says(ask(t, long_id), "{\"status\":400,");
    says(ask(t, "{'op':'create','body':{'pk':'a','u':9}}"), "{\"status\":201,\"body\":{\"pk\":\"a\",\"u\":9,\"id\":\""); /* an id is made */
    assert_int_equal(end(t), OK);
    harness_check(&h, c);
}

static void etags_are_conditions(void **state) {
    (void)state;
    make("1", 1);
    script_transaction *t = begin();
    char etag[60], call[400];
    const char *at = strstr(ask(t, READ("1")), "\"_etag\":\"\\\"") + 11;
    snprintf(etag, sizeof etag, "%.36s", at);
    snprintf(call, sizeof call, "{'op':'replace','link':'" LINK "/docs/1','body':{'id':'1','pk':'a','u':2},'options':{'etag':'%s'}}", etag);
    says(ask(t, call), "{\"status\":200");
    says(ask(t, call), "{\"status\":412"); /* the item has changed */
    at = strstr(ask(t, READ("1")), "\"_etag\":\"\\\"") + 11;
    snprintf(call, sizeof call, "{'op':'read','link':'" LINK "/docs/1','options':{'ifNoneMatch':'%.36s'}}", at);
    says(ask(t, call), "{\"status\":304}");
    snprintf(call, sizeof call, "{'op':'delete','link':'" LINK "/docs/1','options':{'etag':'%.36s'}}", at);
    says(ask(t, call), "{\"status\":204");
    assert_int_equal(end(t), OK);
    assert_null(stored("1"));
}

static void unique_keys_are_told_at_once(void **state) {
    (void)state;
    make("1", 1);
    make("2", 2);
    script_transaction *t = begin();
    says(ask(t, CREATE("3", 1)), "{\"status\":409");
    says(ask(t, REPLACE("2", 1)), "{\"status\":409");
    says(ask(t, REPLACE("1", 1)), "{\"status\":200"); /* its own value */
    says(ask(t, REPLACE("1", 5)), "{\"status\":200");
    says(ask(t, CREATE("3", 1)), "{\"status\":201"); /* free now */
    says(ask(t, CREATE("4", 5)), "{\"status\":409"); /* taken by this transaction */
    says(ask(t, DELETE("2")), "{\"status\":204");
    says(ask(t, CREATE("4", 2)), "{\"status\":201");
    assert_int_equal(end(t), OK);
    assert_string_equal(stored("3"), "{\"id\":\"3\",\"pk\":\"a\",\"u\":1}");
    harness_check(&h, c);
}

/* ---- lists and queries ---- */

/* Reads the next page. */
static const char *go_on(script_transaction *t, const char *page) {
    char call[200];
    const char *token = strstr(page, "\"continuation\":\"");
    assert_non_null(token);
    snprintf(call, sizeof call, "{'op':'list','options':{'pageSize':2,'continuation':'%.*s'}}", (int)strspn(token + 16, "0123456789"),
             token + 16);
    return ask(t, call);
}

static void lists_and_queries_show_the_snapshot(void **state) {
    (void)state;
    for (int i = 1; i <= 5; i++) {
        make((char[]){(char)('0' + i), 0}, i);
    }
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"x\",\"pk\":\"b\",\"n\":9}"), OK);
    script_transaction *t = begin();
    make("6", 6); /* after the transaction began */
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, "[\"a\"]", "1", NULL), OK);
    assert_int_equal(harness_write(&h, c, ITEM_REPLACE, "[\"a\"]", "2", "{\"id\":\"2\",\"pk\":\"a\",\"u\":2,\"n\":20}"), OK);
    assert_string_equal(ask(t, "{'op':'query','link':'" LINK "','query':'SELECT VALUE c.n FROM c'}"),
                        "{\"status\":200,\"body\":[1,2,3,4,5]}");
    assert_string_equal(ask(t, "{'op':'query','query':'SELECT VALUE c.n FROM c ORDER BY c.n DESC'}"),
                        "{\"status\":200,\"body\":[5,4,3,2,1]}");
    assert_string_equal(ask(t, "{'op':'query','query':'SELECT VALUE COUNT(1) FROM c'}"), "{\"status\":200,\"body\":[5]}");
    assert_string_equal(
        ask(t, "{'op':'query','query':{'query':'SELECT VALUE c.id FROM c WHERE c.n = @n','parameters':[{'name':'@n','value':2}]}}"),
        "{\"status\":200,\"body\":[\"2\"]}");
    const char *page = ask(t, "{'op':'list','link':'" LINK "','options':{'pageSize':2}}");
    says(page, "{\"status\":200,\"body\":[{\"id\":\"1\"");
    page = go_on(t, page);
    says(page, "{\"status\":200,\"body\":[{\"id\":\"3\"");
    page = go_on(t, page);
    says(page, "{\"status\":200,\"body\":[{\"id\":\"5\"");
    assert_null(strstr(page, "continuation"));
    says(ask(t, READ("1")), "{\"status\":200"); /* still in its snapshot */
    script_transaction_end(t);
}

/* Every kind of query shows the snapshot with the transaction's own writes on top. */
static void lists_and_queries_show_own_writes(void **state) {
    (void)state;
    for (int i = 1; i <= 5; i++) {
        make((char[]){(char)('0' + i), 0}, i);
    }
    script_transaction *t = begin();
    make("6", 6); /* by others */
    says(ask(t, "{'op':'create','body':{'id':'7','pk':'a','u':7,'n':7}}"), "{\"status\":201");
    says(ask(t, "{'op':'create','body':{'id':'8','pk':'a','u':8,'n':0}}"), "{\"status\":201");
    says(ask(t, DELETE("1")), "{\"status\":204");
    says(ask(t, DELETE("3")), "{\"status\":204");
    says(ask(t, "{'op':'replace','link':'" LINK "/docs/2','body':{'id':'2','pk':'a','u':2,'n':20}}"), "{\"status\":200");
    says(ask(t, "{'op':'create','body':{'id':'9','pk':'a','u':9,'n':9}}"), "{\"status\":201");
    says(ask(t, DELETE("9")), "{\"status\":204");
    says(ask(t, "{'op':'create','body':{'id':'3','pk':'a','u':3,'n':3}}"), "{\"status\":201"); /* as a new item */
    says(ask(t, "{'op':'replace','link':'" LINK "/docs/8','body':{'id':'8','pk':'a','u':8,'n':8}}"), "{\"status\":200");
    assert_string_equal(ask(t, "{'op':'query','query':'SELECT VALUE c.n FROM c'}"), "{\"status\":200,\"body\":[20,4,5,7,8,3]}");
    assert_string_equal(ask(t, "{'op':'query','query':'SELECT VALUE c.n FROM c ORDER BY c.n'}"),
                        "{\"status\":200,\"body\":[3,4,5,7,8,20]}");
    assert_string_equal(ask(t, "{'op':'query','query':'SELECT VALUE c.id FROM c WHERE c.n > 6'}"),
                        "{\"status\":200,\"body\":[\"2\",\"7\",\"8\"]}");
    assert_string_equal(ask(t, "{'op':'query','query':'SELECT VALUE COUNT(1) FROM c'}"), "{\"status\":200,\"body\":[6]}");
    assert_string_equal(ask(t, "{'op':'query','query':'SELECT DISTINCT VALUE c.n > 6 FROM c'}"), "{\"status\":200,\"body\":[false,true]}");
    const char *page = ask(t, "{'op':'list','options':{'pageSize':2}}");
    says(page, "{\"status\":200,\"body\":[{\"id\":\"2\"");
    page = go_on(t, page);
    says(page, "{\"status\":200,\"body\":[{\"id\":\"5\"");
    page = go_on(t, page);
    says(page, "{\"status\":200,\"body\":[{\"id\":\"8\"");
    assert_int_equal(end(t), OK);
    assert_string_equal(harness_feed(&h, c, "[\"a\"]", 10, 100), "2 4 5 6 7 8 3 ");
    harness_check(&h, c);
}

static void the_snapshot_outlives_splits_and_policies(void **state) {
    (void)state;
    for (int i = 1; i <= 5; i++) {
        make((char[]){(char)('0' + i), 0}, i);
    }
    script_transaction *t = begin();
    assert_int_equal(account_split(h.account, request, c, c->tiles->ranges[0]->id, 2), OK);
    harness_move(&h, c, 1000);
    harness_move(&h, c, 1000);
    assert_int_equal(
        harness_replace_container(&h, "d", "c",
                                  "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},"
                                  "\"defaultTtl\":-1,\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/u\"]}]},"
                                  "\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[{\"path\":\"/u/?\"}]}}"),
        OK);
    harness_build_all(&h, c);
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, "[\"a\"]", "1", NULL), OK);
    assert_string_equal(ask(t, "{'op':'query','query':'SELECT VALUE c.n FROM c ORDER BY c.n DESC'}"),
                        "{\"status\":200,\"body\":[5,4,3,2,1]}");
    assert_string_equal(ask(t, "{'op':'query','query':'SELECT VALUE c.n FROM c WHERE c.n > 3'}"), "{\"status\":200,\"body\":[4,5]}");
    says(ask(t, CREATE("6", 6)), "{\"status\":201");
    says(ask(t, REPLACE("2", 22)), "{\"status\":200");
    assert_int_equal(end(t), OK);
    assert_string_equal(stored("2"), "{\"id\":\"2\",\"pk\":\"a\",\"u\":22}");
    assert_string_equal(harness_feed(&h, c, "[\"a\"]", 10, 100), "2 3 4 5 6 ");
    harness_check(&h, c);
}

/* ---- others ---- */

static void who_was_first_wins(void **state) {
    (void)state;
    static const struct {
        item_kind kind;
        const char *id, *text;
        const char *call;
        err code;
    } cases[] = {
        {ITEM_REPLACE, "1", "{\"id\":\"1\",\"pk\":\"a\",\"u\":7}", REPLACE("1", 8), E_RETRY_WITH},
        {ITEM_DELETE, "1", NULL, REPLACE("1", 8), E_RETRY_WITH},
        {ITEM_DELETE, "1", NULL, DELETE("1"), E_RETRY_WITH},
        {ITEM_CREATE, NULL, "{\"id\":\"9\",\"pk\":\"a\",\"u\":9}", CREATE("9", 10), E_RETRY_WITH},
        {ITEM_CREATE, NULL, "{\"id\":\"9\",\"pk\":\"a\",\"u\":9}", CREATE("8", 9), E_UNIQUE_KEY},
        {ITEM_REPLACE, "2", "{\"id\":\"2\",\"pk\":\"a\",\"u\":2,\"other\":1}", REPLACE("1", 8), OK}, /* another item */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_up(NULL);
        make("1", 1);
        make("2", 2);
        script_transaction *t = begin();
        says(ask(t, CREATE("5", 5)), "{\"status\":201");
        says(ask(t, cases[i].call), "{\"status\":20");
        assert_int_equal(harness_write(&h, c, cases[i].kind, "[\"a\"]", cases[i].id, cases[i].text), OK);
        buf before = dump_store(h.store, NULL);
        err code = end(t);
        if (code != cases[i].code) {
            fail_msg("case %zu: %s", i, err_lookup(code)->name);
        }
        buf after = dump_store(h.store, NULL);
        assert_true(slice_eq(buf_view(&before), buf_view(&after)) == (code != OK));
        buf_free(&before);
        buf_free(&after);
        harness_check(&h, c);
        tear_down(NULL);
    }
}

static void expired_items_are_not_there(void **state) {
    (void)state;
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"u\":1,\"ttl\":5}"), OK);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"2\",\"pk\":\"a\",\"u\":2,\"ttl\":50}"), OK);
    clock_manual_advance(&h.clock, 6000);
    script_transaction *t = begin();
    says(ask(t, READ("1")), "{\"status\":404");
    says(ask(t, CREATE("3", 1)), "{\"status\":201"); /* its unique values are free too */
    says(ask(t, CREATE("1", 7)), "{\"status\":201");
    says(ask(t, REPLACE("2", 2)), "{\"status\":200");
    clock_manual_advance(&h.clock, 100000); /* the items it read expire before the commit */
    assert_int_equal(end(t), E_RETRY_WITH);
    t = begin();
    says(ask(t, CREATE("1", 1)), "{\"status\":201");
    assert_int_equal(end(t), OK);
    harness_check(&h, c);
}

/* ---- bounds ---- */

static void writes_are_bounded(void **state) {
    (void)state;
    script_transaction *t = begin();
    char call[200];
    int n = 0;
    for (const char *said = "{\"status\":201"; strncmp(said, "{\"status\":201", 13) == 0; n++) {
        snprintf(call, sizeof call, "{'op':'create','body':{'id':'%d','pk':'a','u':%d}}", n, n);
        said = ask(t, call);
        if (strncmp(said, "{\"status\":201", 13) != 0) {
            assert_string_equal(said, "{\"accepted\":false}");
        }
    }
    assert_int_equal(n - 1, SCRIPT_OPERATIONS_MAX);
    assert_string_equal(ask(t, READ("1")), "{\"accepted\":false}");
    assert_int_equal(end(t), OK);
    assert_int_equal(harness_count(c), SCRIPT_OPERATIONS_MAX);
    harness_check(&h, c);
}

static void bytes_are_bounded(void **state) {
    (void)state;
    script_transaction *t = begin();
    char *call = malloc(1100000);
    assert_non_null(call);
    for (int i = 0; i < 9; i++) {
        int at = snprintf(call, 200, "{'op':'create','body':{'id':'%d','pk':'a','u':%d,'s':'", i, i);
        memset(call + at, 'x', 1024 * 1024);
        memcpy(call + at + 1024 * 1024, "'}}", 4);
        says(ask(t, call), i < 7 ? "{\"status\":201" : "{\"accepted\":false}");
    }
    assert_int_equal(end(t), OK);
    assert_int_equal(harness_count(c), 7);
    free(call);
}

static void charges_are_those_of_the_calls(void **state) {
    (void)state;
    script_transaction *t = begin();
    says(ask(t, CREATE("1", 1)), "{\"status\":201");
    double created = script_transaction_op(t)->charge_ru;
    says(ask(t, READ("1")), "{\"status\":200");
    assert_true(fabs(script_transaction_op(t)->charge_ru - created - 1) < 1e-9);
    says(ask(t, CREATE("1", 1)), "{\"status\":409");
    assert_true(fabs(script_transaction_op(t)->charge_ru - created - 2) < 1e-9);
    assert_true(script_transaction_unsettled(t) == script_transaction_op(t)->charge_ru);
    script_transaction_end(t);
    item_op *one = arena_new(&h.arena, item_op);
    assert_int_equal(harness_one(&h, c, one, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"u\":1}"), OK);
    assert_true(one->op.charge_ru == created);
}

/* ---- a container without a partition key ---- */

static void a_fixed_container_is_one_scope(void **state) {
    (void)state;
    open_with("{\"id\":\"c\"}", "[]");
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\"}"), OK);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"2\",\"pk\":\"b\"}"), OK);
    script_transaction *t = begin();
    says(ask(t, "{'op':'create','body':{'id':'3','pk':'z'}}"), "{\"status\":201");
    says(ask(t, DELETE("1")), "{\"status\":204");
    assert_string_equal(ask(t, "{'op':'query','query':'SELECT VALUE c.id FROM c'}"), "{\"status\":200,\"body\":[\"2\",\"3\"]}");
    assert_int_equal(end(t), OK);
    assert_string_equal(harness_feed(&h, c, NULL, 10, 100), "2 3 ");
    harness_check(&h, c);
    tear_down(NULL);
}

/* ---- a partition that becomes large: numbers that were reserved come late, and get all their index entries ---- */

static void late_numbers_are_indexed(void **state) {
    (void)state;
    char text[100];
    for (int i = 0; i < 505; i++) {
        snprintf(text, sizeof text, "m%d", i);
        make(text, i);
    }
    script_transaction *early[4];
    for (int k = 0; k < 4; k++) { /* each reserves numbers before later items are written */
        early[k] = begin();
        snprintf(text, sizeof text, "{'op':'create','body':{'id':'e%d','pk':'a','u':%d,'n':-1}}", k, 10000 + k);
        says(ask(early[k], text), "{\"status\":201");
    }
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 40; i++) {
            snprintf(text, sizeof text, "n%d.%d", k, i);
            make(text, 1000 + 40 * k + i);
        }
        assert_int_equal(end(early[k]), OK);
    }
    for (int i = 0; i < 200; i++) { /* until the partition gets index entries of its own */
        snprintf(text, sizeof text, "o%d", i);
        make(text, 2000 + i);
    }
    harness_check(&h, c);
    script_transaction *t = begin();
    says(ask(t, "{'op':'query','query':'SELECT VALUE c.id FROM c WHERE c.n = -1'}"),
         "{\"status\":200,\"body\":[\"e0\",\"e1\",\"e2\",\"e3\"]}");
    script_transaction_end(t);
}

/* ---- a store that fails ---- */

static err two_writes(void) {
    script_transaction *t = begin();
    const char *first = ask(t, CREATE("3", 3)), *second = ask(t, REPLACE("1", 10));
    err code = strcmp(first, "E_STORE_IO") == 0 || strcmp(second, "E_STORE_IO") == 0 ? E_STORE_IO : OK;
    if (code != OK) {
        script_transaction_end(t);
        return code;
    }
    return end(t);
}

/* Dumps all but the range counters, which may include reserved numbers. */
static buf dump_items(void) {
    buf out = buf_init(BUF_NO_LIMIT);
    for (int f = STORE_ITEMS; f < STORE_FAMILIES; f++) {
        dump_family(h.store, (store_family)f, NULL, SLICE_EMPTY, SLICE_EMPTY, false, &out);
    }
    return out;
}

static void all_or_nothing_whatever_fails(void **state) {
    (void)state;
    unsigned tries = 0;
    for (size_t k = 0; k < 3; k++) {
        bool fired = true;
        for (unsigned n = 1; fired; n++) {
            set_up(NULL);
            make("1", 1);
            unsigned *const kinds[] = {&h.plan.get_in, &h.plan.write_in, &h.plan.scan_in};
            buf before = dump_items();
            *kinds[k] = n;
            err code = two_writes();
            *kinds[k] = 0;
            fired = h.plan.fired > 0;
            assert_int_equal(code, fired ? E_STORE_IO : OK);
            buf after = dump_items();
            if (slice_eq(buf_view(&before), buf_view(&after)) != fired) {
                fail_msg("call %u of kind %zu: %s", n, k, fired ? "something is there" : "nothing is there");
            }
            buf_free(&before);
            buf_free(&after);
            tries += fired;
            make("9", 9); /* reserved numbers are not reused */
            harness_check(&h, c);
            if (fired) { /* without the failure it succeeds */
                assert_int_equal(two_writes(), OK);
                harness_check(&h, c);
            }
            tear_down(NULL);
        }
    }
    assert_true(tries >= 5);
}

static void the_committer_does_not_wait_for_a_slow_disk(void **state) {
    (void)state;
    make("1", 1);
    make("2", 2);
    h.plan.disk_cached = true;
    h.plan.disk_ms = 1;
    script_transaction *t = begin();
    says(ask(t, CREATE("3", 3)), "{\"status\":201");
    says(ask(t, REPLACE("1", 10)), "{\"status\":200");
    assert_int_equal(end(t), OK);
    h.plan.disk_ms = 0;
    assert_int_equal(h.plan.disk_held, 0);
    assert_string_equal(stored("1"), "{\"id\":\"1\",\"pk\":\"a\",\"u\":10}");
    assert_string_equal(stored("3"), "{\"id\":\"3\",\"pk\":\"a\",\"u\":3}");
    harness_check(&h, c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(own_writes_are_read_by_link_and_committed_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_committed_never_was, set_up, tear_down),
        cmocka_unit_test_setup_teardown(scripts_are_told_the_truth, set_up, tear_down),
        cmocka_unit_test_setup_teardown(links_are_names_or_rids_of_this_container, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_calls_are_answered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(etags_are_conditions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unique_keys_are_told_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lists_and_queries_show_the_snapshot, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lists_and_queries_show_own_writes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_snapshot_outlives_splits_and_policies, set_up, tear_down),
        cmocka_unit_test(who_was_first_wins),
        cmocka_unit_test_setup_teardown(expired_items_are_not_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writes_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytes_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(charges_are_those_of_the_calls, set_up, tear_down),
        cmocka_unit_test(a_fixed_container_is_one_scope),
        cmocka_unit_test_setup_teardown(late_numbers_are_indexed, set_up, tear_down),
        cmocka_unit_test(all_or_nothing_whatever_fails),
        cmocka_unit_test_setup_teardown(the_committer_does_not_wait_for_a_slow_disk, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
