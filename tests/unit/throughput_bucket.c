/* The bucket: over time it admits what was provisioned, however many clients ask; clients that wait as told are admitted; low priority,
 * bucket_percents and bursts keep their limits. The clock is simulated and randomness is seeded, so every run is the same. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "throughput/bucket.h"

#define MS ((int64_t)1000000)
#define SECOND (1000 * MS)
#define START (1000 * SECOND)

static const bucket_class usual = {0};
static const bucket_class low = {.priority = BUCKET_LOW};

static bool near(double a, double b, double within) {
    double distance = a > b ? a - b : b - a;
    if (distance > within) {
        print_error("%g is not within %g of %g\n", a, within, b);
    }
    return distance <= within;
}

static void starts_with_a_second_and_keeps_no_more(void **state) {
    (void)state;
    bucket *b = bucket_new(400, false, START);
    assert_true(near(bucket_level(b, START), 400, 1e-6));
    assert_true(near(bucket_level(b, START + 50 * SECOND), 400, 1e-6));
    bucket_charge(b, usual, 100, START + 50 * SECOND);
    assert_true(near(bucket_level(b, START + 50 * SECOND), 300, 1e-6));
    assert_true(near(bucket_level(b, START + 50 * SECOND + 100 * MS), 340, 1e-6));
    bucket_give(b);
}

static void debt_is_waited_for(void **state) {
    (void)state;
    bucket *b = bucket_new(400, false, START);
    assert_int_equal(bucket_admit(b, usual, START), 0);
    bucket_charge(b, usual, 600, START);
    assert_true(near(bucket_level(b, START), -200, 1e-6));
    assert_int_equal(bucket_admit(b, usual, START), SECOND / 2);
    bucket_give(b);
}

static void room_is_what_all_conditions_leave(void **state) {
    (void)state;
    bucket_class low = {.priority = BUCKET_LOW}, named = {.named = 1};
    bucket *b = bucket_new(400, false, START);
    bucket_set_named(b, 1, 25);
    assert_true(near(bucket_room(b, usual, START), 400, 1e-6));
    assert_true(near(bucket_room(b, low, START), 360, 1e-6));
    assert_true(near(bucket_room(b, named, START), 100, 1e-6));
    bucket_charge(b, usual, 600, START);
    assert_true(near(bucket_room(b, usual, START), -200, 1e-6));
    assert_true(near(bucket_room(b, usual, START + SECOND), 200, 1e-6));
    bucket_set_rate(b, 0, START);
    assert_true(bucket_room(b, usual, START) > 1e300);
    bucket_give(b);
    b = bucket_new(100, true, START);
    assert_true(near(bucket_room(b, usual, START + 100 * SECOND), 3000, 1e-6));
    bucket_give(b);
}

/* A single client that waits as told is rejected at most once for each charge, whatever its size. */
static void a_lone_client_that_waits_gets_in(void **state) {
    (void)state;
    static const double rates[] = {1, 100, 400, 10000, 1000000}, charges[] = {0.38, 1, 6.67, 704.76, 1250};
    for (unsigned r = 0; r < 5; r++) {
        for (unsigned c = 0; c < 5; c++) {
            for (unsigned p = 0; p < 2; p++) {
                bucket_class class = {.priority = p ? BUCKET_LOW : BUCKET_HIGH, .named = 2};
                bucket *b = bucket_new(rates[r], c % 2, START);
                bucket_set_named(b, 2, 30);
                int64_t now = START;
                for (unsigned i = 0; i < 200; i++) {
                    int64_t wait = bucket_admit(b, class, now);
                    assert_true(wait >= 0);
                    now += wait;
                    assert_int_equal(wait && bucket_admit(b, class, now), 0);
                    bucket_charge(b, class, charges[c], now);
                }
                bucket_give(b);
            }
        }
    }
}

/* A request in flight: admitted but not yet charged. */
typedef struct flight {
    int64_t lands;
    bool busy;
} flight;

