/* The group commit: order, atomicity, hooks, failures, and many threads at once. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "store_harness.h"

/* A commit that adds to a counter in the store: read, add, write. Lost updates would show. */
typedef struct adder {
    commit base;
    commit_hook *hook;
    const char *key;
    uint64_t add;
    bool fails;     /* fails after adding its changes */
    uint64_t after; /* the value it wrote */
    unsigned group; /* number of the group in which it was applied */
    commit *next;   /* the one that is done after it */
    atomic_uint *done_count;
    waiter *waiter;
} adder;

static atomic_uint groups; /* counted by the test's hook */

static err add_apply(commit *base, commit_group *group) {
    adder *a = (adder *)base;
    store_value value;
    bool of_group;
    uint64_t now = 0;
    err code = commit_get(group, STORE_META, slice_str(a->key), &value, &of_group);
    if (code != OK && code != E_NOT_FOUND) {
        return code;
    }
    if (code == OK) {
        memcpy(&now, value.bytes.p, sizeof now);
        store_give(&value);
    }
    a->after = now + a->add;
    a->group = groups;
    store_put(&group->batch, STORE_META, slice_str(a->key), slice_of(&a->after, sizeof a->after));
    if (a->hook) {
        commit_link(group, a->hook);
    }
    return a->fails ? E_CONFLICT : OK;
}

static void add_done(commit *base) {
    adder *a = (adder *)base;
    a->next = base->next;
    atomic_fetch_add(a->done_count, 1);
    if (a->waiter) {
        sem_post(&a->waiter->done);
    }
}

static adder make_adder(const char *key, uint64_t add, atomic_uint *done_count, waiter *w) {
    return (adder){.base = {.apply = add_apply, .done = add_done}, .key = key, .add = add, .done_count = done_count, .waiter = w};
}

static err add_and_wait(committer *c, adder *a) {
    waiter w;
    waiter_init(&w);
    a->waiter = &w;
    committer_submit(c, &a->base);
    waiter_wait(&w);
    return a->base.code;
}

static uint64_t counter(store *s, const char *key) {
    store_value value;
    uint64_t now = 0;
    if (store_get(s, STORE_META, NULL, slice_str(key), &value) == OK) {
        memcpy(&now, value.bytes.p, sizeof now);
        store_give(&value);
    }
    return now;
}

/* ---- a full disk ---- */

/* All in one group: commits that free space are written, the others are refused without being applied. */
static void freeing_commits_succeed_on_a_full_disk(void **state) {
    (void)state;
    static const store_use uses[] = {STORE_GROWS, STORE_FREES, STORE_GROWS, STORE_DROPS, STORE_READS, STORE_FREES};
    enum { N = sizeof uses / sizeof *uses };
    for (int room = STORE_GROWS; room <= STORE_READS; room++) {
        adder adders[N];
        uint64_t expected = 0;
        atomic_uint done = 0;
        store_fault_plan plan = {.room = (store_use)room};
        store *s = store_open_fault(store_open_memory(), &plan);
        committer *c = committer_open(s);
        for (int i = 0; i < N; i++) {
            adders[i] = make_adder("n", 1, &done, NULL);
            adders[i].base.use = uses[i];
            committer_submit(c, &adders[i].base);
        }
        committer_close(c);
        for (int i = 0; i < N; i++) {
            bool fits = (int)uses[i] >= room;
            expected += fits;
            assert_int_equal(adders[i].base.code, fits ? OK : E_STORE_FULL);
            assert_int_equal(adders[i].after, fits ? expected : 0);
        }
        assert_int_equal(counter(s, "n"), expected);
        store_close(s);
    }
}

/* ---- one thread ---- */

static void commits_are_applied_in_order_and_see_each_other(void **state) {
    (void)state;
    enum { N = 500 };
    static adder adders[N];
    atomic_uint done = 0;
    store *s = store_open_memory();
    committer *c = committer_open(s);
    for (int i = 0; i < N; i++) {
        adders[i] = make_adder("n", 1, &done, NULL);
        adders[i].fails = i % 7 == 3;
        committer_submit(c, &adders[i].base);
    }
    committer_close(c); /* finishes submitted commits */
    assert_int_equal(done, N);
    uint64_t expected = 0;
    for (int i = 0; i < N; i++) {
        assert_int_equal(adders[i].base.code, adders[i].fails ? E_CONFLICT : OK);
        assert_int_equal(adders[i].after, expected + 1); /* a failed commit left no changes behind */
        expected += !adders[i].fails;
    }
    assert_int_equal(counter(s, "n"), expected);
    store_close(s);
}

