/* Transactions of the core: several partitions and containers of one store, in memory and on RocksDB, with concurrent writers and with a
 * failing store. With two stores (TESELA_HOMES=2) all items but those of `away` are in the first one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "item/rows.h"
#include "item/transaction.h"
#include "item_harness.h"

#define KEYED(id, more) "{\"id\":\"" id "\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}" more "}"
#define FIRST KEYED("a", ",\"defaultTtl\":-1,\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/u\"]}]}")
#define SECOND KEYED("b", ",\"changeFeedPolicy\":{\"retentionDuration\":10}")

enum { PARTITIONS = 3, LIFETIME_S = 60 };

static harness h;
static char *folder;
static container *a, *b;
static char names[PARTITIONS][16], away[16]; /* partition keys as headers: ["p7"] */

/* ---- set up ---- */

static item_key key_of(const container *c, const char *header, const char *id) {
    op *o = harness_op(&h);
    pkey *parsed = arena_new(&h.arena, pkey);
    item_key key;
    assert_int_equal(pkey_parse(o, arena_copy(&h.arena, slice_str(header)), parsed), OK);
    assert_int_equal(item_check_key(o, c, parsed, arena_copy(&h.arena, slice_str(id)), &key), OK);
    return key;
}

static const container_range *range_of(const container *c, const char *header) {
    item_key key = key_of(c, header, "");
    return container_route(c->tiles, &key.epk);
}

/* Chooses partitions in the first home, in several ranges if it has them; and one in another home. */
static void choose_names(void) {
    size_t n = 0;
    *away = 0;
    for (int i = 0; n < PARTITIONS || (h.homes_n > 1 && !*away); i++) {
        char name[16];
        snprintf(name, sizeof name, "[\"p%d\"]", i);
        const container_range *in_a = range_of(a, name), *in_b = range_of(b, name);
        if (in_a->home->number == 0 && in_b->home->number == 0 && n < PARTITIONS) {
            if (n != 1 || h.homes_n > 1 || range_of(a, names[0]) != in_a) {
                memcpy(names[n++], name, sizeof name);
            }
        } else if (in_a->home->number == 1 && in_b->home->number == 1) {
            memcpy(away, name, sizeof name);
        }
    }
}

static void open_containers(void) {
    a = harness_container(&h, FIRST, 2000);
    container_give(harness_container(&h, KEYED("between", ""), 400)); /* homes are assigned in turn: now `a` and `b` get the same */
    b = harness_container(&h, SECOND, 2000);
    choose_names();
}

static int set_up(void **state) {
    (void)state;
    folder = NULL;
    harness_open(&h);
    open_containers();
    return 0;
}

static int set_up_rocks(void **state) {
    (void)state;
    folder = make_folder();
    harness_open_on(&h, open_rocks(folder));
    open_containers();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    container_give(a);
    if (b) {
        container_give(b);
    }
    harness_close(&h);
    if (folder) {
        remove_folder(folder);
        free(folder);
    }
    return 0;
}

static void check_all(void) {
    harness_check(&h, a);
    if (b) {
        harness_check(&h, b);
    }
}

static void restart(void) {
    container_give(a);
    container_give(b);
    harness_restart(&h);
    a = harness_found(&h, "d", "a");
    b = harness_found(&h, "d", "b");
    check_all();
}

/* ---- helpers ---- */

static item_transaction *begin(void) {
    item_transaction_ask ask = {.items = harness_items(&h), .lifetime_us = LIFETIME_S * INT64_C(1000000)};
    return item_transaction_begin(&ask);
}

static const char *body_of(const char *header, const char *id, int n) {
    char text[200];
    snprintf(text, sizeof text, "{\"id\":\"%s\",\"pk\":%.*s,\"u\":%d}", id, (int)strlen(header) - 2, header + 1, n);
    return arena_text(&h.arena, slice_str(text));
}

static item_op *prepare(container *c, item_kind kind, const char *header, const char *id, int n) {
    item_op *op = arena_new(&h.arena, item_op);
    char patch[100];
    snprintf(patch, sizeof patch, "[{\"op\":\"set\",\"path\":\"/u\",\"value\":%d}]", n);
    const char *text = kind == ITEM_EDIT ? patch : kind == ITEM_DELETE ? NULL : body_of(header, id, n);
    assert_int_equal(harness_prepare(&h, c, op, kind, header, id, text), OK);
    return op;
}

/* A write of the transaction; NULL: of another client. */
static err put(item_transaction *t, container *c, item_kind kind, const char *header, const char *id, int n) {
    item_op *op = prepare(c, kind, header, id, n);
    return t ? item_transaction_write(t, harness_op(&h), c, op) : harness_commit(&h, c, op, 1, true);
}

static int number_in(slice body) {
    bson_iter_t it;
    assert_true(doc_find_key(body, SLICE_LIT("u"), &it));
    return (int)bson_iter_as_int64(&it);
}

/* The item's `n`; -1: absent. */
static int get(item_transaction *t, container *c, const char *header, const char *id, bool guarded) {
    item_found found;
    item_key key = key_of(c, header, id);
    err code = t ? item_transaction_read(t, harness_op(&h), c, &key, guarded, &found)
                 : item_read(harness_items(&h), harness_op(&h), c, &key, &found);
    if (code == E_NOT_FOUND) {
        return -1;
    }
    assert_int_equal(code, OK);
    int n = number_in(found.body);
    item_give(&found);
    return n;
}

static void signal_done(void *context) {
    sem_post(context);
}

static err submit_and_wait(item_transaction *t) {
    sem_t done;
    sem_init(&done, 0, 0);
    TRY(item_transaction_commit(t, harness_op(&h), signal_done, &done));
    while (sem_wait(&done) != 0) {
    }
    return item_transaction_outcome(t, harness_op(&h));
}

static err commit_it(item_transaction *t) {
    err code = submit_and_wait(t);
    item_transaction_end(t);
    return code;
}

/* ---- one transaction ---- */

static void make_some(void) {
    assert_int_equal(put(NULL, a, ITEM_CREATE, names[0], "1", 1), OK);
    assert_int_equal(put(NULL, a, ITEM_CREATE, names[1], "2", 2), OK);
    assert_int_equal(put(NULL, b, ITEM_CREATE, names[2], "3", 3), OK);
    assert_int_equal(put(NULL, b, ITEM_CREATE, names[0], "4", 4), OK);
}