/* Runs `n` clients that retry at once, rejected or not; charges are taken `latency` after admission. Returns the RU charged in
 * `seconds`. */
static double overload(bucket *b, double charge, unsigned n, int64_t latency, int64_t from, int64_t seconds) {
    flight flights[64] = {0};
    double sum = 0;
    int64_t end = from + seconds * SECOND, step = latency / 3 + 1;
    for (int64_t now = from; now < end;) {
        bool idle = true;
        for (unsigned i = 0; i < n; i++) {
            flight *f = &flights[i];
            if (f->busy && f->lands <= now) {
                bucket_charge(b, usual, charge, now);
                f->busy = false;
            }
            if (!f->busy && bucket_admit(b, usual, now) == 0) {
                *f = (flight){now + latency, true};
                sum += charge;
            }
            idle = idle && !f->busy;
        }
        int64_t paid = atomic_load(&b->paid_until); /* nothing is admitted before this time: skip to it */
        now = idle && paid > now ? paid : now + step;
    }
    for (unsigned i = 0; i < n; i++) {
        if (flights[i].busy) {
            bucket_charge(b, usual, charge, end);
        }
    }
    return sum;
}

/* Runs for a minute, or long enough for a hundred times the charges of all requests in flight. Charges are known only afterwards, so a
 * bucket cannot be more exact than the size of its requests. */
static void overload_gets_what_is_provisioned(void **state) {
    (void)state;
    static const double rates[] = {100, 400, 3333.3, 10000, 1000000}, charges[] = {0.38, 1, 6.67, 48.19, 1250};
    static const unsigned clients[] = {1, 8, 64};
    unsigned minutes = 0;
    for (unsigned r = 0; r < 5; r++) {
        for (unsigned c = 0; c < 5; c++) {
            for (unsigned k = 0; k < 3; k++) {
                double rate = rates[r], charge = charges[c], together = charge * clients[k];
                int64_t latency = 5 * MS;
                if (together / rate < (double)latency / (double)SECOND) {
                    continue; /* too few clients to overload it */
                }
                int64_t seconds = together * 100 < rate * 60 ? 60 : (int64_t)(together * 100 / rate) + 1;
                minutes += seconds == 60;
                bucket *b = bucket_new(rate, false, START);
                bucket_charge(b, usual, rate, START); /* uses up the initial credit */
                double sum = overload(b, charge, clients[k], latency, START, seconds);
                if (!near(sum / (rate * (double)seconds), 1, 0.02)) {
                    fail_msg("rate %g, charge %g, %u clients, %lld s: %g", rate, charge, clients[k], (long long)seconds, sum);
                }
                bucket_give(b);
            }
        }
    }
    assert_true(minutes >= 20);
}

static void credit_of_a_second_keeps_a_minute_within_bounds(void **state) {
    (void)state;
    static const double rates[] = {100, 400, 10000, 1000000};
    static const unsigned clients[] = {1, 8, 64}, parts[] = {100, 1000, 1000}; /* a request costs 1 / part of a second's share */
    for (unsigned r = 0; r < 4; r++) {
        for (unsigned k = 0; k < 3; k++) {
            bucket *b = bucket_new(rates[r], false, START);
            double sum = overload(b, rates[r] / parts[k], clients[k], 5 * MS, START, 60);
            assert_true(near(sum / (rates[r] * 60), 1, 0.02));
            bucket_give(b);
        }
    }
}

/* Clients that wait as told: each sends a request, is charged and sends the next at once. Answers arrive up to `jitter` late, and retry
 * times are rounded up to milliseconds, as in the header. */
typedef struct crowd {
    unsigned clients, tries_most;
    double tries_average, patient /* fraction of requests that took more than six tries */, sum;
} crowd;

