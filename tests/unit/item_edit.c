/* Edits and conditions in the core: each answer, conditions on every kind of write, batches and bulk, edits that are too long for the
 * committer, items that change between preparation and commit, charges, the log of versions, the order of changes, expiry, and every store
 * call failing in turn. On the in-memory store and on RocksDB; after each test the store is checked for consistency. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "edit_samples.h"
#include "item_harness.h"
#include "query/condition.h"
#include "throughput/charge.h"

#define KEY "\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"
#define A "[\"a\"]"

static harness h;
static container *c;
static bool on_rocks;
static char *folder;

static void start(const char *properties) {
    samples_register();
    query_condition_register();
    folder = on_rocks ? make_folder() : NULL;
    harness_open_on(&h, on_rocks ? open_rocks(folder) : store_open_memory());
    c = harness_container(&h, properties, 400);
}

static int set_up(void **state) {
    (void)state;
    start("{" KEY ",\"defaultTtl\":-1,\"changeFeedPolicy\":{\"retentionDuration\":10}}");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    harness_check(&h, c);
    container_give(c);
    harness_close(&h);
    if (folder) {
        remove_folder(folder);
        free(folder);
    }
    return 0;
}

/* ---- helpers ---- */

static item_op edit_of(unsigned kind, const char *id, const char *argument) {
    item_op o;
    assert_int_equal(harness_prepare(&h, c, &o, ITEM_DELETE, A, id, NULL), OK); /* only to make the key */
    o.kind = ITEM_EDIT;
    o.edit = (item_edit){.kind = (uint16_t)kind, .argument = harness_bson(&h, argument)};
    return o;
}

static item_op write_of(item_kind kind, const char *id, const char *text) {
    item_op o;
    assert_int_equal(harness_prepare(&h, c, &o, kind, A, id, text), OK);
    return o;
}

static void add_condition(item_op *o, unsigned kind, const char *argument) {
    item_condition *conditions = arena_array(&h.arena, item_condition, o->conditions_n + 1);
    if (o->conditions_n) {
        memcpy(conditions, o->conditions, o->conditions_n * sizeof *conditions);
    }
    conditions[o->conditions_n++] =
        (item_condition){.kind = (uint16_t)kind, .argument = argument ? harness_bson(&h, argument) : SLICE_EMPTY};
    o->conditions = conditions;
}

static err commit_one(item_op *o) {
    return harness_commit(&h, c, o, 1, true);
}

static err edit(unsigned kind, const char *id, const char *argument, item_op *o) {
    *o = edit_of(kind, id, argument);
    return commit_one(o);
}

static void assert_is(const char *id, const char *json) {
    const char *found = harness_read(&h, c, A, id);
    if (json ? !found || strcmp(found, json) != 0 : found != NULL) {
        fail_msg("%s is %s, expected %s", id, found ? found : "not there", json ? json : "nothing");
    }
}

static const char *text_of(slice bson) {
    buf text = buf_init(BUF_NO_LIMIT);
    json_from_bson(&text, bson);
    const char *result = arena_text(&h.arena, buf_view(&text));
    buf_free(&text);
    return result;
}

static void put(const char *id, const char *rest) {
    char body[512];
    snprintf(body, sizeof body, "{\"id\":\"%s\",\"pk\":\"a\"%s}", id, rest);
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, body), OK);
}

static void assert_sentence(const item_op *o, const char *part) {
    if (!memmem(o->op.detail, o->op.detail_n, part, strlen(part))) {
        fail_msg("the sentence is '%.*s', expected '%s' in it", (int)o->op.detail_n, o->op.detail, part);
    }
}

static uint64_t lsn_now(void) {
    return atomic_load(&c->space->newest->ranges[0]->lsn);
}

/* ---- each answer ---- */

static void an_edit_inserts_and_replaces(void **state) {
    (void)state;
    item_op o;
    assert_int_equal(edit(EDIT_COUNTER, "1", "{\"by\":5}", &o), OK);
    assert_true(o.created && !o.left && !o.deleted && !o.before_there);
    assert_string_equal(text_of(o.reply), "{\"n\":5}");
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":5}");
    uint64_t number = o.after.number, lsn = o.after.lsn;
    assert_int_equal(edit(EDIT_COUNTER, "1", "{\"by\":-2}", &o), OK);
    assert_true(!o.created && !o.left && !o.deleted && o.before_there);
    assert_int_equal(o.after.number, number);
    assert_int_equal(o.after.lsn, lsn + 1);
    assert_string_equal(text_of(o.reply), "{\"n\":3}");
    assert_string_equal(text_of(o.before_body), "{\"id\":\"1\",\"pk\":\"a\",\"n\":5}");
    assert_string_equal(text_of(o.result), "{\"id\":\"1\",\"pk\":\"a\",\"n\":3}");
    assert_int_equal(harness_count(c), 1);
}

static void an_edit_leaves(void **state) {
    (void)state;
    item_op o;
    put("1", ",\"v\":1");
    uint64_t lsn = lsn_now();
    assert_int_equal(edit(EDIT_SWAP, "1", "{\"expected\":2,\"value\":3}", &o), OK);
    assert_true(o.left && !o.created && !o.deleted);
    assert_string_equal(text_of(o.reply), "{\"swapped\":0}");
    assert_int_equal(o.after.lsn, lsn);
    assert_string_equal(text_of(o.result), "{\"id\":\"1\",\"pk\":\"a\",\"v\":1}");
    assert_int_equal(edit(EDIT_DELETE_IF, "none", "{\"v\":1}", &o), OK); /* the item is absent, and stays so */
    assert_true(o.left && o.result.n == 0);
    assert_int_equal(lsn_now(), lsn);
    assert_int_equal(edit(EDIT_SWAP, "1", "{\"expected\":1,\"value\":3}", &o), OK);
    assert_true(!o.left);
    assert_string_equal(text_of(o.reply), "{\"swapped\":1}");
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"v\":3}");
    assert_int_equal(edit(EDIT_SWAP, "none", "{\"expected\":1,\"value\":3}", &o), E_NOT_FOUND); /* needs_item */
}