static void writes_everywhere_are_one(void **state) {
    (void)state;
    make_some();
    item_transaction *t = begin();
    assert_int_equal(put(t, a, ITEM_EDIT, names[0], "1", 10), OK);
    assert_int_equal(put(t, a, ITEM_DELETE, names[1], "2", 0), OK);
    assert_int_equal(put(t, a, ITEM_CREATE, names[1], "5", 5), OK);
    assert_int_equal(put(t, b, ITEM_REPLACE, names[2], "3", 30), OK);
    assert_int_equal(put(t, b, ITEM_UPSERT, names[1], "6", 6), OK);
    assert_int_equal(put(t, b, ITEM_UPSERT, names[1], "6", 60), OK);
    assert_int_equal(put(t, b, ITEM_CREATE, names[1], "6", 7), E_CONFLICT);
    assert_int_equal(put(t, a, ITEM_REPLACE, names[1], "2", 7), E_NOT_FOUND);
    assert_int_equal(get(t, a, names[0], "1", false), 10);
    assert_int_equal(get(t, a, names[1], "2", false), -1);
    assert_int_equal(get(t, b, names[1], "6", false), 60);
    assert_int_equal(get(t, a, names[1], "6", false), -1);   /* it is in the other container */
    assert_int_equal(get(NULL, a, names[0], "1", false), 1); /* invisible to others until the commit */
    assert_int_equal(get(NULL, b, names[1], "6", false), -1);
    assert_int_equal(submit_and_wait(t), OK);
    item_mark mark;
    assert_true(item_transaction_mark(t, b, &mark));
    assert_int_equal(mark.range_id, range_of(b, names[1])->id);
    assert_int_equal(mark.lsn, range_of(b, names[1])->lsn);
    item_transaction_end(t);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(get(NULL, a, names[0], "1", false), 10);
        assert_int_equal(get(NULL, a, names[1], "2", false), -1);
        assert_int_equal(get(NULL, a, names[1], "5", false), 5);
        assert_int_equal(get(NULL, b, names[2], "3", false), 30);
        assert_int_equal(get(NULL, b, names[1], "6", false), 60);
        assert_int_equal(get(NULL, b, names[0], "4", false), 4);
        check_all();
        restart();
    }
}

static void what_is_not_committed_never_was(void **state) {
    (void)state;
    make_some();
    buf before = dump_store(h.store, NULL);
    item_transaction *t = begin();
    assert_int_equal(put(t, a, ITEM_CREATE, names[0], "8", 8), OK);
    assert_int_equal(put(t, b, ITEM_DELETE, names[2], "3", 0), OK);
    item_transaction_end(t);
    t = begin();
    assert_int_equal(get(t, a, names[0], "1", true), 1);
    assert_int_equal(commit_it(t), OK); /* nothing was written, so nothing is submitted */
    assert_int_equal(commit_it(begin()), OK);
    buf after = dump_store(h.store, NULL);
    assert_true(slice_eq(buf_view(&before), buf_view(&after)));
    buf_free(&before);
    buf_free(&after);
}

/* The etag and time that the transaction reported are those of the stored item. */
static void what_was_told_is_true(void **state) {
    (void)state;
    make_some();
    item_transaction *t = begin();
    item_op *edited = prepare(a, ITEM_EDIT, names[0], "1", 10), *made = prepare(b, ITEM_CREATE, names[0], "9", 9);
    assert_int_equal(item_transaction_write(t, harness_op(&h), a, edited), OK);
    assert_int_equal(item_transaction_write(t, harness_op(&h), b, made), OK);
    assert_true(made->created && !edited->created && edited->before_there);
    item_head heads[2] = {edited->after, made->after};
    clock_manual_advance(&h.clock, 3000);
    assert_int_equal(commit_it(t), OK);
    for (int i = 0; i < 2; i++) {
        item_found found;
        item_key key = i == 0 ? key_of(a, names[0], "1") : key_of(b, names[0], "9");
        assert_int_equal(item_read(harness_items(&h), harness_op(&h), i == 0 ? a : b, &key, &found), OK);
        assert_int_equal(found.head.ts, heads[i].ts);
        assert_int_equal(item_version(&found.head), item_version(&heads[i]));
        item_give(&found);
    }
    char etag[ITEM_ETAG_BYTES + 1];
    item_etag(etag, item_version(&heads[0]), heads[0].ts);
    t = begin();
    item_op *matched = prepare(a, ITEM_REPLACE, names[0], "1", 11), *late = prepare(a, ITEM_REPLACE, names[0], "1", 12);
    matched->if_match = late->if_match = slice_str(etag);
    assert_int_equal(item_transaction_write(t, harness_op(&h), a, matched), OK);
    assert_int_equal(item_transaction_write(t, harness_op(&h), a, late), E_PRECONDITION); /* its etag has changed */
    assert_int_equal(commit_it(t), OK);
    assert_int_equal(get(NULL, a, names[0], "1", false), 11);
}

/* ---- edits and conditions ---- */

/* {"to":n}: puts an item with that value; 0: deletes it; without "to" the item is left. */
static err apply_test(op *o, const item_edit_input *in, item_edit_budget *budget, item_edit_result *result_out) {
    bson_iter_t it;
    (void)budget;
    *result_out = (item_edit_result){.answer = ITEM_EDIT_LEAVE, .reply = in->argument};
    if (!doc_find_key(in->argument, SLICE_LIT("to"), &it)) {
        return OK;
    }
    int to = (int)bson_iter_as_int64(&it);
    result_out->answer = to ? ITEM_EDIT_PUT : ITEM_EDIT_DELETE;
    if (to) {
        bson_t made = BSON_INITIALIZER;
        bson_append_utf8(&made, "id", 2, in->key->row.p, (int)in->key->row.n);
        bson_append_utf8(&made, "pk", 2, in->key->partition.values[0].text.p, (int)in->key->partition.values[0].text.n);
        bson_append_int32(&made, "u", 1, to);
        result_out->body = arena_copy(o->arena, slice_of(bson_get_data(&made), made.len));
        bson_destroy(&made);
    }
    return OK;
}

static const item_edit_kind test_edit = {.id = ITEM_EDIT_TESTS, .name = "test", .apply = apply_test};

static item_op *prepare_edit(container *c, const char *header, const char *id, const char *argument) {
    item_op *op = arena_new(&h.arena, item_op);
    *op = (item_op){.kind = ITEM_EDIT, .key = key_of(c, header, id)};
    op->edit = (item_edit){.kind = ITEM_EDIT_TESTS, .argument = harness_bson(&h, argument)};
    op_init(&op->op, &h.arena, harness_now_s(&h));
    return op;
}

