/* Stored procedures, triggers and user-defined functions: creating, replacing, renaming, deleting, finding, and the same state after a
 * restart; invalid ones; deletion of their container or database; many of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item_harness.h"

#include "account/scripts.h"

#define KEY "\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"

static harness h;
static container *c;

static int set_up(void **state) {
    (void)state;
    harness_open(&h);
    c = harness_container(&h, "{\"id\":\"c\"," KEY "}", 400);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (c) {
        container_give(c);
    }
    harness_close(&h);
    return 0;
}

static void restart(void) {
    container_give(c);
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
}

/* The error sentence of the last change, or NULL. */
static const char *sentence;

static void note(const account_change *change, account_script *made, account_script **script_out) {
    sentence = change->op->detail_n ? change->op->detail : NULL;
    if (script_out) {
        *script_out = made;
    } else {
        account_script_give(made);
    }
}

static script_creation creation(account_script_kind kind, const char *properties) {
    return (script_creation){
        .database = harness_name("d"), .container = harness_name("c"), .kind = kind, .settings = harness_bson(&h, properties)};
}

static err run_creation(script_creation *c, account_script **script_out) {
    err code = harness_change(&h, c, account_create_script);
    note(&c->base, c->script_out, script_out);
    return code;
}

static script_replacement replacement(account_script_kind kind, const char *name, const char *properties) {
    return (script_replacement){.database = harness_name("d"),
                                .container = harness_name("c"),
                                .script = harness_name(name),
                                .kind = kind,
                                .settings = harness_bson(&h, properties)};
}

static err run_replacement(script_replacement *c) {
    err code = harness_change(&h, c, account_replace_script);
    note(&c->base, c->script_out, NULL);
    return code;
}

static script_deletion deletion(account_script_kind kind, const char *name) {
    return (script_deletion){.database = harness_name("d"), .container = harness_name("c"), .script = harness_name(name), .kind = kind};
}

static err run_deletion(script_deletion *c) {
    err code = harness_change(&h, c, account_delete_script);
    note(&c->base, c->script_out, NULL);
    return code;
}

static err create(account_script_kind kind, const char *properties) {
    script_creation c = creation(kind, properties);
    return run_creation(&c, NULL);
}

static err replace(account_script_kind kind, const char *name, const char *properties) {
    script_replacement c = replacement(kind, name, properties);
    return run_replacement(&c);
}

static err remove_script(account_script_kind kind, const char *name) {
    script_deletion c = deletion(kind, name);
    return run_deletion(&c);
}

static account_script *found(account_script_kind kind, const char *name) {
    account_script *s = NULL;
    assert_int_equal(account_find_script(h.account, c, kind, slice_str(name), false, &s), OK);
    return s;
}

static err lookup(account_script_kind kind, const char *name) {
    account_script *s = NULL;
    err code = account_find_script(h.account, c, kind, slice_str(name), false, &s);
    account_script_give(s);
    return code;
}

static bool list_one(void *context, const account_script *s) {
    buf_addf(context, "%.*s=%.*s ", (int)s->id.n, s->id.p, (int)s->body.n, s->body.p);
    return true;
}

static const char *listing(account_script_kind kind, uint32_t after) {
    buf text = buf_init(BUF_NO_LIMIT);
    account_each_script(h.account, c, kind, after, list_one, &text);
    const char *made = arena_text(&h.arena, buf_view(&text));
    buf_free(&text);
    return made;
}

/* ---- life ---- */

