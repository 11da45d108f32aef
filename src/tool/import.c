/* `tesela import`: items from a file, or another container, into a container.
 *
 * Many items are under way, and are done in any order. `under_way` has them in the order of the source. The journal's position is that of
 * the first one that is not done, so after a crash some items are written again: an upsert gives the same. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/memory.h"
#include "doc/json.h"
#include "doc/path.h"
#include "tool/failures.h"
#include "tool/progress.h"
#include "tool/source.h"
#include "tool/steer.h"
#include "tool/terminal.h"

static remote_given given = {.endpoint = REMOTE_ENDPOINT};

static struct {
    const char *format, *create, *throughput, *keep, *requests, *failed, *journal, *restart, *number, *from, *from_endpoint, *from_key,
        *from_ca;
} asked = {.requests = "100"};

static const tool_option options[] = {
    {"format", "FORMAT", "jsonl, json (an array) or csv; by the end of the file's name if not given", &asked.format, false},
    {"from", "DATABASE/CONTAINER", "read from a container, not from a file", &asked.from, false},
    {"from-endpoint", "URL", "where that is, if it is another server", &asked.from_endpoint, false},
    {"from-key", "BASE64", "one of its keys", &asked.from_key, true},
    {"from-ca", "FILE", "with https: trust this certificate", &asked.from_ca, false},
    {"create", "PATHS", "make the container if there is none, with this partition key: /city, or /tenant,/user", &asked.create, false},
    {"throughput", "RU/S", "with --create", &asked.throughput, false},
    {"keep", NULL, "leave items that exist as they are; otherwise they are replaced", &asked.keep, false},
    {"number-ids", NULL, "items without an id get the number of their line", &asked.number, false},
    {"requests", "N", "requests in flight, each with up to 100 items", &asked.requests, false},
    {"failed", "FILE", "what was refused, and why; FILE.failed if not given", &asked.failed, false},
    {"journal", "FILE", "how far it is; FILE.journal if not given, none for standard input", &asked.journal, false},
    {"restart", NULL, "do not go on where an earlier import stopped", &asked.restart, false},
    REMOTE_OPTIONS(given),
};

enum { OPTIONS = sizeof options / sizeof *options, UNDER_WAY = 32768, SAVE_US = 1000000 };
static const size_t bytes_max = (size_t)64 << 20; /* of items under way */

typedef struct moving {
    uint64_t offset, line, number;
    char *continuation; /* of the page that begins here; NULL: that of the moving before */
    size_t bytes;
    enum { UNDER_WAY_YET, WRITTEN, REFUSED, EXISTED } fate;
} moving;

typedef struct import {
    tesela_client *client, *from_client;
    tesela_container *to, *from;
    tesela_bulk *bulk;
    source source;
    journal journal;
    failures failures;
    progress progress;
    uint64_t head, tail; /* of under_way: [head, tail) modulo UNDER_WAY */
    moving *under_way;
    size_t bytes;
    uint64_t items, failed, kept; /* up to `head` */
    int64_t saved_us;
    tesela_error fatal; /* status TESELA_OK: none */
    bool broken;        /* the journal or the file of failures cannot be written */
} import;

/* ---- progress ---- */

/* The journal goes on here. A container is read by pages, so only the first item of a page is a place to go on. */
static void set_position(import *m, const moving *at) {
    if (m->source.cursor && !at->continuation) {
        return;
    }
    if (at->continuation) {
        buf_clear(&m->journal.continuation);
        buf_add_slice(&m->journal.continuation, slice_str(at->continuation));
    }
    m->journal.offset = at->offset;
    m->journal.line = at->line;
    m->journal.items = m->items;
    m->journal.failed = m->failed;
}