static void an_edit_deletes(void **state) {
    (void)state;
    item_op o;
    put("1", ",\"v\":1");
    assert_int_equal(edit(EDIT_DELETE_IF, "1", "{\"v\":2}", &o), OK);
    assert_true(o.left);
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"v\":1}");
    uint64_t lsn = lsn_now();
    assert_int_equal(edit(EDIT_DELETE_IF, "1", "{\"v\":1}", &o), OK);
    assert_true(o.deleted && !o.left && !o.created);
    assert_int_equal(o.after.lsn, lsn + 1);
    assert_is("1", NULL);
    assert_int_equal(harness_count(c), 0);
}

static void an_edit_merges(void **state) {
    (void)state;
    item_op o;
    assert_int_equal(edit(EDIT_MERGE, "1", "{\"x\":1,\"y\":[1,2]}", &o), OK);
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"x\":1,\"y\":[1,2]}");
    assert_int_equal(edit(EDIT_MERGE, "1", "{\"y\":null,\"z\":\"new\"}", &o), OK);
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"x\":1,\"y\":null,\"z\":\"new\"}");
}

/* ---- invalid edits ---- */

static void an_edit_keeps_the_key(void **state) {
    (void)state;
    item_op o;
    put("1", "");
    uint64_t lsn = lsn_now();
    assert_int_equal(edit(EDIT_MERGE, "1", "{\"pk\":\"b\"}", &o), E_BAD_REQUEST);
    assert_sentence(&o, "A merge cannot change the item's partition key.");
    assert_int_equal(edit(EDIT_MERGE, "1", "{\"id\":\"2\"}", &o), E_BAD_REQUEST);
    assert_sentence(&o, "A merge cannot change the item's id.");
    assert_int_equal(edit(EDIT_MERGE, "1", "{\"ttl\":\"x\"}", &o), E_BAD_REQUEST);
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\"}");
    assert_int_equal(lsn_now(), lsn);
    assert_int_equal(edit(EDIT_OTHER_ID, "9", "{\"id\":\"8\",\"pk\":\"a\"}", &o), E_BAD_REQUEST); /* the same for an insert */
    assert_sentence(&o, "cannot change the item's id");
    assert_int_equal(edit(EDIT_OTHER_ID, "9", "{\"id\":\"9\",\"pk\":\"b\"}", &o), E_BAD_REQUEST);
    assert_is("8", NULL);
    assert_is("9", NULL);
}

static void what_is_wrong_is_told_before_the_commit(void **state) {
    (void)state;
    item_op o = edit_of(EDIT_COUNTER, "1", "{}");
    assert_int_equal(commit_one(&o), E_BAD_REQUEST);
    assert_sentence(&o, "A counter needs a number 'by'");
    o = edit_of(ITEM_EDIT_IDS - 1, "1", "{}");
    assert_int_equal(commit_one(&o), E_BAD_REQUEST);
    assert_sentence(&o, "There is no edit of kind 63.");
    o = edit_of(ITEM_EDIT_NONE, "1", "{}");
    assert_int_equal(commit_one(&o), E_BAD_REQUEST);
    o = write_of(ITEM_UPSERT, NULL, "{\"id\":\"1\",\"pk\":\"a\"}");
    add_condition(&o, ITEM_CONDITION_IDS, NULL);
    assert_int_equal(commit_one(&o), E_BAD_REQUEST);
    assert_sentence(&o, "There is no condition of kind 64.");
    o = write_of(ITEM_UPSERT, NULL, "{\"id\":\"1\",\"pk\":\"a\"}");
    add_condition(&o, ITEM_CONDITION_FILTER, "{\"filter\":\"FROM c WHERE\"}");
    assert_int_equal(commit_one(&o), E_BAD_QUERY);
    o = write_of(ITEM_UPSERT, NULL, "{\"id\":\"1\",\"pk\":\"a\"}");
    for (size_t i = 0; i <= LIMIT_EDIT_CONDITIONS; i++) {
        add_condition(&o, ITEM_CONDITION_ABSENT, NULL);
    }
    assert_int_equal(commit_one(&o), E_BAD_REQUEST);
    assert_is("1", NULL);
}

static void an_error_of_the_edit_has_its_sentence(void **state) {
    (void)state;
    item_op o;
    put("1", ",\"n\":\"text\"");
    assert_int_equal(edit(EDIT_COUNTER, "1", "{\"by\":1}", &o), E_BAD_REQUEST);
    assert_sentence(&o, "The counter 'n' is not a number.");
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":\"text\"}");
}

/* ---- conditions ---- */

static item_op of_kind(item_kind kind, const char *id) {
    char body[64];
    snprintf(body, sizeof body, "{\"id\":\"%s\",\"pk\":\"a\",\"w\":1}", id);
    if (kind == ITEM_EDIT) {
        return edit_of(EDIT_MERGE, id, "{\"w\":1}");
    }
    return write_of(kind, kind == ITEM_REPLACE || kind == ITEM_DELETE ? id : NULL, kind == ITEM_DELETE ? NULL : body);
}