static void come_and_go(void **state) {
    (void)state;
    assert_int_equal(create(ACCOUNT_PROCEDURE, "{\"id\":\"a\",\"body\":\"1\"}"), OK);
    assert_int_equal(create(ACCOUNT_PROCEDURE, "{\"id\":\"b\",\"body\":\"2\"}"), OK);
    assert_int_equal(create(ACCOUNT_FUNCTION, "{\"id\":\"a\",\"body\":\"3\"}"), OK); /* each kind has its own names */
    assert_int_equal(create(ACCOUNT_PROCEDURE, "{\"id\":\"a\",\"body\":\"4\"}"), E_CONFLICT);
    assert_int_equal(create(ACCOUNT_PROCEDURE, "{\"id\":\"c\",\"body\":\"5\"}"), OK);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(listing(ACCOUNT_PROCEDURE, 0), "a=1 b=2 c=5 ");
        assert_string_equal(listing(ACCOUNT_FUNCTION, 0), "a=3 ");
        assert_string_equal(listing(ACCOUNT_TRIGGER, 0), "");
        restart();
    }
    assert_int_equal(remove_script(ACCOUNT_PROCEDURE, "b"), OK);
    assert_int_equal(remove_script(ACCOUNT_PROCEDURE, "b"), E_NOT_FOUND);
    assert_int_equal(lookup(ACCOUNT_PROCEDURE, "b"), E_NOT_FOUND);
    assert_int_equal(create(ACCOUNT_PROCEDURE, "{\"id\":\"b\",\"body\":\"6\"}"), OK);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(listing(ACCOUNT_PROCEDURE, 0), "a=1 c=5 b=6 ");
        restart();
    }
    account_script *s = found(ACCOUNT_PROCEDURE, "c");
    assert_string_equal(listing(ACCOUNT_PROCEDURE, s->number), "b=6 ");
    account_script_give(s);
}

static void replacing(void **state) {
    (void)state;
    assert_int_equal(create(ACCOUNT_FUNCTION, "{\"id\":\"a\",\"body\":\"1\"}"), OK);
    assert_int_equal(create(ACCOUNT_FUNCTION, "{\"id\":\"b\",\"body\":\"2\"}"), OK);
    account_script *before = found(ACCOUNT_FUNCTION, "a");
    assert_int_equal(replace(ACCOUNT_FUNCTION, "a", "{\"id\":\"a\",\"body\":\"11\"}"), OK);
    account_script *after = found(ACCOUNT_FUNCTION, "a");
    assert_true(slice_eq(before->body, SLICE_LIT("1"))); /* holders of the old version see no change */
    assert_true(slice_eq(after->body, SLICE_LIT("11")));
    assert_true(after->version > before->version);
    assert_int_equal(after->number, before->number);
    assert_true(rid_equal(&after->rid, &before->rid));
    assert_string_equal(listing(ACCOUNT_FUNCTION, 0), "a=11 b=2 ");
    /* renamed: the same resource at the same place */
    assert_int_equal(replace(ACCOUNT_FUNCTION, "a", "{\"id\":\"b\",\"body\":\"12\"}"), E_CONFLICT);
    assert_int_equal(replace(ACCOUNT_FUNCTION, "a", "{\"id\":\"z\",\"body\":\"12\"}"), OK);
    assert_int_equal(lookup(ACCOUNT_FUNCTION, "a"), E_NOT_FOUND);
    assert_int_equal(replace(ACCOUNT_FUNCTION, "a", "{\"id\":\"a\",\"body\":\"12\"}"), E_NOT_FOUND);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(listing(ACCOUNT_FUNCTION, 0), "z=12 b=2 ");
        restart();
    }
    account_script_give(before);
    account_script_give(after);
}

static void upserting(void **state) {
    (void)state;
    account_script *s;
    script_creation w = creation(ACCOUNT_TRIGGER, "{\"id\":\"t\",\"body\":\"1\",\"triggerType\":\"Pre\",\"triggerOperation\":\"All\"}");
    w.upsert = true;
    assert_int_equal(run_creation(&w, &s), OK);
    assert_true(w.created && !s->post && s->operation == TRIGGER_ALL);
    account_script_give(s);
    w = creation(ACCOUNT_TRIGGER, "{\"id\":\"t\",\"body\":\"2\",\"triggerType\":\"post\",\"triggerOperation\":\"replace\"}");
    w.upsert = true;
    assert_int_equal(run_creation(&w, &s), OK);
    assert_true(!w.created && s->post && s->operation == TRIGGER_REPLACE);
    account_script_give(s);
    assert_string_equal(listing(ACCOUNT_TRIGGER, 0), "t=2 ");
    restart();
    s = found(ACCOUNT_TRIGGER, "t");
    assert_true(s->post && s->operation == TRIGGER_REPLACE);
    account_script_give(s);
}

