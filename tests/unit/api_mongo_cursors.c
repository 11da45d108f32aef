/* Open cursors: taken by one request at a time, by their owner only, and bounded by everything that they hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/mongo/cursors.h"

static mongo_cursor *cursor_of(uint64_t owner, size_t bytes) {
    mongo_cursor *c = mongo_cursor_new(SLICE_LIT("d.c"), owner, NULL);
    if (bytes) {
        arena_alloc(&c->arena, bytes); /* as a large filter or pipeline does */
    }
    return c;
}

static void a_cursor_is_its_owners(void **state) {
    (void)state;
    mongo_cursors *t = mongo_cursors_new();
    mongo_cursor *c = cursor_of(1, 0), *found;
    assert_int_equal(mongo_cursors_add(t, c, 0), OK);
    int64_t id = c->id;
    assert_int_equal(mongo_cursors_take(t, id, 2, &found), CURSOR_OF_ANOTHER);
    assert_int_equal(mongo_cursors_take(t, id, 1, &found), CURSOR_TAKEN);
    assert_int_equal(mongo_cursors_take(t, id, 1, &found), CURSOR_BUSY);
    mongo_cursors_give(t, c, 0);
    assert_int_equal(mongo_cursors_kill(t, id, 1), CURSOR_TAKEN);
    assert_int_equal(mongo_cursors_take(t, id, 1, &found), CURSOR_UNKNOWN);
    mongo_cursors_free(t);
}

static void what_they_hold_is_bounded(void **state) {
    (void)state;
    mongo_cursors *t = mongo_cursors_new();
    mongo_cursor *first = cursor_of(1, MONGO_CURSORS_HELD_MAX / 3), *second = cursor_of(1, MONGO_CURSORS_HELD_MAX / 3);
    assert_int_equal(mongo_cursors_add(t, first, 0), OK);
    assert_int_equal(mongo_cursors_add(t, second, 0), E_BUSY_MEMORY);
    assert_int_equal(mongo_cursors_kill(t, first->id, 1), CURSOR_TAKEN);
    assert_int_equal(mongo_cursors_add(t, second, 0), OK); /* there is room again */
    assert_int_equal(mongo_cursors_open(t), 1);
    mongo_cursors_free(t);
}

static void one_key_leaves_room_for_others(void **state) {
    (void)state;
    mongo_cursors *t = mongo_cursors_new();
    mongo_cursor *c = cursor_of(1, 0), *other = cursor_of(2, 0);
    size_t n = 0;
    while (mongo_cursors_add(t, c, 0) == OK) {
        c = cursor_of(1, 0);
        n++;
    }
    assert_int_equal(n, MONGO_CURSORS_MAX / 2);
    assert_int_equal(mongo_cursors_add(t, other, 0), OK);
    mongo_cursor_free(c);
    mongo_cursors_free(t);
}

static void none_lives_for_ever(void **state) {
    (void)state;
    mongo_cursors *t = mongo_cursors_new();
    mongo_cursor *c = cursor_of(1, 0), *patient = cursor_of(1, 0);
    patient->no_timeout = true;
    assert_int_equal(mongo_cursors_add(t, c, 0), OK);
    assert_int_equal(mongo_cursors_add(t, patient, 0), OK);
    mongo_cursors_tick(t, (int64_t)MONGO_CURSOR_IDLE_S * 1000000);
    assert_int_equal(mongo_cursors_open(t), 1);
    mongo_cursors_tick(t, (int64_t)MONGO_CURSOR_IDLE_LONG_S * 1000000);
    assert_int_equal(mongo_cursors_open(t), 0);
    mongo_cursors_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_cursor_is_its_owners), cmocka_unit_test(what_they_hold_is_bounded),
                                       cmocka_unit_test(one_key_leaves_room_for_others), cmocka_unit_test(none_lives_for_ever)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