/* Forgets what is done at the beginning. */
static void advance(import *m) {
    while (m->head < m->tail && m->under_way[m->head % UNDER_WAY].fate != UNDER_WAY_YET) {
        moving *first = &m->under_way[m->head++ % UNDER_WAY];
        m->items += first->fate == WRITTEN;
        m->failed += first->fate == REFUSED;
        m->kept += first->fate == EXISTED;
        m->bytes -= first->bytes;
        free(first->continuation);
        first->continuation = NULL;
        if (m->head < m->tail) {
            set_position(m, &m->under_way[m->head % UNDER_WAY]);
        }
    }
}

static void show(import *m) {
    tesela_bulk_counts counts = tesela_bulk_counted(m->bulk);
    double part = m->source.bytes > 0 ? (double)m->source.rows.offset / m->source.bytes : -1;
    progress_show(&m->progress, (progress_now){.items = counts.succeeded, .failed = m->failed, .charge = counts.charge, .part = part});
}

/* Failures are on the disk before the journal says that they are done with. */
static void save(import *m) {
    int64_t now = progress_us(&m->progress);
    if (now - m->saved_us < SAVE_US) {
        return;
    }
    m->saved_us = now;
    m->broken = !failures_sync(&m->failures) || !journal_save(&m->journal) || m->broken;
}

/* ---- items ---- */

static void on_done(void *context, const tesela_bulk_result *result) {
    import *m = context;
    moving *mine = result->tag;
    bool exists = asked.keep && result->status == TESELA_CONFLICT;
    if (result->status != TESELA_OK && !exists && endpoint_passing(result->status)) {
        if (m->fatal.status == TESELA_OK) {
            m->fatal.status = result->status;
            m->fatal.http_status = result->http_status;
            snprintf(m->fatal.message, sizeof m->fatal.message, "the server does not take items at the moment");
        }
        return; /* it is not done: a later import writes it */
    }
    mine->fate = result->status == TESELA_OK ? WRITTEN : exists ? EXISTED : REFUSED;
    if (mine->fate == REFUSED) {
        failures_add(&m->failures, mine->number, result->http_status, result->http_substatus, tesela_status_text(result->status),
                     slice_str(result->sent ? result->sent : ""));
    }
    advance(m);
}

static moving *begin_item(import *m) {
    moving *mine = &m->under_way[m->tail % UNDER_WAY];
    *mine = (moving){.number = m->source.number, .bytes = m->source.item.n};
    source_position(&m->source, &mine->offset, &mine->line);
    if (m->source.cursor && m->source.page_at == 1) {
        mine->continuation = mem_text(m->source.continuation.p, m->source.continuation.n);
    }
    m->bytes += mine->bytes;
    if (m->head == m->tail++) {
        set_position(m, mine);
    }
    return mine;
}

static void fail_item(import *m, const char *why) {
    moving *mine = begin_item(m);
    mine->fate = REFUSED;
    failures_add(&m->failures, mine->number, 0, 0, why, m->source.item);
    advance(m);
}

static void send_item(import *m) {
    tesela_error error;
    moving *mine = begin_item(m);
    tesela_bulk_operation o = {.kind = asked.keep ? TESELA_BULK_CREATE : TESELA_BULK_UPSERT, .body = m->source.item.p, .tag = mine};
    if (tesela_bulk_add(m->bulk, &o, &error) == TESELA_OK) {
        return;
    }
    if (endpoint_passing(error.status)) {
        m->fatal = error;
        return;
    }
    mine->fate = REFUSED;
    failures_add(&m->failures, mine->number, error.http_status, error.http_substatus, error.message, m->source.item);
    advance(m);
}

/* Waits for everything under way. Failures of single items are counted in on_done. */
static void drain(import *m) {
    tesela_error error;
    (void)tesela_bulk_finish(m->bulk, &error);
}

