/* `tesela inspect store`: the figures of a store, from a folder that no server uses or from a running server. */
#include <stdio.h>
#include <string.h>

#include "doc/json.h"
#include "store/figures.h"
#include "tool/inspect_view.h"
#include "tool/remote.h"
#include "tool/steer.h"

enum { CACHE_BYTES = 32 * 1024 * 1024, WHY_BYTES = 1024 };

static remote_given given = {.endpoint = REMOTE_ENDPOINT};
static const char *data, *json;

static const tool_option options[] = {
    {"data", "DIR", "a data folder that no server uses; without it, a running server is asked", &data, false},
    {"json", NULL, "the figures as JSON, as /_tesela/store has them", &json, false},
    REMOTE_OPTIONS(given),
};

enum { OPTIONS = sizeof options / sizeof *options };

/* Reads the figures of the folder without changing it. */
static bool measure_folder(const char *dir, buf *out) {
    store *s;
    store_figures figures;
    char why[WHY_BYTES];
    store_options so = {.dir = dir, .cache_bytes = CACHE_BYTES, .read_only = true};
    if (store_open_rocks(&so, &s, why, sizeof why) != OK) {
        fprintf(stderr, "tesela: %s.\n", why);
        return false;
    }
    buf_add_lit(out, "{\"stores\":[");
    if (store_measure(s, &figures)) {
        store_figures_json(&figures, out);
    }
    buf_add_lit(out, "]}\n");
    store_close(s);
    return true;
}

static bool ask_server(buf *out) {
    remote r;
    remote_answer answer = {0};
    bool good = remote_open(&r, &given) && remote_command(&r, "GET", SLICE_LIT("/_tesela/store"), SLICE_EMPTY, &answer);
    if (good) {
        buf_add_slice(out, buf_view(&answer.body));
    }
    remote_answer_free(&answer);
    return good;
}

static int print(slice figures) {
    json_root root;
    buf bson = buf_init(BUF_NO_LIMIT), shown = buf_init(BUF_NO_LIMIT);
    if (json) {
        buf_add_slice(&shown, figures);
    } else if (json_to_bson(figures, NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT) {
        inspect_store_text(buf_view(&bson), &shown);
    }
    fwrite(shown.p, 1, shown.n, stdout);
    int status = shown.n ? 0 : 1;
    buf_free(&bson);
    buf_free(&shown);
    return status;
}

static int run(int argc, char **argv) {
    tool_words words = {0};
    if (!tool_options_read_words(options, OPTIONS, argc, argv, "inspect", &words)) {
        return 2;
    }
    if (given.help) {
        tool_help(&tool_inspect);
        return 0;
    }
    if (words.n != 1 || strcmp(words.list[0], "store") != 0) {
        fprintf(stderr, "tesela inspect: say what: 'tesela inspect store'.\n");
        return 2;
    }
    buf figures = buf_init(BUF_NO_LIMIT);
    int status = (data ? measure_folder(data, &figures) : ask_server(&figures)) ? print(buf_view(&figures)) : 1;
    buf_free(&figures);
    return status;
}

const tool_command tool_inspect = {
    .name = "inspect",
    .summary = "where a store's bytes are, and which work wrote them",
    .usage = "store [--data DIR | --endpoint URL] [--json]",
    .about =
        "Prints the size of each family of keys (items, index, terms, …), level by level, with its filters and indexes. A running server\n"
        "also tells what was written since it started: to the log, by flushes, by compactions, and how often writes had to wait. A\n"
        "folder is only read; a folder that a server uses is refused, ask the server.",
    .options = options,
    .options_n = OPTIONS,
    .examples = "tesela inspect store\n"
                "tesela inspect store --data ./data   # while no server runs",
    .run = run,
};
