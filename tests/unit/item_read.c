/* Point reads: on a loop, without waiting for the disk, and then by a worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item_harness.h"

#define SETTINGS "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}"

typedef err (*reader)(const items *s, op *o, const container *c, const item_key *key, item_found *found_out);

/* Reads the item by this function, as a request of its own unless `o` is given. */
static err read_by(reader read, harness *h, const container *c, const char *id, op *o) {
    pkey header;
    item_key key;
    item_found found;
    op *own = o ? o : harness_op(h);
    assert_int_equal(pkey_parse(own, SLICE_LIT("[\"a\"]"), &header), OK);
    assert_int_equal(item_check_key(own, c, &header, slice_str(id), &key), OK);
    err code = read(harness_items(h), own, c, &key, &found);
    if (code == OK) {
        assert_true(found.body.n > 0);
        item_give(&found);
    }
    return code;
}

static container *open_container(harness *h) {
    harness_open(h);
    container *c = harness_container(h, SETTINGS, 400);
    assert_int_equal(harness_write(h, c, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"a\"}"), OK);
    container_give(c);
    harness_restart(h); /* the cache of items is empty */
    return harness_found(h, "d", "c");
}

/* The two attempts are one request: it is admitted once and charged once. */
static void what_is_not_in_memory_is_read_by_a_worker(void **state) {
    harness h;
    container *c = open_container(&h);
    (void)state;
    h.plan.disk_ms = 1;
    op *o = harness_op(&h);
    assert_int_equal(read_by(item_read_in_memory, &h, c, "1", o), E_NOT_IN_MEMORY);
    assert_true(o->charge_ru == 0);
    assert_true(o->admitted);
    assert_int_equal(read_by(item_read, &h, c, "1", o), OK);
    assert_true(o->charge_ru == 1);
    assert_int_equal(read_by(item_read_in_memory, &h, c, "1", NULL), OK); /* now the cache has it */
    assert_int_equal(read_by(item_read_in_memory, &h, c, "2", NULL), E_NOT_IN_MEMORY);
    assert_int_equal(read_by(item_read, &h, c, "2", NULL), E_NOT_FOUND);
    container_give(c);
    harness_close(&h);
}

static void what_is_in_memory_is_read_at_once(void **state) {
    harness h;
    container *c = open_container(&h);
    (void)state;
    assert_int_equal(read_by(item_read_in_memory, &h, c, "1", NULL), OK);
    assert_int_equal(read_by(item_read_in_memory, &h, c, "2", NULL), E_NOT_FOUND);
    h.plan.get_in = 1;
    assert_int_equal(read_by(item_read_in_memory, &h, c, "3", NULL), E_STORE_IO);
    container_give(c);
    harness_close(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_in_memory_is_read_by_a_worker),
        cmocka_unit_test(what_is_in_memory_is_read_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
