/* Runs every script of tests/script/hostile in a worker. Each must end as its first line says, within the limit, and the next script must
 * not be affected. tests/script/README.md explains the first line. */
#include "script_harness.h"

#include <dirent.h>
#include <time.h>

static const char *const arguments[] = {"--limit-ms", "150", "--memory-mb", "128", NULL};

enum { WALL_MS_MAX = 20000 }; /* generous, for a limit of 150 ms of CPU time on a busy machine */

static uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static buf read_file(const char *path) {
    buf b = buf_init(BUF_NO_LIMIT);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char some[4096];
    for (size_t n; (n = fread(some, 1, sizeof some, f)) > 0;) {
        buf_add(&b, some, n);
    }
    fclose(f);
    return b;
}

/* Runs a script and answers its calls as a container would on success. Returns the kind of the last frame; 0 if the worker is gone. */
static int play(worker *w, slice script) {
    worker_run(w, script, "");
    uint64_t started = now_ms();
    for (;;) {
        int kind = worker_receive(w);
        assert_true(now_ms() - started < WALL_MS_MAX);
        if (kind != SCRIPT_CALL) {
            return kind;
        }
        worker_send(w, SCRIPT_ANSWER, SLICE_LIT("{\"status\":200,\"body\":[]}"));
    }
}

/* A worker that ends after this frame says so. */
static const char last_word[] = "{\"last\":true";

static bool is_gone(const worker *w, int kind) {
    return kind == 0 || strncmp(w->in.p, last_word, sizeof last_word - 1) == 0;
}

static bool contains(const worker *w, const char *text) {
    return strstr(w->in.p, text) != NULL;
}

static bool was_stopped(const worker *w, int kind) {
    return kind == 0 || (kind == SCRIPT_FAULT && (contains(w, "time limit") || contains(w, "memory")));
}

/* Whether DONE has exactly this body. */
static bool has_body(const worker *w, const char *json) {
    const char *at = w->in.p + (is_gone(w, SCRIPT_DONE) ? sizeof last_word - 1 : 1);
    at += *at == ',';
    if (!*json) {
        return strncmp(at, "\"body\"", 6) != 0;
    }
    size_t n = strlen(json);
    return strncmp(at, "\"body\":", 7) == 0 && strncmp(at + 7, json, n) == 0 &&
           (at[7 + n] == '}' || strncmp(at + 7 + n, ",\"log\"", 6) == 0);
}

static bool meets(const worker *w, int kind, const char *expected) {
    if (strncmp(expected, "done", 4) == 0) {
        return kind == SCRIPT_DONE && has_body(w, expected[4] ? expected + 5 : "");
    }
    if (strncmp(expected, "fault", 5) == 0) {
        return kind == SCRIPT_FAULT && contains(w, expected[5] ? expected + 6 : "");
    }
    if (strcmp(expected, "stopped") == 0) {
        return was_stopped(w, kind);
    }
    assert_string_equal("any", expected);
    return kind == 0 || kind == SCRIPT_DONE || kind == SCRIPT_FAULT;
}

static void check_next(worker *w) {
    assert_int_equal(SCRIPT_DONE, play(w, SLICE_LIT("function (a) { getContext().getResponse().setBody({ a: [1].concat(2) }); }")));
    assert_string_equal("{\"body\":{\"a\":[1,2]}}", w->in.p);
}

static bool check_script(worker *w, const char *name, slice text) {
    static const char mark[] = "// expects: ";
    const char *end = memchr(text.p, '\n', text.n);
    assert_non_null(end);
    assert_true((size_t)(end - text.p) > sizeof mark && memcmp(text.p, mark, sizeof mark - 1) == 0);
    char expected[256];
    snprintf(expected, sizeof expected, "%.*s", (int)(end - text.p - (ptrdiff_t)sizeof mark + 1), text.p + sizeof mark - 1);
    int kind = play(w, (slice){end + 1, text.n - (size_t)(end + 1 - text.p)});
    bool ok = meets(w, kind, expected);
    if (!ok) {
        print_error("%s: expected %s, got %c %.300s\n", name, expected, kind ? kind : '-', kind ? w->in.p : "");
    }
    if (is_gone(w, kind)) {
        worker_end(w);
        *w = worker_start(arguments);
    }
    return ok;
}

static void test_every_script_ends_as_its_first_line_says(void **state) {
    (void)state;
    const char *folder = getenv("TESELA_HOSTILE");
    assert_non_null(folder);
    struct dirent **names;
    int count = scandir(folder, &names, NULL, alphasort);
    int run = 0, failed = 0;
    worker w = worker_start(arguments);
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        if (names[i]->d_name[0] != '.') {
            buf text = read_file(path);
            failed += check_script(&w, names[i]->d_name, buf_view(&text)) ? 0 : 1;
            check_next(&w);
            buf_free(&text);
            run++;
        }
        free(names[i]);
    }
    free(names);
    worker_end(&w);
    assert_true(run >= 100);
    assert_int_equal(0, failed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_script_ends_as_its_first_line_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
