/* `tesela keys`: lists a running server's keys, replaces a key, reloads the key file. */
#include <stdio.h>
#include <string.h>

#include "doc/json.h"
#include "doc/path.h"
#include "tool/remote.h"
#include "tool/steer.h"
#include "tool/terminal.h"

static slice text_in(slice object, const char *name) {
    bson_iter_t it;
    return doc_find_key(object, slice_str(name), &it) && BSON_ITER_HOLDS_UTF8(&it) ? doc_text(&it) : SLICE_EMPTY;
}

static void print_key(slice key) {
    bson_iter_t it;
    bool set = doc_find_key(key, SLICE_LIT("set"), &it) && BSON_ITER_HOLDS_BOOL(&it) && bson_iter_bool(&it);
    slice kind = text_in(key, "kind"), value = text_in(key, "key");
    printf("%-18.*s %.*s\n", (int)kind.n, kind.p, value.n ? (int)value.n : set ? 3 : 1, value.n ? value.p : set ? "set" : "-");
}

static void print_keys(slice answer) {
    bson_iter_t it, each;
    slice source = text_in(answer, "source");
    printf("from: %.*s\n", (int)source.n, source.p);
    if (!doc_find_key(answer, SLICE_LIT("keys"), &it) || !bson_iter_recurse(&it, &each)) {
        return;
    }
    while (bson_iter_next(&each)) {
        uint32_t n = 0;
        const uint8_t *p = NULL;
        if (BSON_ITER_HOLDS_DOCUMENT(&each)) {
            bson_iter_document(&each, &n, &p);
            print_key(slice_of(p, n));
        }
    }
}

static int ask(const remote *r, const char *verb, const char *path, slice body, void (*print)(slice answer)) {
    remote_answer answer = {0};
    bool good = remote_command(r, verb, slice_str(path), body, &answer);
    if (good && answer.bson.n) {
        print(buf_view(&answer.bson));
    }
    remote_answer_free(&answer);
    return good ? 0 : 1;
}

/* Without --show prints only where the new key is stored, not its value. */
static void print_regenerated(slice answer) {
    slice kind = text_in(answer, "kind"), file = text_in(answer, "file"), value = text_in(answer, "key");
    bson_iter_t it;
    int64_t line = doc_find_key(answer, SLICE_LIT("line"), &it) && BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_int64(&it) : 0;
    buf shown = buf_init(BUF_NO_LIMIT);
    if (value.n) {
        print_key(answer);
    }
    text_add(&shown, file, SIZE_MAX);
    printf("The new %.*s key is in line %ld of %.*s on the server's machine%s.\n", (int)kind.n, kind.p, (long)line, (int)shown.n, shown.p,
           value.n ? "" : "; --show prints it");
    buf_free(&shown);
}

static int regenerate(const remote *r, const char *kind, bool show) {
    buf body = buf_init(BUF_NO_LIMIT);
    if (!bson_utf8_validate(kind, strlen(kind), false)) {
        fprintf(stderr, "tesela: there is no such kind of key.\n");
        return 2;
    }
    buf_add_lit(&body, "{\"kind\":");
    json_add_string(&body, slice_str(kind));
    buf_addf(&body, ",\"show\":%s}", show ? "true" : "false");
    int status = ask(r, "POST", "/_tesela/keys/regenerate", buf_view(&body), print_regenerated);
    buf_free(&body);
    return status;
}

static int obey(const remote *r, const tool_words *words, bool show) {
    const char *what = words->n ? words->list[0] : "list";
    if (strcmp(what, "regenerate") == 0 && words->n == 2) {
        return regenerate(r, words->list[1], show);
    }
    if (strcmp(what, "reload") == 0 && words->n == 1) {
        return ask(r, "POST", "/_tesela/keys/reload", SLICE_EMPTY, print_keys);
    }
    if (strcmp(what, "list") == 0 && words->n <= 1) {
        return ask(r, "GET", show ? "/_tesela/keys?show=true" : "/_tesela/keys", SLICE_EMPTY, print_keys);
    }
    fprintf(stderr, "tesela: 'tesela keys --help' says what there is: list, regenerate KIND, reload.\n");
    return 2;
}

static remote_given given = {.endpoint = REMOTE_ENDPOINT};
static const char *show;

static const tool_option options[] = {
    {"show", NULL, "values too: with the primary key, over https or on the server's own machine", &show, false},
    REMOTE_OPTIONS(given),
};

enum { OPTIONS = sizeof options / sizeof *options };

static int run(int argc, char **argv) {
    tool_words words = {0};
    remote r;
    if (!tool_options_read_words(options, OPTIONS, argc, argv, "keys", &words)) {
        return 2;
    }
    if (given.help) {
        tool_help(&tool_keys);
        return 0;
    }
    return remote_open(&r, &given) ? obey(&r, &words, show != NULL) : 2;
}

const tool_command tool_keys = {
    .name = "keys",
    .summary = "list a running server's keys, or make another",
    .usage = "[list]            which keys are set, and where they come from\n"
             "regenerate KIND   another key in place of this one\n"
             "reload            read the key file again, as SIGHUP does",
    .about =
        "KIND is primary, secondary, primaryReadonly or secondaryReadonly. Keys change while the server runs if it was started with\n"
        "--key-file. To change them without a pause: let applications use the secondary key, regenerate the primary one, let them use\n"
        "that, regenerate the secondary one.",
    .options = options,
    .options_n = OPTIONS,
    .examples = "tesela keys --key \"$PRIMARY\" --show\n"
                "tesela keys regenerate primary --key \"$SECONDARY\"",
    .run = run,
};
