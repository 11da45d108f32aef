/* script_fake.c — a script worker for tests: speaks src/script/protocol.h, but its scripts are lists of these lines, not JavaScript:
 *
 *   call {…}      sends a CALL and keeps its answer
 *   until {…}     repeats a CALL until it is not accepted or fails
 *   done {…}      sends DONE; `last` alone sends DONE with the last answer as its body
 *   fault {…}     sends FAULT
 *   sleep MS, spin MS, hang, die SIGNAL, nonsense, close */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "doc/json.h"
#include "doc/path.h"
#include "script/process.h"

static script_process server = {.socket = SCRIPT_FD};
static buf last;

static int64_t never(void) {
    return script_now_us() + (int64_t)3600 * 1000000;
}

static void say(script_frame kind, const char *text) {
    if (script_process_send(&server, kind, slice_str(text), never()) != SCRIPT_FINE) {
        exit(0);
    }
}

static bool call(const char *text) {
    script_frame kind;
    say(SCRIPT_CALL, text);
    if (script_process_receive(&server, &kind, &last, never()) != SCRIPT_FINE || kind != SCRIPT_ANSWER) {
        exit(0);
    }
    return last.n < 12 || memcmp(last.p, "{\"status\":20", 12) == 0;
}

static void end_with_last(void) {
    buf text = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&text, "{\"body\":");
    buf_add_slice(&text, buf_view(&last));
    buf_add_lit(&text, ",\"log\":\"said\"}");
    buf_add_byte(&text, 0);
    say(SCRIPT_DONE, text.p);
    buf_free(&text);
}

static void spin(long ms) {
    int64_t until = script_now_us() + ms * 1000;
    while (script_now_us() < until) {
    }
}

/* False: the script has ended. */
static bool do_line(const char *word, const char *rest) {
    if (strcmp(word, "call") == 0) {
        call(rest);
    } else if (strcmp(word, "until") == 0) {
        while (call(rest)) {
        }
    } else if (strcmp(word, "sleep") == 0) {
        usleep((useconds_t)atol(rest) * 1000);
    } else if (strcmp(word, "spin") == 0) {
        spin(atol(rest));
    } else if (strcmp(word, "hang") == 0) {
        pause();
    } else if (strcmp(word, "die") == 0) {
        raise(atoi(rest));
    } else if (strcmp(word, "nonsense") == 0) {
        send(SCRIPT_FD, "\377\377\377\377x", 5, 0);
        pause();
    } else if (strcmp(word, "close") == 0) {
        close(SCRIPT_FD);
        pause();
    } else {
        strcmp(word, "done") == 0 ? say(SCRIPT_DONE, rest) : strcmp(word, "fault") == 0 ? say(SCRIPT_FAULT, rest) : end_with_last();
        return false;
    }
    return true;
}

static void run(slice frame) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    bson_iter_t it;
    if (json_to_bson(frame, NULL, &bson, &root, NULL) != OK || !doc_find_key(buf_view(&bson), SLICE_LIT("body"), &it)) {
        exit(1);
    }
    char *source = strndup(doc_text(&it).p, doc_text(&it).n), *state = NULL;
    for (char *line = strtok_r(source, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
        char *blank = strchr(line, ' ');
        if (blank) {
            *blank = '\0';
        }
        if (!do_line(line, blank ? blank + 1 : "")) {
            break;
        }
    }
    free(source);
    buf_free(&bson);
}

int main(void) {
    script_frame kind;
    buf text = buf_init(SCRIPT_FRAME_BYTES_MAX);
    last = buf_init(BUF_NO_LIMIT);
    say(SCRIPT_READY, "{}");
    while (script_process_receive(&server, &kind, &text, never()) == SCRIPT_FINE) {
        run(buf_view(&text));
    }
    buf_free(&text);
    buf_free(&last);
    return 0;
}