/* A commit that blocks the committer, so that later ones wait and form one group. */
typedef struct gate {
    commit base;
    sem_t entered, open;
} gate;

static err gate_apply(commit *base, commit_group *group) {
    gate *g = (gate *)base;
    (void)group;
    sem_post(&g->entered);
    while (sem_wait(&g->open) != 0) {
    }
    return OK;
}

static void gate_done(commit *base) {
    (void)base;
}

static void gate_close(gate *g, committer *c) {
    *g = (gate){.base = {.apply = gate_apply, .done = gate_done, .solo = true}};
    sem_init(&g->entered, 0, 0);
    sem_init(&g->open, 0, 0);
    committer_submit(c, &g->base);
    while (sem_wait(&g->entered) != 0) {
    }
}

static void gate_open(gate *g) {
    sem_post(&g->open);
}

typedef struct counting_hook {
    commit_hook base;
    unsigned befores, afters;
    err last;
} counting_hook;

static void hook_before(commit_hook *hook, commit_group *group) {
    counting_hook *h = (counting_hook *)hook;
    h->befores++;
    store_put(&group->batch, STORE_META, SLICE_LIT("hook"), slice_of(&h->befores, sizeof h->befores));
}

static void hook_after(commit_hook *hook, err code) {
    counting_hook *h = (counting_hook *)hook;
    h->afters++;
    h->last = code;
    groups++;
}

static void what_waits_is_one_group_and_solo_commits_are_alone(void **state) {
    (void)state;
    enum { N = 9 };
    static adder adders[N];
    atomic_uint done = 0;
    counting_hook hook = {.base = {.before = hook_before, .after = hook_after}};
    store *s = store_open_memory();
    committer *c = committer_open(s);
    gate g;
    groups = 0;
    gate_close(&g, c);
    for (int i = 0; i < N; i++) {
        adders[i] = make_adder("n", 1, &done, NULL);
        adders[i].hook = &hook.base;
        adders[i].base.solo = i == 3 || i == 4;
        committer_submit(c, &adders[i].base);
    }
    gate_open(&g);
    committer_close(c);
    static const unsigned expected[N] = {0, 0, 0, 1, 2, 3, 3, 3, 3};
    for (int i = 0; i < N; i++) {
        assert_int_equal(adders[i].group, expected[i]);
        assert_int_equal(adders[i].after, i + 1);
        bool last = i == N - 1 || expected[i + 1] != expected[i];
        assert_ptr_equal(adders[i].next, last ? NULL : &adders[i + 1].base); /* call/commit.c relies on it */
    }
    assert_int_equal(hook.befores, 4); /* once per group, however many commits link it */
    assert_int_equal(hook.afters, 4);
    assert_int_equal(hook.last, OK);
    assert_false(hook.base.linked);
    store_close(s);
}

static void a_failed_write_fails_the_group_and_leaves_nothing(void **state) {
    (void)state;
    enum { N = 5 };
    static adder adders[N];
    atomic_uint done = 0;
    counting_hook hook = {.base = {.before = hook_before, .after = hook_after}};
    store_fault_plan plan = {.code = E_STORE_FULL};
    store *s = store_open_fault(store_open_memory(), &plan);
    committer *c = committer_open(s);
    gate g;
    adder first = make_adder("n", 10, &done, NULL), last = make_adder("n", 1, &done, NULL);
    waiter w;
    waiter_init(&w);
    assert_int_equal(add_and_wait(c, &first), OK);
    gate_close(&g, c);
    for (int i = 0; i < N; i++) {
        adders[i] = make_adder("n", 1, &done, NULL);
        adders[i].hook = &hook.base;
        adders[i].fails = i == 2;
        adders[i].waiter = i == N - 1 ? &w : NULL;
        committer_submit(c, &adders[i].base);
    }
    plan.write_in = 1;
    gate_open(&g);
    waiter_wait(&w);
    assert_int_equal(add_and_wait(c, &last), OK);
    for (int i = 0; i < N; i++) {
        assert_int_equal(adders[i].base.code, i == 2 ? E_CONFLICT : E_STORE_FULL);
    }
    assert_int_equal(hook.last, E_STORE_FULL);
    assert_int_equal(counter(s, "n"), 11);
    assert_int_equal(counter(s, "hook"), 0);
    committer_close(c);
    store_close(s);
}

