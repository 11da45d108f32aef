/* docs/mongo-features.md names every stage, operator and accumulator of the code's tables, with the surfaces that have it, and no other;
 * and tests/mql has a case for each. Commands are checked in the same way by tests/mongo/features.test.js, which can ask the server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "mql/features.h"

/* A heading of the document, and the lines of the cases that use its names. */
static const struct {
    const char *heading;
    const char *keys[3];
} kinds[] = {
    [MQL_FEATURE_STAGE] = {"## Stages", {"pipeline"}},
    [MQL_FEATURE_EXPRESSION] = {"## Expressions", {"is", "fails", "missing"}},
    [MQL_FEATURE_ACCUMULATOR] = {"## Accumulators", {"accumulate"}},
    [MQL_FEATURE_WINDOW] = {"## Window functions", {"pipeline"}},
    [MQL_FEATURE_FILTER] = {"## Filter operators", {"match"}},
    [MQL_FEATURE_SHAPE] = {"## Shapes", {"match"}},
    [MQL_FEATURE_UPDATE] = {"## Update operators", {"update"}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Rows whose names the code knows only to say that they are refused. */
static const char *const refused[] = {"$function", "$accumulator", "$where"};

static buf read_file(const char *path) {
    buf text = buf_init(BUF_NO_LIMIT);
    char part[65536];
    FILE *f = fopen(path, "r");
    if (!f) {
        fail_msg("no file %s", path);
    }
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;) {
        buf_add(&text, part, n);
    }
    fclose(f);
    return text;
}

static bool next_line(slice *rest, slice *line_out) {
    const char *end = memchr(rest->p, '\n', rest->n);
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    *line_out = slice_of(rest->p, n);
    bool more = rest->n > 0;
    *rest = slice_skip(*rest, end ? n + 1 : n);
    return more;
}

/* ---- the document ---- */

typedef struct row {
    slice name, here, service;
} row;

static slice next_cell(slice *line) {
    const char *bar = memchr(line->p, '|', line->n);
    size_t n = bar ? (size_t)(bar - line->p) : line->n;
    slice cell = slice_trim(slice_of(line->p, n));
    *line = slice_skip(*line, bar ? n + 1 : n);
    return cell;
}

/* | `$abs` | yes | yes | yes | */
static bool read_row(slice line, row *row_out) {
    if (!slice_starts(line, SLICE_LIT("| `"))) {
        return false;
    }
    line = slice_skip(line, 1);
    slice name = next_cell(&line);
    row_out->name = slice_of(name.p + 1, name.n - 2);
    row_out->here = next_cell(&line);
    row_out->service = next_cell(&line);
    return true;
}

enum { ROWS_MAX = 300 };

static size_t read_rows(slice document, mql_feature_kind kind, row rows[ROWS_MAX]) {
    slice line;
    size_t n = 0;
    for (bool inside = false; next_line(&document, &line);) {
        if (slice_starts(line, SLICE_LIT("## "))) {
            inside = slice_eq(line, slice_str(kinds[kind].heading));
        } else if (inside && n < ROWS_MAX && read_row(line, &rows[n])) {
            n++;
        }
    }
    return n;
}

static bool is_refused(slice name) {
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (slice_eq(name, slice_str(refused[i]))) {
            return true;
        }
    }
    return false;
}

static void check_row(mql_feature f, const row *r) {
    const char *here = is_refused(f.name) ? "refused" : "yes", *service = f.service ? "yes" : "no";
    if (!slice_eq(r->here, slice_str(here)) || !slice_eq(r->service, slice_str(service))) {
        fail_msg("docs/mongo-features.md should say: | `%.*s` | %s | %s |", (int)f.name.n, f.name.p, here, service);
    }
}

static void check_kind(slice document, mql_feature_kind kind) {
    static row rows[ROWS_MAX];
    size_t n = read_rows(document, kind, rows), offered = 0, found = 0;
    mql_feature f;
    for (size_t i = 0; mql_feature_at(kind, i, &f); i++) {
        size_t at = 0;
        while (at < n && !slice_eq(rows[at].name, f.name)) {
            at++;
        }
        if (at == n) {
            fail_msg("docs/mongo-features.md has no row for %.*s under %s", (int)f.name.n, f.name.p, kinds[kind].heading);
        }
        check_row(f, &rows[at]);
        found++;
    }
    for (size_t i = 0; i < n; i++) {
        offered += !slice_eq(rows[i].here, SLICE_LIT("no"));
    }
    assert_int_equal(offered, found); /* otherwise it promises a name that the code does not have */
}

static void document_names_them_all(void **state) {
    (void)state;
    const char *path = getenv("TESELA_MQL_FEATURES");
    buf document = read_file(path ? path : "docs/mongo-features.md");
    for (unsigned kind = 0; kind < KINDS; kind++) {
        check_kind(buf_view(&document), kind);
    }
    buf_free(&document);
}

/* ---- cases ---- */

static bool is_key(slice key, mql_feature_kind kind) {
    for (size_t i = 0; i < 3 && kinds[kind].keys[i]; i++) {
        if (slice_eq(key, slice_str(kinds[kind].keys[i]))) {
            return true;
        }
    }
    return false;
}

/* Appends the lines of a file that are about this kind. A key in a case may be written with one $ more. */
static void gather_cases(slice text, mql_feature_kind kind, buf *into) {
    slice line;
    while (next_line(&text, &line)) {
        slice key = line;
        key.n = key.n && memchr(key.p, ':', key.n) ? (size_t)((const char *)memchr(key.p, ':', key.n) - key.p) : 0;
        if (is_key(key, kind)) {
            buf_add_slice(into, line);
        }
    }
}

static buf cases_of(mql_feature_kind kind) {
    char pattern[4096];
    glob_t found;
    const char *folder = getenv("TESELA_MQL_CASES");
    buf lines = buf_init(BUF_NO_LIMIT);
    snprintf(pattern, sizeof pattern, "%s/*.cases", folder ? folder : "tests/mql");
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        buf text = read_file(found.gl_pathv[i]);
        gather_cases(buf_view(&text), kind, &lines);
        buf_free(&text);
    }
    globfree(&found);
    return lines;
}

static bool is_used(slice cases, slice name) {
    char once[64], twice[64];
    snprintf(once, sizeof once, "\"%.*s\"", (int)name.n, name.p);
    snprintf(twice, sizeof twice, "\"$%.*s\"", (int)name.n, name.p);
    return memmem(cases.p, cases.n, once, strlen(once)) || memmem(cases.p, cases.n, twice, strlen(twice));
}

/* Its documents come from a server: tests/mongo/features.test.js. */
static bool needs_server(slice name) {
    static const char *const names[] = {"$changeStream",      "$collStats",    "$currentOp",     "$indexStats",
                                        "$listLocalSessions", "$listSessions", "$planCacheStats"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (slice_eq(name, slice_str(names[i]))) {
            return true;
        }
    }
    return false;
}

static void each_has_a_case(void **state) {
    (void)state;
    unsigned without = 0;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        buf cases = cases_of(kind);
        mql_feature f;
        for (size_t i = 0; mql_feature_at(kind, i, &f); i++) {
            if (!is_used(buf_view(&cases), f.name) && !needs_server(f.name)) {
                print_error("tests/mql has no case for %.*s, as under %s\n", (int)f.name.n, f.name.p, kinds[kind].heading);
                without++;
            }
        }
        buf_free(&cases);
    }
    assert_int_equal(without, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(document_names_them_all),
        cmocka_unit_test(each_has_a_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
