/* Hot keys: the hottest are found among very many, their rates are nearly exact, and adding never waits. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "rounds.h"
#include "throughput/hotkeys.h"

#define SECOND ((int64_t)1000000000)
#define START (1000 * SECOND)

static atomic_uint texts;

static size_t text_of(const void *key, char *into, size_t max) {
    texts++;
    return (size_t)snprintf(into, max, "[\"key-%u\"]", *(const unsigned *)key);
}

static size_t text_too_long(const void *key, char *into, size_t max) {
    memset(into, *(const char *)key, max);
    return max + 1000;
}

/* Well-mixed bits, as in an EPK, and never 0. */
static uint64_t hash_of(unsigned key) {
    uint64_t x = (key + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void spend(hotkeys *h, unsigned key, double ru, int64_t now) {
    hotkeys_spent(h, hash_of(key), ru, now, text_of, &key);
}

static void store(hotkeys *h, unsigned key, uint64_t bytes) {
    hotkeys_size(h, hash_of(key), bytes, text_of, &key);
}

static bool near(double a, double b, double part) {
    return fabs(a - b) <= part * fabs(b);
}

static void assert_key(const hotkey *k, unsigned key) {
    char expected[HOTKEY_TEXT_MAX];
    size_t n = (size_t)snprintf(expected, sizeof expected, "[\"key-%u\"]", key);
    assert_int_equal(k->hash, hash_of(key));
    assert_int_equal(k->text_n, n);
    assert_memory_equal(k->text, expected, n);
}

static void few_requests_are_all_counted(void **state) {
    (void)state;
    hotkeys *h = hotkeys_new();
    hotkey top[HOTKEYS_TOP];
    assert_int_equal(hotkeys_top_by_ru(h, START, top), 0);
    for (unsigned i = 0; i < 50; i++) {
        spend(h, 1, 6, START + i * SECOND);
        spend(h, 2, 1, START + i * SECOND);
        spend(h, i % 2 ? 3 : 4, 1, START + i * SECOND);
    }
    assert_int_equal(hotkeys_top_by_ru(h, START + 50 * SECOND, top), 4);
    assert_key(&top[0], 1);
    assert_key(&top[1], 2);
    assert_true(near(top[0].value, 6, 1e-9));
    assert_true(near(top[1].value, 1, 1e-9));
    assert_true(near(top[2].value, 0.5, 1e-9));
    hotkeys_free(h);
}

static void the_first_second_is_not_exaggerated(void **state) {
    (void)state;
    hotkeys *h = hotkeys_new();
    hotkey top[HOTKEYS_TOP];
    spend(h, 1, 10, START);
    assert_int_equal(hotkeys_top_by_ru(h, START + 1, top), 1);
    assert_true(near(top[0].value, 10, 1e-9));
    hotkeys_free(h);
}

/* A steady rate is reported correctly at any time within the minute; old spending fades. */
static void rates_stay_true_and_fade(void **state) {
    (void)state;
    hotkeys *h = hotkeys_new();
    hotkey top[HOTKEYS_TOP];
    int64_t now = START;
    for (unsigned second = 0; second < 600; second++, now += SECOND) {
        spend(h, 1, 100, now);
        if (second >= 1) {
            hotkeys_top_by_ru(h, now + SECOND, top);
            assert_true(near(top[0].value, 100, 0.001));
        }
    }
    double before = top[0].value;
    assert_int_equal(hotkeys_top_by_ru(h, now + 60 * SECOND, top), 1);
    assert_true(near(top[0].value, before / 2, 0.1));
    hotkeys_top_by_ru(h, now + 300 * SECOND, top);
    assert_true(top[0].value < before / 16);
    assert_int_equal(hotkeys_top_by_ru(h, now + 3 * 3600 * SECOND, top), 0);
    spend(h, 2, 60, now + 3 * 3600 * SECOND);
    assert_int_equal(hotkeys_top_by_ru(h, now + 3 * 3600 * SECOND, top), 1);
    assert_true(top[0].value <= 1.001);
    hotkeys_free(h);
}

enum { KEYS = 100000, ADDS = 1000000 };

static double *zipf_sums(void) {
    double *sums = malloc(KEYS * sizeof *sums), sum = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        sums[i] = sum += 1.0 / (i + 1);
    }
    return sums;
}

static unsigned zipf(const double *sums, random_source *random) {
    double x = (double)(random_u64(random) >> 11) * 0x1p-53 * sums[KEYS - 1];
    unsigned low = 0, high = KEYS - 1;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (sums[middle] < x) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Zipf(1.0) over 100,000 keys, a million adds of 1 to 10 RU within `seconds`. */
static void check_zipf(int64_t seconds, uint64_t seed) {
    hotkeys *h = hotkeys_new();
    double *sums = zipf_sums();
    random_source random;
    random_seed(&random, seed);
    texts = 0;
    for (unsigned i = 0; i < ADDS; i++) {
        spend(h, zipf(sums, &random), (double)(1 + random_below(&random, 10)), START + seconds * SECOND / ADDS * i);
    }
    unsigned labelled = texts;
    hotkey top[HOTKEYS_TOP];
    assert_int_equal(hotkeys_top_by_ru(h, START + seconds * SECOND, top), HOTKEYS_TOP);
    double worst = 0;
    for (unsigned key = 0; key < 10; key++) {
        unsigned i = 0;
        while (i < HOTKEYS_TOP && top[i].hash != hash_of(key)) {
            i++;
        }
        if (i == HOTKEYS_TOP) {
            fail_msg("key %u of the top 10 is not in the top 20 (%d s, seed %d)", key, (int)seconds, (int)seed);
        }
        double rate = 5.5 * ADDS / (double)seconds / (key + 1) / sums[KEYS - 1];
        if (key < 5) {
            worst = fmax(worst, fabs(top[i].value / rate - 1));
            assert_true(near(top[i].value, rate, 0.2));
        }
    }
    print_message("a million adds in %d s: top 5 within %.1f %%, %u texts asked for\n", (int)seconds, worst * 100, labelled);
    assert_true(labelled < 20000);
    free(sums);
    hotkeys_free(h);
}

static void the_hottest_of_many_are_found(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS(3); seed++) {
        check_zipf(60, seed);
        check_zipf(20, seed);
    }
    check_zipf(900, 4);  /* hardly sampled */
    check_zipf(2000, 4); /* not sampled */
}

/* Round robin over the keys: sampling must not always hit the same key. */
static void taking_turns_does_not_fool_the_sampling(void **state) {
    (void)state;
    for (unsigned keys = 2; keys <= 12; keys++) {
        hotkeys *h = hotkeys_new();
        for (unsigned i = 0; i < 400000; i++) {
            spend(h, i % keys, 5, START + (int64_t)i * 100000);
        }
        hotkey top[HOTKEYS_TOP];
        assert_int_equal(hotkeys_top_by_ru(h, START + 40 * SECOND, top), keys);
        for (unsigned i = 0; i < keys; i++) {
            assert_true(near(top[i].value, 50000.0 / keys, 0.2));
        }
        hotkeys_free(h);
    }
}

/* Large requests among many small ones: each key is credited with what it spent. */
static void large_and_small_requests_keep_their_weight(void **state) {
    (void)state;
    hotkeys *h = hotkeys_new();
    for (unsigned i = 0; i < 300000; i++) {
        int64_t now = START + (int64_t)i * 100000;
        spend(h, 1, 1, now);
        if (i % 100 == 0) {
            spend(h, 2, 100, now);
        }
    }
    hotkey top[HOTKEYS_TOP];
    assert_int_equal(hotkeys_top_by_ru(h, START + 30 * SECOND, top), 2);
    assert_true(near(top[0].value, 10000, 0.02));
    assert_true(near(top[1].value, 10000, 0.02));
    hotkeys_free(h);
}

static void odd_charges_do_no_harm(void **state) {
    (void)state;
    hotkeys *h = hotkeys_new();
    hotkey top[HOTKEYS_TOP];
    spend(h, 1, 0, START);
    spend(h, 1, -1, START);
    spend(h, 1, (double)NAN, START);
    assert_int_equal(hotkeys_top_by_ru(h, START, top), 0);
    spend(h, 1, (double)INFINITY, START);
    spend(h, 2, 1, START - SECOND);
    assert_int_equal(hotkeys_top_by_ru(h, START - SECOND, top), 2);
    assert_true(isfinite(top[0].value));
    hotkeys_free(h);
}

static void long_texts_are_cut(void **state) {
    (void)state;
    hotkeys *h = hotkeys_new();
    hotkey top[HOTKEYS_TOP];
    hotkeys_spent(h, 1, 1, START, text_too_long, "x");
    hotkeys_size(h, 1, 1, text_too_long, "y");
    assert_int_equal(hotkeys_top_by_ru(h, START, top), 1);
    assert_int_equal(top[0].text_n, HOTKEY_TEXT_MAX);
    assert_int_equal(top[0].text[HOTKEY_TEXT_MAX - 1], 'x');
    assert_int_equal(hotkeys_top_by_size(h, top), 1);
    assert_int_equal(top[0].text[HOTKEY_TEXT_MAX - 1], 'y');
    hotkeys_free(h);
}

static void the_largest_partitions_are_known(void **state) {
    (void)state;
    hotkeys *h = hotkeys_new();
    hotkey top[HOTKEYS_TOP];
    for (unsigned i = 0; i < 1000; i++) {
        unsigned key = i * 7919 % 1000;
        store(h, key, 1000 + key);
    }
    assert_int_equal(hotkeys_top_by_size(h, top), HOTKEYS_TOP);
    for (unsigned i = 0; i < HOTKEYS_TOP; i++) {
        assert_key(&top[i], 999 - i);
        assert_true(near(top[i].value, 1999 - i, 0));
    }
    store(h, 999, 0);
    store(h, 998, 10);
    store(h, 5, 5000);
    assert_int_equal(hotkeys_top_by_size(h, top), HOTKEYS_TOP);
    assert_key(&top[0], 5);
    assert_key(&top[1], 997);
    for (unsigned i = 0; i < HOTKEYS_TOP; i++) {
        assert_true(top[i].hash != hash_of(998) && top[i].hash != hash_of(999));
    }
    for (unsigned i = 0; i < 1000; i++) {
        store(h, i, 0);
    }
    assert_int_equal(hotkeys_top_by_size(h, top), 0);
    hotkeys_free(h);
}

enum { THREADS = 2, THREAD_ADDS = 100000 };

typedef struct worker {
    hotkeys *h;
    unsigned number;
    atomic_uint *clock;
} worker;

static void *work(void *p) {
    worker *w = p;
    for (unsigned i = 0; i < THREAD_ADDS; i++) {
        int64_t now = START + (int64_t)atomic_fetch_add(w->clock, 1) * (SECOND / 4000);
        spend(w->h, i % 4 ? 7 : i, 1, now);
        store(w->h, i % 100 + w->number * 1000, i % 1000 ? i : 0);
    }
    return NULL;
}

static void threads_do_not_wait(void **state) {
    (void)state;
    hotkeys *h = hotkeys_new();
    pthread_t threads[THREADS];
    worker workers[THREADS];
    atomic_uint clock = 0;
    hotkey top[HOTKEYS_TOP];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){h, i, &clock};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < 100; i++) {
        hotkeys_top_by_ru(h, START, top);
        hotkeys_top_by_size(h, top);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(hotkeys_top_by_ru(h, START + 50 * SECOND, top) > 0);
    assert_key(&top[0], 7);
    assert_true(near(top[0].value, 3000, 0.35)); /* three quarters of 4,000 RU/s; some samples were dropped */
    assert_true(hotkeys_top_by_size(h, top) > 0);
    hotkeys_free(h);
}

