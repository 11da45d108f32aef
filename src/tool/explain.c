/* `tesela explain`: shows what a query does, and why. The server runs the query and describes its execution. */
#include <stdio.h>
#include <stdlib.h>

#include "doc/json.h"
#include "doc/path.h"
#include "tool/remote.h"
#include "tool/steer.h"
#include "tool/terminal.h"

static remote_given given = {.endpoint = REMOTE_ENDPOINT};

static struct { const char *parameter, *key, *rows, *json; } asked;

static const tool_option options[] = {
    {"parameter", "@NAME=VALUE", "of the query, as often as it has them: a value that is no JSON is a text", &asked.parameter, false},
    {"partition-key", "VALUE", "only this partition; of hierarchical keys '[\"Peru\", \"Lima\"]'", &asked.key, false},
    {"max-item-count", "N", "rows of the page, 1000 unless given", &asked.rows, false},
    {"json", NULL, "the whole answer, as JSON", &asked.json, false},
    REMOTE_OPTIONS(given),
};

enum { OPTIONS = sizeof options / sizeof *options };

/* ---- the request ---- */

/* Adds the value as JSON if it is valid JSON, else as a string. False: it is neither JSON nor UTF-8. */
static bool add_value(buf *body, slice value) {
    buf bson = buf_init(BUF_NO_LIMIT), list = buf_init(BUF_NO_LIMIT);
    json_root root;
    bson_iter_t it;
    buf_addf(&list, "[%.*s]", (int)value.n, value.p);
    bool json = json_to_bson(buf_view(&list), NULL, &bson, &root, NULL) == OK &&
                bson_iter_init_from_data(&it, (const uint8_t *)bson.p, bson.n) && bson_iter_next(&it) && !bson_iter_next(&it);
    bool text = bson_utf8_validate(value.p, value.n, false);
    if (json) {
        buf_add_slice(body, value);
    } else if (text) {
        json_add_string(body, value);
    }
    buf_free(&bson);
    buf_free(&list);
    return json || text;
}

static bool add_parameter(buf *list, const char *given_text) {
    const char *equals = strchr(given_text, '=');
    slice name = equals ? slice_of(given_text, (size_t)(equals - given_text)) : SLICE_EMPTY;
    if (name.n < 2 || name.p[0] != '@' || !bson_utf8_validate(name.p, name.n, false)) {
        fprintf(stderr, "tesela explain: --parameter must be like @city=Lima, not '%s'.\n", given_text);
        return false;
    }
    buf_addf(list, "%s{\"name\":", list->n ? "," : "");
    json_add_string(list, name);
    buf_add_lit(list, ",\"value\":");
    bool good = add_value(list, slice_str(equals + 1));
    buf_add_byte(list, '}');
    return good;
}

/* Removes the --parameter options from the arguments, since only they may be repeated. On an error prints it and returns false. */
static bool take_parameters(int *argc, char **argv, buf *list) {
    static const char flag[] = "--parameter";
    enum { FLAG_N = sizeof flag - 1 };
    int kept = 1;
    for (int i = 1; i < *argc; i++) {
        const char *value = NULL;
        if (strcmp(argv[i], flag) == 0 && i + 1 < *argc) {
            value = argv[++i];
        } else if (strncmp(argv[i], flag, FLAG_N) == 0 && argv[i][FLAG_N] == '=') {
            value = argv[i] + FLAG_N + 1;
        } else {
            argv[kept++] = argv[i];
        }
        if (value && !add_parameter(list, value)) {
            return false;
        }
    }
    *argc = kept;
    return true;
}

static bool add_text(buf *body, const char *name, slice value) {
    if (!bson_utf8_validate(value.p, value.n, false)) {
        fprintf(stderr, "tesela explain: the %s is not UTF-8.\n", name);
        return false;
    }
    buf_addf(body, "%s\"%s\":", body->n > 1 ? "," : "", name);
    json_add_string(body, value);
    return true;
}

static bool write_body(buf *body, const tool_words *words, const buf *parameters) {
    uint64_t rows;
    slice database, container;
    buf_add_byte(body, '{');
    if (!remote_names(words->list[0], false, &database, &container) || !add_text(body, "database", database) ||
        !add_text(body, "container", container) || !add_text(body, "query", slice_str(words->list[1]))) {
        return false;
    }
    buf_addf(body, ",\"parameters\":[%.*s]", (int)parameters->n, parameters->n ? parameters->p : "");
    if (asked.rows) {
        if (!tool_read_number("max-item-count", asked.rows, 1, 10000, &rows)) {
            return false;
        }
        buf_addf(body, ",\"maxItemCount\":%lu", (unsigned long)rows);
    }
    if (asked.key) {
        buf_add_lit(body, ",\"partitionKey\":");
        if (!add_value(body, slice_str(asked.key))) {
            return false;
        }
    }
    buf_add_byte(body, '}');
    return true;
}

/* ---- the answer ---- */