static void edits_see_own_writes(void **state) {
    (void)state;
    make_some();
    item_transaction *t = begin();
    op *o = harness_op(&h);
    item_op *inserts = prepare_edit(a, names[2], "7", "{\"to\":7}"), *again = prepare_edit(a, names[2], "7", "{\"to\":8}");
    item_op *deletes = prepare_edit(b, names[2], "3", "{\"to\":0}"), *leaves = prepare_edit(b, names[2], "3", "{\"to\":0}");
    item_op *asks = prepare_edit(a, names[0], "1", "{}");
    assert_int_equal(item_transaction_write(t, o, a, inserts), OK);
    assert_true(inserts->created);
    assert_int_equal(item_transaction_write(t, o, a, again), OK);
    assert_true(!again->created && number_in(again->before_body) == 7 && number_in(again->result) == 8);
    assert_int_equal(item_transaction_write(t, o, b, deletes), OK);
    assert_true(deletes->deleted);
    assert_int_equal(item_transaction_write(t, o, b, leaves), OK); /* the item is absent */
    assert_true(leaves->left && !leaves->before_there);
    assert_int_equal(item_transaction_write(t, o, a, asks), OK);
    assert_true(asks->left && asks->reply.n && number_in(asks->result) == 1);
    item_condition absent = {.kind = ITEM_CONDITION_ABSENT}, exists = {.kind = ITEM_CONDITION_EXISTS};
    item_op *conditional = prepare(b, ITEM_UPSERT, names[2], "3", 33);
    conditional->conditions = &exists;
    conditional->conditions_n = 1;
    assert_int_equal(item_transaction_write(t, o, b, conditional), E_PRECONDITION);
    conditional->conditions = &absent;
    conditional->ready = false;
    assert_int_equal(item_transaction_write(t, o, b, conditional), OK);
    item_op *unknown = prepare_edit(a, names[0], "1", "{}");
    unknown->edit.kind = ITEM_EDIT_TESTS + 1;
    assert_int_equal(item_transaction_write(t, o, a, unknown), E_BAD_REQUEST);
    assert_int_equal(commit_it(t), OK);
    assert_int_equal(get(NULL, a, names[2], "7", false), 8);
    assert_int_equal(get(NULL, b, names[2], "3", false), 33);
    check_all();
}

/* The edit's answer depends on the item, so the item is guarded. */
static void an_edit_that_left_the_item_is_a_guard(void **state) {
    (void)state;
    make_some();
    item_transaction *t = begin();
    assert_int_equal(item_transaction_write(t, harness_op(&h), a, prepare_edit(a, names[0], "1", "{}")), OK);
    assert_int_equal(put(t, b, ITEM_UPSERT, names[0], "8", 8), OK);
    assert_int_equal(put(NULL, a, ITEM_REPLACE, names[0], "1", 100), OK);
    assert_int_equal(commit_it(t), E_RETRY_WITH);
    assert_int_equal(get(NULL, b, names[0], "8", false), -1);
}

/* ---- conflicts ---- */

typedef struct step {
    bool second; /* in container b */
    item_kind kind;
    int partition;
    const char *id;
    int n;
} step;

static err take_step(item_transaction *t, const step *s) {
    return put(t, s->second ? b : a, s->kind, names[s->partition], s->id, s->n);
}

static const struct {
    step own, others;
    err code;
} conflicts[] = {
    {{false, ITEM_REPLACE, 0, "1", 10}, {false, ITEM_REPLACE, 0, "1", 11}, E_RETRY_WITH},
    {{false, ITEM_EDIT, 0, "1", 10}, {false, ITEM_EDIT, 0, "1", 11}, E_RETRY_WITH},
    {{false, ITEM_UPSERT, 0, "1", 10}, {false, ITEM_DELETE, 0, "1", 0}, E_RETRY_WITH},
    {{false, ITEM_DELETE, 0, "1", 0}, {false, ITEM_DELETE, 0, "1", 0}, E_RETRY_WITH},
    {{false, ITEM_DELETE, 0, "1", 0}, {false, ITEM_REPLACE, 0, "1", 11}, E_RETRY_WITH},
    {{false, ITEM_CREATE, 0, "9", 9}, {false, ITEM_CREATE, 0, "9", 10}, E_RETRY_WITH},
    {{false, ITEM_UPSERT, 0, "9", 9}, {false, ITEM_CREATE, 0, "9", 10}, E_RETRY_WITH},
    {{true, ITEM_REPLACE, 2, "3", 30}, {true, ITEM_REPLACE, 2, "3", 31}, E_RETRY_WITH},
    {{true, ITEM_CREATE, 1, "9", 9}, {true, ITEM_CREATE, 1, "9", 10}, E_RETRY_WITH},
    {{false, ITEM_CREATE, 0, "9", 9}, {false, ITEM_CREATE, 0, "8", 9}, E_UNIQUE_KEY},
    {{false, ITEM_REPLACE, 0, "1", 9}, {false, ITEM_CREATE, 0, "8", 9}, E_UNIQUE_KEY},
    {{false, ITEM_CREATE, 0, "9", 9}, {false, ITEM_CREATE, 1, "9", 9}, OK}, /* another partition */
    {{false, ITEM_CREATE, 0, "9", 9}, {true, ITEM_CREATE, 0, "9", 9}, OK},  /* another container */
    {{false, ITEM_REPLACE, 0, "1", 10}, {false, ITEM_REPLACE, 1, "2", 11}, OK},
};

/* The conflicting step is in the middle of others, which fail with it. */
static void who_was_first_wins(void **state) {
    for (size_t i = 0; i < sizeof conflicts / sizeof *conflicts; i++) {
        set_up(state);
        make_some();
        item_transaction *t = begin();
        assert_int_equal(put(t, a, ITEM_CREATE, names[1], "5", 5), OK);
        assert_int_equal(put(t, b, ITEM_CREATE, names[0], "5", 5), OK);
        assert_int_equal(take_step(t, &conflicts[i].own), OK);
        assert_int_equal(put(t, b, ITEM_REPLACE, names[0], "4", 40), OK);
        assert_int_equal(put(t, a, ITEM_CREATE, names[2], "6", 6), OK);
        assert_int_equal(take_step(NULL, &conflicts[i].others), OK);
        buf before = dump_store(h.store, NULL);
        err code = commit_it(t);
        buf after = dump_store(h.store, NULL);
        if (code != conflicts[i].code || slice_eq(buf_view(&before), buf_view(&after)) != (code != OK)) {
            fail_msg("case %zu: %s", i, err_lookup(code)->name);
        }
        buf_free(&before);
        buf_free(&after);
        check_all();
        assert_int_equal(put(NULL, a, ITEM_UPSERT, names[1], "7", 7), OK); /* the failed commit left no trace in the ranges' counts */
        assert_int_equal(put(NULL, b, ITEM_UPSERT, names[1], "7", 7), OK);
        restart();
        tear_down(state);
    }
}

