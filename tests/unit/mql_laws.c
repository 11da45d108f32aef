/* Laws that expressions keep for random values, and other implementations that they agree with: libc's calendar and time zones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "base/random.h"
#include "mql/calendar.h"
#include "mql/expression_int.h"
#include "mql/zone.h"
#include "mql_harness.h"
#include "rounds.h"

static random_source source;

static int64_t random_ms(void) { /* years 1 to 9999 */
    return (int64_t)random_below(&source, UINT64_C(315537897600000)) - INT64_C(62135596800000);
}

/* ---- calendar ---- */

static void calendar_agrees_with_libc(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS(20000); i++) {
        int64_t ms = random_ms();
        time_t s = ms / 1000 - (ms % 1000 < 0);
        struct tm tm;
        char expected[64], found[80];
        assert_non_null(gmtime_r(&s, &tm));
        strftime(expected, sizeof expected, "%m-%d %H:%M:%S %j %w %U %V %u", &tm);
        mql_parts p = mql_calendar_split(ms);
        mql_iso_parts iso = mql_calendar_iso(ms);
        snprintf(found, sizeof found, "%02d-%02d %02d:%02d:%02d %03d %d %02d %02d %d", (int)p.month, (int)p.day, (int)p.hour, (int)p.minute,
                 (int)p.second, mql_calendar_yearday(ms), mql_calendar_weekday(ms) - 1, mql_calendar_week(ms), iso.week, iso.weekday);
        assert_string_equal(found, expected);
        assert_int_equal(p.year, tm.tm_year + 1900);
    }
}

static void parts_join_again(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS(20000); i++) {
        int64_t ms = i % 2 ? random_ms() : (int64_t)random_u64(&source), again;
        mql_parts p = mql_calendar_split(ms);
        assert_true(mql_calendar_join(&p, &again) || i % 2 == 0);
        assert_true(again == ms || i % 2 == 0);
        mql_iso_parts iso = mql_calendar_iso(ms);
        if (i % 2) {
            assert_true(mql_calendar_join_iso(iso.year, iso.week, iso.weekday, &p, &again));
            assert_true(again == ms);
        }
    }
}

/* ---- time zones ---- */

static const char *const zones[] = {"America/New_York",  "Europe/Madrid", "Australia/Sydney", "Asia/Kolkata",        "America/Sao_Paulo",
                                    "Africa/Casablanca", "Asia/Tokyo",    "Europe/London",    "Pacific/Apia",        "America/St_Johns",
                                    "Etc/GMT+5",         "Asia/Tehran",   "Europe/Dublin",    "America/Los_Angeles", "Antarctica/Troll"};

static void zones_agree_with_libc(void **state) {
    (void)state;
    for (size_t z = 0; z < sizeof zones / sizeof *zones; z++) {
        mql_zone_ref zone;
        setenv("TZ", zones[z], 1);
        tzset();
        assert_true(mql_zone_find(slice_str(zones[z]), &zone));
        for (int i = 0; i < ROUNDS(2000); i++) {
            struct tm tm;
            time_t s = (time_t)random_below(&source, UINT64_C(7258118400)) - INT64_C(2208988800); /* 1900 to 2129 */
            assert_non_null(localtime_r(&s, &tm));
            int32_t offset = mql_zone_offset(zone, (int64_t)s * 1000);
            if (offset != tm.tm_gmtoff) {
                fail_msg("%s at %" PRId64 ": %d, not %ld", zones[z], (int64_t)s, offset, tm.tm_gmtoff);
            }
        }
    }
    unsetenv("TZ");
    tzset();
}

/* Local time and back gives the same time, or the first of two with the same local time. */
static void local_times_are_found_again(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS(20000); i++) {
        mql_zone_ref zone;
        assert_true(mql_zone_find(slice_str(zones[random_below(&source, sizeof zones / sizeof *zones)]), &zone));
        int64_t ms = (int64_t)random_below(&source, UINT64_C(7258118400000)) - INT64_C(2208988800000);
        int64_t local = mql_zone_local(zone, ms), again = mql_zone_utc(zone, local);
        assert_true(again <= ms && mql_zone_local(zone, again) == local);
    }
}

static void zone_names(void **state) {
    (void)state;
    static const char *const bad[] = {"",        "Nowhere", "/etc/passwd", "../zoneinfo/UTC", "America/../UTC", "America/",
                                      "america", "+1",      "+1:00",       "UTC\n",           "+24000"};
    mql_zone_ref zone;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (mql_zone_find(slice_str(bad[i]), &zone)) {
            fail_msg("%s is a zone", bad[i]);
        }
    }
    assert_true(mql_zone_find(SLICE_LIT("-0330"), &zone) && mql_zone_offset(zone, 0) == -12600);
    assert_true(mql_zone_find(SLICE_LIT("+05:45"), &zone) && mql_zone_offset(zone, 0) == 20700);
    assert_true(mql_zone_find(SLICE_LIT("GMT"), &zone) && mql_zone_offset(zone, 0) == 0);
    for (int i = 0; i < 2; i++) { /* the ends of the range */
        assert_true(mql_zone_find(SLICE_LIT("America/New_York"), &zone));
        mql_zone_utc(zone, mql_zone_local(zone, i ? INT64_MAX : INT64_MIN));
    }
}

