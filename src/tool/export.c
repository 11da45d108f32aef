/* `tesela export`: the items of a container into a file. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "doc/json.h"
#include "tool/endpoint.h"
#include "tool/journal.h"
#include "tool/progress.h"
#include "tool/rows.h"
#include "tool/steer.h"
#include "tool/terminal.h"

static remote_given given = {.endpoint = REMOTE_ENDPOINT};
static struct { const char *format, *columns, *system, *journal, *restart, *parallel; } asked;

static const tool_option options[] = {
    {"format", "FORMAT", "jsonl, json (an array) or csv; by the end of the file's name if not given", &asked.format, false},
    {"columns", "NAMES", "of a CSV, with commas; address.city is nested. Those of the first page if not given", &asked.columns, false},
    {"system", NULL, "_rid, _self, _etag, _attachments and _ts too", &asked.system, false},
    {"journal", "FILE", "how far it is; FILE.journal if not given, none for standard output", &asked.journal, false},
    {"parallel", "N", "most requests at a time, each to a physical partition of its own (100)", &asked.parallel, false},
    {"restart", NULL, "do not go on where an earlier export stopped", &asked.restart, false},
    REMOTE_OPTIONS(given),
};

enum { OPTIONS = sizeof options / sizeof *options, SAVE_US = 1000000, PAGE_ITEMS = 1000, PARALLEL = 100, PARALLEL_MAX = 10000 };

typedef struct export {
    tesela_client *client;
    tesela_container *from;
    tesela_cursor *cursor;
    FILE *file;
    const char *name;
    rows_writer rows;
    journal journal;
    progress progress;
    int64_t items; /* of the container, when the export began or went on; negative: not known */
    int64_t saved_us;
    buf out, bson;
}
export;

static bool tell_file(const export *x) {
    fprintf(stderr, "tesela export: %s cannot be written: %s.\n", x->name, strerror(errno));
    return false;
}

/* ---- rows ---- */

static bool read_row(export *x, size_t i) {
    static const char *const names[] = {"_rid", "_self", "_etag", "_attachments", "_ts"};
    slice drop[5];
    size_t n = 0;
    json_root root;
    const char *row = tesela_cursor_row(x->cursor, i, &n);
    for (size_t k = 0; k < 5; k++) {
        drop[k] = slice_str(names[k]);
    }
    buf_clear(&x->bson);
    return json_to_bson(slice_of(row, n), &(json_options){.drop = drop, .drop_n = asked.system ? 0 : 5}, &x->bson, &root, NULL) == OK;
}

static bool flush(export *x) {
    bool good = fwrite(x->out.p, 1, x->out.n, x->file) == x->out.n;
    x->journal.bytes += x->out.n;
    buf_clear(&x->out);
    return good || tell_file(x);
}

/* A page is on the disk before the journal says that it is done. The continuation has a position for each range. */
static bool save(export *x) {
    int64_t now = progress_us(&x->progress);
    if (!x->journal.path || (now - x->saved_us < SAVE_US && !endpoint_stopped())) {
        return true;
    }
    const char *continuation = tesela_cursor_continuation(x->cursor);
    if (!continuation) { /* the next page is the end */
        return true;
    }
    x->saved_us = now;
    buf_clear(&x->journal.continuation);
    buf_add_slice(&x->journal.continuation, slice_str(continuation));
    if (fflush(x->file) != 0 || fsync(fileno(x->file)) != 0) {
        return tell_file(x);
    }
    return journal_save(&x->journal);
}

static bool write_page(export *x, size_t n) {
    bool begins = x->journal.bytes == 0;
    for (size_t i = 0; begins && i < n && x->rows.format == ROWS_CSV && !asked.columns; i++) {
        if (read_row(x, i)) {
            rows_writer_learn(&x->rows, buf_view(&x->bson));
        }
    }
    if (begins && (n || x->rows.format != ROWS_CSV || asked.columns)) {
        rows_begin(&x->rows, &x->out);
    }
    for (size_t i = 0; i < n; i++) {
        if (read_row(x, i)) {
            rows_add(&x->rows, &x->out, buf_view(&x->bson));
            x->journal.items++;
        }
    }
    return flush(x);
}