static void obey(crowd *c, double rate, double charge, int64_t jitter, int64_t seconds, uint64_t seed) {
    random_source random;
    random_seed(&random, seed);
    int64_t *next = malloc(c->clients * sizeof *next);
    unsigned *tries = calloc(c->clients, sizeof *tries), asked = 0, admitted = 0, patient = 0;
    bucket *b = bucket_new(rate, false, START);
    for (unsigned i = 0; i < c->clients; i++) {
        next[i] = START + (int64_t)random_below(&random, 100 * MS);
    }
    for (;;) {
        unsigned i = 0;
        for (unsigned k = 1; k < c->clients; k++) {
            i = next[k] < next[i] ? k : i;
        }
        int64_t now = next[i], late = (int64_t)random_below(&random, (uint64_t)jitter + 1);
        if (now >= START + seconds * SECOND) {
            break;
        }
        int64_t wait = bucket_admit(b, usual, now);
        tries[i]++;
        asked++;
        next[i] = now + (wait + MS - 1) / MS * MS + late;
        c->tries_most = tries[i] > c->tries_most ? tries[i] : c->tries_most;
        if (wait == 0) {
            bucket_charge(b, usual, charge, now);
            next[i] += MS;
            patient += tries[i] > 6;
            tries[i] = 0;
            admitted++;
        }
    }
    c->sum = admitted * charge;
    c->tries_average = (double)asked / admitted;
    c->patient = (double)patient / admitted;
    bucket_give(b);
    free(next);
    free(tries);
}

/* Two tries are the minimum if all clients ask at once: a rejection with a retry time, then admission. The bucket does not know which
 * client got which turn, so a client that comes late sometimes finds its turn taken. */
static void a_crowd_that_waits_gets_in_within_few_tries(void **state) {
    (void)state;
    static const struct {
        unsigned clients, most;
        double average, patient;
    } bounds[] = {{2, 12, 2.1, 0.005}, {16, 12, 2.1, 0.01}, {64, 12, 2.1, 0.01}, {256, 100, 6, 0.2}};
    for (unsigned i = 0; i < 4; i++) {
        for (int64_t jitter = 0; jitter <= 20 * MS; jitter += 10 * MS) {
            crowd c = {.clients = bounds[i].clients};
            obey(&c, 400, 6.67, jitter, 60, 7 + i);
            print_message("%u clients, up to %d ms late: %.2f tries on average, %.2f %% more than 6, %u at most; %.1f %% used\n", c.clients,
                          (int)(jitter / MS), c.tries_average, c.patient * 100, c.tries_most, c.sum / (400 * 60) * 100);
            assert_true(c.tries_average <= bounds[i].average);
            assert_true(c.patient <= bounds[i].patient);
            assert_true(c.tries_most <= bounds[i].most);
            assert_true(near(c.sum / (400 * 60), 1, 0.02));
        }
    }
}

static void hammering_does_not_push_promises_away(void **state) {
    (void)state;
    bucket *b = bucket_new(400, false, START);
    bucket_charge(b, usual, 500, START);
    for (unsigned i = 0; i < 100000; i++) {
        int64_t wait = bucket_admit(b, usual, START);
        assert_in_range(wait, SECOND / 4, SECOND / 4 + 5 * SECOND);
    }
    bucket_give(b);
}

static void low_priority_is_refused_first(void **state) {
    (void)state;
    bucket *b = bucket_new(1000, false, START);
    bucket_charge(b, usual, 950, START);
    assert_int_equal(bucket_admit(b, usual, START), 0);
    int64_t wait = bucket_admit(b, low, START);
    assert_int_equal(wait, 50 * MS);
    assert_int_equal(bucket_admit(b, low, START + wait), 0);
    bucket_give(b);
}

/* Low priority alone gets all but the reserve. If high priority asks for everything, low gets nothing and high gets what it would get
 * alone. */