/* Each condition on each kind of write, on an existing item with v 1, and on an absent one. */
static void conditions_hold_on_every_kind(void **state) {
    (void)state;
    static const item_kind kinds[] = {ITEM_CREATE, ITEM_UPSERT, ITEM_REPLACE, ITEM_DELETE, ITEM_EDIT};
    static const struct {
        unsigned kind;
        const char *argument;
        bool there, absent; /* whether it holds */
    } conditions[] = {
        {ITEM_CONDITION_EXISTS, NULL, true, false},
        {ITEM_CONDITION_ABSENT, NULL, false, true},
        {ITEM_CONDITION_FILTER, "{\"filter\":\"FROM c WHERE c.v = 1\"}", true, false},
        {ITEM_CONDITION_FILTER, "{\"filter\":\"FROM c WHERE c.v = 2\"}", false, false},
        {CONDITION_V, "{\"v\":1}", true, false},
        {CONDITION_V, "{\"v\":2}", false, false},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (size_t i = 0; i < 2 * sizeof conditions / sizeof *conditions; i++) {
            bool there = i % 2;
            bool holds = there ? conditions[i / 2].there : conditions[i / 2].absent;
            bool needs_absent = kinds[k] == ITEM_CREATE, needs_there = kinds[k] == ITEM_REPLACE || kinds[k] == ITEM_DELETE;
            err expected = needs_absent && there ? E_CONFLICT : needs_there && !there ? E_NOT_FOUND : holds ? OK : E_PRECONDITION;
            if (there) {
                put("1", ",\"v\":1");
            } else {
                assert_true(harness_write(&h, c, ITEM_DELETE, A, "1", NULL) != E_PRECONDITION);
            }
            uint64_t lsn = lsn_now();
            item_op o = of_kind(kinds[k], "1");
            add_condition(&o, conditions[i / 2].kind, conditions[i / 2].argument);
            err code = commit_one(&o);
            if (code != expected) {
                fail_msg("kind %d, condition %u %s, there %d: %s", kinds[k], conditions[i / 2].kind,
                         conditions[i / 2].argument ? conditions[i / 2].argument : "", there, err_lookup(code)->name);
            }
            assert_int_equal(lsn_now(), lsn + (code == OK));
            if (code == E_PRECONDITION && there) { /* a rejected write returns the current item */
                assert_string_equal(text_of(o.before_body), "{\"id\":\"1\",\"pk\":\"a\",\"v\":1}");
            }
        }
    }
}

static void all_conditions_must_hold(void **state) {
    (void)state;
    put("1", ",\"v\":1,\"n\":5");
    item_op o = edit_of(EDIT_COUNTER, "1", "{\"by\":1}");
    add_condition(&o, ITEM_CONDITION_EXISTS, NULL);
    add_condition(&o, CONDITION_V, "{\"v\":1}");
    add_condition(&o, ITEM_CONDITION_FILTER, "{\"filter\":\"FROM c WHERE c.n < 6\"}");
    item_op again = o;
    assert_int_equal(commit_one(&o), OK);
    assert_int_equal(commit_one(&again), E_PRECONDITION);
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"v\":1,\"n\":6}");
}

static void etags_hold_on_edits(void **state) {
    (void)state;
    item_op o;
    char etag[ITEM_ETAG_BYTES + 1], old[ITEM_ETAG_BYTES + 1];
    assert_int_equal(edit(EDIT_COUNTER, "1", "{\"by\":1}", &o), OK);
    item_etag(old, item_version(&o.after), o.after.ts);
    assert_int_equal(edit(EDIT_COUNTER, "1", "{\"by\":1}", &o), OK);
    item_etag(etag, item_version(&o.after), o.after.ts);
    o = edit_of(EDIT_COUNTER, "1", "{\"by\":1}");
    o.if_match = slice_str(old);
    assert_int_equal(commit_one(&o), E_PRECONDITION);
    o = edit_of(EDIT_COUNTER, "1", "{\"by\":1}");
    o.if_match = slice_str(etag);
    assert_int_equal(commit_one(&o), OK);
    o = edit_of(EDIT_COUNTER, "2", "{\"by\":1}");
    o.if_match = slice_str(etag);
    assert_int_equal(commit_one(&o), E_NOT_FOUND);
}

/* ---- batches and bulk ---- */

static void a_batch_with_edits_is_all_or_nothing(void **state) {
    (void)state;
    item_op ops[4] = {edit_of(EDIT_COUNTER, "1", "{\"by\":1}"), write_of(ITEM_CREATE, NULL, "{\"id\":\"2\",\"pk\":\"a\",\"n\":1}"),
                      edit_of(EDIT_COUNTER, "2", "{\"by\":4}"), edit_of(EDIT_DELETE_IF, "1", "{\"v\":0}")};
    assert_int_equal(harness_commit(&h, c, ops, 4, true), OK);
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":1}");
    assert_is("2", "{\"id\":\"2\",\"pk\":\"a\",\"n\":5}"); /* it saw the batch's own writes */
    assert_true(ops[3].left && ops[0].created && !ops[2].created);
    uint64_t lsn = lsn_now();
    item_op failing[3] = {edit_of(EDIT_COUNTER, "1", "{\"by\":1}"), edit_of(EDIT_DELETE_IF, "2", "{\"v\":0}"),
                          edit_of(EDIT_SWAP, "none", "{}")};
    assert_int_equal(harness_commit(&h, c, failing, 3, true), E_NOT_FOUND);
    assert_int_equal(failing[0].code, E_FAILED_DEPENDENCY);
    assert_int_equal(failing[2].code, E_NOT_FOUND);
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":1}");
    assert_int_equal(lsn_now(), lsn);
}