static void a_container_that_is_gone_fails_all(void **state) {
    (void)state;
    make_some();
    item_transaction *t = begin();
    assert_int_equal(put(t, a, ITEM_CREATE, names[1], "5", 5), OK);
    assert_int_equal(put(t, b, ITEM_CREATE, names[0], "5", 5), OK);
    container_give(b);
    b = NULL;
    assert_int_equal(harness_delete_container(&h, "d", "b"), OK);
    assert_int_equal(commit_it(t), E_OWNER_NOT_FOUND);
    assert_int_equal(get(NULL, a, names[1], "5", false), -1);
    check_all();
}

/* A container that is first used later is read at the same snapshot, even if it was split meanwhile. */
static void all_is_of_one_moment(void **state) {
    (void)state;
    make_some();
    for (int i = 0; i < 20; i++) {
        char id[8];
        snprintf(id, sizeof id, "s%02d", i);
        assert_int_equal(put(NULL, b, ITEM_CREATE, names[i % PARTITIONS], id, 100 + i), OK);
    }
    item_transaction *t = begin();
    assert_int_equal(get(t, a, names[0], "1", false), 1);
    item_transaction *other = begin();
    assert_int_equal(put(other, a, ITEM_REPLACE, names[0], "1", 10), OK);
    assert_int_equal(put(other, b, ITEM_REPLACE, names[2], "3", 30), OK);
    assert_int_equal(commit_it(other), OK);
    assert_int_equal(account_split(h.account, harness_op(&h), b, range_of(b, names[0])->id, 2), OK);
    for (int i = 0; i < 3; i++) {
        harness_move(&h, b, 1000);
    }
    assert_int_equal(put(NULL, b, ITEM_DELETE, names[0], "s00", 0), OK);
    assert_int_equal(get(t, b, names[2], "3", false), 3);
    assert_int_equal(get(t, b, names[0], "s00", false), 100);
    assert_int_equal(put(t, b, ITEM_REPLACE, names[0], "s03", 203), OK); /* moved, but unchanged */
    assert_int_equal(put(t, a, ITEM_CREATE, names[0], "7", 7), OK);
    assert_int_equal(commit_it(t), OK);
    assert_int_equal(get(NULL, b, names[0], "s03", false), 203);
    t = begin();
    assert_int_equal(get(t, b, names[2], "3", false), 30);
    item_transaction_end(t);
    check_all();
}

static void splits_are_no_conflicts(void **state) {
    (void)state;
    make_some();
    item_transaction *t = begin();
    assert_int_equal(put(t, a, ITEM_REPLACE, names[0], "1", 10), OK);
    assert_int_equal(put(t, a, ITEM_CREATE, names[1], "5", 5), OK);
    assert_int_equal(get(t, b, names[0], "4", true), 4);
    assert_int_equal(account_split(h.account, harness_op(&h), a, range_of(a, names[0])->id, 2), OK);
    assert_int_equal(account_split(h.account, harness_op(&h), b, range_of(b, names[0])->id, 2), OK);
    for (int i = 0; i < 3; i++) {
        harness_move(&h, a, 1000);
        harness_move(&h, b, 1000);
    }
    assert_int_equal(put(t, b, ITEM_CREATE, names[2], "5", 5), OK);
    assert_int_equal(commit_it(t), OK);
    assert_int_equal(get(NULL, a, names[0], "1", false), 10);
    assert_int_equal(get(NULL, b, names[2], "5", false), 5);
    restart();
}

/* Each of two transactions reads what the other writes: without guards both succeed, with guards the second one fails. */
static void guarded_reads_are_serializable(void **state) {
    (void)state;
    for (int guarded = 0; guarded < 2; guarded++) {
        assert_int_equal(put(NULL, a, ITEM_UPSERT, names[0], "x", 1000), OK);
        assert_int_equal(put(NULL, b, ITEM_UPSERT, names[1], "y", 1000), OK);
        item_transaction *one = begin(), *two = begin();
        assert_int_equal(get(one, a, names[0], "x", guarded), 1000);
        assert_int_equal(get(two, b, names[1], "y", guarded), 1000);
        assert_int_equal(put(one, b, ITEM_REPLACE, names[1], "y", 1), OK);
        assert_int_equal(put(two, a, ITEM_REPLACE, names[0], "x", 2), OK);
        assert_int_equal(commit_it(one), OK);
        assert_int_equal(commit_it(two), guarded ? E_RETRY_WITH : OK);
        assert_int_equal(get(NULL, a, names[0], "x", false), guarded ? 1000 : 2);
    }
    item_transaction *t = begin();
    assert_int_equal(get(t, a, names[0], "none", true), -1); /* absence is guarded too */
    assert_int_equal(get(t, a, names[0], "none", true), -1);
    assert_int_equal(put(t, b, ITEM_UPSERT, names[1], "y", 3), OK);
    assert_int_equal(put(NULL, a, ITEM_CREATE, names[0], "none", 77), OK);
    assert_int_equal(commit_it(t), E_RETRY_WITH);
    t = begin();
    assert_int_equal(get(t, a, names[0], "none", true), 77); /* writing a guarded item turns the guard into a write */
    assert_int_equal(put(t, a, ITEM_REPLACE, names[0], "none", 78), OK);
    assert_int_equal(get(t, a, names[0], "none", true), 78);
    assert_int_equal(commit_it(t), OK);
    check_all();
}

static void what_expires_meanwhile_is_another_item(void **state) {
    (void)state;
    assert_int_equal(harness_write(&h, a, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"p\",\"u\":1,\"ttl\":5}"), OK);
    const char *p = "[\"p\"]";
    item_transaction *t = begin();
    assert_int_equal(put(t, a, ITEM_REPLACE, p, "1", 2), OK);
    clock_manual_advance(&h.clock, 6000);
    assert_int_equal(commit_it(t), E_RETRY_WITH);
    t = begin();
    assert_int_equal(get(t, a, p, "1", false), -1);
    assert_int_equal(put(t, a, ITEM_CREATE, p, "2", 1), OK); /* its unique values are free too */
    assert_int_equal(put(t, a, ITEM_CREATE, p, "1", 3), OK);
    assert_int_equal(commit_it(t), OK);
    check_all();
}