static void high_priority_does_not_feel_low(void **state) {
    (void)state;
    bucket *b = bucket_new(1000, false, START);
    double low_alone = 0, high_beside = 0, low_beside = 0;
    for (int64_t t = 0; t < 60 * SECOND; t += MS) {
        bool high_asks = t >= 30 * SECOND;
        if (!high_asks) {
            assert_int_equal(bucket_admit(b, usual, START + t), 0);
        }
        if (high_asks && bucket_admit(b, usual, START + t) == 0) {
            bucket_charge(b, usual, 5, START + t);
            high_beside += 5;
        }
        if (bucket_admit(b, low, START + t) == 0) {
            bucket_charge(b, low, 5, START + t);
            *(high_asks ? &low_beside : &low_alone) += 5;
        }
    }
    assert_true(near(low_alone, 30900, 20));
    assert_true(near(high_beside, 30100, 20));
    assert_true(low_beside <= 5);
    bucket_give(b);
}

static void refused_low_does_not_delay_high(void **state) {
    (void)state;
    bucket *b = bucket_new(400, false, START);
    bucket_charge(b, usual, 500, START);
    for (unsigned i = 0; i < 50; i++) {
        bucket_admit(b, low, START);
    }
    assert_int_equal(bucket_admit(b, usual, START), SECOND / 4);
    bucket_give(b);
}

static void a_lane_keeps_to_its_percentage(void **state) {
    (void)state;
    bucket *b = bucket_new(1000, false, START);
    bucket_set_named(b, 3, 20);
    bucket_class named = {.named = 3}, unlimited = {.named = 4};
    double in_lane = 0, in_other = 0;
    for (int64_t t = 0; t < 60 * SECOND; t += MS) {
        if (bucket_admit(b, named, START + t) == 0) {
            bucket_charge(b, named, 2, START + t);
            in_lane += 2;
        }
        if (bucket_admit(b, unlimited, START + t) == 0 && t % (2 * MS) == 0) {
            bucket_charge(b, unlimited, 1, START + t);
            in_other += 1;
        }
    }
    assert_true(near(in_lane, 200 * 61, 10)); /* includes a second's credit of the named bucket */
    assert_true(near(in_other, 500 * 60, 1));
    bucket_set_named(b, 3, 0);
    assert_int_equal(bucket_admit(b, named, START + 60 * SECOND), 0);
    bucket_give(b);
}

static void refused_lanes_do_not_delay_others(void **state) {
    (void)state;
    bucket *b = bucket_new(400, false, START);
    bucket_set_named(b, 1, 1);
    bucket_class named = {.named = 1};
    bucket_charge(b, named, 500, START);
    int64_t wait = bucket_admit(b, named, START);
    assert_int_equal(wait, 124 * SECOND); /* 500 RU at 4 RU/s, minus a second's credit */
    for (unsigned i = 0; i < 50; i++) {
        bucket_admit(b, named, START);
    }
    assert_int_equal(bucket_admit(b, usual, START), SECOND / 4);
    bucket_give(b);
}

static double spend(bucket *b, double charge, int64_t from, int64_t length) {
    double sum = 0;
    for (int64_t t = 0; t < length; t += MS / 4) {
        if (bucket_admit(b, usual, from + t) == 0) {
            bucket_charge(b, usual, charge, from + t);
            sum += charge;
        }
    }
    return sum;
}

static void bursts_are_saved_up_and_spent_at_their_rate(void **state) {
    (void)state;
    bucket *b = bucket_new(100, true, START);
    int64_t now = START + 299 * SECOND;
    assert_true(near(bucket_level(b, now), 30000, 1));
    assert_true(near(bucket_level(b, now + 1000 * SECOND), 30000, 1));
    assert_true(near(spend(b, 5, now, SECOND), 6000, 10)); /* a second's credit at 3,000, plus one second */
    assert_true(near(spend(b, 5, now + SECOND, SECOND), 3000, 10));
    /* 30,000 saved, 9,000 spent, 100 refilled each second */
    assert_true(near(spend(b, 5, now + 2 * SECOND, 60 * SECOND), 21000 + 200 + 6000, 10));
    assert_true(near(spend(b, 5, now + 62 * SECOND, 10 * SECOND), 1000, 10));
    bucket_give(b);

    b = bucket_new(100, true, START);
    assert_true(near(spend(b, 5, START, 10 * SECOND), 1100, 10)); /* a new bucket has a second's credit, not five minutes' */
    bucket_give(b);
}