static void bulk_with_edits_does_each_by_itself(void **state) {
    (void)state;
    item_op ops[4] = {edit_of(EDIT_COUNTER, "1", "{\"by\":1}"), edit_of(EDIT_SWAP, "none", "{}"), edit_of(EDIT_COUNTER, "3", "{}"),
                      edit_of(EDIT_COUNTER, "1", "{\"by\":1}")};
    assert_int_equal(harness_commit(&h, c, ops, 4, false), OK);
    assert_int_equal(ops[0].code, OK);
    assert_int_equal(ops[1].code, E_NOT_FOUND);
    assert_int_equal(ops[2].code, E_BAD_REQUEST); /* a bad argument */
    assert_int_equal(ops[3].code, OK);
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":2}");
}

/* ---- long edits ---- */

#define LONG "{\"steps\":100000}"            /* found to be long when it runs */
#define TOLD "{\"steps\":100000,\"told\":1}" /* its estimate says that it is long */
#define ENDLESS "{\"steps\":1000000000000}"

/* Submits once and waits. */
static void submit(waited_commit *w, item_op *ops, size_t n, bool atomic) {
    if (!w->base.done) {
        *w = (waited_commit){.base = {.items = harness_items(&h), .container = c, .ops = ops, .n = n, .atomic = atomic, .range_id = -1}};
        w->base.op = harness_op(&h);
        w->base.prepares = true;
        w->base.done = commit_is_done;
    }
    waiter_init(&w->waiter);
    assert_int_equal(item_commit_submit(&w->base), OK);
    waiter_wait(&w->waiter);
}

static void a_long_edit_is_prepared_outside(void **state) {
    (void)state;
    static const char *const arguments[] = {LONG, TOLD};
    for (size_t i = 0; i < 2; i++) {
        waited_commit w = {0};
        item_op o = edit_of(EDIT_SPIN, i ? "told" : "long", arguments[i]);
        submit(&w, &o, 1, true);
        assert_true(item_commit_is_undecided(&w.base));
        assert_is(i ? "told" : "long", NULL); /* nothing has been written */
        item_commit_prepare(&w.base);
        submit(&w, &o, 1, true);
        assert_false(item_commit_is_undecided(&w.base));
        assert_int_equal(w.base.base.code, OK);
        assert_true(o.created);
        assert_string_equal(text_of(o.reply), "{\"n\":1}");
        item_commit_give(&w.base);
    }
}

static void a_large_item_is_edited_outside(void **state) {
    (void)state;
    char *text = malloc(100000);
    assert_non_null(text);
    int n = snprintf(text, 100000, "{\"id\":\"1\",\"pk\":\"a\",\"n\":1,\"s\":\"");
    memset(text + n, 'x', 80000);
    snprintf(text + n + 80000, 100, "\"}");
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, text), OK);
    waited_commit w = {0};
    item_op o = write_of(ITEM_EDIT, "1", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}]");
    submit(&w, &o, 1, true);
    assert_true(item_commit_is_undecided(&w.base));
    item_commit_prepare(&w.base);
    submit(&w, &o, 1, true);
    assert_false(item_commit_is_undecided(&w.base));
    assert_int_equal(o.code, OK);
    item_commit_give(&w.base);
    text[n - 7] = '2'; /* "n":1 became 2 */
    assert_is("1", text);
    free(text);
}

/* If the caller cannot prepare, the committer runs the edit at once. */
static void a_long_edit_needs_no_worker(void **state) {
    (void)state;
    item_op o = edit_of(EDIT_SPIN, "1", LONG);
    waited_commit w = {.base = {.items = harness_items(&h), .container = c, .ops = &o, .n = 1, .atomic = true, .range_id = -1}};
    w.base.op = harness_op(&h);
    w.base.done = commit_is_done;
    submit(&w, &o, 1, true);
    assert_false(item_commit_is_undecided(&w.base));
    assert_int_equal(w.base.base.code, OK);
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":1}");
    item_commit_give(&w.base);
}

static void an_endless_edit_ends(void **state) {
    (void)state;
    item_op o;
    assert_int_equal(edit(EDIT_SPIN, "1", ENDLESS, &o), E_EDIT_TOO_LONG);
    assert_sentence(&o, "divide it");
    assert_is("1", NULL);
    o = write_of(ITEM_UPSERT, NULL, "{\"id\":\"1\",\"pk\":\"a\"}");
    add_condition(&o, CONDITION_SPIN, ENDLESS);
    assert_int_equal(commit_one(&o), E_EDIT_TOO_LONG);
    assert_is("1", NULL);
}

/* A filter that exceeds the committer's budget is evaluated outside; past its own limit it fails. */
static void a_long_filter_is_evaluated_outside(void **state) {
    (void)state;
    buf body = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&body, "{\"id\":\"1\",\"pk\":\"a\",\"n\":[");
    for (int i = 0; i < 300; i++) {
        buf_addf(&body, "%s%d", i ? "," : "", i);
    }
    buf_add_lit(&body, "]}");
    buf_add_byte(&body, 0);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, NULL, NULL, body.p), OK);
    buf_free(&body);
    static const struct {
        const char *filter;
        bool is_long;
        err code;
    } cases[] = {
        {"FROM c WHERE c.n[3] = 3", false, OK},
        {"FROM c JOIN x IN c.n JOIN y IN c.n WHERE x + y = 10 AND x = 5", true, OK},
        {"FROM c JOIN x IN c.n WHERE x + x + x + x + x + x + x + x + x < 0", true, E_PRECONDITION},
        {"FROM c JOIN x IN c.n JOIN y IN c.n JOIN z IN c.n WHERE x + y + z < 0", true, E_QUERY_TOO_LONG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        waited_commit w = {0};
        item_op o = edit_of(EDIT_MERGE, "1", "{\"x\":1}");
        item_condition filter = query_condition_of(&h.arena, slice_str(cases[i].filter));
        o.conditions = &filter;
        o.conditions_n = 1;
        submit(&w, &o, 1, true);
        assert_int_equal(item_commit_is_undecided(&w.base), cases[i].is_long);
        if (cases[i].is_long) {
            item_commit_prepare(&w.base);
            submit(&w, &o, 1, true);
        }
        assert_int_equal(o.code, cases[i].code);
        item_commit_give(&w.base);
    }
}