/* The part that is written, as far as is known: items come and go meanwhile. */
static double part_of(const export *x) {
    double part = x->items > 0 ? (double)x->journal.items / (double)x->items : -1;
    return part < 1 ? part : 1;
}

static int write_all(export *x) {
    tesela_error error = {0};
    size_t n = 0;
    tesela_status status = TESELA_OK;
    while (!endpoint_stopped() && (status = tesela_cursor_page(x->cursor, &n, &error)) == TESELA_OK) {
        if (!write_page(x, n)) {
            return 1;
        }
        progress_show(&x->progress,
                      (progress_now){.items = x->journal.items, .charge = tesela_cursor_charge(x->cursor), .part = part_of(x)});
        if (!save(x)) {
            return 1;
        }
    }
    progress_end(&x->progress);
    if (status != TESELA_DONE) {
        if (status != TESELA_OK) {
            endpoint_tell("export", &error);
        }
        return 1;
    }
    if (x->journal.bytes == 0 && !write_page(x, 0)) { /* no item at all */
        return 1;
    }
    rows_end(&x->rows, &x->out);
    return flush(x) && (fflush(x->file) == 0 || tell_file(x)) ? 0 : 1;
}

/* ---- beginning and end ---- */

/* The columns of the CSV that is continued are in its head. */
static bool take_columns(export *x) {
    FILE *file = fopen(x->name, "rb");
    rows_reader reader;
    bool good = file && rows_open(&reader, file, ROWS_CSV);
    for (size_t i = 0; good && i < reader.columns_n; i++) {
        rows_writer_columns(&x->rows, reader.columns[i]);
    }
    if (file) {
        rows_close(&reader);
        fclose(file);
    }
    return good || tell_file(x);
}

static bool open_file(export *x) {
    bool again = x->journal.found && x->journal.bytes;
    if (strcmp(x->name, "-") == 0) {
        x->file = stdout;
        return true;
    }
    x->file = fopen(x->name, again ? "r+b" : "wb");
    if (!x->file || (again && (ftruncate(fileno(x->file), (off_t)x->journal.bytes) != 0 || fseeko(x->file, 0, SEEK_END) != 0))) {
        return tell_file(x);
    }
    x->rows.rows = again ? x->journal.items : 0;
    return !again || x->rows.format != ROWS_CSV || take_columns(x);
}

static bool open_journal(export *x, const char *names) {
    size_t n = strlen(x->name) + sizeof ".journal";
    char *beside = mem_alloc(n);
    bool standard = strcmp(x->name, "-") == 0;
    buf source = buf_init(BUF_NO_LIMIT);
    snprintf(beside, n, "%s.journal", x->name);
    buf_addf(&source, "%s %s", given.endpoint, names);
    buf_add_byte(&source, '\0');
    bool good = journal_open(&x->journal,
                             asked.journal ? asked.journal
                             : standard    ? NULL
                                           : beside,
                             source.p, x->name, asked.restart != NULL);
    buf_free(&source);
    free(beside);
    return good;
}

/* A page at a time of whichever range has answered. */
static bool open_rows(export *x) {
    tesela_error error;
    uint64_t parallel = PARALLEL;
    if (asked.parallel && !tool_read_number("parallel", asked.parallel, 1, PARALLEL_MAX, &parallel)) {
        return false;
    }
    buf_add_byte(&x->journal.continuation, '\0');
    tesela_query_options how = {.unordered = true,
                                .parallelism = (int)parallel,
                                .page_items = PAGE_ITEMS,
                                .continuation = x->journal.continuation.n > 1 ? x->journal.continuation.p : NULL};
    if (tesela_query(x->from, "SELECT * FROM c", NULL, &how, &x->cursor, &error) != TESELA_OK) {
        endpoint_tell("export", &error);
        return false;
    }
    return true;
}