static void large_shares_do_not_burst(void **state) {
    (void)state;
    bucket *b = bucket_new(3000, true, START);
    assert_true(near(bucket_level(b, START + 100 * SECOND), 3000, 1));
    bucket_give(b);
}

static void a_new_rate_keeps_debt_and_credit(void **state) {
    (void)state;
    bucket *b = bucket_new(400, false, START);
    bucket_charge(b, usual, 600, START);
    bucket_set_rate(b, 10000, START);
    assert_true(near(bucket_level(b, START), -200, 0.01));
    assert_int_equal(bucket_admit(b, usual, START), 20 * MS);
    bucket_set_rate(b, 100, START);
    assert_true(near(bucket_level(b, START), -200, 0.01));
    bucket_charge(b, usual, 1, START);
    assert_true(near(bucket_level(b, START), -201, 0.01));
    bucket_set_rate(b, 1000, START + 3 * SECOND); /* 99 RU of credit */
    assert_true(near(bucket_level(b, START + 3 * SECOND), 99, 0.01));
    bucket_give(b);

    b = bucket_new(10000, false, START);
    bucket_set_rate(b, 400, START); /* credit is limited to a second at the new rate */
    assert_true(near(bucket_level(b, START), 400, 0.01));
    assert_true(near(spend(b, 4, START, 10 * SECOND), 4400, 8));
    bucket_give(b);
}

static void new_buckets_go_on_where_the_old_ones_were(void **state) {
    (void)state;
    bucket *old[] = {bucket_new(1000, false, START), bucket_new(1000, false, START)};
    bucket *two[] = {bucket_new(1000, false, START), bucket_new(1000, false, START)};
    for (int i = 0; i < 200; i++) {
        bucket_charge(old[0], usual, 10, START); /* 1,000 RU in debt; the other has 1,000 RU of credit */
        bucket_charge(old[1], usual, 0.001, START);
    }
    bucket_hand_over(old, 1, two, 2, START);
    for (int i = 0; i < 2; i++) {
        assert_true(near(bucket_level(two[i], START), -500, 0.01));
        assert_true(near(atomic_load(&two[i]->usual_charge), 10, 0.1)); /* the usual charge, which spaces retry times, is passed on */
    }
    bucket *one = bucket_new(2000, false, START);
    bucket_hand_over(old, 2, &one, 1, START);
    assert_true(near(bucket_level(one, START), 0, 1));
    bucket_hand_over(&old[1], 1, &one, 1, START); /* credit is not added */
    assert_true(near(bucket_level(one, START), 0, 1));
    bucket_hand_over(NULL, 0, two, 2, START); /* without old buckets */
    assert_true(near(bucket_level(two[0], START), -500, 0.01));
    for (int i = 0; i < 2; i++) {
        bucket_give(old[i]);
        bucket_give(two[i]);
    }
    bucket_give(one);
}

static void a_new_rate_ends_and_begins_bursts(void **state) {
    (void)state;
    bucket *b = bucket_new(100, true, START);
    int64_t now = START + 300 * SECOND;
    spend(b, 5, now, 2 * SECOND);
    now += 2 * SECOND;
    bucket_set_rate(b, 100000, now);
    assert_true(near(spend(b, 100, now, SECOND / 10), 21200 + 10000, 300));
    bucket_set_rate(b, 100, now + SECOND);
    assert_true(near(bucket_level(b, now + 400 * SECOND), 30000, 1));
    bucket_give(b);
}

