/* The list of errors: every error has the codes that each protocol needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

static bool is_fine(err code) {
    return code == OK || code == E_NOT_MODIFIED;
}

/* The codes of native_protocol_v4.spec section 9 that may answer a statement. */
static bool is_cql(uint16_t code) {
    static const uint16_t known[] = {0x0000, 0x000A, 0x0100, 0x1000, 0x1001, 0x1100, 0x1200, 0x1300,
                                     0x1400, 0x1500, 0x2000, 0x2100, 0x2200, 0x2300, 0x2400};
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        found = found || known[i] == code;
    }
    return found;
}

static bool is_gremlin(uint16_t status) {
    return status == 401 || status == 403 || status == 429 || (status >= 497 && status <= 500) || (status >= 595 && status <= 599);
}

static bool is_word(const char *text) { /* in the form of codeName and OData codes */
    size_t n = strlen(text);
    return n > 0 && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == n;
}

static void every_error_has_every_column(void **state) {
    (void)state;
    for (err code = OK; code < ERR_COUNT; code++) {
        const err_entry *e = err_lookup(code);
        if (is_fine(code)) {
            assert_int_equal(e->mongo_code, 0);
            assert_int_equal(e->gremlin_status, 200);
            continue;
        }
        bool http = e->http_status >= 400 && e->http_status < 600 && is_word(e->word) && strlen(e->sentence) > 0;
        bool mongo = e->mongo_code > 0 && is_word(e->mongo_name);
        bool cql = is_cql(e->cql_code) && is_cql(err_cql(code, true)) && err_cql(code, false) == e->cql_code;
        bool gremlin = is_gremlin(e->gremlin_status) && e->gremlin_ms_status >= 400;
        if (!http || !mongo || !cql || !gremlin || !is_word(e->table_code)) {
            fail_msg("%s lacks a column", e->name);
        }
    }
}

/* A MongoDB code has the same name in every error. */
static void a_code_has_one_name(void **state) {
    (void)state;
    for (err a = OK; a < ERR_COUNT; a++) {
        for (err b = OK; b < a; b++) {
            const err_entry *x = err_lookup(a), *y = err_lookup(b);
            assert_int_equal(x->mongo_code == y->mongo_code, strcmp(x->mongo_name, y->mongo_name) == 0);
        }
    }
}

/* Codes that drivers act on. */
static void drivers_read_the_codes_that_they_retry_or_report(void **state) {
    (void)state;
    const err_entry *throttled = err_lookup(E_THROTTLED);
    assert_int_equal(throttled->mongo_code, 16500);
    assert_int_equal(throttled->cql_code, 0x1001);
    assert_int_equal(throttled->gremlin_ms_status, 429);
    assert_string_equal(throttled->table_code, "TooManyRequests");
    const err_entry *conflict = err_lookup(E_CONFLICT);
    assert_int_equal(conflict->mongo_code, 11000);
    assert_int_equal(conflict->cql_code, 0x2400);
    assert_int_equal(conflict->gremlin_ms_status, 409);
    assert_string_equal(conflict->table_code, "EntityAlreadyExists");
    const err_entry *condition = err_lookup(E_PRECONDITION);
    assert_int_equal(condition->gremlin_ms_status, 412);
    assert_string_equal(condition->table_code, "UpdateConditionNotSatisfied");
    assert_int_equal(err_lookup(E_RETRY_WITH)->mongo_code, 112);
    assert_int_equal(err_lookup(E_TIMEOUT)->mongo_code, 50);
    assert_int_equal(err_lookup(E_UNAUTHORIZED)->mongo_code, 18);
    assert_int_equal(err_lookup(E_UNAUTHORIZED)->gremlin_status, 401);
    assert_int_equal(err_lookup(E_UNAUTHORIZED)->cql_code, 0x0100);
    assert_int_equal(err_lookup(E_BAD_QUERY)->cql_code, 0x2000);
    assert_int_equal(err_lookup(E_BAD_REQUEST)->cql_code, 0x2200);
    assert_string_equal(err_lookup(E_NOT_FOUND)->table_code, "ResourceNotFound");
}

static void reads_have_their_own_timeouts_in_cql(void **state) {
    (void)state;
    assert_int_equal(err_cql(E_TIMEOUT, false), 0x1100);
    assert_int_equal(err_cql(E_TIMEOUT, true), 0x1200);
    assert_int_equal(err_cql(E_TOO_LARGE, false), 0x1500);
    assert_int_equal(err_cql(E_TOO_LARGE, true), 0x1300);
    assert_int_equal(err_cql(E_THROTTLED, true), 0x1001);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_every_column),
        cmocka_unit_test(a_code_has_one_name),
        cmocka_unit_test(drivers_read_the_codes_that_they_retry_or_report),
        cmocka_unit_test(reads_have_their_own_timeouts_in_cql),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