static void print_words(slice answer) {
    bson_iter_t it, each;
    buf out = buf_init(BUF_NO_LIMIT);
    if (doc_find_key(answer, SLICE_LIT("words"), &it) && BSON_ITER_HOLDS_ARRAY(&it) && bson_iter_recurse(&it, &each)) {
        while (bson_iter_next(&each) && BSON_ITER_HOLDS_UTF8(&each)) {
            text_add(&out, doc_text(&each), SIZE_MAX);
            buf_add_byte(&out, '\n');
        }
    }
    fwrite(out.p, 1, out.n, stdout);
    buf_free(&out);
}

static slice document_in(slice bson, const char *name) {
    bson_iter_t it;
    uint32_t n = 0;
    const uint8_t *p = NULL;
    if (doc_find_key(bson, slice_str(name), &it) && (BSON_ITER_HOLDS_DOCUMENT(&it) || BSON_ITER_HOLDS_ARRAY(&it))) {
        BSON_ITER_HOLDS_ARRAY(&it) ? bson_iter_array(&it, &n, &p) : bson_iter_document(&it, &n, &p);
    }
    return slice_of(p, n);
}

static slice text_in(slice bson, const char *name) {
    bson_iter_t it;
    return bson.n && doc_find_key(bson, slice_str(name), &it) && BSON_ITER_HOLDS_UTF8(&it) ? doc_text(&it) : SLICE_EMPTY;
}

static size_t number_in(slice bson, const char *name) {
    bson_iter_t it;
    int64_t n = bson.n && doc_find_key(bson, slice_str(name), &it) && BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_int64(&it) : 0;
    return n > 0 ? (size_t)n : 0;
}

/* Shows an error in the query's text with its position: the message is JSON, {"errors":[{"location":{"start":9,"end":13},"message":…}]}.
 * False: it is some other error. */
static bool tell_mistake(slice answer, slice query) {
    buf errors = buf_init(BUF_NO_LIMIT), out = buf_init(BUF_NO_LIMIT);
    json_root root;
    slice message = text_in(answer, "message");
    bool parsed = message.n && json_to_bson(message, NULL, &errors, &root, NULL) == OK && root == JSON_OBJECT;
    slice list = parsed ? document_in(buf_view(&errors), "errors") : SLICE_EMPTY;
    slice first = list.n ? document_in(list, "0") : SLICE_EMPTY;
    slice where = first.n ? document_in(first, "location") : SLICE_EMPTY;
    if (where.n) {
        text_add(&out, text_in(first, "message"), SIZE_MAX);
        buf_add_byte(&out, '\n');
        text_add_marked(&out, query, number_in(where, "start"), number_in(where, "end"));
        fwrite(out.p, 1, out.n, stderr);
    }
    buf_free(&errors);
    buf_free(&out);
    return where.n > 0;
}

static int ask(const remote *r, const buf *body, slice query) {
    remote_answer answer = {0};
    char why[REMOTE_WHY_BYTES];
    bool answered = remote_ask(r, "POST", SLICE_LIT("/_tesela/explain"), buf_view(body), &answer, why, sizeof why);
    bool mistake = answered && answer.status == 400 && answer.bson.n && tell_mistake(buf_view(&answer.bson), query);
    bool good = !mistake && remote_succeeded(answered, &answer, why);
    if (good && asked.json) {
        fwrite(answer.body.p, 1, answer.body.n, stdout);
    } else if (good && answer.bson.n) {
        print_words(buf_view(&answer.bson));
    }
    remote_answer_free(&answer);
    return good ? 0 : 1;
}

static int run(int argc, char **argv, buf *parameters, buf *body) {
    tool_words words = {0};
    remote r;
    if (!take_parameters(&argc, argv, parameters) || !tool_options_read_words(options, OPTIONS, argc, argv, "explain", &words)) {
        return 2;
    }
    if (given.help) {
        tool_help(&tool_explain);
        return 0;
    }
    if (words.n != 2) {
        tool_usage(&tool_explain, stderr);
        return 2;
    }
    return write_body(body, &words, parameters) && remote_open(&r, &given) ? ask(&r, body, slice_str(words.list[1])) : 2;
}

static int run_and_free(int argc, char **argv) {
    buf parameters = buf_init(BUF_NO_LIMIT), body = buf_init(BUF_NO_LIMIT);
    int status = run(argc, argv, &parameters, &body);
    buf_free(&parameters);
    buf_free(&body);
    return status;
}

const tool_command tool_explain = {
    .name = "explain",
    .summary = "what a query does, why, and what would help",
    .usage = "DATABASE/CONTAINER 'SELECT …' [options]",
    .about = "Runs one page of a query on a running server and tells which way its items were found in each range, what the index\n"
             "answered, what it could not and why, what it cost, and what would help. It costs what the query costs.",
    .options = options,
    .options_n = OPTIONS,
    .examples = "tesela explain shop/orders \"SELECT * FROM c WHERE c.total > 100 ORDER BY c.total DESC\"\n"
                "tesela explain shop/orders 'SELECT * FROM c WHERE c.city = @city AND c.n > @n' --parameter @city=Lima --parameter @n=3\n"
                "tesela explain shop/orders 'SELECT VALUE COUNT(1) FROM c' --partition-key customer-7 --json",
    .run = run_and_free,
};
