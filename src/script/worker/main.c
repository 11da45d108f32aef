/* main.c — tesela-script: a worker that runs scripts for the server, which starts it (see README.md).
 *
 *   tesela-script [--limit-ms N] [--memory-mb N]      with a socket as descriptor 3
 *   tesela-script --try NAME                          enters the sandbox and tries a forbidden action; exits with 0 if it failed */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "script/worker/engine.h"
#include "script/worker/sandbox.h"
#include "script/worker/socket.h"
#include "script/worker/try.h"

enum { LIMIT_MS_DEFAULT = 5000, MEMORY_MB_DEFAULT = 256 };

typedef struct settings {
    uint64_t limit_ms;
    uint64_t memory_mb;
    const char *try;
} settings;

static uint64_t number(const char *text) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (*end || !value || value > 1000000) {
        _exit(2);
    }
    return value;
}

static settings read_arguments(int argc, char **argv) {
    settings s = {.limit_ms = LIMIT_MS_DEFAULT, .memory_mb = MEMORY_MB_DEFAULT};
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) {
            _exit(2);
        }
        if (strcmp(argv[i], "--limit-ms") == 0) {
            s.limit_ms = number(argv[i + 1]);
        } else if (strcmp(argv[i], "--memory-mb") == 0) {
            s.memory_mb = number(argv[i + 1]);
        } else if (strcmp(argv[i], "--try") == 0) {
            s.try = argv[i + 1];
        } else {
            _exit(2);
        }
    }
    return s;
}

static void say(script_frame kind, const char *text) {
    buf frame = buf_init(BUF_NO_LIMIT);
    buf_add(&frame, (char[]){0, 0, 0, 0, (char)kind}, SCRIPT_HEADER_BYTES);
    buf_add(&frame, text, strlen(text));
    frames_write(&frame);
    buf_free(&frame);
}

static _Noreturn void serve(void) {
    for (;;) {
        slice text;
        switch ((int)frames_read(&text)) {
        case SCRIPT_RUN:
            engine_run(text);
            break;
        case SCRIPT_DEFINE:
            engine_define(text);
            break;
        case SCRIPT_ROWS:
            engine_rows(text);
            break;
        default:
            _exit(2);
        }
    }
}

int main(int argc, char **argv) {
    settings s = read_arguments(argc, argv);
    sandbox_prepare(argv);
    frames_watch();
    engine_open(s.limit_ms, s.memory_mb * 1024 * 1024);
    const char *why;
    if (!sandbox_enter(s.memory_mb * 1024 * 1024, &why)) {
        say(SCRIPT_FAULT, why);
        _exit(2);
    }
    if (s.try) {
        _exit(try_name(s.try));
    }
    say(SCRIPT_READY, "{}");
    serve();
}
