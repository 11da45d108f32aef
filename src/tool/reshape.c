/* `tesela split`, `tesela merge`, `tesela events`. */
#include <stdio.h>
#include <time.h>

#include "doc/json.h"
#include "doc/path.h"
#include "tool/remote.h"
#include "tool/steer.h"
#include "tool/terminal.h"

/* ---- events as lines ---- */

static slice text_in(slice event, const char *name) {
    bson_iter_t it;
    return doc_find_key(event, slice_str(name), &it) && BSON_ITER_HOLDS_UTF8(&it) ? doc_text(&it) : SLICE_EMPTY;
}

static int64_t number_in(slice event, const char *name) {
    bson_iter_t it;
    return doc_find_key(event, slice_str(name), &it) && BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_int64(&it) : 0;
}

/* "0", or "3 4 5 …" */
static void add_ids(buf *out, slice event, const char *name, const char *count) {
    bson_iter_t it, each;
    int64_t n = 0;
    if (doc_find_key(event, slice_str(name), &it) && bson_iter_recurse(&it, &each)) {
        while (bson_iter_next(&each) && BSON_ITER_HOLDS_UTF8(&each)) {
            buf_add(out, " ", n++ > 0);
            text_add(out, doc_text(&each), 10);
        }
    }
    if (n < number_in(event, count)) {
        buf_addf(out, " … %ld", (long)number_in(event, count));
    }
}

static void add_time(buf *out, int64_t ms) {
    time_t s = (time_t)(ms / 1000);
    struct tm local;
    char text[40] = "";
    if (localtime_r(&s, &local)) {
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
    }
    buf_addf(out, "%s", text);
}

static void print_event(slice event) {
    buf line = buf_init(BUF_NO_LIMIT), name = buf_init(BUF_NO_LIMIT);
    buf_add_slice(&name, text_in(event, "database"));
    buf_add_byte(&name, '/');
    buf_add_slice(&name, text_in(event, "container"));
    add_time(&line, number_in(event, "time"));
    buf_add_lit(&line, "  ");
    text_add_left(&line, text_in(event, "kind"), 5);
    buf_add_lit(&line, "  ");
    text_add_left(&line, buf_view(&name), 30);
    buf_add_lit(&line, "  ");
    add_ids(&line, event, "before", "beforeCount");
    buf_add_lit(&line, " → ");
    add_ids(&line, event, "after", "afterCount");
    buf_add_lit(&line, "  ");
    text_add(&line, text_in(event, "reason"), 30);
    buf_add_lit(&line, "  ");
    text_add_count(&line, (double)number_in(event, "items"), "item");
    buf_add_lit(&line, " in ");
    text_add_number(&line, (double)number_in(event, "tookUs") / 1000);
    buf_add_lit(&line, " ms\n");
    fwrite(line.p, 1, line.n, stdout);
    buf_free(&line);
    buf_free(&name);
}

/* ---- shared by the three commands ---- */

/* Returns -1 to continue, else the exit status. */
static int begin(const tool_command *c, const remote_given *given, size_t words_least, size_t words_most, int argc, char **argv,
                 tool_words *words, remote *r) {
    if (!tool_options_read_words(c->options, c->options_n, argc, argv, c->name, words)) {
        return 2;
    }
    if (given->help) {
        tool_help(c);
        return 0;
    }
    if (words->n < words_least || words->n > words_most) {
        tool_usage(c, stderr);
        return 2;
    }
    return remote_open(r, given) ? -1 : 2;
}

static int change(const remote *r, const char *path, buf *body) {
    remote_answer answer = {0};
    bool good = remote_command(r, "POST", slice_str(path), buf_view(body), &answer);
    if (good && answer.bson.n) {
        print_event(buf_view(&answer.bson));
    }
    remote_answer_free(&answer);
    buf_free(body);
    return good ? 0 : 1;
}

static bool open_body(buf *body, const char *names) {
    slice database, container;
    *body = buf_init(BUF_NO_LIMIT);
    if (!remote_names(names, false, &database, &container)) {
        return false;
    }
    if (!bson_utf8_validate(names, strlen(names), false)) {
        fprintf(stderr, "tesela: '%s' is not UTF-8.\n", names);
        return false;
    }
    buf_add_lit(body, "{\"database\":");
    json_add_string(body, database);
    buf_add_lit(body, ",\"container\":");
    json_add_string(body, container);
    return true;
}

static remote_given given = {.endpoint = REMOTE_ENDPOINT};

/* ---- split ---- */

static const char *parts = "2";
static const tool_option split_options[] = {{"parts", "N", "how many ranges it becomes", &parts, false}, REMOTE_OPTIONS(given)};

