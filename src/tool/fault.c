/* `tesela fault`: fault injection. */
#include <bson/bson.h>
#include <stdio.h>
#include <stdlib.h>

#include "doc/json.h"
#include "tool/remote.h"
#include "tool/steer.h"

static remote_given given = {.endpoint = REMOTE_ENDPOINT};

static struct {
    const char *status, *substatus, *count, *percent, *seed, *retry_after, *delay, *container, *range, *operation, *clear, *remove;
} asked;

static const tool_option options[] = {
    {"status", "N", "what they answer: 408, 410, 429, 449, 500 or 503", &asked.status, false},
    {"substatus", "N", "in place of the status's own", &asked.substatus, false},
    {"retry-after", "MS", "told with the status; 100 for 429", &asked.retry_after, false},
    {"delay", "MS", "answer so much later; without --status they then succeed", &asked.delay, false},
    {"count", "N", "the next N requests; 1 unless there is a percentage", &asked.count, false},
    {"percent", "P", "only so many of them, chosen at random", &asked.percent, false},
    {"seed", "N", "choose the same ones again", &asked.seed, false},
    {"container", "DB[/C]", "only those of this database, or container", &asked.container, false},
    {"range", "ID", "only those of this range", &asked.range, false},
    {"operation", "read|write|any", "only those that read, or write", &asked.operation, false},
    {"clear", NULL, "take all faults back", &asked.clear, false},
    {"remove", "ID", "take one back", &asked.remove, false},
    REMOTE_OPTIONS(given),
};

enum { OPTIONS = sizeof options / sizeof *options };

static bool add_number(buf *body, const char *flag, const char *name, const char *text) {
    uint64_t value;
    if (text && tool_read_number(flag, text, 0, UINT32_MAX, &value)) {
        buf_addf(body, ",\"%s\":%lu", name, (unsigned long)value);
        return true;
    }
    return !text;
}

static bool add_percent(buf *body, const char *text) {
    char *end;
    double value = text ? strtod(text, &end) : 0;
    if (!text) {
        return true;
    }
    if (*end || end == text || !(value > 0 && value <= 100)) {
        fprintf(stderr, "tesela: --percent must be a number up to 100, not '%s'.\n", text);
        return false;
    }
    buf_add_lit(body, ",\"percent\":");
    json_add_double(body, value);
    return true;
}

static bool add_text(buf *body, const char *name, slice value) {
    if (value.n && !bson_utf8_validate(value.p, value.n, false)) {
        fprintf(stderr, "tesela: '%.*s' is not UTF-8.\n", (int)value.n, value.p);
        return false;
    }
    if (value.n) {
        buf_addf(body, ",\"%s\":", name);
        json_add_string(body, value);
    }
    return true;
}

static bool write_fault(buf *body) {
    slice database = SLICE_EMPTY, container = SLICE_EMPTY;
    if (asked.container && !remote_names(asked.container, true, &database, &container)) {
        return false;
    }
    bool good = add_number(body, "status", "status", asked.status) && add_number(body, "substatus", "substatus", asked.substatus) &&
                add_number(body, "retry-after", "retryAfterMs", asked.retry_after) && add_number(body, "delay", "delayMs", asked.delay) &&
                add_number(body, "count", "count", asked.count) && add_percent(body, asked.percent) &&
                add_number(body, "seed", "seed", asked.seed) && add_number(body, "range", "range", asked.range) &&
                add_text(body, "database", database) && add_text(body, "container", container) &&
                add_text(body, "operation", asked.operation ? slice_str(asked.operation) : SLICE_EMPTY);
    if (body->n) {
        body->p[0] = '{';
    }
    buf_add_byte(body, '}');
    return good;
}

/* Chooses the verb, path and body: to add, remove or list faults. On an error prints it and returns false. */
static bool choose(const char **verb, buf *path, buf *body) {
    uint64_t id;
    bool adds = asked.status || asked.delay;
    buf_add_lit(path, "/_tesela/faults");
    if ((adds != false) + (asked.clear != NULL) + (asked.remove != NULL) > 1) {
        fprintf(stderr, "tesela fault: one of a fault, --clear and --remove.\n");
        return false;
    }
    *verb = adds ? "POST" : asked.clear || asked.remove ? "DELETE" : "GET";
    if (asked.remove) {
        if (!tool_read_number("remove", asked.remove, 1, UINT32_MAX, &id)) {
            return false;
        }
        buf_addf(path, "?id=%lu", (unsigned long)id);
    }
    bool filters = asked.substatus || asked.count || asked.percent || asked.seed || asked.retry_after || asked.container || asked.range ||
                   asked.operation;
    if (!adds && filters) {
        fprintf(stderr, "tesela fault: a fault needs --status, --delay, or both.\n");
        return false;
    }
    return !adds || write_fault(body);
}

static int run(int argc, char **argv) {
    remote r;
    if (!tool_options_read(options, OPTIONS, argc, argv, "fault")) {
        return 2;
    }
    if (given.help) {
        tool_help(&tool_fault);
        return 0;
    }
    buf path = buf_init(BUF_NO_LIMIT), body = buf_init(BUF_NO_LIMIT);
    remote_answer answer = {0};
    const char *verb;
    int status = 2;
    if (remote_open(&r, &given) && choose(&verb, &path, &body)) {
        bool good = remote_command(&r, verb, buf_view(&path), buf_view(&body), &answer);
        if (good) {
            fwrite(answer.body.p, 1, answer.body.n, stdout);
        }
        status = good ? 0 : 1;
    }
    remote_answer_free(&answer);
    buf_free(&path);
    buf_free(&body);
    return status;
}

const tool_command tool_fault = {
    .name = "fault",
    .summary = "make requests fail or wait, to test clients",
    .usage = "[options]",
    .about = "Makes item requests of a running server fail, or wait, on purpose: to see what a client does then. Without options it lists\n"
             "the faults there are.",
    .options = options,
    .options_n = OPTIONS,
    .examples = "tesela fault --status 429 --count 10                         # the next ten requests are throttled\n"
                "tesela fault --status 410 --container shop/orders --range 0  # one request is told that its range was split\n"
                "tesela fault --status 503 --percent 5 --seed 1               # one of twenty fails, the same ones every time\n"
                "tesela fault --delay 2000 --operation read --count 3         # three reads take two seconds\n"
                "tesela fault --clear",
    .run = run,
};
