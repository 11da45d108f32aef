/* Arenas: alignment, separate blocks for large allocations, a lent first block, reset and reuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/random.h"

static void every_piece_is_its_own(void **state) {
    (void)state;
    enum { PIECES = 3000 };
    static unsigned char *pieces[PIECES];
    static size_t sizes[PIECES];
    arena a = arena_init();
    random_source r;
    random_seed(&r, 11);
    for (size_t i = 0; i < PIECES; i++) {
        size_t align = (size_t)1 << random_below(&r, 7);
        sizes[i] = (size_t)random_below(&r, random_below(&r, 50) ? 200 : 40000) + 1;
        pieces[i] = arena_alloc_aligned(&a, sizes[i], align);
        assert_int_equal((uintptr_t)pieces[i] % align, 0);
        memset(pieces[i], (int)(i & 255), sizes[i]);
    }
    for (size_t i = 0; i < PIECES; i++) {
        for (size_t j = 0; j < sizes[i]; j++) {
            assert_int_equal(pieces[i][j], i & 255);
        }
    }
    arena_free(&a);
    assert_null(a.blocks);
}

static void large_pieces_do_not_end_the_block(void **state) {
    (void)state;
    arena a = arena_init();
    char *first = arena_alloc_aligned(&a, 10, 1);
    char *large = arena_alloc_aligned(&a, 1000000, 1);
    char *second = arena_alloc_aligned(&a, 10, 1);
    memset(large, 'x', 1000000);
    assert_ptr_equal(second, first + 10);
    arena_free(&a);
}

static void reset_keeps_one_block(void **state) {
    (void)state;
    arena a = arena_init();
    char *first = arena_alloc(&a, 100);
    for (int i = 0; i < 100; i++) {
        memset(arena_alloc(&a, 5000), i, 5000);
    }
    arena_reset(&a);
    assert_non_null(a.blocks);
    char *again = arena_alloc(&a, 100);
    memset(again, 1, 100);
    arena_reset(&a);
    assert_ptr_equal(arena_alloc(&a, 100), again); /* the same block, from its start */
    (void)first;
    arena_free(&a);
    arena_reset(&a); /* resetting an empty arena */
    assert_null(a.blocks);
    memset(arena_alloc(&a, 50), 1, 50);
    arena_free(&a);
}

static void a_lent_block_is_used_first(void **state) {
    (void)state;
    _Alignas(16) char room[256];
    arena a = {.at = room, .end = room + sizeof room};
    char *inside = arena_alloc(&a, 100), *outside;
    assert_ptr_equal(inside, room);
    outside = arena_alloc(&a, 200);
    assert_true(outside < room || outside >= room + sizeof room);
    memset(outside, 1, 200);
    arena_free(&a);
}

static void small_arenas_take_small_blocks(void **state) {
    (void)state;
    arena a = arena_init_small();
    char *first = arena_alloc(&a, 16);
    assert_in_range((size_t)(a.end - first), 16, 1024);
    arena_free(&a);
    assert_int_equal(a.block_bytes, 1024);
}

static void copies_and_texts(void **state) {
    (void)state;
    arena a = arena_init();
    slice copy = arena_copy(&a, SLICE_LIT("text"));
    char *text = arena_text(&a, slice_of("cut here", 3));
    slice empty = arena_copy(&a, SLICE_EMPTY), made = arena_printf(&a, "%d-%s", 7, "x"), nothing = arena_printf(&a, "%s", "");
    unsigned char *zero = arena_zero(&a, 300);
    assert_true(slice_eq(copy, SLICE_LIT("text")));
    assert_string_equal(text, "cut");
    assert_int_equal(empty.n, 0);
    assert_non_null(empty.p);
    assert_true(slice_eq(made, SLICE_LIT("7-x")));
    assert_int_equal(nothing.n, 0);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(zero[i], 0);
    }
    arena_free(&a);
}

static void a_mark_gives_back_what_came_after_it(void **state) {
    (void)state;
    arena a = arena_init();
    char *before = arena_alloc(&a, 100);
    memset(before, 'b', 100);
    size_t held = a.held;
    for (int round = 0; round < 100; round++) {
        arena_mark mark = arena_marked(&a);
        for (int i = 0; i < 100; i++) {
            memset(arena_alloc(&a, 1000), 'x', 1000);
        }
        memset(arena_alloc(&a, 100000), 'y', 100000);
        arena_mark inner = arena_marked(&a);
        arena_alloc(&a, 200000);
        arena_release(&a, inner);
        arena_release(&a, mark);
        assert_int_equal(a.held, held);
    }
    for (int i = 0; i < 100; i++) {
        assert_int_equal(before[i], 'b');
    }
    arena_mark empty = arena_marked(&(arena){0});
    arena fresh = arena_init();
    arena_alloc(&fresh, 10);
    arena_release(&fresh, empty);
    assert_int_equal(fresh.held, 0);
    arena_alloc(&fresh, 10);
    arena_free(&fresh);
    arena_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_piece_is_its_own),
        cmocka_unit_test(large_pieces_do_not_end_the_block),
        cmocka_unit_test(reset_keeps_one_block),
        cmocka_unit_test(a_lent_block_is_used_first),
        cmocka_unit_test(small_arenas_take_small_blocks),
        cmocka_unit_test(copies_and_texts),
        cmocka_unit_test(a_mark_gives_back_what_came_after_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
