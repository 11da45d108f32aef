/* Pieces: what is added comes out, however it is added, dropped and joined; memory is counted, and used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/pieces.h"
#include "base/random.h"

enum { MANY_BYTES = 600 * 1024 };

static buf viewed(const pieces *p) {
    struct iovec views[256];
    buf all = buf_init(BUF_NO_LIMIT);
    unsigned n = pieces_view(p, views, 256);
    for (unsigned i = 0; i < n; i++) {
        buf_add(&all, views[i].iov_base, views[i].iov_len);
    }
    return all;
}

static void assert_holds(const pieces *p, const buf *model) {
    buf seen = viewed(p), copied = buf_init(BUF_NO_LIMIT);
    pieces_copy(p, &copied);
    assert_int_equal(pieces_bytes(p), model->n);
    assert_true(slice_eq(buf_view(&seen), buf_view(model)));
    assert_true(slice_eq(buf_view(&copied), buf_view(model)));
    buf_free(&seen);
    buf_free(&copied);
}

static void drop_from(buf *model, size_t n) {
    memmove(model->p, model->p + n, model->n - n);
    model->n -= n;
}

static size_t random_size(random_source *r) {
    static const size_t most[] = {20, 2000, PIECE_BYTES + 10, 4 * PIECE_BYTES};
    return (size_t)random_below(r, most[random_below(r, 4)]) + 1;
}

static void add_some(pieces *p, buf *model, random_source *r) {
    static char bytes[4 * PIECE_BYTES];
    size_t n = random_size(r);
    random_bytes(r, bytes, n < 64 ? n : 64);
    buf_add(model, bytes, n);
    switch (random_below(r, 4)) {
    case 0:
        buf_add(pieces_room(p, n), bytes, n);
        break;
    case 1: /* more than was said */
        buf_add(pieces_room(p, n / 3), bytes, n);
        break;
    case 2: {
        buf whole = buf_init(BUF_NO_LIMIT);
        buf_add(&whole, bytes, n);
        pieces_adopt(p, &whole);
        assert_int_equal(whole.cap, 0);
        break;
    }
    default:
        pieces_add(p, bytes, n);
    }
}

static void random_changes_agree_with_a_buffer(void **state) {
    (void)state;
    random_source r;
    budget_pool pool = {.max = SIZE_MAX};
    budget counted = budget_init(&pool, SIZE_MAX);
    random_seed(&r, 5);
    for (int round = 0; round < 60; round++) {
        pieces p = pieces_init(&counted), other = pieces_init(round % 2 ? &counted : NULL);
        buf model = buf_init(BUF_NO_LIMIT), others = buf_init(BUF_NO_LIMIT);
        for (int i = 0; i < 20 && model.n < MANY_BYTES; i++) {
            add_some(&p, &model, &r);
            add_some(&other, &others, &r);
            if (random_below(&r, 3) == 0) {
                size_t n = (size_t)random_below(&r, model.n + 1);
                pieces_drop(&p, n);
                drop_from(&model, n);
            }
            if (random_below(&r, 5) == 0) {
                pieces_join(&p, &other);
                buf_add(&model, others.p, others.n);
                buf_clear(&others);
            }
            assert_holds(&p, &model);
            assert_holds(&other, &others);
            assert_int_equal(counted.used, pieces_held(&p) + (round % 2 ? pieces_held(&other) : 0));
        }
        pieces_free(&p);
        pieces_free(&other);
        buf_free(&model);
        buf_free(&others);
        assert_int_equal(counted.used, 0);
    }
    budget_end(&counted);
}

static void a_few_bytes_take_no_piece(void **state) {
    (void)state;
    pieces p = pieces_init(NULL);
    buf_add(pieces_room(&p, 100), "0123456789", 10);
    assert_true(pieces_held(&p) <= PIECE_SMALL_BYTES);
    pieces_free(&p);
}

static void pieces_are_used_again(void **state) {
    (void)state;
    char *bytes = mem_zero(MANY_BYTES);
    pieces_trim(); /* of other tests */
    pieces_trim();
    assert_int_equal(pieces_pooled(), 0);
    pieces p = pieces_init(NULL);
    pieces_add(&p, bytes, MANY_BYTES);
    size_t held = pieces_held(&p);
    assert_true(held < MANY_BYTES + 2 * PIECE_BYTES);
    pieces_free(&p);
    assert_int_equal(pieces_pooled(), held);
    pieces_add(&p, bytes, MANY_BYTES);
    assert_int_equal(pieces_pooled(), 0);
    pieces_free(&p);
    pieces_trim(); /* they were used since the last trim */
    assert_int_equal(pieces_pooled(), held);
    pieces_trim();
    assert_int_equal(pieces_pooled(), 0);
    free(bytes);
}

static void a_budget_limits_them(void **state) {
    (void)state;
    char *bytes = mem_zero(MANY_BYTES);
    budget_pool pool = {.max = SIZE_MAX};
    budget small = budget_init(&pool, 2 * PIECE_BYTES), none = budget_init(&pool, PIECE_BYTES);
    pieces p = pieces_init(&small);
    pieces_add(&p, bytes, MANY_BYTES);
    assert_false(pieces_ok(&p));
    assert_int_equal(budget_error(&small), E_MEMORY);
    assert_false(pieces_recount(&p, &none)); /* and is counted there all the same */
    assert_int_equal(small.used, 0);
    assert_int_equal(none.used, pieces_held(&p));
    pieces_free(&p);
    assert_true(pieces_ok(&p));
    assert_int_equal(none.used, 0);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_changes_agree_with_a_buffer),
        cmocka_unit_test(a_few_bytes_take_no_piece),
        cmocka_unit_test(pieces_are_used_again),
        cmocka_unit_test(a_budget_limits_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
