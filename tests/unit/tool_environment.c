/* Environment variables: misspelt ones and the emulator's are distinguished from valid settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tool/environment.h"

static const char *unused;
static const tool_option options[] = {{"sql-port", "PORT", "", &unused, false}, {"key", "BASE64", "", &unused, true}};

static variable_kind kind_of(const char *variable) {
    return tool_variable_kind(options, 2, variable);
}

static void settings_are_known(void **state) {
    (void)state;
    assert_int_equal(kind_of("TESELA_SQL_PORT=1"), VARIABLE_SETTING);
    assert_int_equal(kind_of("TESELA_KEY=abc"), VARIABLE_SETTING);
    assert_int_equal(kind_of("TESELA_KEY="), VARIABLE_SETTING);
    assert_int_equal(kind_of("TESELA_ENDPOINT=http://x"), VARIABLE_SETTING); /* a setting of the other commands */
}

static void others_are_not(void **state) {
    (void)state;
    assert_int_equal(kind_of("TESELA_SQLPORT=1"), VARIABLE_UNKNOWN);
    assert_int_equal(kind_of("TESELA_sql_port=1"), VARIABLE_UNKNOWN);
    assert_int_equal(kind_of("TESELA_SQL_PORTS=1"), VARIABLE_UNKNOWN);
    assert_int_equal(kind_of("TESELA_SQL-PORT=1"), VARIABLE_UNKNOWN);
    assert_int_equal(kind_of("TESELA_=1"), VARIABLE_UNKNOWN);
    assert_int_equal(kind_of("PATH=/bin"), VARIABLE_OTHER);
    assert_int_equal(kind_of("MY_TESELA_KEY=1"), VARIABLE_OTHER);
    assert_int_equal(kind_of(""), VARIABLE_OTHER);
}

static void the_emulators_are_named(void **state) {
    (void)state;
    assert_int_equal(kind_of("AZURE_COSMOS_EMULATOR_PARTITION_COUNT=3"), VARIABLE_EMULATOR);
    assert_non_null(strstr(tool_emulator_hint("AZURE_COSMOS_EMULATOR_PARTITION_COUNT=3"), "as many physical partitions"));
    assert_non_null(strstr(tool_emulator_hint("AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE=true"), "--data"));
    assert_non_null(strstr(tool_emulator_hint("AZURE_COSMOS_EMULATOR_NEW=1"), "no such setting"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_known),
        cmocka_unit_test(others_are_not),
        cmocka_unit_test(the_emulators_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