static void a_failed_read_fails_only_its_commit(void **state) {
    (void)state;
    atomic_uint done = 0;
    store_fault_plan plan = {.code = E_STORE_IO, .get_in = 1};
    store *s = store_open_fault(store_open_memory(), &plan);
    committer *c = committer_open(s);
    adder one = make_adder("n", 1, &done, NULL), two = make_adder("n", 1, &done, NULL);
    assert_int_equal(add_and_wait(c, &one), E_STORE_IO);
    assert_int_equal(add_and_wait(c, &two), OK);
    assert_int_equal(counter(s, "n"), 1);
    committer_close(c);
    store_close(s);
}

/* ---- turns ---- */

/* A commit that takes longer than a turn, and records its position among those done. */
typedef struct slow {
    commit base;
    unsigned us, place;
} slow;

static unsigned places;

static err slow_apply(commit *base, commit_group *group) {
    (void)group;
    struct timespec pause = {.tv_nsec = ((slow *)base)->us * 1000L};
    while (nanosleep(&pause, &pause) != 0) {
    }
    return OK;
}

static void slow_done(commit *base) {
    ((slow *)base)->place = places++;
}

static slow make_slow(commit_queue *queue, unsigned us) {
    return (slow){.base = {.apply = slow_apply, .done = slow_done, .queue = queue, .use = STORE_READS}, .us = us};
}

/* Fifty slow commits of one queue are submitted before those of another queue. Each of the latter waits for at most one slow commit. */
static void a_queue_waits_for_its_own_commits(void **state) {
    (void)state;
    enum { LONG = 50, SHORT = 5 };
    static slow many[LONG], few[SHORT];
    commit_queue busy = {0}, calm = {0};
    store *s = store_open_memory();
    committer *c = committer_open(s);
    gate g;
    places = 0;
    gate_close(&g, c);
    for (int i = 0; i < LONG; i++) {
        many[i] = make_slow(&busy, 6000);
        committer_submit(c, &many[i].base);
    }
    for (int i = 0; i < SHORT; i++) {
        few[i] = make_slow(&calm, 0);
        committer_submit(c, &few[i].base);
    }
    gate_open(&g);
    committer_close(c);
    for (unsigned i = 0; i < LONG; i++) {
        assert_true(i == 0 || many[i].place > many[i - 1].place);
    }
    for (unsigned i = 0; i < SHORT; i++) {
        assert_true(i == 0 || few[i].place > few[i - 1].place);
        assert_true(few[i].place <= 2 * (i + 1));
    }
    assert_null(busy.next);
    assert_null(calm.next);
    store_close(s);
}

/* ---- a slow disk ---- */

enum { PIECE = 64 * 1024, PIECES = 200, SLOW_BYTES_PER_MS = 16 * 1024, GROUPS_SEEN = 256 };

typedef struct slow_store {
    store base;
    store *inner;
    store_ops ops;
    bool slow;
    unsigned sync_ms;            /* each write takes so much longer, however small it is */
    size_t written[GROUPS_SEEN]; /* bytes of each batch */
    size_t n;
} slow_store;

static err write_slowly(store *s, const store_batch *batch) {
    slow_store *slow = (slow_store *)s;
    size_t ms = slow->sync_ms + (slow->slow ? batch->bytes_held / SLOW_BYTES_PER_MS : 0);
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
    assert_true(slow->n < GROUPS_SEEN);
    slow->written[slow->n++] = batch->bytes_held;
    return store_write(slow->inner, batch);
}

typedef struct piece {
    commit base;
    unsigned number;
} piece;

static err piece_apply(commit *base, commit_group *group) {
    char key[16];
    snprintf(key, sizeof key, "piece %u", ((piece *)base)->number);
    memset(store_put_space(&group->batch, STORE_META, slice_str(key), PIECE), 0, PIECE);
    return OK;
}

static void piece_done(commit *base) {
    (void)base;
}

