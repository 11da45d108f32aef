/* Followers: changes of several ranges as one stream, positions, splits, merges and restarts, waiting and waking. On both kinds of store,
 * and with failing stores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "follow_harness.h"

static follow_world w;

static int open_memory(void **state) {
    (void)state;
    follow_world_open(&w, false, "{" FOLLOW_KEY "}", 4000); /* four ranges */
    return 0;
}

static int open_rocksdb(void **state) {
    (void)state;
    follow_world_open(&w, true, "{" FOLLOW_KEY "}", 4000);
    return 0;
}

static int open_kept(void **state) {
    (void)state;
    follow_world_open(&w, false, "{" FOLLOW_KEY FOLLOW_KEPT "}", 4000);
    return 0;
}

static int open_kept_rocksdb(void **state) {
    (void)state;
    follow_world_open(&w, true, "{" FOLLOW_KEY FOLLOW_KEPT "}", 4000);
    return 0;
}

static int close_world(void **state) {
    (void)state;
    follow_world_close(&w);
    return 0;
}

static void put_all(void) {
    for (int i = 0; i < FOLLOW_ITEMS; i++) {
        follow_put(&w, i);
    }
}

/* ---- reading ---- */

static void a_container_of_several_ranges_is_one_stream(void **state) {
    (void)state;
    seen s;
    put_all();
    assert_int_equal(follow_ranges(&w), 4);
    for (size_t page = 1; page < 300; page = page * 3 + 1) {
        seen_open(&w, &s, follow_all(FOLLOW_LATEST), page);
        seen_all(&w, &s);
        assert_int_equal(s.changes, FOLLOW_ITEMS);
        seen_matches(&w, &s);
        follow_put(&w, 5);
        follow_put(&w, 6);
        seen_all(&w, &s);
        assert_int_equal(s.changes, FOLLOW_ITEMS + 2);
        seen_matches(&w, &s);
        follow_close(s.f);
    }
}

/* Records which ranges the changes come from. */
static bool note_range(void *context, const follow_change *change) {
    unsigned *ranges = context;
    item_key key = follow_key(&w, seen_number(change->body, "id") % FOLLOW_KEYS);
    *ranges |= 1u << container_position(w.c->space->newest, &key.epk);
    return true;
}

static void ranges_take_turns(void **state) {
    (void)state;
    follower *f;
    follow_start all = follow_all(FOLLOW_LATEST);
    unsigned ranges = 0;
    put_all();
    assert_int_equal(follow_open(harness_items(&w.h), harness_op(&w.h), w.c, &all, &f), OK);
    for (int i = 0; i < 4; i++) {
        follow_page page = {.items_max = 2, .bytes_max = SIZE_MAX};
        assert_int_equal(follow_read(f, harness_op(&w.h), w.c, &page, note_range, &ranges), OK);
        assert_true(page.n == 2 && page.more);
    }
    assert_int_equal(ranges, 15); /* one page of each */
    follow_close(f);
}

static void pages_keep_to_their_bytes(void **state) {
    (void)state;
    seen s;
    put_all();
    seen_open(&w, &s, follow_all(FOLLOW_LATEST), 1000);
    bool more = true;
    size_t pages = 0;
    while (more) {
        follow_page page = {.items_max = 1000, .bytes_max = 200};
        assert_int_equal(follow_read(s.f, harness_op(&w.h), w.c, &page, see, &s), OK);
        assert_true(page.n >= 1 && page.n < 8);
        more = page.more;
        pages++;
    }
    assert_true(pages > 30);
    assert_int_equal(s.changes, FOLLOW_ITEMS);
    follow_close(s.f);
}

static void from_now_and_from_a_second(void **state) {
    (void)state;
    seen now, later;
    follow_start from_now = follow_all(FOLLOW_LATEST), since = follow_all(FOLLOW_LATEST);
    put_all();
    from_now.from_now = true;
    seen_open(&w, &now, from_now, 10);
    seen_all(&w, &now);
    assert_int_equal(now.changes, 0);
    w.h.clock.wall_ms += 1000 * 1000;
    since.since_s = harness_now_s(&w.h);
    follow_put(&w, 1);
    follow_put(&w, 2);
    seen_all(&w, &now);
    assert_int_equal(now.changes, 2);
    seen_open(&w, &later, since, 1);
    seen_all(&w, &later);
    assert_int_equal(later.changes, 2);
    buf position = seen_close(&later);
    follow_put(&w, 3);
    seen_reopen(&w, &later, &position);
    seen_all(&w, &later);
    assert_int_equal(later.changes, 3);
    follow_close(now.f);
    follow_close(later.f);
}