static bool is_even(void *context, const hotkey *key) {
    unsigned *asked = context;
    unsigned number;
    (*asked)++;
    return sscanf(key->text, "[\"key-%u", &number) == 1 && number % 2 == 0;
}

static void rates_go_on_in_another_sketch(void **state) {
    (void)state;
    hotkeys *old = hotkeys_new(), *heir = hotkeys_new();
    hotkey top[HOTKEYS_TOP];
    unsigned asked = 0;
    for (int i = 0; i < 100; i++) {
        spend(old, (unsigned)i % 4, 10, START + i * SECOND);
    }
    int64_t now = START + 100 * SECOND;
    hotkeys_top_by_ru(old, now, top);
    double before = top[0].value;
    hotkeys_inherit(heir, old, now, is_even, &asked);
    assert_int_equal(asked, 4);
    assert_int_equal(hotkeys_top_by_ru(heir, now, top), 2);
    assert_true(near(top[0].value, before, 0.05));
    assert_int_equal(hotkeys_top_by_ru(old, now, top), 4); /* the old sketch is unchanged for its readers */
    spend(heir, 2, 1000, now);
    assert_int_equal(hotkeys_top_by_ru(heir, now, top), 2);
    assert_key(&top[0], 2);
    hotkeys_free(old);
    hotkeys_free(heir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_requests_are_all_counted),
        cmocka_unit_test(the_first_second_is_not_exaggerated),
        cmocka_unit_test(rates_stay_true_and_fade),
        cmocka_unit_test(the_hottest_of_many_are_found),
        cmocka_unit_test(taking_turns_does_not_fool_the_sampling),
        cmocka_unit_test(large_and_small_requests_keep_their_weight),
        cmocka_unit_test(odd_charges_do_no_harm),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(the_largest_partitions_are_known),
        cmocka_unit_test(rates_go_on_in_another_sketch),
        cmocka_unit_test(threads_do_not_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