/* ---- laws, written as expressions that are true ---- */

static void holds(const char *law, mql_value document) {
    world w;
    mql_value v;
    world_open(&w);
    const mql_expression *e = parse(&w, law);
    w.run.root = document;
    if (mql_evaluate(&w.run, e, &v) != OK) {
        fail_msg("%s: %.*s", law, (int)w.op.detail_n, w.op.detail);
    }
    if (!mql_truth(v)) {
        char shown[4096];
        fail_msg("%s does not hold for %s", law, written(document, shown));
    }
    world_close(&w);
}

static const char *const laws[] = {
    /* strings */
    "{'$eq': ['$s', {'$reduce': {'input': {'$slice': [{'$split': ['$s', 'a']}, 1, 1000]}, 'initialValue': {'$first': {'$split': ['$s', "
    "'a']}}, "
    "'in': {'$concat': ['$$value', 'a', '$$this']}}}]}",
    "{'$eq': ['$s', {'$concat': [{'$substrCP': ['$s', 0, 3]}, {'$substrCP': ['$s', 3, 1000]}]}]}",
    "{'$eq': [{'$strLenCP': '$s'}, {'$size': {'$map': {'input': {'$range': [0, {'$strLenCP': '$s'}]}, 'in': 1}}}]}",
    "{'$eq': [{'$replaceAll': {'input': '$s', 'find': 'a', 'replacement': 'b'}}, "
    "{'$reduce': {'input': {'$range': [0, 40]}, 'initialValue': '$s', 'in': {'$replaceOne': {'input': '$$value', 'find': 'a', "
    "'replacement': 'b'}}}}]}",
    "{'$eq': [{'$toLower': {'$toUpper': '$s'}}, {'$toLower': '$s'}]}",
    "{'$gte': [{'$indexOfCP': [{'$concat': ['$s', 'x']}, 'x']}, 0]}",
    /* sets */
    "{'$setEquals': [{'$setUnion': ['$x', '$y']}, {'$setUnion': ['$y', '$x']}]}",
    "{'$setEquals': ['$x', {'$setUnion': [{'$setDifference': ['$x', '$y']}, {'$setIntersection': ['$x', '$y']}]}]}",
    "{'$setIsSubset': [{'$setIntersection': ['$x', '$y']}, '$y']}",
    "{'$eq': [[], {'$setIntersection': [{'$setDifference': ['$x', '$y']}, '$y']}]}",
    /* arrays */
    "{'$eq': ['$x', {'$reverseArray': {'$reverseArray': '$x'}}]}",
    "{'$eq': ['$x', {'$concatArrays': [{'$slice': ['$x', 2]}, {'$slice': ['$x', 2, 1000]}]}]}",
    "{'$eq': [{'$sortArray': {'input': '$x', 'sortBy': 1}}, {'$sortArray': {'input': {'$reverseArray': '$x'}, 'sortBy': 1}}]}",
    "{'$eq': [{'$first': {'$sortArray': {'input': '$x', 'sortBy': 1}}}, {'$min': '$x'}]}",
    "{'$eq': [{'$minN': {'n': 3, 'input': '$x'}}, {'$slice': [{'$sortArray': {'input': '$x', 'sortBy': 1}}, 3]}]}",
    "{'$eq': [{'$sum': '$x'}, {'$reduce': {'input': '$x', 'initialValue': 0, 'in': {'$add': ['$$value', '$$this']}}}]}",
    "{'$eq': ['$o', {'$arrayToObject': {'$objectToArray': '$o'}}]}",
    "{'$eq': ['$o', {'$mergeObjects': ['$o', '$o']}]}",
    "{'$eq': ['$o', {'$setField': {'field': 'i', 'input': '$o', 'value': '$o.i'}}]}",
    /* numbers and conversions */
    "{'$eq': ['$i', {'$subtract': [{'$add': ['$i', '$j']}, '$j']}]}",
    "{'$eq': ['$i', {'$add': [{'$multiply': [{'$trunc': {'$divide': ['$i', '$k']}}, '$k']}, {'$mod': ['$i', '$k']}]}]}",
    "{'$eq': ['$d', {'$toDouble': {'$toString': '$d'}}]}",
    "{'$eq': ['$i', {'$toInt': {'$toString': '$i'}}]}",
    "{'$eq': ['$i', {'$toLong': {'$toDecimal': '$i'}}]}",
    "{'$eq': ['$i', {'$bitXor': [{'$bitXor': ['$i', '$j']}, '$j']}]}",
    "{'$eq': [{'$bitNot': {'$bitAnd': ['$i', '$j']}}, {'$bitOr': [{'$bitNot': '$i'}, {'$bitNot': '$j'}]}]}",
    "{'$lte': [{'$abs': {'$subtract': [{'$round': ['$d', 2]}, '$d']}}, 0.0051]}",
    /* dates */
    "{'$eq': ['$t', {'$toDate': {'$toString': '$t'}}]}",
    "{'$eq': ['$t', {'$dateFromString': {'dateString': {'$dateToString': {'date': '$t', 'format': '%G %V %u %H:%M:%S.%L'}}, 'format': '%G "
    "%V %u "
    "%H:%M:%S.%L'}}]}",
    "{'$eq': ['$t', {'$dateFromString': {'dateString': {'$dateToString': {'date': '$t', 'format': '%Y-%j %H:%M:%S.%L %z', 'timezone': "
    "'-03:30'}}, 'format': '%Y-%j %H:%M:%S.%L %z'}}]}",
    "{'$eq': ['$t', {'$dateSubtract': {'startDate': {'$dateAdd': {'startDate': '$t', 'unit': 'hour', 'amount': '$j'}}, 'unit': 'hour', "
    "'amount': '$j'}}]}",
    "{'$eq': ['$k', {'$dateDiff': {'startDate': '$t', 'endDate': {'$dateAdd': {'startDate': '$t', 'unit': 'month', 'amount': '$k'}}, "
    "'unit': 'month'}}]}",
    "{'$eq': ['$k', {'$dateDiff': {'startDate': '$t', 'endDate': {'$dateAdd': {'startDate': '$t', 'unit': 'day', 'amount': '$k'}}, 'unit': "
    "'day'}}]}",
    "{'$lte': [{'$dateTrunc': {'date': '$t', 'unit': 'week', 'binSize': '$k', 'timezone': 'Europe/Madrid'}}, '$t']}",
    "{'$eq': [{'$dateTrunc': {'date': '$t', 'unit': 'month'}}, {'$dateFromParts': {'year': {'$year': '$t'}, 'month': {'$month': '$t'}}}]}",
};

