/* Runs tests/gremlin/NAME.cases: scripts and their results as text. tests/gremlin/README.md describes the format. With
 * TESELA_GREMLIN_REWRITE=1 the files are written anew with the results that were found: look at the difference before you keep it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "gremlin_graph.h"

enum { ROWS_MAX = 4000 };

typedef struct rows {
    arena *memory;
    size_t n;
    slice at[ROWS_MAX];
} rows;

static void show(buf *out, gremlin_value v);

static void show_list(buf *out, gremlin_value v) {
    buf_add_lit(out, "[");
    for (size_t i = 0; i < v.list->n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        show(out, v.list->at[i]);
        if (v.list->bulk && v.list->bulk[i] > 1) {
            buf_addf(out, "*%lld", (long long)v.list->bulk[i]);
        }
    }
    buf_add_lit(out, "]");
}

static void show_map(buf *out, gremlin_value v) {
    buf_add_lit(out, "{");
    for (size_t i = 0; i < v.map->n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        show(out, v.map->at[i].key);
        buf_add_lit(out, ": ");
        show(out, v.map->at[i].value);
    }
    buf_add_lit(out, "}");
}

static void show_path(buf *out, gremlin_value v) {
    buf_add_lit(out, "path(");
    for (size_t i = 0; i < v.path->n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        show(out, v.path->objects[i]);
        for (size_t j = 0; j < v.path->labels[i].n; j++) {
            buf_addf(out, "@%.*s", (int)v.path->labels[i].at[j].n, v.path->labels[i].at[j].p);
        }
    }
    buf_add_lit(out, ")");
}

/* As gremlin_show, but numbers have their type: 1, 1L, 1.5d, 1.5f, 1.5m, 1n. */
static void show(buf *out, gremlin_value v) {
    static const char *const suffixes[] = {[GREMLIN_BYTE] = "b",   [GREMLIN_SHORT] = "s", [GREMLIN_INT] = "",     [GREMLIN_LONG] = "L",
                                           [GREMLIN_BIGINT] = "n", [GREMLIN_FLOAT] = "f", [GREMLIN_DOUBLE] = "d", [GREMLIN_DECIMAL] = "m"};
    if (gremlin_is_list(v)) {
        buf_add_slice(out, v.type == GREMLIN_SET ? SLICE_LIT("set") : v.type == GREMLIN_BULKSET ? SLICE_LIT("bag") : SLICE_EMPTY);
        show_list(out, v);
    } else if (gremlin_is_map(v)) {
        show_map(out, v);
    } else if (v.type == GREMLIN_PATH) {
        show_path(out, v);
    } else {
        gremlin_show(out, v);
        buf_addf(out, "%s", gremlin_is_number(v) ? suffixes[v.type] : "");
    }
}

static void take(void *context, gremlin_value result, int64_t bulk) {
    rows *r = context;
    buf out = buf_init(1 << 20);
    show(&out, result);
    for (int64_t i = 0; i < bulk && r->n < ROWS_MAX; i++) {
        r->at[r->n++] = arena_copy(r->memory, buf_view(&out));
    }
    buf_free(&out);
}

static int by_text(const void *a, const void *b) {
    return slice_cmp(*(const slice *)a, *(const slice *)b);
}

static err run_script(arena *memory, graph *g, slice text, op *o, rows *found) {
    gremlin_script script;
    random_source random;
    random_seed(&random, 1);
    gremlin_run_options options = {.random = &random, .text = text, .batch = 4, .slice_steps = 3};
    err e = gremlin_parse(o, &gremlin_limits_of_service, text, gremlin_null(), &script);
    for (size_t i = 0; e == OK && i < script.n; i++) {
        *found = (rows){.memory = memory};
        e = graph_run(g, o, script.traversals[i], &options, take, found);
    }
    return e;
}

static slice next_line(slice *rest) {
    const char *end = memchr(rest->p, '\n', rest->n);
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    slice line = slice_of(rest->p, n);
    *rest = slice_skip(*rest, end ? n + 1 : n);
    return line;
}

typedef struct test_file {
    const char *name;
    FILE *rewritten;
    unsigned line, faults, cases;
} test_file;

/* "modern: SCRIPT": unordered; "modern in order: SCRIPT". */
static bool read_head(slice line, char name[16], bool *ordered_out, slice *script_out) {
    const char *colon = memchr(line.p, ':', line.n < 24 ? line.n : 24);
    size_t n = 0;
    while (n < 15 && n < line.n && line.p[n] >= 'a' && line.p[n] <= 'z') {
        name[n] = line.p[n];
        n++;
    }
    name[n] = 0;
    if (!colon || !n) {
        return false;
    }
    slice head = slice_of(line.p, (size_t)(colon - line.p));
    *ordered_out = head.n > n;
    *script_out = slice_trim(slice_skip(line, head.n + 1));
    return strcmp(name, "modern") == 0 || strcmp(name, "crew") == 0 || strcmp(name, "ring") == 0 || strcmp(name, "empty") == 0;
}

