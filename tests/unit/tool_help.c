/* The manual page: made from the same tables as --help, and correctly escaped for roff. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tool/command.h"
#include "tool/serve.h"

static const char *size = "4KB", *chosen = "true", *key = "secret";
static const tool_option options[] = {
    {"max-size", "SIZE", "a size; \\ is no escape", &size, false},
    {"switch", NULL, "a switch", &chosen, false},
    {"key", "BASE64", "a key", &key, true},
    {"hidden", "N", NULL, &size, false},
};
static const tool_command command = {
    .name = "try",
    .summary = "tries it",
    .usage = "one\ntwo [options]",
    .about = ".begins like a macro\n\nanother paragraph",
    .options = options,
    .options_n = 4,
    .examples = "tesela try one\n'quoted'",
};

static char *man_of(const tool_command *c) {
    static char page[65536];
    buf out = buf_init(BUF_NO_LIMIT);
    tool_man(&out, &c, 1);
    assert_true(out.n < sizeof page);
    memcpy(page, out.p, out.n);
    page[out.n] = 0;
    buf_free(&out);
    return page;
}

static void a_page_has_what_help_has(void **state) {
    (void)state;
    const char *page = man_of(&command);
    assert_int_equal(strncmp(page, ".TH TESELA 1", 12), 0);
    assert_non_null(strstr(page, "\n.TP\n\\fBtry\\fR\ntries it\n"));
    assert_non_null(strstr(page, "\\fBtesela try\\fR one\n"));
    assert_non_null(strstr(page, "\\fBtesela try\\fR two [options]\n"));
    assert_non_null(strstr(page, "\\fB\\-\\-max\\-size\\fR \\fISIZE\\fR\n"));
    assert_non_null(strstr(page, "[4KB]"));
}

static void switches_and_secrets_have_no_default(void **state) {
    (void)state;
    const char *page = man_of(&command);
    assert_null(strstr(page, "[true]"));
    assert_null(strstr(page, "secret"));
    assert_null(strstr(page, "hidden"));
}

static void text_is_no_markup(void **state) {
    (void)state;
    const char *page = man_of(&command);
    assert_non_null(strstr(page, "\n\\&.begins like a macro\n.PP\nanother paragraph\n"));
    assert_non_null(strstr(page, "\n\\&'quoted'\n"));
    assert_non_null(strstr(page, "\\e is no escape"));
}

static void each_line_of_serve_is_text_or_a_known_macro(void **state) {
    (void)state;
    static const char *const macros[] = {".TH ", ".SH ", ".SS ", ".TP", ".PP", ".RS 4", ".RE", ".nf", ".fi", ".br"};
    char *page = man_of(&tool_serve);
    for (char *line = strtok(page, "\n"); line; line = strtok(NULL, "\n")) {
        bool known = line[0] != '.' && line[0] != '\'';
        for (size_t i = 0; i < sizeof macros / sizeof *macros; i++) {
            known = known || strncmp(line, macros[i], strlen(macros[i])) == 0;
        }
        if (!known) {
            fail_msg("%s", line);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_has_what_help_has),
        cmocka_unit_test(switches_and_secrets_have_no_default),
        cmocka_unit_test(text_is_no_markup),
        cmocka_unit_test(each_line_of_serve_is_text_or_a_known_macro),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