/* ---- the item changes meanwhile ---- */

static void what_was_prepared_is_not_applied_to_another_version(void **state) {
    (void)state;
    waited_commit w = {0};
    put("1", ",\"n\":1");
    item_op o = edit_of(EDIT_SPIN, "1", TOLD);
    submit(&w, &o, 1, true);
    for (unsigned i = 1; i <= LIMIT_EDIT_ATTEMPTS; i++) {
        char rest[32];
        assert_true(item_commit_is_undecided(&w.base));
        item_commit_prepare(&w.base);
        snprintf(rest, sizeof rest, ",\"n\":%u", 100 * i);
        put("1", rest);
        submit(&w, &o, 1, true);
    }
    assert_false(item_commit_is_undecided(&w.base)); /* this time the committer ran it itself */
    assert_int_equal(w.base.base.code, OK);
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":301}");
    item_commit_give(&w.base);
}

/* All ways in which an item can change between preparation and commit. */
static void every_other_version_is_noticed(void **state) {
    (void)state;
    for (int how = 0; how < 5; how++) {
        waited_commit w = {0};
        char expected[80];
        harness_write(&h, c, ITEM_DELETE, A, "1", NULL);
        if (how != 3) {
            put("1", how == 4 ? ",\"n\":1,\"ttl\":5" : ",\"n\":1");
        }
        item_op o = edit_of(EDIT_SPIN, "1", TOLD);
        submit(&w, &o, 1, true);
        item_commit_prepare(&w.base);
        if (how == 0) { /* no change: the prepared result is applied */
        } else if (how == 1) {
            assert_int_equal(harness_write(&h, c, ITEM_DELETE, A, "1", NULL), OK);
        } else if (how == 2) { /* another item with the same body */
            assert_int_equal(harness_write(&h, c, ITEM_DELETE, A, "1", NULL), OK);
            put("1", ",\"n\":1");
        } else if (how == 3) { /* created meanwhile */
            put("1", ",\"n\":1");
        } else {
            clock_manual_advance(&h.clock, 6000); /* expired meanwhile */
        }
        submit(&w, &o, 1, true);
        assert_int_equal(item_commit_is_undecided(&w.base), how != 0);
        if (how != 0) {
            item_commit_prepare(&w.base);
            submit(&w, &o, 1, true);
        }
        assert_int_equal(w.base.base.code, OK);
        snprintf(expected, sizeof expected, "{\"id\":\"1\",\"pk\":\"a\",\"n\":%d}", how == 1 || how == 4 ? 1 : 2);
        assert_is("1", expected);
        item_commit_give(&w.base);
    }
}

static void a_condition_that_was_prepared_is_asked_again(void **state) {
    (void)state;
    waited_commit w = {0};
    put("1", ",\"v\":1");
    item_op o = write_of(ITEM_REPLACE, "1", "{\"id\":\"1\",\"pk\":\"a\",\"v\":2}");
    add_condition(&o, CONDITION_V, "{\"v\":1}");
    add_condition(&o, CONDITION_SPIN, TOLD);
    submit(&w, &o, 1, true);
    assert_true(item_commit_is_undecided(&w.base));
    item_commit_prepare(&w.base);
    put("1", ",\"v\":7");
    submit(&w, &o, 1, true);
    assert_true(item_commit_is_undecided(&w.base));
    item_commit_prepare(&w.base);
    submit(&w, &o, 1, true);
    assert_int_equal(w.base.base.code, E_PRECONDITION);
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"v\":7}");
    item_commit_give(&w.base);
}

static void long_edits_in_a_batch(void **state) {
    (void)state;
    put("1", ",\"n\":10");
    item_op ops[5] = {edit_of(EDIT_COUNTER, "1", "{\"by\":1}"), edit_of(EDIT_SPIN, "1", TOLD), edit_of(EDIT_SPIN, "2", TOLD),
                      write_of(ITEM_CREATE, NULL, "{\"id\":\"3\",\"pk\":\"a\",\"n\":1}"), edit_of(EDIT_SPIN, "3", TOLD)};
    waited_commit w = {0};
    submit(&w, ops, 5, true);
    assert_true(item_commit_is_undecided(&w.base)); /* because of item 2; the edits of 1 and 3 depend on the batch's own writes */
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":10}");
    item_commit_prepare(&w.base);
    submit(&w, ops, 5, true);
    assert_false(item_commit_is_undecided(&w.base));
    assert_int_equal(w.base.base.code, OK);
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":12}");
    assert_is("2", "{\"id\":\"2\",\"pk\":\"a\",\"n\":1}");
    assert_is("3", "{\"id\":\"3\",\"pk\":\"a\",\"n\":2}");
    item_commit_give(&w.base);
}

static void long_edits_in_bulk(void **state) {
    (void)state;
    put("1", ",\"n\":10");
    item_op ops[5] = {edit_of(EDIT_COUNTER, "1", "{\"by\":1}"), edit_of(EDIT_SPIN, "1", TOLD), edit_of(EDIT_SWAP, "none", "{}"),
                      edit_of(EDIT_SPIN, "2", TOLD), edit_of(EDIT_COUNTER, "2", "{\"by\":5}")};
    waited_commit w = {0};
    submit(&w, ops, 5, false);
    assert_true(item_commit_is_undecided(&w.base));
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":11}"); /* the operations before it are written */
    assert_is("2", NULL);
    while (item_commit_is_undecided(&w.base)) {
        item_commit_prepare(&w.base);
        submit(&w, ops, 5, false);
    }
    assert_true(w.base.attempts <= 2);
    assert_false(item_commit_failed(&w.base));
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(ops[i].code, i == 2 ? E_NOT_FOUND : OK);
    }
    assert_true(item_commit_charge(&w.base) > 4 * 5);
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":12}");
    assert_is("2", "{\"id\":\"2\",\"pk\":\"a\",\"n\":6}");
    item_commit_give(&w.base);
}