static void complain(test_file *t, slice script, const rows *found, const rows *expected) {
    fprintf(stderr, "%s:%u: %.*s\n", t->name, t->line, (int)script.n, script.p);
    for (size_t i = 0; i < found->n; i++) {
        fprintf(stderr, "    found %.*s\n", (int)found->at[i].n, found->at[i].p);
    }
    for (size_t i = 0; i < expected->n; i++) {
        fprintf(stderr, "    expected %.*s\n", (int)expected->at[i].n, expected->at[i].p);
    }
    t->faults++;
}

static bool same_rows(rows *a, rows *b, bool ordered) {
    if (!ordered) {
        qsort(a->at, a->n, sizeof *a->at, by_text);
        qsort(b->at, b->n, sizeof *b->at, by_text);
    }
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) {
        bool error = a->n == 1 && slice_starts(b->at[i], SLICE_LIT("! ")); /* the beginning of the message is enough */
        same = error ? slice_starts(a->at[i], b->at[i]) : slice_eq(a->at[i], b->at[i]);
    }
    return same;
}

/* The same case with three graphs: small answers of references, whole vertices in one answer, one that ignores all advice. */
static void run_case(test_file *t, const char *name, bool ordered, slice script, rows *expected) {
    static rows found;
    for (int kind = 0; kind < 3; kind++) {
        budget b = budget_init(NULL, 64 * 1024 * 1024);
        arena memory = arena_init_counted(&b);
        op o;
        graph *g = graph_open(name);
        g->page = kind == 0 ? 3 : 1000;
        g->full = kind == 1;
        g->ignores = kind == 2;
        op_init(&o, &memory, 0);
        found = (rows){.memory = &memory};
        err e = run_script(&memory, g, script, &o, &found);
        if (e != OK) {
            found.n = 1;
            found.at[0] = arena_printf(&memory, "! %.*s", (int)o.detail_n, o.detail);
        }
        if (t->rewritten && kind == 0) {
            for (size_t i = 0; i < found.n; i++) {
                fprintf(t->rewritten, "%.*s\n", (int)found.at[i].n, found.at[i].p);
            }
        } else if (!t->rewritten && !same_rows(&found, expected, ordered)) {
            complain(t, script, &found, expected);
            kind = 3;
        }
        graph_close(g);
        arena_free(&memory);
        assert_int_equal(b.used, 0);
    }
    t->cases++;
}

static void run_file(test_file *t, slice rest) {
    static rows expected;
    char name[16];
    bool ordered;
    slice script;
    while (rest.n) {
        slice line = next_line(&rest);
        t->line++;
        if (!read_head(line, name, &ordered, &script)) {
            if (t->rewritten) {
                fprintf(t->rewritten, "%.*s\n", (int)line.n, line.p);
            }
            continue;
        }
        if (t->rewritten) {
            fprintf(t->rewritten, "%.*s\n", (int)line.n, line.p);
        }
        unsigned at = t->line;
        expected.n = 0;
        while (rest.n && rest.p[0] != '\n' && expected.n < ROWS_MAX) {
            expected.at[expected.n++] = next_line(&rest);
            t->line++;
        }
        unsigned after = t->line;
        t->line = at;
        run_case(t, name, ordered, script, &expected);
        t->line = after;
    }
}

static unsigned try_file(const char *path) {
    FILE *file = fopen(path, "rb");
    static char text[1 << 20];
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text, file);
    fclose(file);
    test_file t = {.name = path, .rewritten = getenv("TESELA_GREMLIN_REWRITE") ? fopen(path, "wb") : NULL};
    run_file(&t, slice_of(text, n));
    if (t.rewritten) {
        fclose(t.rewritten);
    }
    assert_true(t.cases > 0);
    return t.faults;
}

static void cases_in_files(void **state) {
    (void)state;
    glob_t files;
    const char *folder = getenv("TESELA_GREMLIN_CASES");
    char pattern[4096];
    snprintf(pattern, sizeof pattern, "%s/*.cases", folder ? folder : "tests/gremlin");
    assert_int_equal(glob(pattern, 0, NULL, &files), 0);
    unsigned faults = 0;
    for (size_t i = 0; i < files.gl_pathc; i++) {
        faults += try_file(files.gl_pathv[i]);
    }
    globfree(&files);
    assert_int_equal(faults, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(cases_in_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
