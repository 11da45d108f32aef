/* Any JSON as a container's properties, above all its indexing policy: it is rejected, or gives settings that read back the same, and a
 * policy that works for any path. */
#include "account/settings.h"
#include "index/terms.h"
#include "world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const index_step paths[][3] = {
    {{.name = {"id", 2}}},
    {{.name = {"a", 1}}, {.name = {"[]", 2}, .element = true}, {.name = {"b", 1}}},
    {{.name = {"", 0}}, {.name = {"a b", 3}}},
};

static void check_policy(const index_policy *policy) {
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        for (size_t depth = 1; depth <= 3; depth++) {
            bool covered = index_policy_covers(policy, paths[i], depth);
            assert_true(!covered || !policy->off);
        }
    }
    for (size_t i = 0; i < policy->composites_n; i++) {
        assert_true(policy->composites[i].n >= 2);
    }
}

static slice settings_of(arena *a, slice properties, bool *good_out) {
    container c = {0};
    op o;
    op_init(&o, a, 0);
    err code = settings_read(&o, properties, (settings_rules){.hierarchical_allowed = true}, &c);
    *good_out = code == OK;
    if (code != OK) {
        assert_int_equal(code, E_BAD_REQUEST);
        return SLICE_EMPTY;
    }
    check_policy(&c.index);
    return c.settings;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    arena memory = arena_init();
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    if (json_to_bson(slice_of(data, n), NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT) {
        bool good, again;
        slice first = settings_of(&memory, buf_view(&bson), &good);
        if (good) {
            slice second = settings_of(&memory, first, &again);
            assert_true(again && slice_eq(first, second));
        }
    }
    buf_free(&bson);
    arena_free(&memory);
    return 0;
}