/* The store fails while the rest of a bulk request is written: the operations written before keep their results. */
static void bulk_that_fails_half_way(void **state) {
    (void)state;
    item_op ops[3] = {edit_of(EDIT_COUNTER, "1", "{\"by\":1}"), edit_of(EDIT_SPIN, "2", TOLD), edit_of(EDIT_COUNTER, "3", "{\"by\":1}")};
    waited_commit w = {0};
    submit(&w, ops, 3, false);
    assert_true(item_commit_is_undecided(&w.base));
    item_commit_prepare(&w.base);
    h.plan = (store_fault_plan){.code = E_STORE_IO, .write_in = 1};
    submit(&w, ops, 3, false);
    assert_false(item_commit_failed(&w.base));
    assert_int_equal(ops[0].code, OK);
    assert_int_equal(ops[1].code, E_STORE_IO);
    assert_int_equal(ops[2].code, E_STORE_IO);
    item_commit_give(&w.base);
    h.plan = (store_fault_plan){.code = E_STORE_IO};
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":1}");
    assert_is("2", NULL);
    assert_is("3", NULL);
}

/* ---- the committer's time ---- */

static atomic_uint most_steps;

static err measured_apply(op *o, const item_edit_input *in, item_edit_budget *b, item_edit_result *result_out) {
    unsigned steps = (unsigned)(b->steps > UINT32_MAX ? UINT32_MAX : b->steps), most = atomic_load(&most_steps);
    while (steps > most && !atomic_compare_exchange_weak(&most_steps, &most, steps)) {
    }
    return spin_apply(o, in, b, result_out);
}

/* The committer's limit for an edit that can be prepared outside. */
static void steps_on_the_committer_are_bounded(void **state) {
    (void)state;
    static const item_edit_kind measured = {.id = ITEM_EDIT_IDS - 2, .name = "spin", .apply = measured_apply};
    item_edit_register(&measured);
    waited_commit w = {0};
    item_op o = edit_of(measured.id, "1", LONG);
    atomic_store(&most_steps, 0);
    submit(&w, &o, 1, true);
    assert_true(item_commit_is_undecided(&w.base));
    assert_int_equal(most_steps, LIMIT_EDIT_STEPS);
    atomic_store(&most_steps, 0);
    item_commit_prepare(&w.base);
    assert_int_equal(most_steps, LIMIT_EDIT_STEPS_MAX); /* the limit outside is higher */
    atomic_store(&most_steps, 0);
    submit(&w, &o, 1, true);
    assert_int_equal(most_steps, 0); /* the prepared result was applied, the edit not run again */
    assert_int_equal(w.base.base.code, OK);
    item_commit_give(&w.base);
}

/* ---- charges ---- */

static double price(item_op *o) {
    assert_int_equal(commit_one(o), OK);
    return o->op.charge_ru;
}

static void charges_go_by_what_was_done(void **state) {
    (void)state;
    item_op o = edit_of(EDIT_COUNTER, "1", "{\"by\":1}");
    double inserted = price(&o);
    o = write_of(ITEM_CREATE, NULL, "{\"id\":\"x\",\"pk\":\"a\",\"n\":1}");
    assert_true(inserted == price(&o));
    o = edit_of(EDIT_MERGE, "1", "{\"n\":5}");
    double merged = price(&o);
    o = write_of(ITEM_REPLACE, "x", "{\"id\":\"x\",\"pk\":\"a\",\"n\":5}");
    assert_true(merged == price(&o));
    o = edit_of(EDIT_COUNTER, "1", "{\"by\":1}"); /* it reports one changed property */
    double counted = price(&o);
    o = write_of(ITEM_EDIT, "x", "[{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}]");
    assert_true(counted == price(&o));
    assert_true(counted == merged + CHARGE_PATCHED_PROPERTY);
    o = edit_of(EDIT_DELETE_IF, "1", "{\"v\":1}");
    assert_true(price(&o) == charge_read(10)); /* left: charged as a read */
    o = edit_of(EDIT_DELETE_IF, "1", "{\"v\":1}");
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"v\":1}"), OK);
    double deleted = price(&o);
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\",\"v\":1}"), OK);
    o = write_of(ITEM_DELETE, "1", NULL);
    assert_true(deleted == price(&o));
}

/* The service's own figures (throughput/charge.h): an upsert of four properties with one change costs 10.67; a patch of it 0.4 more. */
static void a_patch_costs_what_it_did(void **state) {
    (void)state;
    put("1", ",\"n\":1,\"s\":\"x\"");
    item_op o = write_of(ITEM_EDIT, "1", "[{\"op\":\"set\",\"path\":\"/n\",\"value\":2}]");
    double one = price(&o);
    assert_true(one > 224.0 / 21 + 0.4 - 1e-9 && one < 224.0 / 21 + 0.4 + 1e-9);
    o = write_of(ITEM_EDIT, "1", "[{\"op\":\"set\",\"path\":\"/n\",\"value\":2},{\"op\":\"set\",\"path\":\"/n\",\"value\":3}]");
    double two = price(&o);
    assert_true(two > 224.0 / 21 + 0.8 - 1e-9 && two < 224.0 / 21 + 0.8 + 1e-9);
    o = write_of(ITEM_EDIT, "1", "[{\"op\":\"remove\",\"path\":\"/none\"}]");
    waited_commit w = {0};
    submit(&w, &o, 1, true);
    assert_int_equal(o.code, E_BAD_REQUEST);
    assert_true(item_commit_charge(&w.base) == CHARGE_FAILED);
    item_commit_give(&w.base);
}