static void rate_zero_is_no_limit(void **state) {
    (void)state;
    bucket *b = bucket_new(0, true, START);
    bucket_set_named(b, 1, 10);
    static const bucket_class classes[] = {{0}, {.priority = BUCKET_LOW}, {.named = 1}};
    for (unsigned i = 0; i < 3; i++) {
        bucket_charge(b, classes[i], 1e9, START);
        assert_int_equal(bucket_admit(b, classes[i], START), 0);
    }
    assert_true(near(bucket_level(b, START), 0, 0));
    bucket_set_rate(b, 400, START);
    assert_true(near(bucket_level(b, START), 400, 0.01));
    bucket_charge(b, usual, 4000, START);
    assert_true(bucket_admit(b, usual, START) > 0);
    bucket_set_rate(b, 0, START);
    assert_int_equal(bucket_admit(b, usual, START), 0);
    bucket_set_rate(b, -5, START);
    assert_int_equal(bucket_admit(b, usual, START), 0);
    bucket_give(b);
}

static void huge_charges_do_not_overflow(void **state) {
    (void)state;
    bucket *b = bucket_new(0.001, true, START);
    for (unsigned i = 0; i < 100; i++) {
        bucket_charge(b, usual, 1e300, START);
        assert_true(bucket_admit(b, usual, START) > 0);
        bucket_set_rate(b, i % 2 ? 1e-6 : 1e6, START);
        bucket_charge(b, low, 0, START);
        bucket_charge(b, low, -1, START);
    }
    bucket_give(b);
}

/* Real threads: no charge is lost, and concurrent changes of the rate do no harm. */
enum { THREADS = 4, CHARGES = 20000 };

static void *charge_much(void *p) {
    bucket *b = bucket_take(p);
    for (unsigned i = 0; i < CHARGES; i++) {
        bucket_admit(b, (bucket_class){.priority = i % 2, .named = (uint8_t)(i % 3)}, START);
        bucket_charge(b, (bucket_class){.priority = i % 2, .named = (uint8_t)(i % 3)}, 1, START);
    }
    bucket_give(b);
    return NULL;
}

static void run_threads(bucket *b, bool change_rates) {
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, charge_much, b), 0);
    }
    for (unsigned i = 0; change_rates && i < 1000; i++) {
        bucket_set_rate(b, 1000 + i % 7 * 1000, START);
        bucket_set_named(b, 1, i % 50);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void threads_lose_no_charge(void **state) {
    (void)state;
    bucket *b = bucket_new(1000, true, START);
    bucket_set_named(b, 1, 50);
    run_threads(b, false);
    assert_true(near(bucket_level(b, START), 1000 - THREADS * CHARGES, 0.01));
    bucket_set_rate(b, 10000, START);
    run_threads(b, true);
    assert_true(bucket_level(b, START) < -THREADS * CHARGES);
    bucket_give(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_with_a_second_and_keeps_no_more),
        cmocka_unit_test(debt_is_waited_for),
        cmocka_unit_test(room_is_what_all_conditions_leave),
        cmocka_unit_test(a_lone_client_that_waits_gets_in),
        cmocka_unit_test(overload_gets_what_is_provisioned),
        cmocka_unit_test(credit_of_a_second_keeps_a_minute_within_bounds),
        cmocka_unit_test(a_crowd_that_waits_gets_in_within_few_tries),
        cmocka_unit_test(hammering_does_not_push_promises_away),
        cmocka_unit_test(low_priority_is_refused_first),
        cmocka_unit_test(high_priority_does_not_feel_low),
        cmocka_unit_test(refused_low_does_not_delay_high),
        cmocka_unit_test(a_lane_keeps_to_its_percentage),
        cmocka_unit_test(refused_lanes_do_not_delay_others),
        cmocka_unit_test(bursts_are_saved_up_and_spent_at_their_rate),
        cmocka_unit_test(large_shares_do_not_burst),
        cmocka_unit_test(a_new_rate_keeps_debt_and_credit),
        cmocka_unit_test(new_buckets_go_on_where_the_old_ones_were),
        cmocka_unit_test(a_new_rate_ends_and_begins_bursts),
        cmocka_unit_test(rate_zero_is_no_limit),
        cmocka_unit_test(huge_charges_do_not_overflow),
        cmocka_unit_test(threads_lose_no_charge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
