/* Which lists of entries are known to be long: as far as they were read, for some uses, and for this list only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "find/find_int.h"

typedef struct lists {
    container_index index;
    container_range range;
    item_view view;
    find_access access;
    find__finder finder;
} lists;

static void lists_init(lists *l, uint32_t segment) {
    memset(l, 0, sizeof *l);
    l->range.segment = segment;
    l->view.index = &l->index;
    l->view.range = &l->range;
    l->finder.view = &l->view;
    l->finder.access = &l->access;
}

static find_demand point(find_span *span, const char *value) {
    *span = (find_span){.path = 77, .from = slice_str(value), .point = true};
    return (find_demand){.spans = span, .n = 1};
}

static void a_list_is_as_long_as_it_was_seen(void **state) {
    (void)state;
    lists l;
    find_span span, other_span;
    lists_init(&l, 1);
    find_demand d = point(&span, "knows"), other = point(&other_span, "likes");
    assert_false(find__is_long(&l.finder, &d, 1));
    find__note_long(&l.finder, &d, 100);
    assert_true(find__is_long(&l.finder, &d, 10) && find__is_long(&l.finder, &d, 100));
    assert_int_equal(l.access.report.entries, 110); /* as if they had been read */
    assert_false(find__is_long(&l.finder, &d, 101));
    assert_false(find__is_long(&l.finder, &other, 10));
    find__note_long(&l.finder, &d, 1000000);
    assert_true(find__is_long(&l.finder, &d, 60000));
    assert_false(find__is_long(&l.finder, &d, 1000000)); /* more than is remembered */
}

static void it_is_read_again_after_some_uses(void **state) {
    (void)state;
    lists l;
    find_span span;
    lists_init(&l, 2);
    find_demand d = point(&span, "knows");
    find__note_long(&l.finder, &d, 50);
    unsigned uses = 0;
    while (uses < 1000 && find__is_long(&l.finder, &d, 50)) {
        uses++;
    }
    assert_int_equal(uses, 32);
    find__note_long(&l.finder, &d, 50);
    assert_true(find__is_long(&l.finder, &d, 50));
}

static void ranges_partitions_and_indexes_differ(void **state) {
    (void)state;
    lists l, m;
    find_span span;
    item_key key = {.epk = {.n = 2, .bytes = {1, 2}}};
    lists_init(&l, 3);
    lists_init(&m, 3); /* another container's index */
    find_demand d = point(&span, "knows");
    find__note_long(&l.finder, &d, 50);
    assert_false(find__is_long(&m.finder, &d, 50));
    l.range.segment = 4;
    assert_false(find__is_long(&l.finder, &d, 50));
    l.range.segment = 3;
    l.view.partition = &key;
    assert_false(find__is_long(&l.finder, &d, 50));
    l.view.partition = NULL;
    assert_true(find__is_long(&l.finder, &d, 50));
}

static void only_single_values_are_remembered(void **state) {
    (void)state;
    lists l;
    find_span spans[2];
    lists_init(&l, 5);
    find_demand d = point(&spans[0], "knows");
    (void)point(&spans[1], "likes");
    d.n = 2;
    find__note_long(&l.finder, &d, 50);
    assert_false(find__is_long(&l.finder, &d, 10));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_as_long_as_it_was_seen),
        cmocka_unit_test(it_is_read_again_after_some_uses),
        cmocka_unit_test(ranges_partitions_and_indexes_differ),
        cmocka_unit_test(only_single_values_are_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