/* ---- versions, changes, expiry ---- */

static bool see_version(void *context, const logged_version *v) {
    static const char *const kinds[] = {[VERSION_CREATE] = "create", [VERSION_REPLACE] = "replace", [VERSION_DELETE] = "delete"};
    buf_addf(context, "%s:%ld", kinds[v->entry.kind], (long)sample_number(v->body, "n", -1));
    if (v->note.n) {
        buf_addf(context, "(%ld)", (long)sample_number(v->note, "by", -1));
    }
    buf_add_byte(context, ' ');
    return true;
}

static bool see_change(void *context, const item_found *found) {
    buf_addf(context, "%ld ", (long)sample_number(found->body, "n", -1));
    return true;
}

static void versions_and_changes_follow(void **state) {
    (void)state;
    item_op o;
    item_mark mark;
    buf versions = buf_init(BUF_NO_LIMIT), changes = buf_init(BUF_NO_LIMIT);
    assert_int_equal(edit(EDIT_COUNTER, "1", "{\"by\":1}", &o), OK);
    assert_int_equal(edit(EDIT_SPIN, "1", TOLD, &o), OK);
    assert_int_equal(edit(EDIT_SWAP, "1", "{\"expected\":1,\"value\":2}", &o), OK); /* does not change the item, so it is not in the log */
    assert_int_equal(edit(EDIT_COUNTER, "2", "{\"by\":7}", &o), OK);
    assert_int_equal(edit(EDIT_MERGE, "2", "{\"v\":1}", &o), OK);
    assert_int_equal(edit(EDIT_DELETE_IF, "2", "{\"v\":1}", &o), OK);
    item_changes what = {.min = epk_min(), .max = epk_max()};
    assert_int_equal(item_versions_read(harness_items(&h), harness_op(&h), c, &what, see_version, &versions, &mark), OK);
    buf_add_byte(&versions, 0);
    assert_string_equal(versions.p, "create:1(1) replace:2(2) create:7(7) replace:7 delete:7 ");
    what = (item_changes){.min = epk_min(), .max = epk_max()};
    assert_int_equal(item_changes_read(harness_items(&h), harness_op(&h), c, &what, see_change, &changes, &mark), OK);
    buf_add_byte(&changes, 0);
    assert_string_equal(changes.p, "2 ");
    buf_free(&versions);
    buf_free(&changes);
}

static void an_expired_item_is_nothing_to_an_edit(void **state) {
    (void)state;
    item_op o;
    assert_int_equal(edit(EDIT_MERGE, "1", "{\"n\":10,\"ttl\":5}", &o), OK);
    assert_int_equal(o.after.ttl, 5);
    clock_manual_advance(&h.clock, 4000);
    assert_int_equal(edit(EDIT_COUNTER, "1", "{\"by\":1}", &o), OK); /* its ttl starts again */
    assert_int_equal(o.after.ttl, 5);
    clock_manual_advance(&h.clock, 4000);
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"ttl\":5,\"n\":11}");
    clock_manual_advance(&h.clock, 2000);
    assert_int_equal(edit(EDIT_SWAP, "1", "{}", &o), E_NOT_FOUND);
    assert_int_equal(edit(EDIT_DELETE_IF, "1", "{\"v\":1}", &o), OK);
    assert_true(o.left);
    assert_int_equal(edit(EDIT_COUNTER, "1", "{\"by\":1}", &o), OK);
    assert_true(o.created);
    assert_int_equal(o.after.ttl, TTL_OFF);
    assert_is("1", "{\"id\":\"1\",\"pk\":\"a\",\"n\":1}");
}

/* ---- a full disk ---- */

static void a_full_disk_lets_edits_that_delete_through(void **state) {
    (void)state;
    item_op o;
    assert_int_equal(harness_replace_container(&h, "d", "c", "{" KEY "}"), OK); /* without the log, deletes do not grow the store */
    container_give(c);
    c = harness_found(&h, "d", "c");
    put("1", ",\"v\":1");
    h.plan.room = STORE_FREES;
    assert_int_equal(edit(EDIT_COUNTER, "1", "{\"by\":1}", &o), E_STORE_FULL);
    assert_int_equal(edit(EDIT_DELETE_IF, "1", "{\"v\":1}", &o), OK);
    assert_true(o.deleted);
    h.plan.room = 0;
}

/* ---- every store call fails in turn ---- */

typedef struct request {
    const char *name;
    unsigned kind;
    const char *id, *argument;
} request;

static const request requests[] = {
    {"insert", EDIT_COUNTER, "new", "{\"by\":1}"},
    {"replace", EDIT_COUNTER, "1", "{\"by\":1}"},
    {"delete", EDIT_DELETE_IF, "1", "{\"v\":1}"},
    {"leave", EDIT_SWAP, "1", "{\"expected\":5}"},
    {"prepared insert", EDIT_SPIN, "new", TOLD},
    {"prepared replace", EDIT_SPIN, "1", TOLD},
    {"an expired item", EDIT_COUNTER, "old", "{\"by\":1}"},
};

static void fill(void) {
    put("1", ",\"v\":1,\"n\":1");
    put("old", ",\"ttl\":1");
    clock_manual_advance(&h.clock, 2000);
    container_give(c);
    h.uncached = true; /* so that the reads of the preparation fail too */
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
}

static buf outcome_of(const request *r) {
    item_op o;
    set_up(NULL);
    fill();
    assert_int_equal(edit(r->kind, r->id, r->argument, &o), OK);
    buf after = dump_store(h.store, NULL);
    tear_down(NULL);
    return after;
}