/* Returns the exit status. */
static int move_all(import *m) {
    rows_result result = ROWS_END;
    while (m->fatal.status == TESELA_OK && !m->broken && !endpoint_stopped() && (result = source_next(&m->source)) < ROWS_END) {
        if (m->tail - m->head == UNDER_WAY || m->bytes > bytes_max) {
            drain(m);
        }
        if (m->tail - m->head == UNDER_WAY) {
            break; /* items that failed for a passing reason */
        }
        if (result == ROWS_BAD) {
            fail_item(m, m->source.why);
        } else {
            send_item(m);
        }
        show(m);
        save(m);
    }
    drain(m);
    m->saved_us = -SAVE_US;
    save(m);
    progress_end(&m->progress);
    if (result == ROWS_BROKEN) {
        fprintf(stderr, "tesela import: %s %lu: %s.\n", m->source.cursor ? "row" : "line", (unsigned long)m->source.number, m->source.why);
    }
    if (m->fatal.status != TESELA_OK) {
        endpoint_tell("import", &m->fatal);
    }
    return result == ROWS_END && m->fatal.status == TESELA_OK && m->head == m->tail && !m->broken ? 0 : 1;
}

/* ---- beginning and end ---- */

static char *beside(const char *given_name, const char *source, const char *ending) {
    if (given_name || strcmp(source, "-") == 0) {
        return given_name ? strdup(given_name) : NULL;
    }
    size_t n = strlen(source) + strlen(ending) + 1;
    char *name = mem_alloc(n);
    snprintf(name, n, "%s%s", source, ending);
    for (char *c = name; asked.from && *c; c++) {
        *c = *c == '/' ? '-' : *c;
    }
    return name;
}

static bool open_journal(import *m, const char *source, const char *target) {
    char *journal = beside(asked.journal, source, ".journal"), *failed = beside(asked.failed, source, ".failed");
    buf to = buf_init(BUF_NO_LIMIT);
    buf_addf(&to, "%s %s", given.endpoint, target);
    buf_add_byte(&to, '\0');
    bool good = journal_open(&m->journal, journal, source, to.p, asked.restart != NULL) &&
                failures_open(&m->failures, failed ? failed : "import.failed", m->journal.found ? m->journal.line : 0);
    buf_free(&to);
    free(journal);
    free(failed);
    return good;
}

static bool open_source(import *m, const char *name) {
    rows_format format;
    if (asked.from) {
        m->from_client =
            endpoint_open(asked.from_endpoint ? asked.from_endpoint : given.endpoint,
                          asked.from_key || asked.from_endpoint ? asked.from_key : given.key, asked.from_ca ? asked.from_ca : given.ca);
        m->from = m->from_client ? endpoint_container(m->from_client, asked.from) : NULL;
        return m->from && source_open_container(&m->source, m->from, &m->journal);
    }
    if (!rows_format_of(asked.format, name, &format)) {
        fprintf(stderr, "tesela import: --format must be jsonl, json or csv, not '%s'.\n", asked.format);
        return false;
    }
    return source_open_file(&m->source, name, format, &m->journal);
}

static bool open_all(import *m, const tool_words *words) {
    uint64_t requests;
    tesela_error error;
    const char *source = asked.from ? asked.from : words->list[1];
    if (!tool_read_number("requests", asked.requests, 1, 1000, &requests)) {
        return false;
    }
    m->client = endpoint_open(given.endpoint, given.key, given.ca);
    m->to = m->client ? endpoint_container(m->client, words->list[0]) : NULL;
    if (!m->to || !open_journal(m, source, words->list[0]) || !open_source(m, source) ||
        (asked.create && !endpoint_create("import", m->client, m->to, asked.create, asked.throughput))) {
        return false;
    }
    m->items = m->journal.items;
    m->failed = m->journal.failed;
    m->source.number_ids = asked.number != NULL;
    m->under_way = mem_zero(UNDER_WAY * sizeof *m->under_way);
    tesela_bulk_options o = {
        .requests = (unsigned)requests, .no_body = true, .throttle_wait_ms = 3600 * 1000, .done = on_done, .context = m};
    if (tesela_bulk_open(m->to, &o, &m->bulk, &error) != TESELA_OK) {
        endpoint_tell("import", &error);
        return false;
    }
    return true;
}

