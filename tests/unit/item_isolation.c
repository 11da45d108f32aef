/* Transactions that meet: conflicts, snapshots, splits and moves meanwhile, a store that fails at any moment; random interleavings are
 * compared with a model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transaction_harness.h"

/* ---- conflicts ---- */

typedef struct step {
    bool second; /* in container b */
    item_kind kind;
    int partition;
    const char *id;
    int n;
    const char *to; /* a replace gives the item this id; NULL: it keeps its own */
} step;

static err take_step(item_transaction *t, const step *s) {
    return s->to ? rename_to(t, s->second ? b : a, names[s->partition], s->id, s->to, s->n)
                 : put(t, s->second ? b : a, s->kind, names[s->partition], s->id, s->n);
}

static const struct {
    step own, others;
    err code;
} conflicts[] = {
    {{false, ITEM_REPLACE, 0, "1", 10, NULL}, {false, ITEM_REPLACE, 0, "1", 11, NULL}, E_RETRY_WITH},
    {{false, ITEM_EDIT, 0, "1", 10, NULL}, {false, ITEM_EDIT, 0, "1", 11, NULL}, E_RETRY_WITH},
    {{false, ITEM_UPSERT, 0, "1", 10, NULL}, {false, ITEM_DELETE, 0, "1", 0, NULL}, E_RETRY_WITH},
    {{false, ITEM_DELETE, 0, "1", 0, NULL}, {false, ITEM_DELETE, 0, "1", 0, NULL}, E_RETRY_WITH},
    {{false, ITEM_DELETE, 0, "1", 0, NULL}, {false, ITEM_REPLACE, 0, "1", 11, NULL}, E_RETRY_WITH},
    {{false, ITEM_CREATE, 0, "9", 9, NULL}, {false, ITEM_CREATE, 0, "9", 10, NULL}, E_RETRY_WITH},
    {{false, ITEM_UPSERT, 0, "9", 9, NULL}, {false, ITEM_CREATE, 0, "9", 10, NULL}, E_RETRY_WITH},
    {{true, ITEM_REPLACE, 2, "3", 30, NULL}, {true, ITEM_REPLACE, 2, "3", 31, NULL}, E_RETRY_WITH},
    {{true, ITEM_CREATE, 1, "9", 9, NULL}, {true, ITEM_CREATE, 1, "9", 10, NULL}, E_RETRY_WITH},
    {{false, ITEM_CREATE, 0, "9", 9, NULL}, {false, ITEM_CREATE, 0, "8", 9, NULL}, E_UNIQUE_KEY},
    {{false, ITEM_REPLACE, 0, "1", 9, NULL}, {false, ITEM_CREATE, 0, "8", 9, NULL}, E_UNIQUE_KEY},
    {{false, ITEM_REPLACE, 0, "1", 9, "9"}, {false, ITEM_REPLACE, 0, "1", 8, NULL}, E_RETRY_WITH},
    {{false, ITEM_REPLACE, 0, "1", 9, "9"}, {false, ITEM_DELETE, 0, "1", 0, NULL}, E_RETRY_WITH},
    {{false, ITEM_REPLACE, 0, "1", 9, "9"}, {false, ITEM_CREATE, 0, "9", 8, NULL}, E_RETRY_WITH}, /* the new id was taken meanwhile */
    {{false, ITEM_REPLACE, 0, "1", 9, "9"}, {false, ITEM_REPLACE, 0, "1", 8, "8"}, E_RETRY_WITH},
    {{false, ITEM_REPLACE, 0, "1", 9, "9"}, {false, ITEM_CREATE, 0, "8", 9, NULL}, E_UNIQUE_KEY},
    {{false, ITEM_CREATE, 0, "9", 9, NULL}, {false, ITEM_REPLACE, 0, "1", 8, "9"}, E_RETRY_WITH},
    {{true, ITEM_REPLACE, 2, "3", 9, "9"}, {true, ITEM_CREATE, 2, "8", 8, NULL}, OK},
    {{false, ITEM_CREATE, 0, "9", 9, NULL}, {false, ITEM_CREATE, 1, "9", 9, NULL}, OK}, /* another partition */
    {{false, ITEM_CREATE, 0, "9", 9, NULL}, {true, ITEM_CREATE, 0, "9", 9, NULL}, OK},  /* another container */
    {{false, ITEM_REPLACE, 0, "1", 10, NULL}, {false, ITEM_REPLACE, 1, "2", 11, NULL}, OK},
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

/* ---- a store that fails ---- */

/* The first error, or the outcome of the commit. */
static err write_all(void) {
    item_transaction *t = begin();
    err code = put(t, a, ITEM_REPLACE, names[0], "1", 10);
    code = code != OK ? code : put(t, b, ITEM_DELETE, names[2], "3", 0);
    code = code != OK ? code : put(t, a, ITEM_CREATE, names[1], "5", 5);
    code = code != OK ? code : put(t, b, ITEM_EDIT, names[0], "4", 40);
    code = code != OK ? code : rename_to(t, b, names[0], "4", "44", 40);
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
    assert_int_equal(get(NULL, b, names[0], "4", false), fired && !torn ? 4 : -1);
    assert_int_equal(get(NULL, b, names[0], "44", false), fired && !torn ? -1 : 40);
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

/* Gives the item of a slot the id of any slot of its partition. */
static void rename_slot(model *m, modelled *x, int i) {
    slot *s = x ? x->now : m->committed;
    int to = (i < SLOTS / 2 ? 0 : SLOTS / 2) + PARTITIONS * any(m, 4) + i % PARTITIONS;
    int n = 1000 * (to + 1) + m->stamps % 1000;
    err code = rename_to(x ? x->t : NULL, slot_container(i), slot_partition(i), slot_id(i), slot_id(to), n);
    assert_int_equal(code, s[i].n < 0 ? E_NOT_FOUND : to == i || s[to].n < 0 ? OK : E_CONFLICT);
    if (code == OK) {
        s[i] = (slot){-1, 0};
        s[to] = (slot){n, ++m->stamps};
        if (x) {
            x->written[i] = x->written[to] = true;
        }
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
    if (what < 8) {
        write_slot(m, NULL, i);
    } else if (what < 10) {
        rename_slot(m, NULL, i);
    } else if (!x->t) {
        x->t = begin();
    } else if (what < 45) {
        read_slot(m, x, i);
    } else if (what < 55) {
        read_rows(m, x, i);
    } else if (what < 75) {
        touch(m, x);
        write_slot(m, x, i);
    } else if (what < 85) {
        touch(m, x);
        rename_slot(m, x, i);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_was_first_wins),
        BOTH(a_container_that_is_gone_fails_all),
        BOTH(all_is_of_one_moment),
        BOTH(splits_are_no_conflicts),
        BOTH(guarded_reads_are_serializable),
        BOTH(what_expires_meanwhile_is_another_item),
        BOTH(unique_values_are_told_at_once),
        cmocka_unit_test(all_or_nothing_whatever_fails),
        cmocka_unit_test(interleavings_are_isolated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