static bool open_all(export *x, const char *names) {
    rows_format format;
    if (!rows_format_of(asked.format, x->name, &format)) {
        fprintf(stderr, "tesela export: --format must be jsonl, json or csv, not '%s'.\n", asked.format);
        return false;
    }
    rows_writer_open(&x->rows, format);
    if (asked.columns) {
        rows_writer_columns(&x->rows, slice_str(asked.columns));
    }
    x->out = buf_init(BUF_NO_LIMIT);
    x->bson = buf_init(BUF_NO_LIMIT);
    x->client = endpoint_open(given.endpoint, given.key, given.ca);
    x->from = x->client ? endpoint_container(x->client, names) : NULL;
    return x->from && open_journal(x, names) && open_rows(x) && open_file(x);
}

static void close_all(export *x) {
    if (x->file && x->file != stdout) {
        fclose(x->file);
    }
    tesela_cursor_close(x->cursor);
    tesela_container_close(x->from);
    tesela_client_close(x->client);
    rows_writer_close(&x->rows);
    journal_close(&x->journal);
    buf_free(&x->out);
    buf_free(&x->bson);
}

static int finish(export *x, int status) {
    buf text = buf_init(BUF_NO_LIMIT);
    text_add_count(&text, (double)x->journal.items, "item");
    fprintf(stderr, "%.*s exported; %.0f RU in %.1f s\n", (int)text.n, text.p, tesela_cursor_charge(x->cursor),
            (double)progress_us(&x->progress) / 1e6);
    buf_free(&text);
    if (x->rows.cut) {
        fprintf(stderr, "tesela export: %lu items have properties that are no columns; --columns names more, or use jsonl.\n",
                (unsigned long)x->rows.cut);
    }
    if (status == 0) {
        journal_remove(&x->journal);
    } else if (x->journal.path) {
        fprintf(stderr, "tesela export: stopped; the same command goes on where it was.\n");
    }
    return status;
}

static int run(int argc, char **argv) {
    tool_words words = {0};
    if (!tool_options_read_words(options, OPTIONS, argc, argv, "export", &words)) {
        return 2;
    }
    if (given.help) {
        tool_help(&tool_export);
        return 0;
    }
    if (words.n != 2) {
        tool_usage(&tool_export, stderr);
        return 2;
    }
    export x = {.name = words.list[1]};
    int status = 2;
    endpoint_take_signals();
    if (open_all(&x, words.list[0])) {
        tesela_error unknown; /* then no time left is shown */
        (void)tesela_container_item_count(x.from, &x.items, &unknown);
        progress_begin(&x.progress, x.items > 0 ? part_of(&x) : 0);
        status = finish(&x, write_all(&x));
    }
    close_all(&x);
    return status;
}

const tool_command tool_export = {
    .name = "export",
    .summary = "the items of a container into a file",
    .usage = "DATABASE/CONTAINER FILE [options]",
    .about = "Writes the items of a container of any server that speaks the SQL API: as JSON lines, a JSON array or CSV, in any\n"
             "order. Physical partitions are read at the same time. Throttled requests are sent again after the time that the server\n"
             "tells. If it is stopped, or killed, the same command goes on where it was. - is standard output.",
    .options = options,
    .options_n = OPTIONS,
    .notes =
        "Items that change meanwhile are written as they are when their page is read. CSV has texts, numbers and nested objects; arrays\n"
        "become JSON text, so use jsonl for items that have them.",
    .examples = "tesela export shop/orders orders.jsonl\n"
                "tesela export shop/orders orders.csv --columns id,customer,address.city\n"
                "tesela export shop/orders - | tesela advise -",
    .run = run,
};