static void etags(void **state) {
    (void)state;
    char etag[ITEM_ETAG_BYTES + 1];
    assert_int_equal(create(ACCOUNT_PROCEDURE, "{\"id\":\"a\",\"body\":\"1\"}"), OK);
    account_script *s = found(ACCOUNT_PROCEDURE, "a");
    item_etag(etag, s->version, (uint32_t)s->ts);
    account_script_give(s);
    assert_int_equal(replace(ACCOUNT_PROCEDURE, "a", "{\"id\":\"a\",\"body\":\"2\"}"), OK);
    script_replacement r = replacement(ACCOUNT_PROCEDURE, "a", "{\"id\":\"a\",\"body\":\"3\"}");
    r.base.if_match = slice_of(etag, ITEM_ETAG_BYTES);
    assert_int_equal(run_replacement(&r), E_PRECONDITION);
    script_deletion w = deletion(ACCOUNT_PROCEDURE, "a");
    w.base.if_match = slice_of(etag, ITEM_ETAG_BYTES);
    assert_int_equal(run_deletion(&w), E_PRECONDITION);
    s = found(ACCOUNT_PROCEDURE, "a");
    item_etag(etag, s->version, (uint32_t)s->ts);
    account_script_give(s);
    assert_int_equal(run_deletion(&w), OK);
}

static void by_rid(void **state) {
    (void)state;
    static const rid_kind kinds[] = {RID_UDF, RID_TRIGGER, RID_SPROC};
    for (account_script_kind kind = 0; kind < ACCOUNT_SCRIPT_KINDS; kind++) {
        buf text = buf_init(100);
        account_script *s, *same = NULL;
        assert_int_equal(create(kind, "{\"id\":\"x\",\"body\":\"1\",\"triggerType\":\"Pre\",\"triggerOperation\":\"Create\"}"), OK);
        s = found(kind, "x");
        assert_int_equal(rid_kind_of(&s->rid), kinds[kind]);
        rid_write(&text, &s->rid);
        assert_int_equal(account_find_script(h.account, c, kind, buf_view(&text), true, &same), OK);
        assert_ptr_equal(s, same);
        account_script_give(same);
        assert_int_equal(account_find_script(h.account, c, kind, buf_view(&text), false, &same), E_NOT_FOUND);
        assert_int_equal(account_find_script(h.account, c, (kind + 1) % ACCOUNT_SCRIPT_KINDS, buf_view(&text), true, &same), E_NOT_FOUND);
        account_script_give(s);
        buf_free(&text);
    }
}

/* ---- refusals ---- */

