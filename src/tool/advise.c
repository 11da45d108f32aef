/* `tesela advise`: which partition key suits some data and its queries. */
#include "advise/advise.h"

#include <stdlib.h>

#include "base/limits.h"
#include "doc/json.h"
#include "tool/endpoint.h"
#include "tool/lines.h"
#include "tool/steer.h"
#include "tool/terminal.h"

static remote_given given = {.endpoint = REMOTE_ENDPOINT};
static struct {
    const char *from, *log, *time, *growth, *horizon, *size, *throughput, *partitions, *load, *writes, *rows, *json;
} asked = {.horizon = "365", .throughput = "20000", .rows = "12"};

static const tool_option options[] = {
    {"from", "DATABASE/CONTAINER", "the items of a container, instead of a file", &asked.from, false},
    {"log", "FILE", "queries and writes, as 'tesela serve --record' writes them", &asked.log, false},
    {"time", "PATH", "the property that says when an item was written; found by itself if not given", &asked.time, false},
    {"growth", "FACTOR", "the data will be so many times as large", &asked.growth, false},
    {"horizon", "DAYS", "without --growth: project so far ahead, by the items' times", &asked.horizon, false},
    {"size", "SIZE", "of all data today, if FILE has a part of it: 100GB", &asked.size, false},
    {"throughput", "RU/S", "provisioned", &asked.throughput, false},
    {"partitions", "N", "physical partitions; as many as throughput and size need if not given", &asked.partitions, false},
    {"load", "RU/S", "used, if each query stayed in one partition; from the log, or 80 % of the throughput", &asked.load, false},
    {"writes", "PERCENT", "part of the load that writes; from the log if not given", &asked.writes, false},
    {"top", "N", "rows of the table", &asked.rows, false},
    {"json", NULL, "everything, as JSON", &asked.json, false},
    REMOTE_OPTIONS(given),
};

enum { OPTIONS = sizeof options / sizeof *options };

/* ---- flags ---- */

static bool read_real(const char *flag, const char *text, double least, double most, double *value_out) {
    char *end = NULL;
    if (!text) {
        return true;
    }
    *value_out = strtod(text, &end);
    if (end == text || *end || !(*value_out >= least && *value_out <= most)) {
        fprintf(stderr, "tesela advise: --%s must be a number from %g to %g, not '%s'.\n", flag, least, most, text);
        return false;
    }
    return true;
}

static bool read_options(advise_options *o, uint64_t *rows) {
    double partitions = 0, writes = -100;
    uint64_t bytes = 0;
    *o = advise_defaults;
    if (!read_real("growth", asked.growth, 1, 1e6, &o->growth) || !read_real("horizon", asked.horizon, 0, 36500, &o->horizon_days) ||
        !read_real("throughput", asked.throughput, 1, 1e9, &o->throughput) ||
        !read_real("partitions", asked.partitions, 1, ADVISE_PARTITIONS_MAX, &partitions) ||
        !read_real("load", asked.load, 1, 1e9, &o->load) || !read_real("writes", asked.writes, 0, 100, &writes) ||
        (asked.size && !tool_read_bytes("size", asked.size, &bytes)) || !tool_read_number("top", asked.rows, 1, 1000, rows)) {
        return false;
    }
    o->time_path = asked.time ? slice_str(asked.time) : SLICE_EMPTY;
    o->partitions = (uint32_t)partitions;
    o->write_share = writes / 100;
    o->total_bytes = (double)bytes;
    return true;
}

/* ---- input ---- */

static void tell_line(const lines *l, const char *reason) {
    fprintf(stderr, "tesela advise: line %lu of %s: %s.\n", (unsigned long)l->number, l->name, reason);
}

/* Reads a line as an object. False: it is none; prints why. */
static bool read_object(const lines *l, buf *bson) {
    json_root root;
    json_error why = {0};
    buf_clear(bson);
    if (json_to_bson(buf_view(&l->line), NULL, bson, &root, &why) != OK) {
        fprintf(stderr, "tesela advise: line %lu of %s is not JSON: %s, at byte %zu.\n", (unsigned long)l->number, l->name,
                why.reason ? why.reason : "too large", why.offset);
        return false;
    }
    if (root != JSON_OBJECT) {
        tell_line(l, "an item must be an object");
    }
    return root == JSON_OBJECT;
}

static bool add_item(advise *a, const lines *l, buf *bson) {
    if (l->too_long) {
        tell_line(l, "an item may have 2 MB");
        return false;
    }
    bool good = read_object(l, bson);
    if (good) {
        advise_add_item(a, buf_view(bson), l->line.n);
    }
    return good;
}

static bool add_operation(advise *a, const lines *l, buf *bson) {
    const char *why = "";
    if (l->too_long) {
        advise_add_long_operation(a);
        return true;
    }
    if (!read_object(l, bson)) {
        return false;
    }
    bool good = advise_add_operation(a, buf_view(bson), &why);
    if (!good) {
        tell_line(l, why);
    }
    return good;
}