/* All pieces wait when the first group begins. */
static void write_pieces(slow_store *s, committer *c) {
    static piece pieces[PIECES];
    static gate g; /* the committer has it until the first group ends */
    gate_close(&g, c);
    for (unsigned i = 0; i < PIECES; i++) {
        pieces[i] = (piece){.base = {.apply = piece_apply, .done = piece_done}, .number = i};
        committer_submit(c, &pieces[i].base);
    }
    s->n = 0;
    gate_open(&g);
}

/* While the disk takes 16 MB a second, a group of 2 MB would take 128 ms, and everybody would wait for it. */
static void groups_are_smaller_on_a_slow_disk(void **state) {
    (void)state;
    slow_store s = {.inner = store_open_memory(), .slow = true};
    s.ops = (store_ops){.name = "slow", .write = write_slowly};
    s.base.ops = &s.ops;
    committer *c = committer_open(&s.base);
    write_pieces(&s, c);
    committer_close(c);
    assert_true(s.written[0] >= 2 * 1024 * 1024);
    size_t last = s.written[s.n - 2]; /* the very last may have what was left */
    print_message("%zu groups, the first of %zu bytes, one of the last of %zu\n", s.n, s.written[0], last);
    assert_true(last <= 768 * 1024);
    store_close(s.inner);
}

/* Smaller groups would not end earlier, and there would be more of them. */
static void groups_stay_large_if_each_sync_is_slow(void **state) {
    (void)state;
    slow_store s = {.inner = store_open_memory(), .sync_ms = 50};
    s.ops = (store_ops){.name = "slow", .write = write_slowly};
    s.base.ops = &s.ops;
    committer *c = committer_open(&s.base);
    write_pieces(&s, c);
    committer_close(c);
    print_message("%zu groups\n", s.n);
    assert_true(s.n <= PIECES * (size_t)PIECE / (2 * 1024 * 1024) + 3);
    store_close(s.inner);
}

/* ---- many threads ---- */

enum { THREADS = 8, EACH = 400 };

typedef struct submitter {
    pthread_t thread;
    committer *committer;
    unsigned number;
    commit_queue queue;
    uint64_t last; /* value of the shared counter that this thread last saw */
    atomic_uint *done_count;
} submitter;

static void *submit_many(void *context) {
    submitter *s = context;
    char own[16];
    snprintf(own, sizeof own, "own %u", s->number);
    for (unsigned i = 0; i < EACH; i++) {
        adder shared = make_adder("shared", 1, s->done_count, NULL), mine = make_adder(own, 1, s->done_count, NULL);
        mine.base.solo = i % 50 == 0;
        mine.base.queue = i % 3 ? &s->queue : NULL;
        shared.fails = i % 10 == 9;
        err code = add_and_wait(s->committer, &shared);
        if (code != (shared.fails ? E_CONFLICT : OK) || (code == OK && shared.after <= s->last)) {
            abort();
        }
        s->last = code == OK ? shared.after : s->last;
        if (add_and_wait(s->committer, &mine) != OK || mine.after != i + 1) {
            abort();
        }
    }
    return NULL;
}

static void many_threads_lose_no_update(void **state) {
    (void)state;
    static submitter submitters[THREADS];
    atomic_uint done = 0;
    store *s = store_open_memory();
    committer *c = committer_open(s);
    for (unsigned i = 0; i < THREADS; i++) {
        submitters[i] = (submitter){.committer = c, .number = i, .done_count = &done};
        assert_int_equal(pthread_create(&submitters[i].thread, NULL, submit_many, &submitters[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(submitters[i].thread, NULL);
    }
    assert_int_equal(done, 2 * THREADS * EACH);
    assert_int_equal(counter(s, "shared"), THREADS * EACH * 9 / 10);
    committer_close(c);
    store_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commits_are_applied_in_order_and_see_each_other),
        cmocka_unit_test(what_waits_is_one_group_and_solo_commits_are_alone),
        cmocka_unit_test(a_failed_write_fails_the_group_and_leaves_nothing),
        cmocka_unit_test(a_failed_read_fails_only_its_commit),
        cmocka_unit_test(freeing_commits_succeed_on_a_full_disk),
        cmocka_unit_test(a_queue_waits_for_its_own_commits),
        cmocka_unit_test(groups_are_smaller_on_a_slow_disk),
        cmocka_unit_test(groups_stay_large_if_each_sync_is_slow),
        cmocka_unit_test(many_threads_lose_no_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