static void a_partition_and_a_part_of_the_hash_space(void **state) {
    (void)state;
    seen one, half, other;
    item_key key = follow_key(&w, 3);
    follow_start start = follow_all(FOLLOW_LATEST), below = start, above = start;
    put_all();
    start.partition = &key;
    seen_open(&w, &one, start, 2);
    seen_all(&w, &one);
    size_t of_key = (FOLLOW_ITEMS - 3 + FOLLOW_KEYS - 1) / FOLLOW_KEYS;
    assert_int_equal(one.changes, of_key);
    epk_part(&w.c->key, &start.min, &start.max, 3, 8, &below.max); /* in the middle of a range */
    above.min = below.max;
    seen_open(&w, &half, below, 7);
    seen_open(&w, &other, above, 7);
    seen_all(&w, &half);
    seen_all(&w, &other);
    assert_true(half.changes > 0 && other.changes > 0);
    assert_int_equal(half.changes + other.changes, FOLLOW_ITEMS);
    for (int i = 0; i < FOLLOW_ITEMS; i++) {
        assert_true(!half.last[i] || !other.last[i]);
        assert_int_equal(half.last[i] + other.last[i], w.now[i]);
        assert_int_equal(one.last[i], i % FOLLOW_KEYS == 3 ? w.now[i] : 0);
    }
    follow_close(one.f);
    follow_close(half.f);
    follow_close(other.f);
}

static void a_position_stays_right_through_splits_merges_and_restarts(void **state) {
    (void)state;
    seen s;
    bool more;
    put_all();
    seen_open(&w, &s, follow_all(FOLLOW_LATEST), 11);
    assert_int_equal(seen_page(&w, &s, &more), OK);
    buf old = seen_close(&s);
    follow_split(&w, 0);
    follow_split(&w, 3);
    follow_put(&w, 7);
    seen_reopen(&w, &s, &old);
    assert_int_equal(seen_page(&w, &s, &more), OK);
    follow_merge(&w, 1);
    follow_merge(&w, 0); /* while the follower is open, in the middle of both ranges */
    assert_int_equal(seen_page(&w, &s, &more), OK);
    old = seen_close(&s);
    follow_restart(&w);
    seen_reopen(&w, &s, &old);
    seen_all(&w, &s);
    seen_matches(&w, &s);
    assert_true(s.changes >= FOLLOW_ITEMS && s.changes <= FOLLOW_ITEMS + 1);
    follow_close(s.f);
}

/* Stretches of merged ranges are joined once they reach the same lsn. */
static void positions_do_not_grow(void **state) {
    (void)state;
    seen s;
    put_all();
    seen_open(&w, &s, follow_all(FOLLOW_LATEST), 1000);
    seen_all(&w, &s);
    for (int round = 0; round < 20; round++) {
        follow_split(&w, (size_t)round % follow_ranges(&w));
        follow_put(&w, round);
        seen_all(&w, &s);
        follow_merge(&w, (size_t)round % (follow_ranges(&w) - 1));
        follow_put(&w, round + 1);
        seen_all(&w, &s);
    }
    for (int i = 0; i < FOLLOW_ITEMS; i++) { /* every range writes, so that all stretches advance */
        follow_put(&w, i);
    }
    seen_all(&w, &s);
    follow_put(&w, 0);
    seen_all(&w, &s);
    buf position = seen_close(&s);
    assert_true(position.n <= 17 + 1 + follow_ranges(&w) * 2 * (8 + 1 + 17));
    buf_free(&position);
    seen_matches(&w, &s);
}

/* ---- versions ---- */