static void add_random_text(mql_builder *b, arena *a) {
    static const char *const letters[] = {"a", "b", "A", "é", "€", "𝄞", " "};
    buf text = buf_init(BUF_NO_LIMIT);
    for (uint64_t n = random_below(&source, 20); n; n--) {
        buf_add_slice(&text, slice_str(letters[random_below(&source, 7)]));
    }
    mql_add(b, SLICE_LIT("s"), mql_text(a, buf_view(&text)));
    buf_free(&text);
}

static void add_random_array(mql_builder *b, arena *a, slice key) {
    mql_open(b, key, BSON_TYPE_ARRAY);
    for (uint64_t n = 1 + random_below(&source, 9); n; n--) {
        int32_t i = (int32_t)random_below(&source, 9);
        mql_add_next(b, i % 2 ? mql_int32(a, i) : mql_double(a, i));
    }
    mql_close(b);
}

static mql_value random_document(arena *a) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    slice document;
    int32_t i = (int32_t)random_below(&source, 2000000) - 1000000, j = (int32_t)random_below(&source, 100000) - 50000;
    add_random_text(&b, a);
    add_random_array(&b, a, SLICE_LIT("x"));
    add_random_array(&b, a, SLICE_LIT("y"));
    mql_add(&b, SLICE_LIT("i"), mql_int32(a, i));
    mql_add(&b, SLICE_LIT("j"), mql_int32(a, j));
    mql_add(&b, SLICE_LIT("k"), mql_int32(a, 1 + (int32_t)random_below(&source, 500)));
    mql_add(&b, SLICE_LIT("d"), mql_double(a, ldexp((double)i, (int)random_below(&source, 60) - 40)));
    mql_add(&b, SLICE_LIT("t"), mql_date(a, (int64_t)random_below(&source, UINT64_C(4000000000000)))); /* 1970 to 2096 */
    mql_open(&b, SLICE_LIT("o"), BSON_TYPE_DOCUMENT);
    mql_add(&b, SLICE_LIT("i"), mql_int32(a, i));
    mql_add(&b, SLICE_LIT("z"), mql_null());
    mql_close(&b);
    assert_true(mql_keep(a, &b, &document));
    buf_free(&out);
    return mql_document(document);
}

static void laws_hold(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS(300); i++) {
        arena a = arena_init();
        mql_value document = random_document(&a);
        for (size_t k = 0; k < sizeof laws / sizeof *laws; k++) {
            holds(laws[k], document);
        }
        arena_free(&a);
    }
}

int main(void) {
    random_seed(&source, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calendar_agrees_with_libc),   cmocka_unit_test(parts_join_again), cmocka_unit_test(zones_agree_with_libc),
        cmocka_unit_test(local_times_are_found_again), cmocka_unit_test(zone_names),       cmocka_unit_test(laws_hold),
    };
    return cmocka_run_group_tests_name("mql_laws", tests, NULL, NULL);
}
