/* Dates of header fields, as clients spell them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/date.h"

static void spellings_of_one_date(void **state) {
    (void)state;
    static const char *const texts[] = {
        "Thu, 27 Apr 2017 00:51:12 GMT",   "thu, 27 apr 2017 00:51:12 gmt",   "Thu, 27 Apr 2017 00:51:12 UTC",
        "Thu, 27 Apr 2017 00:51:12 UT",    "Thu, 27 Apr 2017 00:51:12 Z",     "Thu, 27 Apr 2017 00:51:12 +0000",
        "Thu, 27 Apr 2017 00:51:12 -0000", "Thu, 27 Apr 2017 02:51:12 +0200", "Wed, 26 Apr 2017 19:21:12 -0530",
        "27 Apr 2017 00:51:12 GMT",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int64_t seconds;
        assert_true(date_parse_http(slice_str(texts[i]), &seconds));
        assert_int_equal(seconds, 1493254272);
    }
}

static void a_day_of_one_digit(void **state) {
    (void)state;
    int64_t one, two;
    assert_true(date_parse_http(SLICE_LIT("Tue, 3 Jun 2008 11:05:30 GMT"), &one));
    assert_true(date_parse_http(SLICE_LIT("Tue, 03 Jun 2008 11:05:30 GMT"), &two));
    assert_int_equal(one, two);
}

static void dates_before_1970(void **state) {
    (void)state;
    int64_t seconds;
    assert_true(date_parse_http(SLICE_LIT("Wed, 31 Dec 1969 23:59:59 GMT"), &seconds));
    assert_int_equal(seconds, -1);
    assert_true(date_parse_http(SLICE_LIT("Mon, 01 Jan 0001 00:00:00 GMT"), &seconds));
    assert_int_equal(seconds, -62135596800);
}

static void texts_that_are_no_dates(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",
        "Thu",
        "Thu, ",
        "Fri, 27 Apr 2017 00:51:12 GMT",
        "Thu, 27 Apr 2017 00:51:12",
        "Thu, 27 Apr 2017 00:51:12 ",
        "Thu, 27 Apr 2017 00:51:12 CET",
        "Thu, 27 Apr 2017 00:51:12 GMT ",
        "Thu, 27 Apr 2017 00:51:12 +02:00",
        "Thu, 27 Apr 2017 00:51:12 +9900",
        "Thu, 27 Apr 2017 00:51:12 +0060",
        "Thu, 127 Apr 2017 00:51:12 GMT",
        "Thu, 27 Apr 17 00:51:12 GMT",
        "Thu, 27 Apr 0000 00:51:12 GMT",
        "Thu, 27 Apr 2017 0:51:12 GMT",
        "Thu, 27 Apr 2017 00:51 GMT",
        "Thu, 31 Apr 2017 00:51:12 GMT",
        "Thu, 27 Xxx 2017 00:51:12 GMT",
        "Thu 27 Apr 2017 00:51:12 GMT",
        "2017-04-27T00:51:12Z",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int64_t seconds;
        assert_false(date_parse_http(slice_str(texts[i]), &seconds));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings_of_one_date),
        cmocka_unit_test(a_day_of_one_digit),
        cmocka_unit_test(dates_before_1970),
        cmocka_unit_test(texts_that_are_no_dates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