static void close_all(import *m) {
    for (; m->head < m->tail; m->head++) {
        free(m->under_way[m->head % UNDER_WAY].continuation);
    }
    free(m->under_way);
    tesela_bulk_close(m->bulk);
    source_close(&m->source);
    failures_close(&m->failures);
    journal_close(&m->journal);
    tesela_container_close(m->to);
    tesela_container_close(m->from);
    tesela_client_close(m->client);
    tesela_client_close(m->from_client);
}

/* 0: all is in. 1: it stopped. 3: it went to the end, but items were refused. */
static int finish(import *m, int status) {
    double seconds = (double)progress_us(&m->progress) / 1e6;
    tesela_bulk_counts counts = tesela_bulk_counted(m->bulk);
    buf text = buf_init(BUF_NO_LIMIT);
    text_add_count(&text, (double)m->items, "item");
    buf_add_lit(&text, " imported, ");
    text_add_number(&text, (double)m->failed);
    buf_add_lit(&text, " refused");
    if (m->kept) {
        buf_add_lit(&text, ", ");
        text_add_number(&text, (double)m->kept);
        buf_add_lit(&text, " existed");
    }
    buf_addf(&text, "; %.0f RU in %.1f s", counts.charge, seconds);
    if (counts.throttled) {
        buf_addf(&text, ", %lu times throttled", (unsigned long)counts.throttled);
    }
    printf("%.*s\n", (int)text.n, text.p);
    buf_free(&text);
    if (m->failed) {
        fprintf(stderr, "tesela import: %s says which items were refused, and why.\n", m->failures.path);
    }
    if (status == 0) {
        journal_remove(&m->journal);
    } else if (m->journal.path) {
        fprintf(stderr, "tesela import: stopped; the same command goes on where it was.\n");
    }
    return status ? status : m->failed ? 3 : 0;
}

static int run(int argc, char **argv) {
    tool_words words = {0};
    if (!tool_options_read_words(options, OPTIONS, argc, argv, "import", &words)) {
        return 2;
    }
    if (given.help) {
        tool_help(&tool_import);
        return 0;
    }
    if (words.n != (asked.from ? 1u : 2u)) {
        tool_usage(&tool_import, stderr);
        return 2;
    }
import m = {0 };
    int status = 2;
    endpoint_take_signals();
    if (open_all(&m, &words)) {
        progress_begin(&m.progress, m.source.bytes > 0 ? (double)m.source.rows.offset / m.source.bytes : 0);
        status = finish(&m, move_all(&m));
    }
    close_all(&m);
    return status;
}

const tool_command tool_import = {
    .name = "import",
    .summary = "items from a file or a container into a container",
    .usage = "DATABASE/CONTAINER FILE [options]\n"
             "DATABASE/CONTAINER --from DATABASE/CONTAINER [options]",
    .about = "Writes items into a container of any server that speaks the SQL API: from JSON lines, a JSON array or CSV, or from another\n"
             "container, which may have another partition key or none. Many requests are in flight; throttled items are sent again after\n"
             "the time that the server tells. Items that are refused are listed with their lines and reasons, and do not stop it.\n"
             "\n"
             "If it is stopped, or killed, the same command goes on where it was. Existing items are replaced, so nothing is doubled.",
    .options = options,
    .options_n = OPTIONS,
    .notes = "Exit status: 0: all items are in. 1: it stopped, and can go on. 3: some items were refused.",
    .examples = "tesela import shop/orders orders.jsonl --create /customer --throughput 4000\n"
                "tesela import shop/foods foods.csv --number-ids\n"
                "tesela import shop/orders --from shop/fixed --create /customer   # a fixed container becomes a partitioned one\n"
                "tesela import shop/orders --from shop/orders --from-endpoint https://name.documents.azure.com --from-key \"$KEY\"",
    .run = run,
};