static void unique_values_are_told_at_once(void **state) {
    (void)state;
    assert_int_equal(put(NULL, a, ITEM_CREATE, names[0], "1", 1), OK);
    assert_int_equal(put(NULL, a, ITEM_CREATE, names[0], "2", 2), OK);
    item_transaction *t = begin();
    assert_int_equal(put(t, a, ITEM_CREATE, names[0], "3", 1), E_UNIQUE_KEY);
    assert_int_equal(put(t, a, ITEM_CREATE, names[1], "3", 1), OK); /* in another partition */
    assert_int_equal(put(t, b, ITEM_CREATE, names[0], "3", 1), OK); /* b has no unique keys */
    assert_int_equal(put(t, a, ITEM_EDIT, names[0], "2", 1), E_UNIQUE_KEY);
    assert_int_equal(put(t, a, ITEM_REPLACE, names[0], "1", 3), OK);
    assert_int_equal(put(t, a, ITEM_EDIT, names[0], "2", 1), OK); /* free now */
    assert_int_equal(put(t, a, ITEM_CREATE, names[0], "4", 3), E_UNIQUE_KEY);
    assert_int_equal(put(t, a, ITEM_DELETE, names[0], "1", 0), OK);
    assert_int_equal(put(t, a, ITEM_CREATE, names[0], "4", 3), OK);
    assert_int_equal(commit_it(t), OK);
    assert_int_equal(get(NULL, a, names[0], "4", false), 3);
    check_all();
}

/* ---- reading many ---- */

static bool add_number(void *context, const item_found *found) {
    buf_addf(context, "%d ", number_in(found->body));
    return true;
}

/* A partition in creation order, in pages of `steps` steps. */
static const char *listed(item_transaction *t, container *c, const char *header, size_t steps) {
    buf out = buf_init(BUF_NO_LIMIT);
    item_key key = key_of(c, header, "");
    item_cursor cursor;
    item_mark mark;
    item_cursor_init_partition(&cursor, &key);
    assert_int_equal(item_transaction_moment(t, harness_op(&h), c, &key, &cursor.moment), OK);
    while (cursor.n) {
        assert_int_equal(item_feed(harness_items(&h), harness_op(&h), c, &cursor, steps, add_number, &out, &mark), OK);
    }
    const char *text = arena_text(&h.arena, buf_view(&out));
    buf_free(&out);
    return text;
}

/* Rows in key order, of one partition or (NULL) of all. */
static const char *rows(item_transaction *t, container *c, const char *header, bool backward, size_t rows_max) {
    buf out = buf_init(BUF_NO_LIMIT);
    item_key key = key_of(c, header ? header : names[0], "");
    item_rows_ask ask = header ? item_rows_ask_partition(&key) : item_rows_ask_space(epk_min(), epk_max());
    item_rows_cursor cursor = {0};
    item_rows_page page;
    ask.backward = backward;
    ask.rows_max = rows_max;
    assert_int_equal(item_transaction_moment(t, harness_op(&h), c, &key, &ask.moment), OK);
    while (!cursor.ended) {
        assert_int_equal(item_rows_read(harness_items(&h), harness_op(&h), c, &ask, &cursor, add_number, &out, &page), OK);
    }
    const char *text = arena_text(&h.arena, buf_view(&out));
    buf_free(&out);
    return text;
}

static void lists_show_own_writes(void **state) {
    (void)state;
    for (int i = 1; i <= 5; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        assert_int_equal(put(NULL, a, ITEM_CREATE, names[0], id, i), OK);
    }
    assert_int_equal(put(NULL, a, ITEM_CREATE, names[1], "9", 9), OK);
    item_transaction *t = begin();
    assert_string_equal(rows(t, a, names[0], false, 100), "1 2 3 4 5 ");
    if (!harness_clustered()) {
        assert_string_equal(listed(t, a, names[0], 100), "1 2 3 4 5 ");
    }
    assert_int_equal(put(NULL, a, ITEM_CREATE, names[0], "6", 6), OK); /* by another client */
    assert_int_equal(put(t, a, ITEM_DELETE, names[0], "1", 0), OK);
    assert_int_equal(put(t, a, ITEM_CREATE, names[0], "1", 11), OK); /* as a new item */
    assert_int_equal(put(t, a, ITEM_EDIT, names[0], "3", 33), OK);
    assert_int_equal(put(t, a, ITEM_DELETE, names[0], "4", 0), OK);
    assert_int_equal(put(t, a, ITEM_CREATE, names[0], "25", 25), OK);
    assert_int_equal(put(t, a, ITEM_CREATE, names[0], "0", 10), OK);
    assert_int_equal(put(t, a, ITEM_CREATE, names[0], "8", 8), OK);
    assert_int_equal(put(t, a, ITEM_DELETE, names[0], "8", 0), OK);
    assert_int_equal(put(t, a, ITEM_CREATE, names[1], "1", 91), OK); /* in another partition */
    for (size_t page = 1; page < 8; page++) {
        if (!harness_clustered()) {
            assert_string_equal(listed(t, a, names[0], page), "2 33 5 11 25 10 ");
            assert_string_equal(listed(t, a, names[1], page), "9 91 ");
        }
        assert_string_equal(rows(t, a, names[0], false, page), "10 11 2 25 33 5 ");
        assert_string_equal(rows(t, a, names[0], true, page), "5 33 25 2 11 10 ");
        assert_string_equal(rows(t, a, names[1], false, page), "91 9 ");
    }
    assert_string_equal(rows(t, a, names[2], false, 10), "");
    if (h.homes_n == 1) {
        item_key first = key_of(a, names[0], ""), second = key_of(a, names[1], "");
        bool order = epk_cmp(&first.epk, &second.epk) < 0;
        assert_string_equal(rows(t, a, NULL, false, 3), order ? "10 11 2 25 33 5 91 9 " : "91 9 10 11 2 25 33 5 ");
        assert_string_equal(rows(t, a, NULL, true, 3), order ? "9 91 5 33 25 2 11 10 " : "5 33 25 2 11 10 9 91 ");
    }
    assert_int_equal(commit_it(t), OK);
    t = begin();
    assert_string_equal(rows(t, a, names[0], false, 4), "10 11 2 25 33 5 6 ");
    item_transaction_end(t);
    check_all();
}

/* ---- homes ---- */