static bool read_file(advise *a, const char *name, size_t line_max, bool (*add)(advise *a, const lines *l, buf *bson)) {
    lines l;
    if (!lines_open(&l, name, line_max)) {
        return false;
    }
    buf bson = buf_init((size_t)4 * LIMIT_ITEM_BYTES);
    bool good = true;
    while (good && lines_next(&l)) {
        good = lines_blank(&l) || add(a, &l, &bson);
    }
    good = good && !lines_failed(&l);
    buf_free(&bson);
    lines_close(&l);
    return good;
}

static bool read_items(advise *a, tesela_cursor *cursor) {
    tesela_error error = {0};
    tesela_status status;
    const char *row;
    size_t n;
    json_root root;
    buf bson = buf_init((size_t)4 * LIMIT_ITEM_BYTES);
    while ((status = tesela_cursor_next(cursor, &row, &n, &error)) == TESELA_OK && !endpoint_stopped()) {
        buf_clear(&bson);
        if (json_to_bson(slice_of(row, n), NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT) {
            advise_add_item(a, buf_view(&bson), n);
        }
    }
    buf_free(&bson);
    if (status != TESELA_DONE && status != TESELA_OK) {
        endpoint_tell("advise", &error);
    }
    return status == TESELA_DONE;
}

static bool read_container(advise *a) {
    tesela_client *client = endpoint_open(given.endpoint, given.key, given.ca);
    tesela_container *container = client ? endpoint_container(client, asked.from) : NULL;
    tesela_cursor *cursor = NULL;
    tesela_error error;
    endpoint_take_signals();
    bool good = container && tesela_items(container, 0, NULL, &cursor, &error) == TESELA_OK && read_items(a, cursor);
    tesela_cursor_close(cursor);
    tesela_container_close(container);
    tesela_client_close(client);
    return good;
}

/* ---- output ---- */

/* Names and values come from the data: nothing in them may control the terminal. */
static void print_safely(const buf *text) {
    buf out = buf_init(BUF_NO_LIMIT);
    for (slice rest = buf_view(text); rest.n;) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t n = end ? (size_t)(end - rest.p) : rest.n;
        text_add(&out, slice_of(rest.p, n), SIZE_MAX);
        buf_add_byte(&out, '\n');
        rest = slice_skip(rest, n + 1);
    }
    fwrite(out.p, 1, out.n, stdout);
    buf_free(&out);
}

static int report(advise *a, size_t rows) {
    const advise_report *r = advise_finish(a);
    if (!r) {
        fprintf(stderr, "tesela advise: there is no item with a property that could be a key.\n");
        return 1;
    }
    if (asked.time && !r->time_path.n) {
        fprintf(stderr, "tesela advise: --time %s: the items have no times there.\n", asked.time);
        return 1;
    }
    buf out = buf_init(BUF_NO_LIMIT);
    if (asked.json) {
        advise_write_json(&out, r);
        fwrite(out.p, 1, out.n, stdout);
    } else {
        advise_show(&out, r, rows);
        print_safely(&out);
    }
    buf_free(&out);
    return 0;
}

static int run(int argc, char **argv) {
    tool_words words = {0};
    advise_options o;
    uint64_t rows;
    if (!tool_options_read_words(options, OPTIONS, argc, argv, "advise", &words)) {
        return 2;
    }
    if (given.help) {
        tool_help(&tool_advise);
        return 0;
    }
    if (words.n != (asked.from ? 0u : 1u)) {
        tool_usage(&tool_advise, stderr);
        return 2;
    }
    if (!read_options(&o, &rows)) {
        return 2;
    }
    advise *a = advise_new(&o);
    bool good = (!asked.log || read_file(a, asked.log, ADVISE_OPERATION_BYTES, add_operation)) &&
                (asked.from ? read_container(a) : read_file(a, words.list[0], LIMIT_ITEM_BYTES, add_item));
    int status = good ? report(a, (size_t)rows) : 1;
    advise_free(a);
    return status;
}

const tool_command tool_advise = {
    .name = "advise",
    .summary = "which partition key suits some data and its queries",
    .usage = "FILE [options]\n"
             "--from DATABASE/CONTAINER [options]",
    .about =
        "Reads items, one JSON object a line, or those of a container, and tries every path, pairs and triples of paths as hierarchical\n"
        "keys, and synthetic keys. Shows for each how evenly it spreads data and load, which reads stay in one partition, what would be "
        "refused with 429, and\n"
        "recommends one, with its reasons. Memory is bounded, whatever the size of FILE. - is standard input.",
    .options = options,
    .options_n = OPTIONS,
    .notes = "A log makes the advice much better. It may be written by hand: {\"query\":\"SELECT * FROM c WHERE c.city = "
             "'Lima'\",\"count\":100}",
    .examples = "tesela advise orders.jsonl\n"
                "tesela advise orders.jsonl --log requests.jsonl --throughput 40000\n"
                "tesela advise --from shop/orders --log requests.jsonl\n"
                "tesela advise sample.jsonl --size 200GB --growth 3 --json\n"
                "zcat events.jsonl.gz | tesela advise - --time /at   # from a pipe",
    .run = run,
};