static bool try_failing(const request *r, unsigned *in, unsigned n, const buf *after) {
    item_op o;
    set_up(NULL);
    fill();
    buf before = dump_store(h.store, NULL);
    *in = n;
    err code = edit(r->kind, r->id, r->argument, &o);
    *in = 0;
    bool fired = h.plan.fired > 0;
    assert_true(code == OK || (fired && code == E_STORE_IO));
    buf now = dump_store(h.store, NULL);
    assert_true(code == OK ? on_rocks || slice_eq(buf_view(&now), buf_view(after)) : slice_eq(buf_view(&now), buf_view(&before)));
    buf_free(&now);
    buf_free(&before);
    tear_down(NULL);
    return fired;
}

static void whatever_fails_an_edit_is_whole_or_not_there(void **state) {
    (void)state;
    for (size_t i = on_rocks; i < sizeof requests / sizeof *requests; i += on_rocks ? 4 : 1) { /* opening a folder is slow */
        unsigned *kinds[] = {&h.plan.get_in, &h.plan.write_in, &h.plan.scan_in}, tries = 0;
        buf after = outcome_of(&requests[i]);
        for (size_t k = 0; k < 3; k++) {
            for (unsigned n = 1; try_failing(&requests[i], kinds[k], n, &after); n++) {
                tries++;
            }
        }
        if (tries < 2) {
            fail_msg("%s: only %u calls failed", requests[i].name, tries);
        }
        buf_free(&after);
    }
}

/* ---- concurrent edits ---- */

enum { THREADS = 4, EDITS = 150 };

typedef struct writer {
    pthread_t thread;
    unsigned i;
    arena arena;
} writer;

/* Uses its own arena, since the harness's arena belongs to one thread. */
static void *increment(void *context) {
    writer *w = context;
    for (int i = 0; i < EDITS; i++) {
        item_op o = {.kind = ITEM_EDIT};
        bson_t argument = BSON_INITIALIZER;
        op request;
        pkey header;
        op_init(&o.op, &w->arena, HARNESS_START_S);
        op_init(&request, &w->arena, HARNESS_START_S);
        bool is_long = i % 10 == 0;
        bson_append_int64(&argument, is_long ? "steps" : "by", -1, is_long ? 20000 : 1);
        o.edit = (item_edit){.kind = is_long ? EDIT_SPIN : EDIT_COUNTER, .argument = slice_of(bson_get_data(&argument), argument.len)};
        assert_int_equal(pkey_parse(&o.op, SLICE_LIT(A), &header), OK);
        assert_int_equal(item_check_key(&o.op, c, &header, SLICE_LIT("shared"), &o.key), OK);
        waited_commit commit = {.base = {.items = harness_items(&h), .container = c, .ops = &o, .n = 1, .atomic = true, .range_id = -1}};
        commit.base.op = &request;
        assert_int_equal(harness_submit(&commit), OK);
        assert_int_equal(commit.base.base.code, OK);
        item_commit_give(&commit.base);
        bson_destroy(&argument);
        arena_reset(&w->arena);
    }
    return NULL;
}

static void no_increment_is_lost(void **state) {
    (void)state;
    writer writers[THREADS];
    char expected[80];
    for (unsigned i = 0; i < THREADS; i++) {
        writers[i] = (writer){.i = i, .arena = arena_init()};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, increment, &writers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(writers[i].thread, NULL);
        arena_free(&writers[i].arena);
    }
    snprintf(expected, sizeof expected, "{\"id\":\"shared\",\"pk\":\"a\",\"n\":%d}", THREADS * EDITS);
    assert_is("shared", expected);
}

int main(void) {
#define ONE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ONE(an_edit_inserts_and_replaces),
        ONE(an_edit_leaves),
        ONE(an_edit_deletes),
        ONE(an_edit_merges),
        ONE(an_edit_keeps_the_key),
        ONE(what_is_wrong_is_told_before_the_commit),
        ONE(an_error_of_the_edit_has_its_sentence),
        ONE(conditions_hold_on_every_kind),
        ONE(all_conditions_must_hold),
        ONE(etags_hold_on_edits),
        ONE(a_batch_with_edits_is_all_or_nothing),
        ONE(bulk_with_edits_does_each_by_itself),
        ONE(a_long_edit_is_prepared_outside),
        ONE(a_large_item_is_edited_outside),
        ONE(a_long_edit_needs_no_worker),
        ONE(an_endless_edit_ends),
        ONE(a_long_filter_is_evaluated_outside),
        ONE(what_was_prepared_is_not_applied_to_another_version),
        ONE(every_other_version_is_noticed),
        ONE(a_condition_that_was_prepared_is_asked_again),
        ONE(long_edits_in_a_batch),
        ONE(long_edits_in_bulk),
        ONE(bulk_that_fails_half_way),
        ONE(steps_on_the_committer_are_bounded),
        ONE(charges_go_by_what_was_done),
        ONE(a_patch_costs_what_it_did),
        ONE(versions_and_changes_follow),
        ONE(an_expired_item_is_nothing_to_an_edit),
        ONE(a_full_disk_lets_edits_that_delete_through),
        ONE(no_increment_is_lost),
    };
    const struct CMUnitTest alone[] = {cmocka_unit_test(whatever_fails_an_edit_is_whole_or_not_there)};
    int failed = cmocka_run_group_tests_name("memory", tests, NULL, NULL) + cmocka_run_group_tests_name("faults", alone, NULL, NULL);
    on_rocks = true;
    return failed + cmocka_run_group_tests_name("rocks", tests, NULL, NULL) + cmocka_run_group_tests_name("faults", alone, NULL, NULL);
}