static void two_homes_are_refused(void **state) {
    (void)state;
    if (h.homes_n == 1) {
        return;
    }
    assert_int_equal(put(NULL, a, ITEM_CREATE, away, "1", 1), OK);
    item_transaction *t = begin();
    item_found found;
    item_key there = key_of(a, away, "1");
    const item_moment *moment;
    assert_int_equal(put(t, a, ITEM_CREATE, names[0], "1", 1), OK);
    assert_int_equal(put(t, a, ITEM_CREATE, away, "2", 2), E_TRANSACTION_SPREAD);
    assert_int_equal(put(t, b, ITEM_CREATE, away, "2", 2), E_TRANSACTION_SPREAD);
    assert_int_equal(item_transaction_read(t, harness_op(&h), a, &there, false, &found), E_TRANSACTION_SPREAD);
    assert_int_equal(item_transaction_moment(t, harness_op(&h), a, &there, &moment), E_TRANSACTION_SPREAD);
    item_key here = key_of(a, names[0], "");
    item_rows_ask ask = item_rows_ask_space(epk_min(), epk_max());
    item_rows_cursor cursor = {0};
    item_rows_page page;
    item_mark mark;
    buf out = buf_init(BUF_NO_LIMIT);
    assert_int_equal(item_transaction_moment(t, harness_op(&h), a, &here, &ask.moment), OK);
    assert_int_equal(item_rows_read(harness_items(&h), harness_op(&h), a, &ask, &cursor, add_number, &out, &page), E_TRANSACTION_SPREAD);
    item_cursor feed;
    item_cursor_init_partition(&feed, &there);
    feed.moment = ask.moment;
    assert_int_equal(item_feed(harness_items(&h), harness_op(&h), a, &feed, 10, add_number, &out, &mark), E_TRANSACTION_SPREAD);
    buf_free(&out);
    assert_int_equal(commit_it(t), OK); /* the rejected calls are not part of it */
    item_op ops[2];
    assert_int_equal(harness_prepare(&h, a, &ops[0], ITEM_UPSERT, names[0], NULL, body_of(names[0], "3", 3)), OK);
    assert_int_equal(harness_prepare(&h, a, &ops[1], ITEM_UPSERT, away, NULL, body_of(away, "3", 3)), OK);
    assert_int_equal(harness_commit(&h, a, ops, 2, true), E_TRANSACTION_SPREAD);
    assert_int_equal(get(NULL, a, names[0], "3", false), -1);
    check_all();
}

/* ---- bounds ---- */

static void writes_and_guards_are_bounded(void **state) {
    (void)state;
    item_transaction *t = begin();
    err code = OK;
    int n = 0;
    for (; code == OK; n++) {
        char id[16];
        snprintf(id, sizeof id, "%d", n);
        item_key key = key_of(b, names[n % PARTITIONS], id);
        item_found found;
        bool guards = n % 4 == 3;
        code =
            guards ? item_transaction_read(t, harness_op(&h), b, &key, true, &found) : put(t, b, ITEM_CREATE, names[n % PARTITIONS], id, n);
        code = guards && code == E_NOT_FOUND ? OK : code;
    }
    assert_int_equal(code, E_TOO_LARGE);
    assert_int_equal(n - 1, LIMIT_TRANSACTION_WRITES);
    assert_false(item_transaction_accepts(t, 0));
    assert_int_equal(get(t, b, names[0], "0", false), 0); /* reads continue */
    assert_int_equal(commit_it(t), OK);
    assert_int_equal(harness_count(b), LIMIT_TRANSACTION_WRITES / 4 * 3);
    harness_check(&h, b);
}

static void bytes_are_bounded(void **state) {
    (void)state;
    item_transaction *t = begin();
    size_t size = 1024 * 1024;
    char *text = malloc(size + 100);
    assert_non_null(text);
    for (int i = 0; i < 9; i++) {
        int at = snprintf(text, 100, "{\"id\":\"%d\",\"pk\":%.*s,\"s\":\"", i, (int)strlen(names[0]) - 2, names[0] + 1);
        memset(text + at, 'x', size);
        memcpy(text + at + size, "\"}", 3);
        item_op *op = arena_new(&h.arena, item_op);
        assert_int_equal(harness_prepare(&h, b, op, ITEM_CREATE, NULL, NULL, text), OK);
        assert_int_equal(item_transaction_write(t, harness_op(&h), b, op), i < 7 ? OK : E_TOO_LARGE);
    }
    free(text);
    assert_int_equal(commit_it(t), OK);
    assert_int_equal(harness_count(b), 7);
}

/* The transaction's memory is counted before it is allocated, and all of it is released. */
static void memory_is_counted(void **state) {
    (void)state;
    budget_pool pool = {.max = 512 * 1024};
    budget own = budget_init(&pool, 1024 * 1024);
    item_transaction_ask ask = {.items = harness_items(&h), .budget = &own};
    item_transaction *t = item_transaction_begin(&ask);
    char text[20100];
    int n = 0;
    for (err code = OK; code == OK; n++) {
        int at = snprintf(text, 100, "{\"id\":\"%d\",\"pk\":%.*s,\"s\":\"", n, (int)strlen(names[0]) - 2, names[0] + 1);
        memset(text + at, 'x', 20000);
        memcpy(text + at + 20000, "\"}", 3);
        item_op *op = arena_new(&h.arena, item_op);
        assert_int_equal(harness_prepare(&h, b, op, ITEM_CREATE, NULL, NULL, text), OK);
        code = item_transaction_write(t, harness_op(&h), b, op);
        assert_true(code == OK || code == E_BUSY_MEMORY);
    }
    assert_true(n > 5 && n < 26);
    budget_renew(&own);
    assert_int_equal(commit_it(t), OK);
    assert_int_equal(harness_count(b), n - 1);
    assert_int_equal(own.used, 0);
    budget_end(&own);
    assert_int_equal(pool.used, 0);
}

static void a_transaction_has_a_deadline(void **state) {
    (void)state;
    make_some();
    buf before = dump_store(h.store, NULL);
    for (int i = 0; i < 4; i++) {
        item_transaction *t = begin();
        item_found found;
        item_key key = key_of(a, names[0], "1");
        assert_int_equal(put(t, a, ITEM_REPLACE, names[0], "1", 10), OK);
        clock_manual_advance(&h.clock, LIFETIME_S * 1000 - 1);
        assert_int_equal(get(t, a, names[0], "1", false), 10);
        assert_false(item_transaction_is_overdue(t));
        clock_manual_advance(&h.clock, 1);
        assert_true(item_transaction_is_overdue(t));
        if (i == 0) {
            item_transaction_expire(t); /* as the owner of idle transactions does */
        }
        err code = i < 2    ? item_transaction_read(t, harness_op(&h), a, &key, false, &found)
                   : i == 2 ? put(t, a, ITEM_REPLACE, names[0], "1", 11)
                            : OK;
        assert_int_equal(code, i < 3 ? E_TRANSACTION_EXPIRED : OK);
        assert_int_equal(commit_it(t), E_TRANSACTION_EXPIRED);
    }
    buf after = dump_store(h.store, NULL);
    assert_true(slice_eq(buf_view(&before), buf_view(&after)));
    buf_free(&before);
    buf_free(&after);
}