static void refused(void **state) {
    (void)state;
    static const struct {
        account_script_kind kind;
        const char *properties, *words;
    } wrong[] = {
        {ACCOUNT_PROCEDURE, "{\"body\":\"1\"}", "'id; '"},
        {ACCOUNT_PROCEDURE, "{\"id\":\"a\"}", "'body; '"},
        {ACCOUNT_FUNCTION, "{}", "'id; body; '"},
        {ACCOUNT_FUNCTION, "{\"id\":\"a\",\"body\":null}", "'body; '"},
        {ACCOUNT_PROCEDURE, "{\"id\":\"a\",\"body\":7}", "'body' must be a string"},
        {ACCOUNT_PROCEDURE, "{\"id\":7,\"body\":\"1\"}", "'id' must be a string"},
        {ACCOUNT_PROCEDURE, "{\"id\":\"\",\"body\":\"1\"}", "The input name"},
        {ACCOUNT_PROCEDURE, "{\"id\":\"a/b\",\"body\":\"1\"}", "invalid character '/'"},
        {ACCOUNT_PROCEDURE, "{\"id\":\"a \",\"body\":\"1\"}", "invalid character ' '"},
        {ACCOUNT_PROCEDURE, "{\"id\":\"a\\u0000\",\"body\":\"1\"}", "zero byte"},
        {ACCOUNT_TRIGGER, "{\"id\":\"a\",\"body\":\"1\"}", "'triggerType; triggerOperation; '"},
        {ACCOUNT_TRIGGER, "{\"id\":\"a\",\"body\":\"1\",\"triggerType\":\"Pre\",\"triggerOperation\":1}", "must be a string"},
        {ACCOUNT_TRIGGER, "{\"id\":\"a\",\"body\":\"1\",\"triggerType\":\"Mid\",\"triggerOperation\":\"All\"}", "TriggerType 'Mid'"},
        {ACCOUNT_TRIGGER, "{\"id\":\"a\",\"body\":\"1\",\"triggerType\":\"Pre\",\"triggerOperation\":\"Insert\"}",
         "TriggerOperation 'Insert'"},
    };
    buf before = dump_store(h.store, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(create(wrong[i].kind, wrong[i].properties), E_BAD_REQUEST);
        if (!sentence || !strstr(sentence, wrong[i].words)) {
            fail_msg("%s: %s", wrong[i].properties, sentence);
        }
    }
    script_creation w = creation(ACCOUNT_PROCEDURE, "{\"id\":\"a\",\"body\":\"1\"}");
    w.container = harness_name("nobody");
    assert_int_equal(run_creation(&w, NULL), E_OWNER_NOT_FOUND);
    buf after = dump_store(h.store, NULL);
    assert_true(slice_eq(buf_view(&before), buf_view(&after)));
    buf_free(&before);
    buf_free(&after);
}

static void no_more_than_the_limit(void **state) {
    (void)state;
    char properties[64];
    for (int i = 0; i < LIMIT_FUNCTIONS; i++) {
        snprintf(properties, sizeof properties, "{\"id\":\"f%d\",\"body\":\"\"}", i);
        assert_int_equal(create(ACCOUNT_FUNCTION, properties), OK);
    }
    assert_int_equal(create(ACCOUNT_FUNCTION, "{\"id\":\"more\",\"body\":\"\"}"), E_FORBIDDEN);
    assert_int_equal(create(ACCOUNT_PROCEDURE, "{\"id\":\"more\",\"body\":\"\"}"), OK);
    assert_int_equal(remove_script(ACCOUNT_FUNCTION, "f7"), OK);
    assert_int_equal(create(ACCOUNT_FUNCTION, "{\"id\":\"more\",\"body\":\"\"}"), OK);
}

/* A change that was not written is not visible, now or later. */
static void not_written(void **state) {
    (void)state;
    assert_int_equal(create(ACCOUNT_PROCEDURE, "{\"id\":\"a\",\"body\":\"1\"}"), OK);
    h.plan.write_in = 1;
    assert_int_not_equal(replace(ACCOUNT_PROCEDURE, "a", "{\"id\":\"b\",\"body\":\"2\"}"), OK);
    assert_string_equal(listing(ACCOUNT_PROCEDURE, 0), "a=1 ");
}

/* ---- with their container ---- */

