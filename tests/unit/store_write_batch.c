/* Batches compared with a model: lookups find the newest change, cutting to a mark is exact, clearing removes everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store_harness.h"

enum { KEYS = 200, CHANGES_MAX = 3000 };

/* The model: an array of the same changes, searched backward. */
typedef struct model {
    struct {
        store_change_kind kind;
        store_family family;
        unsigned key, value;
    } changes[CHANGES_MAX];
    size_t n;
} model;

static slice key_text(char *into, unsigned key) {
    return slice_of(into, (size_t)snprintf(into, 64, "%s%u", key % 3 ? "key" : "a much longer key that takes several words ", key));
}

static slice value_text(char *into, unsigned value) {
    return slice_of(into, (size_t)snprintf(into, 64, "%*u", (int)(value % 40) + 1, value));
}

static void add_random(store_batch *b, model *m, random_source *r) {
    char key_bytes[64], value_bytes[64];
    unsigned key = (unsigned)random_below(r, KEYS), value = (unsigned)random_below(r, 1000);
    store_family family = (store_family)random_below(r, STORE_FAMILIES);
    slice k = key_text(key_bytes, key), v = value_text(value_bytes, value);
    store_change_kind kind = random_below(r, 10) == 0 ? STORE_DELETE_RANGE : random_below(r, 3) == 0 ? STORE_DELETE : STORE_PUT;
    if (kind == STORE_PUT && value % 2) {
        memcpy(store_put_space(b, family, k, v.n), v.p, v.n);
    } else if (kind == STORE_PUT) {
        store_put(b, family, k, v);
    } else if (kind == STORE_DELETE) {
        store_delete(b, family, k);
    } else {
        store_delete_range(b, family, k, SLICE_LIT("z"));
    }
    m->changes[m->n].kind = kind;
    m->changes[m->n].family = family;
    m->changes[m->n].key = key;
    m->changes[m->n++].value = value;
}

static void assert_same(const store_batch *b, const model *m) {
    assert_int_equal(b->n, m->n);
    for (int f = 0; f < STORE_FAMILIES; f++) {
        for (unsigned key = 0; key < KEYS; key++) {
            char key_bytes[64], value_bytes[64];
            const store_change *found = store_batch_find(b, (store_family)f, key_text(key_bytes, key));
            size_t i = m->n;
            while (i > 0 && (m->changes[i - 1].family != (store_family)f || m->changes[i - 1].key != key ||
                             m->changes[i - 1].kind == STORE_DELETE_RANGE)) {
                i--;
            }
            if (i == 0) {
                assert_null(found);
                continue;
            }
            assert_non_null(found);
            assert_int_equal(found->kind, m->changes[i - 1].kind);
            assert_true(found->kind != STORE_PUT || slice_eq(found->value, value_text(value_bytes, m->changes[i - 1].value)));
        }
    }
}

static size_t bytes_of(const store_batch *b) {
    size_t bytes = 0;
    for (size_t i = 0; i < b->n; i++) {
        bytes += b->changes[i].key.n + b->changes[i].value.n;
    }
    return bytes;
}

static void lookups_marks_and_clearing_agree_with_a_model(void **state) {
    (void)state;
    static model m;
    store_batch b;
    random_source r;
    random_seed(&r, 20);
    store_batch_init(&b);
    for (int round = 0; round < 60; round++) {
        m.n = 0;
        size_t most = (size_t)random_below(&r, round % 5 ? 100 : CHANGES_MAX - 100);
        while (m.n < most) {
            store_mark mark = store_batch_mark(&b);
            size_t before = m.n, n = (size_t)random_below(&r, 20);
            for (size_t i = 0; i < n; i++) {
                add_random(&b, &m, &r);
            }
            if (random_below(&r, 3) == 0) {
                store_batch_cut(&b, mark);
                m.n = before;
            }
            if (random_below(&r, 20) == 0) {
                assert_same(&b, &m);
            }
        }
        assert_same(&b, &m);
        assert_int_equal(b.bytes, bytes_of(&b));
        store_batch_clear(&b);
        assert_int_equal(b.n, 0);
        assert_int_equal(b.bytes, 0);
        m.n = 0;
        assert_same(&b, &m);
    }
    store_batch_free(&b);
}

/* Changes that nobody looks for stay out of lookups, whatever is cut, and however many there are. */
static void unsought_changes_are_listed_but_not_found(void **state) {
    (void)state;
    enum { MANY = 2000 };
    char bytes[64];
    store_batch b;
    store_batch_init(&b);
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < MANY; i++) {
            store_put(&b, STORE_TERMS, key_text(bytes, 2 * i), SLICE_LIT("sought"));
            slice other = key_text(bytes, 2 * i + 1);
            i % 2 ? store_put_unsought(&b, STORE_TERMS, other) : store_delete_unsought(&b, STORE_TERMS, other);
        }
        store_batch_cut(&b, MANY);
        assert_int_equal(b.n, MANY);
        for (unsigned i = 0; i < MANY; i++) {
            assert_int_equal(store_batch_find(&b, STORE_TERMS, key_text(bytes, i)) != NULL, i % 2 == 0);
            assert_true(slice_eq(b.changes[i].key, key_text(bytes, i)));
            assert_int_equal(b.changes[i].kind, i % 4 == 1 ? STORE_DELETE : STORE_PUT);
        }
        store_batch_clear(&b);
        assert_null(store_batch_find(&b, STORE_TERMS, key_text(bytes, 0)));
    }
    store_batch_free(&b);
}

static void keys_and_values_are_copied(void **state) {
    (void)state;
    store_batch b;
    char key[] = "key", value[] = "value";
    store_batch_init(&b);
    store_put(&b, STORE_META, slice_str(key), slice_str(value));
    memset(key, 'x', 3);
    memset(value, 'x', 5);
    assert_true(slice_eq(store_batch_find(&b, STORE_META, SLICE_LIT("key"))->value, SLICE_LIT("value")));
    assert_null(store_batch_find(&b, STORE_ITEMS, SLICE_LIT("key")));
    store_batch_free(&b);
}

static void empty_keys_and_values(void **state) {
    (void)state;
    store_batch b;
    store_batch_init(&b);
    store_put(&b, STORE_INDEX, SLICE_LIT("k"), SLICE_EMPTY);
    assert_int_equal(store_batch_find(&b, STORE_INDEX, SLICE_LIT("k"))->value.n, 0);
    assert_int_equal(store_batch_find(&b, STORE_INDEX, SLICE_LIT("k"))->kind, STORE_PUT);
    store_put(&b, STORE_INDEX, SLICE_EMPTY, SLICE_LIT("v"));
    assert_true(slice_eq(store_batch_find(&b, STORE_INDEX, SLICE_EMPTY)->value, SLICE_LIT("v")));
    store_batch_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookups_marks_and_clearing_agree_with_a_model),
        cmocka_unit_test(unsought_changes_are_listed_but_not_found),
        cmocka_unit_test(keys_and_values_are_copied),
        cmocka_unit_test(empty_keys_and_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
