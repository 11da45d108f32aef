/* Transactions of the core: several partitions and containers of one store, in memory and on RocksDB; their writes, edits, reads, bounds
 * and charges (item_isolation.c has several at once). With two stores (TESELA_HOMES=2) all items but those of `away` are in the first one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "transaction_harness.h"

/* ---- one transaction ---- */

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

/* ---- reading many ---- */

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
    if (!harness_clustered() || harness_ordered()) {
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
        if (!harness_clustered() || harness_ordered()) {
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

/* ---- other ids ---- */

static uint64_t number_of(container *c, const char *header, const char *id) {
    item_key key = key_of(c, header, id);
    uint64_t number;
    assert_int_equal(item_number_of(harness_items(&h), c, &key, &number), OK);
    return number;
}

static void an_item_gets_another_id(void **state) {
    (void)state;
    make_some();
    uint64_t number = number_of(a, names[0], "1"), lsn = range_of(a, names[0])->lsn;
    item_transaction *t = begin();
    assert_int_equal(rename_to(t, a, names[0], "1", "7", 1), OK); /* with the same unique values */
    assert_int_equal(get(t, a, names[0], "1", false), -1);
    assert_int_equal(get(t, a, names[0], "7", false), 1);
    assert_int_equal(get(NULL, a, names[0], "1", false), 1); /* invisible to others until the commit */
    assert_int_equal(get(NULL, a, names[0], "7", false), -1);
    assert_int_equal(commit_it(t), OK);
    assert_int_equal(number_of(a, names[0], "7"), number);
    assert_int_equal(range_of(a, names[0])->lsn, lsn + 1); /* one change */
    for (int again = 0; again < 2; again++) {
        assert_int_equal(get(NULL, a, names[0], "1", false), -1);
        assert_int_equal(get(NULL, a, names[0], "7", false), 1);
        restart();
    }
}

/* Two items exchange their ids; a new item gets another id and is edited; old ids are used again. */
static void ids_are_changed_again_and_again(void **state) {
    (void)state;
    assert_int_equal(put(NULL, b, ITEM_CREATE, names[0], "1", 1), OK);
    assert_int_equal(put(NULL, b, ITEM_CREATE, names[0], "2", 2), OK);
    assert_int_equal(put(NULL, b, ITEM_CREATE, names[0], "3", 3), OK);
    uint64_t first = number_of(b, names[0], "1"), second = number_of(b, names[0], "2");
    item_transaction *t = begin();
    assert_int_equal(rename_to(t, b, names[0], "1", "2", 10), E_CONFLICT);
    assert_int_equal(rename_to(t, b, names[0], "4", "5", 10), E_NOT_FOUND);
    assert_int_equal(rename_to(t, b, names[0], "1", "between", 10), OK);
    assert_int_equal(rename_to(t, b, names[0], "1", "5", 10), E_NOT_FOUND);
    assert_int_equal(rename_to(t, b, names[0], "2", "1", 20), OK);
    assert_int_equal(rename_to(t, b, names[0], "between", "2", 11), OK);
    assert_int_equal(put(t, b, ITEM_CREATE, names[0], "5", 5), OK);
    assert_int_equal(rename_to(t, b, names[0], "5", "6", 6), OK);
    assert_int_equal(put(t, b, ITEM_EDIT, names[0], "6", 66), OK);
    assert_int_equal(put(t, b, ITEM_CREATE, names[0], "5", 50), OK);
    assert_int_equal(put(t, b, ITEM_DELETE, names[0], "3", 0), OK);
    assert_int_equal(rename_to(t, b, names[0], "5", "3", 33), OK);
    assert_int_equal(put(t, b, ITEM_CREATE, names[0], "7", 7), OK);
    assert_int_equal(rename_to(t, b, names[0], "7", "8", 8), OK);
    assert_int_equal(put(t, b, ITEM_DELETE, names[0], "8", 0), OK);
    for (size_t page = 1; page < 8; page++) {
        if (!harness_clustered() || harness_ordered()) {
            assert_string_equal(listed(t, b, names[0], page), "11 20 66 33 ");
        }
        assert_string_equal(rows(t, b, names[0], false, page), "20 11 33 66 ");
        assert_string_equal(rows(t, b, names[0], true, page), "66 33 11 20 ");
    }
    assert_int_equal(rename_to(t, b, names[0], "2", "there", 12), OK); /* and back: it is at its own key, and counted once */
    assert_int_equal(rename_to(t, b, names[0], "1", "2", 21), OK);
    assert_string_equal(rows(t, b, names[0], false, 2), "21 33 66 12 ");
    assert_string_equal(rows(t, b, names[0], true, 2), "12 66 33 21 ");
    assert_int_equal(commit_it(t), OK);
    assert_int_equal(number_of(b, names[0], "there"), first);
    assert_int_equal(number_of(b, names[0], "2"), second);
    assert_int_equal(get(NULL, b, names[0], "6", false), 66);
    assert_int_equal(get(NULL, b, names[0], "3", false), 33);
    assert_int_equal(get(NULL, b, names[0], "1", false), -1);
    check_all();
    restart();
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

/* ---- a slow disk ---- */

static err write_both(void) {
    item_transaction *t = begin();
    assert_int_equal(put(t, a, ITEM_REPLACE, names[0], "1", 10), OK);
    assert_int_equal(put(t, a, ITEM_CREATE, names[1], "5", 50), OK);
    assert_int_equal(put(t, b, ITEM_DELETE, names[2], "3", 0), OK);
    assert_int_equal(put(t, b, ITEM_UPSERT, names[1], "6", 60), OK);
    return commit_it(t);
}

static void assert_written(void) {
    assert_int_equal(get(NULL, a, names[0], "1", false), 10);
    assert_int_equal(get(NULL, a, names[1], "5", false), 50);
    assert_int_equal(get(NULL, b, names[2], "3", false), -1);
    assert_int_equal(get(NULL, b, names[1], "6", false), 60);
}

static void the_committer_does_not_wait_for_a_slow_disk(void **state) {
    (void)state;
    make_some();
    assert_int_equal(put(NULL, b, ITEM_CREATE, names[2], "0", 0), OK);
    assert_int_equal(put(NULL, b, ITEM_DELETE, names[2], "0", 0), OK); /* the first delete looks for attachments, once */
    h.plan.disk_cached = true;
    h.plan.disk_ms = 1;
    assert_int_equal(write_both(), OK);
    h.plan.disk_ms = 0;
    assert_int_equal(h.plan.disk_held, 0);
    assert_written();
    check_all();
}

/* Whatever the committer does not find in memory, in whichever container, the outcome is the same. */
static void a_miss_anywhere_changes_nothing(void **state) {
    bool missed = true;
    unsigned n = 1;
    for (; missed; n++) {
        if (n > 1) {
            tear_down(state);
            set_up(state);
        }
        make_some();
        h.plan.miss_in = n;
        assert_int_equal(write_both(), OK);
        missed = h.plan.miss_in == 0;
        h.plan.miss_in = 0;
        assert_written();
        check_all();
    }
    assert_true(n >= 8); /* seven lookups at least */
}

/* The one that was waiting for the disk has lost. */
static void a_conflict_is_found_after_a_miss(void **state) {
    (void)state;
    make_some();
    item_transaction *t = begin();
    assert_int_equal(put(t, a, ITEM_REPLACE, names[0], "1", 10), OK);
    assert_int_equal(put(NULL, a, ITEM_REPLACE, names[0], "1", 11), OK);
    h.plan.miss_in = 1;
    assert_int_equal(commit_it(t), E_RETRY_WITH);
    assert_int_equal(h.plan.miss_in, 0);
    assert_int_equal(get(NULL, a, names[0], "1", false), 11);
    check_all();
}

int main(void) {
    item_edit_register(&test_edit);
    const struct CMUnitTest tests[] = {
        BOTH(writes_everywhere_are_one),
        BOTH(what_is_not_committed_never_was),
        BOTH(what_was_told_is_true),
        BOTH(edits_see_own_writes),
        BOTH(an_edit_that_left_the_item_is_a_guard),
        BOTH(lists_show_own_writes),
        BOTH(an_item_gets_another_id),
        BOTH(ids_are_changed_again_and_again),
        BOTH(two_homes_are_refused),
        BOTH(writes_and_guards_are_bounded),
        BOTH(bytes_are_bounded),
        BOTH(memory_is_counted),
        BOTH(a_transaction_has_a_deadline),
        BOTH(calls_cost_what_they_cost_outside),
        BOTH(a_spent_share_refuses_the_call),
        BOTH(the_committer_does_not_wait_for_a_slow_disk),
        cmocka_unit_test_setup_teardown(a_miss_anywhere_changes_nothing, set_up, tear_down),
        BOTH(a_conflict_is_found_after_a_miss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
