/* Logical sessions: numbers of retryable writes, the states of transactions, what is taken, forgotten and bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/mongo/sessions.h"

/* The real ones are in call/; here they are only counted. */
static unsigned ended;
static char transactions[8];
#define TRANSACTION(i) ((call_transaction *)&transactions[i])

void call_transaction_end(call_transaction *t) {
    assert_true((char *)t >= transactions && (char *)t < transactions + sizeof transactions);
    ended++;
}

static mongo_sessions *t;

static int set_up(void **state) {
    (void)state;
    t = mongo_sessions_new();
    ended = 0;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    mongo_sessions_free(t);
    return 0;
}

static mongo_session_id id_of(uint32_t n, uint64_t owner) {
    mongo_session_id id = {.owner = owner};
    memcpy(id.uuid, &n, sizeof n);
    return id;
}

static void numbers_ascend(void **state) {
    (void)state;
    mongo_session_id one = id_of(1, 1), other = id_of(1, 2);
    assert_int_equal(mongo_sessions_write(t, &one, 5, 0), SESSION_AGAIN); /* unknown here: perhaps from before a restart */
    assert_int_equal(mongo_sessions_write(t, &one, 6, 0), SESSION_FIRST);
    assert_int_equal(mongo_sessions_write(t, &one, 6, 0), SESSION_AGAIN);
    assert_int_equal(mongo_sessions_write(t, &one, 5, 0), SESSION_TOO_OLD);
    assert_int_equal(mongo_sessions_write(t, &other, 1, 0), SESSION_AGAIN); /* the same uuid of another key is another session */
    assert_int_equal(mongo_sessions_count(t), 2);
}

static void a_transaction_is_used_by_one_at_a_time(void **state) {
    (void)state;
    call_transaction *found;
    mongo_session_id id = id_of(1, 1), other = id_of(1, 2);
    assert_int_equal(mongo_sessions_take(t, &id, 1, 0, &found), SESSION_NONE);
    assert_int_equal(mongo_sessions_begin(t, &id, 1, TRANSACTION(0), 0), SESSION_TAKEN);
    assert_int_equal(mongo_sessions_take(t, &id, 1, 0, &found), SESSION_BUSY);
    assert_int_equal(mongo_sessions_begin(t, &id, 2, TRANSACTION(1), 0), SESSION_BUSY);
    mongo_sessions_give(t, &id, SESSION_OPEN, 0);
    assert_int_equal(mongo_sessions_take(t, &other, 1, 0, &found), SESSION_NONE);
    assert_int_equal(mongo_sessions_take(t, &id, 2, 0, &found), SESSION_NONE);
    assert_int_equal(mongo_sessions_take(t, &id, 1, 0, &found), SESSION_TAKEN);
    assert_ptr_equal(found, TRANSACTION(0));
    assert_int_equal(mongo_sessions_open(t), 1);
    mongo_sessions_give(t, &id, SESSION_COMMITTED, 0);
    assert_int_equal(ended, 1);
    assert_int_equal(mongo_sessions_take(t, &id, 1, 0, &found), SESSION_IS_OVER); /* a repeated commit */
    assert_int_equal(mongo_sessions_begin(t, &id, 1, TRANSACTION(1), 0), SESSION_NUMBER_OLD);
    assert_int_equal(mongo_sessions_open(t), 0);
}

static void a_new_transaction_aborts_the_old(void **state) {
    (void)state;
    call_transaction *found;
    mongo_session_id id = id_of(1, 1);
    assert_int_equal(mongo_sessions_begin(t, &id, 1, TRANSACTION(0), 0), SESSION_TAKEN);
    mongo_sessions_give(t, &id, SESSION_OPEN, 0);
    assert_int_equal(mongo_sessions_begin(t, &id, 2, TRANSACTION(1), 0), SESSION_TAKEN);
    assert_int_equal(ended, 1);
    mongo_sessions_give(t, &id, SESSION_ABORTED, 0);
    assert_int_equal(ended, 2);
    assert_int_equal(mongo_sessions_take(t, &id, 2, 0, &found), SESSION_NONE);
}

static void idle_ones_end(void **state) {
    (void)state;
    call_transaction *found;
    mongo_session_id idle = id_of(1, 1), busy = id_of(2, 1), writer = id_of(3, 1);
    assert_int_equal(mongo_sessions_begin(t, &idle, 1, TRANSACTION(0), 0), SESSION_TAKEN);
    mongo_sessions_give(t, &idle, SESSION_OPEN, 0);
    assert_int_equal(mongo_sessions_begin(t, &busy, 1, TRANSACTION(1), 0), SESSION_TAKEN);
    mongo_sessions_write(t, &writer, 1, 0);
    mongo_sessions_tick(t, LIMIT_TRANSACTION_SECONDS * INT64_C(1000000) - 1);
    assert_int_equal(ended, 0);
    mongo_sessions_tick(t, LIMIT_TRANSACTION_SECONDS * INT64_C(1000000));
    assert_int_equal(ended, 1);
    assert_int_equal(mongo_sessions_take(t, &idle, 1, 0, &found), SESSION_NONE);
    mongo_sessions_tick(t, 2 * MONGO_SESSION_IDLE_S * INT64_C(1000000));
    assert_int_equal(mongo_sessions_count(t), 1); /* the one that a request works with */
    mongo_sessions_give(t, &busy, SESSION_OPEN, 0);
}

static void sessions_are_ended_by_their_client(void **state) {
    (void)state;
    call_transaction *found;
    mongo_session_id id = id_of(1, 1);
    mongo_sessions_end(t, &id); /* unknown: nothing happens */
    assert_int_equal(mongo_sessions_begin(t, &id, 1, TRANSACTION(0), 0), SESSION_TAKEN);
    mongo_sessions_end(t, &id);
    assert_int_equal(ended, 0);
    assert_int_equal(mongo_sessions_take(t, &id, 1, 0, &found), SESSION_NONE);
    mongo_sessions_give(t, &id, SESSION_OPEN, 0);
    assert_int_equal(ended, 1);
    assert_int_equal(mongo_sessions_count(t), 0);
}

static void their_number_is_bounded(void **state) {
    (void)state;
    mongo_session_id first = id_of(0, 1);
    for (uint32_t i = 0; i < MONGO_SESSIONS_MAX + 10; i++) {
        mongo_session_id id = id_of(i, 1);
        mongo_sessions_write(t, &id, 7, i);
    }
    assert_int_equal(mongo_sessions_count(t), MONGO_SESSIONS_MAX);
    assert_int_equal(mongo_sessions_write(t, &first, 1, 0), SESSION_AGAIN); /* forgotten */
    for (uint32_t i = 0; i < MONGO_TRANSACTIONS_MAX; i++) {
        mongo_session_id id = id_of(i, 2);
        assert_int_equal(mongo_sessions_begin(t, &id, 1, TRANSACTION(0), 0), SESSION_TAKEN);
        mongo_sessions_give(t, &id, SESSION_OPEN, 0);
    }
    mongo_session_id more = id_of(0, 3);
    assert_int_equal(mongo_sessions_begin(t, &more, 1, TRANSACTION(1), 0), SESSION_CROWDED);
}

int main(void) {
#define ONE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ONE(numbers_ascend), ONE(a_transaction_is_used_by_one_at_a_time), ONE(a_new_transaction_aborts_the_old),
        ONE(idle_ones_end),  ONE(sessions_are_ended_by_their_client),     ONE(their_number_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