static int run_split(int argc, char **argv) {
    tool_words words = {0};
    remote r;
    buf body;
    uint64_t range, n;
    int status = begin(&tool_split, &given, 2, 2, argc, argv, &words, &r);
    if (status >= 0) {
        return status;
    }
    if (!tool_read_number("parts", parts, 2, 100, &n) || !tool_read_number("range", words.list[1], 0, UINT32_MAX, &range) ||
        !open_body(&body, words.list[0])) {
        return 2;
    }
    buf_addf(&body, ",\"range\":\"%lu\",\"parts\":%lu}", (unsigned long)range, (unsigned long)n);
    return change(&r, "/_tesela/split", &body);
}

const tool_command tool_split = {
    .name = "split",
    .summary = "split a range by hand",
    .usage = "DATABASE/CONTAINER RANGE [options]",
    .about = "Splits a range of a container of a running server where its data divides evenly. Nobody waits for it.",
    .options = split_options,
    .options_n = sizeof split_options / sizeof *split_options,
    .notes = "A split that no limit needs is undone after five minutes, and the event says so; 'tesela serve --merges off' keeps it.",
    .examples = "tesela split shop/orders 0 --parts 4",
    .run = run_split,
};

/* ---- merge ---- */

static const tool_option merge_options[] = {REMOTE_OPTIONS(given)};

static int run_merge(int argc, char **argv) {
    tool_words words = {0};
    remote r;
    buf body;
    uint64_t first, second;
    int status = begin(&tool_merge, &given, 3, 3, argc, argv, &words, &r);
    if (status >= 0) {
        return status;
    }
    if (!tool_read_number("first", words.list[1], 0, UINT32_MAX, &first) ||
        !tool_read_number("second", words.list[2], 0, UINT32_MAX, &second) || !open_body(&body, words.list[0])) {
        return 2;
    }
    buf_addf(&body, ",\"first\":\"%lu\",\"second\":\"%lu\"}", (unsigned long)first, (unsigned long)second);
    return change(&r, "/_tesela/merge", &body);
}

const tool_command tool_merge = {
    .name = "merge",
    .summary = "merge two neighbouring ranges by hand",
    .usage = "DATABASE/CONTAINER FIRST SECOND [options]",
    .about = "Merges two neighbouring ranges of a container of a running server: the second begins where the first ends.",
    .options = merge_options,
    .options_n = sizeof merge_options / sizeof *merge_options,
    .examples = "tesela merge shop/orders 3 4",
    .run = run_merge,
};

/* ---- events ---- */

static void print_events(slice answer) {
    bson_iter_t it, each;
    if (!doc_find_key(answer, SLICE_LIT("events"), &it) || !bson_iter_recurse(&it, &each)) {
        return;
    }
    while (bson_iter_next(&each)) {
        uint32_t n = 0;
        const uint8_t *p = NULL;
        if (BSON_ITER_HOLDS_DOCUMENT(&each)) {
            bson_iter_document(&each, &n, &p);
            print_event(slice_of(p, n));
        }
    }
}

static const char *limit = "20";
static const tool_option events_options[] = {{"limit", "N", "how many, at most 1000", &limit, false}, REMOTE_OPTIONS(given)};

static int run_events(int argc, char **argv) {
    tool_words words = {0};
    remote r;
    slice database = SLICE_EMPTY, container = SLICE_EMPTY;
    uint64_t n;
    int status = begin(&tool_events, &given, 0, 1, argc, argv, &words, &r);
    if (status >= 0) {
        return status;
    }
    if (!tool_read_number("limit", limit, 1, 1000, &n) || (words.n && !remote_names(words.list[0], true, &database, &container))) {
        return 2;
    }
    buf path = buf_init(BUF_NO_LIMIT);
    remote_answer answer;
    buf_addf(&path, "/_tesela/events?limit=%lu", (unsigned long)n);
    remote_add_param(&path, "database", database);
    remote_add_param(&path, "container", container);
    bool good = remote_command(&r, "GET", buf_view(&path), SLICE_EMPTY, &answer);
    if (good) {
        print_events(buf_view(&answer.bson));
    }
    remote_answer_free(&answer);
    buf_free(&path);
    return good ? 0 : 1;
}

const tool_command tool_events = {
    .name = "events",
    .summary = "list splits and merges, and why",
    .usage = "[DATABASE[/CONTAINER]] [options]",
    .about = "Splits and merges of a running server, the newest first, each with its reason.",
    .options = events_options,
    .options_n = sizeof events_options / sizeof *events_options,
    .examples = "tesela events\n"
                "tesela events shop/orders --limit 100",
    .run = run_events,
};