/* ---- charges ---- */

static void calls_cost_what_they_cost_outside(void **state) {
    (void)state;
    item_transaction *t = begin();
    op *o = harness_op(&h);
    item_op *inside = prepare(a, ITEM_CREATE, names[0], "1", 1), *outside = prepare(b, ITEM_CREATE, names[0], "2", 2);
    assert_int_equal(item_transaction_write(t, o, a, inside), OK);
    double created = o->charge_ru;
    item_key key = key_of(a, names[0], "1");
    item_found found;
    assert_int_equal(item_transaction_read(t, o, a, &key, false, &found), OK);
    assert_true(fabs(o->charge_ru - created - 1) < 1e-9);
    item_give(&found);
    assert_int_equal(commit_it(t), OK);
    outside = prepare(a, ITEM_CREATE, names[1], "1", 1);
    assert_int_equal(harness_commit(&h, a, outside, 1, true), OK);
    assert_true(fabs(outside->op.charge_ru - created) < 1e-9);
}

/* Each call is admitted by its item's range; a rejected call may be repeated. */
static void a_spent_share_refuses_the_call(void **state) {
    (void)state;
    make_some();
    h.rules.unlimited = false;
    restart();
    item_transaction *t = begin();
    assert_int_equal(put(t, a, ITEM_REPLACE, names[0], "1", 10), OK);
    err code = OK;
    int n = 0;
    for (; code == OK && n < 100000; n++) {
        item_found found;
        item_key key = key_of(a, names[1], "2");
        code = item_transaction_read(t, harness_op(&h), a, &key, false, &found);
        item_give(&found);
    }
    assert_int_equal(code, E_THROTTLED);
    assert_int_equal(put(t, a, ITEM_REPLACE, names[1], "2", 20), E_THROTTLED);
    assert_int_equal(put(t, b, ITEM_REPLACE, names[2], "3", 30), OK); /* the share of another range */
    clock_manual_advance(&h.clock, 10000);
    assert_int_equal(put(t, a, ITEM_REPLACE, names[1], "2", 21), OK);
    assert_int_equal(commit_it(t), OK);
    assert_int_equal(get(NULL, a, names[1], "2", false), 21);
    check_all();
}

/* ---- a store that fails ---- */

/* The first error, or the outcome of the commit. */
static err write_all(void) {
    item_transaction *t = begin();
    err code = put(t, a, ITEM_REPLACE, names[0], "1", 10);
    code = code != OK ? code : put(t, b, ITEM_DELETE, names[2], "3", 0);
    code = code != OK ? code : put(t, a, ITEM_CREATE, names[1], "5", 5);
    code = code != OK ? code : put(t, b, ITEM_EDIT, names[0], "4", 40);
    item_key key = key_of(a, names[1], "2");
    item_found found;
    if (code == OK) {
        code = item_transaction_read(t, harness_op(&h), a, &key, true, &found);
        item_give(&found);
    }
    if (code == OK) {
        return commit_it(t);
    }
    item_transaction_end(t);
    return code;
}

static bool same_as(const buf *expected) {
    buf now = dump_store(h.store, NULL);
    bool same = slice_eq(buf_view(&now), buf_view(expected));
    buf_free(&now);
    return same;
}

/* One try; returns whether the failure occurred. */
static bool try_failing(int kind, unsigned n, bool torn) {
    set_up(NULL);
    make_some();
    unsigned *const kinds[] = {&h.plan.get_in, &h.plan.write_in, &h.plan.scan_in};
    buf before = dump_store(h.store, NULL);
    h.plan.torn = torn;
    *kinds[kind] = n;
    err code = write_all();
    *kinds[kind] = 0;
    bool fired = h.plan.fired > 0;
    assert_int_equal(code, fired ? E_STORE_IO : OK);
    h.plan.torn = false;
    if (torn) { /* the disk reports a failure but has written the data: after a restart all of it is there */
        restart();
    }
    assert_int_equal(same_as(&before), fired && !torn);
    check_all();
    restart();
    assert_int_equal(get(NULL, a, names[0], "1", false), fired && !torn ? 1 : 10);
    assert_int_equal(get(NULL, b, names[0], "4", false), fired && !torn ? 4 : 40);
    if (fired && !torn) { /* without failures it works */
        assert_int_equal(write_all(), OK);
        check_all();
    }
    buf_free(&before);
    tear_down(NULL);
    return fired;
}

static void all_or_nothing_whatever_fails(void **state) {
    (void)state;
    unsigned tries = 0;
    for (int kind = 0; kind < 3; kind++) {
        for (unsigned n = 1; try_failing(kind, n, false); n++) {
            tries++;
        }
    }
    assert_true(tries >= 10);
    assert_true(try_failing(1, 1, true));
}

/* ---- isolation: random interleavings against a model ---- */

enum { SLOTS = 2 * PARTITIONS * 4, OPEN_MAX = 4, STEPS = 1500 };

/* The state of an item; `stamp` identifies its last write. */
typedef struct slot {
    int n, stamp; /* n -1: absent */
} slot;

typedef struct modelled {
    item_transaction *t;
    bool begun;
    slot then[SLOTS], now[SLOTS];
    bool written[SLOTS], guarded[SLOTS];
} modelled;

typedef struct model {
    random_source random;
    slot committed[SLOTS];
    int stamps;
    modelled open[OPEN_MAX];
    unsigned commits, conflicts;
} model;

static container *slot_container(int i) {
    return i < SLOTS / 2 ? a : b;
}

static const char *slot_partition(int i) {
    return names[i % PARTITIONS];
}

static const char *slot_id(int i) {
    static const char *const ids[] = {"i0", "i1", "i2", "i3"};
    return ids[i / PARTITIONS % 4];
}

static int any(model *m, int n) {
    return (int)(random_u64(&m->random) % (unsigned)n);
}

static void touch(model *m, modelled *x) {
    if (!x->begun) {
        x->begun = true;
        memcpy(x->then, m->committed, sizeof x->then);
        memcpy(x->now, m->committed, sizeof x->now);
    }
}

