/* When the system refuses to start threads, opening a server fails with an error, and an open one keeps working. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "account/account.h"
#include "base/thread.h"
#include "rounds.h"
#include "store_harness.h"

static atomic_int threads_left;

static int create_few(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context) {
    return atomic_fetch_sub(&threads_left, 1) > 0 ? pthread_create(thread, attributes, run, context) : EAGAIN;
}

static void allow_threads(int n) {
    threads_left = n;
    thread_create = create_few;
}

static void allow_all(void) {
    thread_create = pthread_create;
}

/* Opens store and account as the server does. */
static err open_all(const char *dir, store **store_out, account **account_out, char *why, size_t why_n) {
    store_options options = {.dir = dir, .cache_bytes = 8 << 20, .tail_bytes = 400};
    *account_out = NULL;
    TRY(store_open_rocks(&options, store_out, why, why_n));
    account_options more = {.store = *store_out, .clock = &clock_system, .item_cache_bytes = 1 << 20, .background = true};
    err code = account_open(&more, account_out, why, why_n);
    if (code != OK) {
        store_close(*store_out);
        *store_out = NULL;
    }
    return code;
}

static void opening_needs_its_threads(void **state) {
    (void)state;
    char *dir = make_folder();
    store *s;
    account *a;
    err code = E_UNAVAILABLE;
    int refused = 0;
    for (int n = 0; code != OK; n++) {
        char why[256] = "";
        assert_true(n < 100);
        allow_threads(n);
        code = open_all(dir, &s, &a, why, sizeof why);
        allow_all();
        assert_true(code == OK || code == E_UNAVAILABLE);
        assert_true(code == OK || strstr(why, "limit of processes"));
        assert_true(code == OK ? s && a : !s && !a);
        refused += code != OK;
    }
    assert_true(refused >= 4); /* the threads of the committer, the tail, the reclaimer and the balancer */
    account_close(a);
    store_close(s);
    remove_folder(dir);
    free(dir);
}

/* Writes so much that the writer has to wait for the tail many times. */
static void an_open_store_needs_no_more(void **state) {
    (void)state;
    char *dir = make_folder(), key[32];
    store *s = open_rocks_tail(dir, 400);
    store_batch b;
    allow_threads(0);
    alarm(120);
    store_batch_init(&b);
    for (int i = 0; i < 400; i++) {
        for (int j = 0; j < 20; j++) {
            snprintf(key, sizeof key, "key %d of %d", j, i);
            store_put(&b, STORE_TERMS, slice_str(key), SLICE_EMPTY);
        }
        assert_int_equal(store_write(s, &b), OK);
        store_batch_clear(&b);
    }
    store_reclaim(s, STORE_TERMS, SLICE_LIT("key"), SLICE_LIT("kez"));
    store_close(s);
    alarm(0);
    allow_all();
    store_batch_free(&b);
    remove_folder(dir);
    free(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_needs_its_threads),
        cmocka_unit_test(an_open_store_needs_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