static void go_with_their_container(void **state) {
    (void)state;
    assert_int_equal(create(ACCOUNT_PROCEDURE, "{\"id\":\"keep\",\"body\":\"1\"}"), OK);
    assert_int_equal(harness_create_database(&h, "e", (throughput_setting){0}), OK);
    assert_int_equal(harness_delete_database(&h, "e"), OK);
    buf before = dump_store(h.store, NULL);
    for (int whole = 0; whole < 2; whole++) {
        container *other;
        account_script *s = NULL;
        assert_int_equal(harness_create_database(&h, "e", (throughput_setting){0}), OK);
        assert_int_equal(harness_create_container(&h, "e", "{\"id\":\"c\"," KEY "}", 400, &other), OK);
        for (account_script_kind kind = 0; kind < ACCOUNT_SCRIPT_KINDS; kind++) {
            script_creation w = creation(kind, "{\"id\":\"x\",\"body\":\"1\",\"triggerType\":\"Pre\",\"triggerOperation\":\"All\"}");
            w.database = harness_name("e");
            assert_int_equal(run_creation(&w, NULL), OK);
        }
        if (!whole) {
            assert_int_equal(harness_delete_container(&h, "e", "c"), OK);
        }
        assert_int_equal(harness_delete_database(&h, "e"), OK);
        assert_int_equal(account_find_script(h.account, other, ACCOUNT_TRIGGER, SLICE_LIT("x"), false, &s), E_OWNER_NOT_FOUND);
        container_give(other);
        buf after = dump_store(h.store, NULL);
        assert_int_equal(after.n, before.n); /* only the number record changed */
        buf_free(&after);
    }
    buf_free(&before);
    restart();
    assert_string_equal(listing(ACCOUNT_PROCEDURE, 0), "keep=1 ");
}

static void stay_when_the_container_is_replaced(void **state) {
    (void)state;
    assert_int_equal(create(ACCOUNT_PROCEDURE, "{\"id\":\"a\",\"body\":\"1\"}"), OK);
    assert_int_equal(harness_replace_container(&h, "d", "c", "{\"id\":\"c\",\"defaultTtl\":10," KEY "}"), OK);
    assert_string_equal(listing(ACCOUNT_PROCEDURE, 0), "a=1 ");
    restart();
    assert_string_equal(listing(ACCOUNT_PROCEDURE, 0), "a=1 ");
}

/* ---- many ---- */

static void many(void **state) {
    (void)state;
    enum { CONTAINERS = 100 };
    char name[32], properties[1200], body[1001];
    memset(body, 'x', sizeof body - 1);
    body[sizeof body - 1] = 0;
    for (int i = 0; i < CONTAINERS; i++) {
        container *made;
        snprintf(name, sizeof name, "n%d", i);
        snprintf(properties, sizeof properties, "{\"id\":\"%s\"," KEY "}", name);
        assert_int_equal(harness_create_container(&h, "d", properties, 400, &made), OK);
        container_give(made);
        for (int j = 0; j < LIMIT_PROCEDURES; j++) {
            snprintf(properties, sizeof properties, "{\"id\":\"p%d\",\"body\":\"%s\"}", j, body);
            script_creation w = creation(ACCOUNT_PROCEDURE, properties);
            w.container = harness_name(name);
            assert_int_equal(run_creation(&w, NULL), OK);
        }
    }
    int64_t start = clock_monotonic_us(&clock_system);
    restart();
    int64_t took = clock_monotonic_us(&clock_system) - start;
    printf("%d scripts of 1 KB loaded: %.1f ms\n", CONTAINERS * LIMIT_PROCEDURES, (double)took / 1000);
    assert_true(took < 5000000);
    container *last = harness_found(&h, "d", "n99");
    account_script *s = NULL;
    start = clock_monotonic_us(&clock_system);
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(account_find_script(h.account, last, ACCOUNT_PROCEDURE, SLICE_LIT("p73"), false, &s), OK);
        account_script_give(s);
    }
    printf("found by name: %.0f ns\n", (double)(clock_monotonic_us(&clock_system) - start) / 10);
    container_give(last);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(come_and_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(replacing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(upserting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(etags, set_up, tear_down),
        cmocka_unit_test_setup_teardown(by_rid, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_more_than_the_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(not_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(go_with_their_container, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stay_when_the_container_is_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
