#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { FLAGS_MAX = 32 };

char endpoint[128];
tesela_client *client;
tesela_error error;

static char folder[64], data[96], port[16] = "0";
static const char *flags[FLAGS_MAX];
static size_t flags_n;
static pid_t server;

static const char *binary(void) {
    const char *given = getenv("TESELA_BIN");
    return given ? given : "build/tesela";
}

/* Starts a program; its standard output goes to `out`, −1: it is left alone. */
static pid_t start(char *const *words, int out) {
    posix_spawn_file_actions_t actions;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    if (out >= 0) {
        posix_spawn_file_actions_adddup2(&actions, out, 1);
        posix_spawn_file_actions_addopen(&actions, 2, server_file("log"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    }
    if (posix_spawn(&pid, words[0], &actions, NULL, words, environ) != 0) {
        fail_msg("%s cannot be started", words[0]);
    }
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

const char *server_file(const char *name) {
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void launch(void) {
    const char *words[FLAGS_MAX + 10] = {binary(), "serve", "--data", data, "--sql-port", port, "--durability", "relaxed"};
    size_t n = 8;
    for (size_t i = 0; i < flags_n; i++) {
        words[n++] = flags[i];
    }
    int pipes[2];
    char line[1024];
    assert_int_equal(pipe(pipes), 0);
    server = start((char *const *)(uintptr_t)words, pipes[1]);
    close(pipes[1]);
    FILE *from = fdopen(pipes[0], "r");
    char *at = fgets(line, sizeof line, from) ? strstr(line, "\"sql\":\"") : NULL;
    if (!at) {
        fail_msg("the server does not start; see %s", server_file("log"));
    }
    sscanf(strchr(at + 7, ':') + 1, "%15[0-9]", port);
    fclose(from);
    snprintf(endpoint, sizeof endpoint, "http://localhost:%s", port);
}

void server_start(const char *flag, ...) {
    va_list args;
    va_start(args, flag);
    for (; flag && flags_n < FLAGS_MAX; flag = va_arg(args, const char *)) {
        flags[flags_n++] = flag;
    }
    va_end(args);
    strcpy(folder, "/tmp/tesela-client-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(data, sizeof data, "%s/data", folder);
    launch();
    ok(tesela_client_open(&(tesela_client_options){.endpoint = endpoint, .key = KEY}, &client, &error));
    ok(tesela_database_create(client, "d", NULL, NULL, &error));
}

void server_kill(void) {
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
}

void server_restart(void) {
    launch();
}

void server_stop(void) {
    int how;
    tesela_client_close(client);
    kill(server, SIGTERM);
    waitpid(server, &how, 0);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    const char *words[] = {"/bin/rm", "-rf", folder, NULL};
    waitpid(start((char *const *)(uintptr_t)words, -1), NULL, 0);
}

void command(const char *word, ...) {
    const char *words[FLAGS_MAX] = {binary()};
    size_t n = 1;
    int how;
    va_list args;
    va_start(args, word);
    for (; word; word = va_arg(args, const char *)) {
        words[n++] = word;
    }
    va_end(args);
    words[n++] = "--endpoint";
    words[n] = endpoint;
    int out = open("/dev/null", O_WRONLY);
    waitpid(start((char *const *)(uintptr_t)words, out), &how, 0);
    close(out);
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) {
        fail_msg("tesela %s … failed; see %s", words[1], server_file("log"));
    }
}

void split(const char *container) {
    tesela_container *k;
    tesela_ranges *ranges;
    char path[128];
    snprintf(path, sizeof path, "d/%s", container);
    ok(tesela_container_open(client, "d", container, &k, &error));
    ok(tesela_container_ranges(k, &ranges, &error));
    for (size_t i = 0; i < tesela_ranges_count(ranges); i++) {
        command("split", path, tesela_ranges_get(ranges, i)->id, NULL);
    }
    tesela_ranges_free(ranges);
    tesela_container_close(k);
}

tesela_container *container_new(const char *name, unsigned throughput) {
    char definition[256];
    tesela_container *k;
    snprintf(definition, sizeof definition, "{\"id\":\"%s\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}", name);
    ok(tesela_container_create(client, "d", definition, &(tesela_throughput){.manual = throughput}, NULL, &error));
    ok(tesela_container_open(client, "d", name, &k, &error));
    return k;
}

void assert_status(tesela_status is, tesela_status wanted, const char *call, const char *file, int line) {
    if (is != wanted) {
        print_error("%s\n  is '%s', not '%s': HTTP %d/%d, %s\n", call, tesela_status_text(is), tesela_status_text(wanted),
                    error.http_status, error.http_substatus, is == TESELA_OK ? "" : error.message);
        _fail(file, line);
    }
}

char *rows_of(tesela_cursor *cursor, size_t *count_out) {
    const char *row;
    size_t n, length = 0, count = 0;
    char *text = calloc(1, 1);
    tesela_status status;
    while ((status = tesela_cursor_next(cursor, &row, &n, &error)) == TESELA_OK) {
        assert_int_equal(strlen(row), n);
        text = realloc(text, length + n + 2);
        memcpy(text + length, row, n);
        length += n;
        text[length++] = '\n';
        text[length] = 0;
        count++;
    }
    assert_status(status, TESELA_DONE, "tesela_cursor_next", __FILE__, __LINE__);
    tesela_cursor_close(cursor);
    if (count_out) {
        *count_out = count;
    }
    return text;
}

char *query_rows(tesela_container *k, const char *text, const char *parameters, const tesela_query_options *options, size_t *count_out) {
    tesela_cursor *cursor;
    ok(tesela_query(k, text, parameters, options, &cursor, &error));
    return rows_of(cursor, count_out);
}

void fill(tesela_container *k, int n, int keys) {
    tesela_bulk *bulk;
    ok(tesela_bulk_open(k, NULL, &bulk, &error));
    for (int i = 0; i < n; i++) {
        char item[160];
        snprintf(item, sizeof item, "{\"id\":\"i%d\",\"pk\":\"p%d\",\"n\":%d,\"g\":%d}", i, i % keys, (int)((long)i * 7919 % n), i % 7);
        ok(tesela_bulk_add(bulk, &(tesela_bulk_operation){.kind = TESELA_BULK_CREATE, .body = item}, &error));
    }
    ok(tesela_bulk_finish(bulk, &error));
    assert_int_equal(tesela_bulk_counted(bulk).succeeded, n);
    tesela_bulk_close(bulk);
}