static void every_version_and_delete(void **state) {
    (void)state;
    seen s, later;
    seen_open(&w, &s, follow_all(FOLLOW_VERSIONS), 5);
    for (int round = 0; round < 3; round++) {
        put_all();
    }
    for (int i = 0; i < 50; i++) {
        follow_delete(&w, i);
    }
    follow_split(&w, 1);
    put_all();
    seen_all(&w, &s);
    assert_int_equal(s.changes, 4 * FOLLOW_ITEMS + 50);
    assert_int_equal(s.deletes, 50);
    seen_matches(&w, &s);
    follow_start now = follow_all(FOLLOW_VERSIONS);
    now.from_now = true;
    seen_open(&w, &later, now, 5);
    follow_put(&w, 1);
    follow_delete(&w, 1);
    seen_all(&w, &later);
    assert_int_equal(later.changes, 2);
    follow_close(s.f);
    follow_close(later.f);
}

static void a_log_that_is_not_there_is_told(void **state) {
    (void)state;
    seen s = {.start = follow_all(FOLLOW_VERSIONS)};
    assert_int_equal(seen_open_on(&w.h, w.c, &s), E_BAD_REQUEST);
    assert_null(s.f);
}

/* ---- untrusted positions ---- */

static err open_at(follow_start start, slice position) {
    follower *f;
    start.position = position;
    err code = follow_open(harness_items(&w.h), harness_op(&w.h), w.c, &start, &f);
    follow_close(f);
    return code;
}

static void positions_of_something_else_are_refused(void **state) {
    (void)state;
    item_key key = follow_key(&w, 3), other = follow_key(&w, 4);
    follow_start all = follow_all(FOLLOW_LATEST), one = all, another = all, part = all, versions = all;
    seen s;
    one.partition = &key;
    another.partition = &other;
    versions.mode = FOLLOW_VERSIONS;
    epk_part(&w.c->key, &all.min, &all.max, 1, 2, &part.max);
    put_all();
    seen_open(&w, &s, all, 10);
    seen_all(&w, &s);
    buf position = seen_close(&s);
    slice whole = buf_view(&position);
    assert_int_equal(open_at(all, whole), OK);
    assert_int_equal(open_at(one, whole), E_BAD_CONTINUATION);
    assert_int_equal(open_at(part, whole), E_BAD_CONTINUATION);
    assert_int_equal(open_at(versions, whole), E_BAD_CONTINUATION);
    seen_open(&w, &s, one, 10);
    buf of_one = seen_close(&s);
    assert_int_equal(open_at(one, buf_view(&of_one)), OK);
    assert_int_equal(open_at(another, buf_view(&of_one)), E_BAD_CONTINUATION);
    assert_int_equal(open_at(all, buf_view(&of_one)), E_BAD_CONTINUATION);
    for (size_t n = 1; n < whole.n; n++) {
        assert_int_equal(open_at(all, slice_of(whole.p, n)), E_BAD_CONTINUATION);
    }
    buf_add_byte(&position, 0);
    assert_int_equal(open_at(all, buf_view(&position)), E_BAD_CONTINUATION);
    container_give(w.c); /* another container with the same name */
    assert_int_equal(harness_delete_container(&w.h, "d", "c"), OK);
    w.c = harness_container(&w.h, "{" FOLLOW_KEY FOLLOW_KEPT "}", 4000);
    assert_int_equal(open_at(all, slice_of(position.p, position.n - 1)), E_BAD_CONTINUATION);
    buf_free(&position);
    buf_free(&of_one);
}