/* Tries only writes that must succeed. Each slot has its own values, so unique values never conflict. */
static void write_slot(model *m, modelled *x, int i) {
    slot *s = x ? &x->now[i] : &m->committed[i];
    item_transaction *t = x ? x->t : NULL;
    bool there = s->n >= 0;
    static const item_kind on_there[] = {ITEM_UPSERT, ITEM_REPLACE, ITEM_EDIT, ITEM_DELETE}, on_none[] = {ITEM_UPSERT, ITEM_CREATE};
    item_kind kind = there ? on_there[any(m, 4)] : on_none[any(m, 2)];
    int n = 1000 * (i + 1) + m->stamps % 1000;
    assert_int_equal(put(t, slot_container(i), kind, slot_partition(i), slot_id(i), n), OK);
    *s = kind == ITEM_DELETE ? (slot){-1, 0} : (slot){n, ++m->stamps};
    if (x) {
        x->written[i] = true;
    }
}

static bool is_stale(const model *m, const modelled *x) {
    bool stale = false, writes = false;
    for (int i = 0; i < SLOTS; i++) {
        const slot *then = &x->then[i], *now = &m->committed[i];
        bool same = then->n >= 0 ? now->stamp == then->stamp && now->n >= 0 : now->n < 0;
        stale = stale || ((x->written[i] || x->guarded[i]) && !same);
        writes = writes || x->written[i];
    }
    return stale && writes;
}

static void end_modelled(model *m, modelled *x) {
    bool stale = is_stale(m, x);
    assert_int_equal(commit_it(x->t), stale ? E_RETRY_WITH : OK);
    for (int i = 0; i < SLOTS && !stale; i++) {
        m->committed[i] = x->written[i] ? x->now[i] : m->committed[i];
    }
    m->commits += !stale;
    m->conflicts += stale;
    *x = (modelled){0};
}

/* Every read must match the model. */
static void read_slot(model *m, modelled *x, int i) {
    bool guarded = any(m, 3) == 0;
    touch(m, x);
    assert_int_equal(get(x->t, slot_container(i), slot_partition(i), slot_id(i), guarded), x->now[i].n);
    x->guarded[i] = x->guarded[i] || (guarded && !x->written[i]);
}

static void read_rows(model *m, modelled *x, int i) {
    buf expected = buf_init(BUF_NO_LIMIT);
    touch(m, x);
    for (int id = 0; id < 4; id++) {
        const slot *s = &x->now[(i < SLOTS / 2 ? 0 : SLOTS / 2) + id * PARTITIONS + i % PARTITIONS];
        if (s->n >= 0) {
            buf_addf(&expected, "%d ", s->n);
        }
    }
    assert_string_equal(rows(x->t, slot_container(i), slot_partition(i), false, 1 + (size_t)any(m, 3)),
                        arena_text(&h.arena, buf_view(&expected)));
    buf_free(&expected);
}

static void reshape(model *m) {
    container *c = any(m, 2) ? a : b;
    container_tiles *tiles = container_space_newest(c->space);
    const container_range *range = tiles->ranges[any(m, (int)tiles->map->n)];
    if (tiles->map->n < 8) {
        err code = account_split(h.account, harness_op(&h), c, range->id, 2);
        assert_true(code == OK || code == E_BAD_REQUEST || code == E_CONFLICT); /* there may be nothing to split */
    }
    container_tiles_give(tiles);
    harness_move(&h, c, 3);
}

static void take_random_step(model *m) {
    modelled *x = &m->open[any(m, OPEN_MAX)];
    int i = any(m, SLOTS), what = any(m, 100);
    if (what < 10) {
        write_slot(m, NULL, i);
    } else if (!x->t) {
        x->t = begin();
    } else if (what < 45) {
        read_slot(m, x, i);
    } else if (what < 55) {
        read_rows(m, x, i);
    } else if (what < 85) {
        touch(m, x);
        write_slot(m, x, i);
    } else if (what < 97) {
        end_modelled(m, x);
    } else if (what < 98) {
        item_transaction_end(x->t);
        *x = (modelled){0};
    } else {
        reshape(m);
    }
}

static void interleave(uint64_t seed) {
    model *m = mem_zero(sizeof *m);
    random_seed(&m->random, seed);
    for (int i = 0; i < SLOTS; i++) {
        m->committed[i].n = -1;
    }
    for (int i = 0; i < STEPS; i++) {
        take_random_step(m);
    }
    for (int i = 0; i < OPEN_MAX; i++) {
        if (m->open[i].t) {
            item_transaction_end(m->open[i].t);
        }
    }
    for (int i = 0; i < SLOTS; i++) {
        assert_int_equal(get(NULL, slot_container(i), slot_partition(i), slot_id(i), false), m->committed[i].n);
    }
    assert_true(m->commits > 10 && m->conflicts > 10);
    free(m);
    restart();
}

static void interleavings_are_isolated(void **state) {
    const char *given = getenv("TESELA_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 1;
    for (uint64_t n = 0; n < (given ? 1 : 3); n++) {
        print_message("seed %lu\n", (unsigned long)(seed + n));
        n % 2 ? set_up_rocks(state) : set_up(state);
        interleave(seed + n);
        tear_down(state);
    }
}

int main(void) {
    item_edit_register(&test_edit);
#define BOTH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down), cmocka_unit_test_setup_teardown(test, set_up_rocks, tear_down)
    const struct CMUnitTest tests[] = {
        BOTH(writes_everywhere_are_one),
        BOTH(what_is_not_committed_never_was),
        BOTH(what_was_told_is_true),
        BOTH(edits_see_own_writes),
        BOTH(an_edit_that_left_the_item_is_a_guard),
        cmocka_unit_test(who_was_first_wins),
        BOTH(a_container_that_is_gone_fails_all),
        BOTH(all_is_of_one_moment),
        BOTH(splits_are_no_conflicts),
        BOTH(guarded_reads_are_serializable),
        BOTH(what_expires_meanwhile_is_another_item),
        BOTH(unique_values_are_told_at_once),
        BOTH(lists_show_own_writes),
        BOTH(two_homes_are_refused),
        BOTH(writes_and_guards_are_bounded),
        BOTH(bytes_are_bounded),
        BOTH(memory_is_counted),
        BOTH(a_transaction_has_a_deadline),
        BOTH(calls_cost_what_they_cost_outside),
        BOTH(a_spent_share_refuses_the_call),
        cmocka_unit_test(all_or_nothing_whatever_fails),
        cmocka_unit_test(interleavings_are_isolated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