/* Flips single bits of a position: it is rejected, or the follower reads existing changes and reaches the end. */
static void changed_positions_do_no_harm(void **state) {
    (void)state;
    seen s;
    put_all();
    seen_open(&w, &s, follow_all(FOLLOW_LATEST), 30);
    bool more;
    assert_int_equal(seen_page(&w, &s, &more), OK);
    buf position = seen_close(&s);
    size_t taken = 0;
    for (size_t bit = 0; bit < 8 * position.n; bit++) {
        position.p[bit / 8] ^= (char)(1 << bit % 8);
        seen again = {.start = follow_all(FOLLOW_LATEST), .page = 1000};
        again.start.position = buf_view(&position);
        if (seen_open_on(&w.h, w.c, &again) == OK) {
            seen_all(&w, &again);
            assert_true(again.changes <= FOLLOW_ITEMS);
            assert_true(follow_wait(again.f, NULL, NULL)); /* it is at the end */
            assert_true(follow_cancel(again.f));
            follow_close(again.f);
            taken++;
        }
        position.p[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_true(taken > 0);
    buf_free(&position);
}

/* A position tells its part, and one that was changed tells a part of the hash space, or none. */
static void a_position_tells_the_part_that_it_follows(void **state) {
    (void)state;
    follow_start all = follow_all(FOLLOW_LATEST), part = all;
    item_key key = follow_key(&w, 3);
    epk least = epk_min(), most = epk_max(), min, max;
    seen s;
    put_all();
    epk_part(&w.c->key, &all.min, &all.max, 1, 3, &part.min);
    epk_part(&w.c->key, &all.min, &all.max, 2, 3, &part.max);
    seen_open(&w, &s, part, 10);
    seen_all(&w, &s);
    buf position = seen_close(&s);
    assert_true(follow_position_part(buf_view(&position), &min, &max));
    assert_int_equal(epk_cmp(&min, &part.min), 0);
    assert_int_equal(epk_cmp(&max, &part.max), 0);
    part.min = min;
    part.max = max;
    assert_int_equal(open_at(part, buf_view(&position)), OK);
    for (size_t n = 0; n < position.n; n++) {
        assert_false(follow_position_part(slice_of(position.p, n), &min, &max));
    }
    for (size_t bit = 0; bit < 8 * position.n; bit++) {
        position.p[bit / 8] ^= (char)(1 << bit % 8);
        follow_start changed = {.mode = FOLLOW_LATEST};
        if (follow_position_part(buf_view(&position), &changed.min, &changed.max)) {
            assert_true(epk_cmp(&changed.min, &least) >= 0 && epk_cmp(&changed.min, &changed.max) < 0 && epk_cmp(&changed.max, &most) <= 0);
            err code = open_at(changed, buf_view(&position));
            assert_true(code == OK || code == E_BAD_CONTINUATION);
        }
        position.p[bit / 8] ^= (char)(1 << bit % 8);
    }
    buf_free(&position);
    all.partition = &key;
    seen_open(&w, &s, all, 10);
    position = seen_close(&s);
    assert_false(follow_position_part(buf_view(&position), &min, &max));
    buf_free(&position);
}

/* ---- faults ---- */

/* After a failed page the position is unchanged: the next page returns everything. */
static void a_failed_page_moves_nothing(void **state) {
    (void)state;
    seen s;
    put_all();
    seen_open(&w, &s, follow_all(FOLLOW_LATEST), 1000);
    unsigned failures = 0;
    for (unsigned n = 1; failures < n; n++) {
        seen before = s;
        bool more;
        buf first = buf_init(BUF_NO_LIMIT), second = buf_init(BUF_NO_LIMIT);
        follow_position(s.f, &first);
        unsigned *kinds[] = {&w.h.plan.get_in, &w.h.plan.scan_in};
        *kinds[n % 2] = (n + 1) / 2;
        w.h.plan.fired = 0;
        err code = seen_page(&w, &s, &more);
        *kinds[n % 2] = 0;
        if (!w.h.plan.fired) {
            assert_int_equal(code, OK);
            buf_free(&first);
            break;
        }
        failures++;
        assert_int_equal(code, E_STORE_IO);
        follow_position(s.f, &second);
        assert_true(slice_eq(buf_view(&first), buf_view(&second)));
        buf_free(&first);
        buf_free(&second);
        s = before;
    }
    assert_true(failures >= 1);
    seen_all(&w, &s);
    seen_matches(&w, &s);
    assert_int_equal(s.changes, FOLLOW_ITEMS);
    follow_close(s.f);
}

/* ---- waiting ---- */

static atomic_int woken;

static void wake_up(void *context) {
    (void)context;
    atomic_fetch_add(&woken, 1);
}

static void a_commit_wakes_who_waits(void **state) {
    (void)state;
    seen s;
    woken = 0;
    put_all();
    seen_open(&w, &s, follow_all(FOLLOW_LATEST), 1000);
    assert_false(follow_wait(s.f, wake_up, NULL)); /* there is something to read */
    seen_all(&w, &s);
    assert_true(follow_wait(s.f, wake_up, NULL));
    assert_int_equal(follow_waiting(w.c->space), 1);
    assert_int_equal(woken, 0);
    follow_put(&w, 3); /* the wake comes before the write is answered */
    assert_int_equal(woken, 1);
    assert_int_equal(follow_waiting(w.c->space), 0);
    follow_put(&w, 4); /* woken once, until it waits again */
    assert_int_equal(woken, 1);
    assert_false(follow_cancel(s.f));
    assert_false(follow_wait(s.f, wake_up, NULL));
    seen_all(&w, &s);
    seen_matches(&w, &s);
    assert_true(follow_wait(s.f, wake_up, NULL));
    assert_true(follow_cancel(s.f));
    assert_false(follow_cancel(s.f));
    follow_put(&w, 5);
    assert_int_equal(woken, 1);
    follow_close(s.f);
}

static void a_partition_is_woken_by_its_own_writes(void **state) {
    (void)state;
    seen s, whole;
    item_key key = follow_key(&w, 3);
    follow_start start = follow_all(FOLLOW_LATEST);
    woken = 0;
    put_all();
    start.partition = &key;
    seen_open(&w, &s, start, 100);
    seen_all(&w, &s);
    assert_true(follow_wait(s.f, wake_up, NULL));
    for (int i = 0; i < FOLLOW_ITEMS; i++) {
        if (i % FOLLOW_KEYS != 3) {
            follow_put(&w, i);
        }
    }
    assert_int_equal(woken, 0);
    follow_delete(&w, 3);
    assert_int_equal(woken, 1); /* a delete wakes too, though there is nothing to read */
    seen_all(&w, &s);
    assert_true(follow_wait(s.f, wake_up, NULL));
    follow_put(&w, 3 + FOLLOW_KEYS);
    assert_int_equal(woken, 2);
    seen_all(&w, &s);
    assert_int_equal(s.last[3 + FOLLOW_KEYS], w.now[3 + FOLLOW_KEYS]);
    seen_open(&w, &whole, follow_all(FOLLOW_LATEST), 1000);
    seen_all(&w, &whole);
    seen_matches(&w, &whole);
    follow_close(s.f);
    follow_close(whole.f);
}

static void a_part_is_woken_by_its_own_ranges(void **state) {
    (void)state;
    seen s;
    follow_start first = follow_all(FOLLOW_LATEST);
    woken = 0;
    first.max = w.c->space->newest->map->ranges[0].max;
    seen_open(&w, &s, first, 100);
    assert_true(follow_wait(s.f, wake_up, NULL));
    int inside = -1;
    for (int i = 0; i < FOLLOW_KEYS; i++) {
        item_key key = follow_key(&w, i);
        bool in = epk_cmp(&key.epk, &first.max) < 0;
        inside = in ? i : inside;
        if (!in) {
            follow_put(&w, i);
        }
    }
    assert_int_equal(woken, 0);
    assert_true(inside >= 0);
    follow_put(&w, inside);
    assert_int_equal(woken, 1);
    follow_close(s.f);
}

/* A failed write wakes nobody. */
static void a_write_that_fails_wakes_nobody(void **state) {
    (void)state;
    seen s;
    item_op o;
    woken = 0;
    seen_open(&w, &s, follow_all(FOLLOW_LATEST), 100);
    assert_true(follow_wait(s.f, wake_up, NULL));
    w.h.plan.write_in = 1;
    assert_int_equal(harness_one(&w.h, w.c, &o, ITEM_CREATE, NULL, NULL, "{\"id\":\"1\",\"pk\":\"p1\",\"v\":1}"), E_STORE_IO);
    assert_int_equal(harness_one(&w.h, w.c, &o, ITEM_DELETE, "[\"p1\"]", "1", NULL), E_NOT_FOUND);
    assert_int_equal(woken, 0);
    follow_put(&w, 1);
    assert_int_equal(woken, 1);
    seen_all(&w, &s);
    seen_matches(&w, &s);
    follow_close(s.f);
}

static void who_waits_through_splits_and_merges_is_woken(void **state) {
    (void)state;
    seen all, one;
    item_key key = follow_key(&w, 3);
    follow_start start = follow_all(FOLLOW_LATEST);
    put_all();
    start.partition = &key;
    seen_open(&w, &all, follow_all(FOLLOW_LATEST), 1000);
    seen_open(&w, &one, start, 1000);
    for (int round = 0; round < 6; round++) {
        woken = 0;
        seen_all(&w, &all);
        seen_all(&w, &one);
        assert_true(follow_wait(all.f, wake_up, NULL));
        assert_true(follow_wait(one.f, wake_up, NULL));
        size_t i = container_position(w.c->space->newest, &key.epk);
        round % 2 ? follow_merge(&w, i ? i - 1 : i) : follow_split(&w, i);
        harness_move(&w.h, w.c, 64); /* a move is not a change */
        assert_int_equal(woken, 0);
        follow_put(&w, 3);
        assert_int_equal(woken, 2);
        seen_all(&w, &all);
        seen_all(&w, &one);
        assert_int_equal(one.last[3], w.now[3]);
        seen_matches(&w, &all);
    }
    follow_close(all.f);
    follow_close(one.f);
}

static void who_waits_is_told_that_the_container_is_gone(void **state) {
    (void)state;
    seen all, one;
    bool more;
    item_key key = follow_key(&w, 3);
    follow_start start = follow_all(FOLLOW_LATEST);
    start.partition = &key;
    woken = 0;
    seen_open(&w, &all, follow_all(FOLLOW_LATEST), 10);
    seen_open(&w, &one, start, 10);
    assert_true(follow_wait(all.f, wake_up, NULL));
    assert_true(follow_wait(one.f, wake_up, NULL));
    assert_int_equal(harness_delete_container(&w.h, "d", "c"), OK);
    assert_int_equal(woken, 2);
    assert_int_equal(seen_page(&w, &all, &more), E_OWNER_NOT_FOUND);
    assert_int_equal(seen_page(&w, &one, &more), E_OWNER_NOT_FOUND);
    assert_false(follow_wait(all.f, wake_up, NULL));
    follow_close(all.f);
    follow_close(one.f);
}

static void who_waits_for_versions_is_told_that_they_are_not_kept(void **state) {
    (void)state;
    seen s;
    bool more;
    woken = 0;
    seen_open(&w, &s, follow_all(FOLLOW_VERSIONS), 10);
    assert_true(follow_wait(s.f, wake_up, NULL));
    assert_int_equal(harness_replace_container(&w.h, "d", "c", "{" FOLLOW_KEY "}"), OK);
    follow_renew(&w);
    assert_int_equal(woken, 1);
    assert_int_equal(seen_page(&w, &s, &more), E_BAD_REQUEST);
    follow_close(s.f);
}

static void a_renamed_container_is_followed_on(void **state) {
    (void)state;
    seen s;
    woken = 0;
    seen_open(&w, &s, follow_all(FOLLOW_LATEST), 10);
    assert_true(follow_wait(s.f, wake_up, NULL));
    container_renaming change = {.database = harness_name("d"), .container = harness_name("c"), .id = SLICE_LIT("e")};
    assert_int_equal(harness_change(&w.h, &change, account_rename_container), OK);
    container_give(w.c);
    w.c = change.container_out;
    follow_put(&w, 1);
    assert_int_equal(woken, 1);
    seen_all(&w, &s);
    seen_matches(&w, &s);
    follow_close(s.f);
}

/* ---- positions within a commit ---- */

/* Upserts `n` items of one partition in one atomic commit. */
static void put_together(int key, int n) {
    item_op ops[8];
    for (int j = 0; j < n; j++) {
        int i = key + j * FOLLOW_KEYS;
        char text[100];
        snprintf(text, sizeof text, "{\"id\":\"%d\",\"pk\":\"p%d\",\"v\":%d}", i, key, ++w.now[i]);
        assert_int_equal(harness_prepare(&w.h, w.c, &ops[j], ITEM_UPSERT, NULL, NULL, text), OK);
    }
    assert_int_equal(harness_commit(&w.h, w.c, ops, (size_t)n, true), OK);
}

/* Reads up to `n` changes from the position after the last one, as a client does that resumes where it was cut off. */
static size_t resume(seen *s, size_t n) {
    follow_page page = {.items_max = 100, .bytes_max = SIZE_MAX};
    s->start.position = buf_view(&s->place);
    assert_int_equal(seen_open_on(&w.h, w.c, s), OK);
    size_t before = s->changes;
    s->page = before + n;
    for (bool more = true; more && s->changes < s->page; more = page.more) {
        assert_int_equal(follow_read(s->f, harness_op(&w.h), w.c, &page, see, s), OK);
    }
    follow_close(s->f);
    return s->changes - before;
}

/* Cut off after every single change: none is lost and none comes twice, through splits, merges and restarts within a commit's changes. */
static void a_position_after_any_change(void **state) {
    (void)state;
    seen s = {.start = follow_all(FOLLOW_VERSIONS), .placed = true, .place = buf_init(BUF_NO_LIMIT)};
    random_source r;
    random_seed(&r, 7);
    size_t written = 0;
    for (int round = 0; round < 60; round++) {
        int n = 1 + (int)random_below(&r, 5);
        put_together((int)random_below(&r, FOLLOW_KEYS), n);
        written += (size_t)n;
        size_t ranges = follow_ranges(&w);
        if (random_below(&r, 3) == 0) {
            resume(&s, 1 + random_below(&r, 3));
        }
        if (round % 10 == 4) {
            follow_split(&w, random_below(&r, ranges));
        } else if (round % 10 == 9 && ranges > 1) {
            follow_merge(&w, random_below(&r, ranges - 1));
        } else if (round % 25 == 20) {
            follow_restart(&w);
        }
    }
    while (resume(&s, 1)) {
    }
    assert_int_equal(s.changes, written);
    seen_matches(&w, &s);
    buf_free(&s.place);
}

/* ---- at random ---- */

typedef struct lives {
    seen all[2], part, one; /* the first of `all` is closed only for restarts */
    seen *each[4];
} lives;

static void step_follower(seen *s, random_source *r) {
    bool more;
    switch (random_below(r, 4)) {
    case 0: {
        buf position = seen_close(s);
        s->page = 1 + random_below(r, 40);
        seen_reopen(&w, s, &position);
        break;
    }
    case 1:
        if (follow_wait(s->f, wake_up, NULL)) {
            assert_true(follow_cancel(s->f));
        } else {
            assert_int_equal(seen_page(&w, s, &more), OK);
        }
        break;
    default:
        assert_int_equal(seen_page(&w, s, &more), OK);
    }
}

static void step_world(lives *l, random_source *r) {
    size_t n = follow_ranges(&w);
    switch (random_below(r, 60)) {
    case 0:
        follow_split(&w, random_below(r, n));
        break;
    case 1:
        if (n > 1) {
            follow_merge(&w, random_below(r, n - 1));
        }
        break;
    case 2:
        harness_move(&w.h, w.c, 16);
        break;
    case 3: {
        buf positions[4];
        for (size_t i = 0; i < 4; i++) {
            positions[i] = seen_close(l->each[i]);
        }
        follow_restart(&w);
        for (size_t i = 0; i < 4; i++) {
            seen_reopen(&w, l->each[i], &positions[i]);
        }
        break;
    }
    default: {
        int i = (int)random_below(r, FOLLOW_ITEMS);
        random_below(r, 5) ? follow_put(&w, i) : follow_delete(&w, i);
    }
    }
}

static bool is_of_part(int i, const follow_start *part) {
    item_key key = follow_key(&w, i % FOLLOW_KEYS);
    return epk_cmp(&part->min, &key.epk) <= 0 && epk_cmp(&key.epk, &part->max) < 0;
}

/* Every change is seen, as it was or as a later write left it, and the changes of an item in order, whatever happens between two pages. */
static void live(uint64_t seed, bool rocks, follow_mode mode, int steps) {
    random_source r;
    lives l = {.each = {&l.all[0], &l.all[1], &l.part, &l.one}};
    follow_start part = follow_all(mode), one = part;
    random_seed(&r, seed);
    follow_world_open(&w, rocks, mode == FOLLOW_VERSIONS ? "{" FOLLOW_KEY FOLLOW_KEPT "}" : "{" FOLLOW_KEY "}", 3000);
    item_key key = follow_key(&w, 3);
    one.partition = &key;
    epk_part(&w.c->key, &part.min, &part.max, 1, 5, &part.min);
    seen_open(&w, &l.all[0], follow_all(mode), 5);
    seen_open(&w, &l.all[1], follow_all(mode), 100);
    seen_open(&w, &l.part, part, 3);
    seen_open(&w, &l.one, one, 2);
    for (int i = 0; i < steps; i++) {
        step_world(&l, &r);
        if (random_below(&r, 4) == 0) {
            step_follower(l.each[random_below(&r, 4)], &r);
        }
    }
    for (size_t i = 0; i < 4; i++) {
        seen_all(&w, l.each[i]);
    }
    seen_matches(&w, &l.all[0]);
    seen_matches(&w, &l.all[1]);
    assert_true(mode == FOLLOW_LATEST || l.all[0].changes == l.all[1].changes);
    for (int i = 0; i < FOLLOW_ITEMS; i++) {
        if (w.now[i]) {
            assert_int_equal(l.part.last[i], is_of_part(i, &part) ? w.now[i] : 0);
            assert_int_equal(l.one.last[i], i % FOLLOW_KEYS == 3 ? w.now[i] : 0);
        }
    }
    for (size_t i = 0; i < 4; i++) {
        follow_close(l.each[i]->f);
    }
    harness_check(&w.h, w.c);
    follow_world_close(&w);
}

static void nothing_is_lost(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS(12); seed++) {
        live(seed, false, FOLLOW_LATEST, 1500);
        live(seed, false, FOLLOW_VERSIONS, 1000);
    }
    for (uint64_t seed = 101; seed <= 100 + ROUNDS(4); seed++) {
        live(seed, true, FOLLOW_LATEST, 800);
        live(seed, true, FOLLOW_VERSIONS, 600);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define ON_BOTH(test)                                                                                                                      \
    cmocka_unit_test_setup_teardown(test, open_memory, close_world), cmocka_unit_test_setup_teardown(test, open_rocksdb, close_world)
#define KEPT_ON_BOTH(test)                                                                                                                 \
    cmocka_unit_test_setup_teardown(test, open_kept, close_world), cmocka_unit_test_setup_teardown(test, open_kept_rocksdb, close_world)
        ON_BOTH(a_container_of_several_ranges_is_one_stream),
        ON_BOTH(ranges_take_turns),
        ON_BOTH(pages_keep_to_their_bytes),
        ON_BOTH(from_now_and_from_a_second),
        ON_BOTH(a_partition_and_a_part_of_the_hash_space),
        ON_BOTH(a_position_stays_right_through_splits_merges_and_restarts),
        ON_BOTH(positions_do_not_grow),
        KEPT_ON_BOTH(every_version_and_delete),
        KEPT_ON_BOTH(a_position_after_any_change),
        ON_BOTH(a_log_that_is_not_there_is_told),
        KEPT_ON_BOTH(positions_of_something_else_are_refused),
        ON_BOTH(changed_positions_do_no_harm),
        ON_BOTH(a_position_tells_the_part_that_it_follows),
        ON_BOTH(a_failed_page_moves_nothing),
        ON_BOTH(a_commit_wakes_who_waits),
        ON_BOTH(a_partition_is_woken_by_its_own_writes),
        ON_BOTH(a_part_is_woken_by_its_own_ranges),
        ON_BOTH(a_write_that_fails_wakes_nobody),
        ON_BOTH(who_waits_through_splits_and_merges_is_woken),
        ON_BOTH(who_waits_is_told_that_the_container_is_gone),
        KEPT_ON_BOTH(who_waits_for_versions_is_told_that_they_are_not_kept),
        ON_BOTH(a_renamed_container_is_followed_on),
        cmocka_unit_test(nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
