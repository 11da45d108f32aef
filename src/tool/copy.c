/* `tesela copy`: a live copy of a container into another one, by the change feed, with a cut-over.
 *
 *   follow   upserts what the feed gives, page by page. The next page is read when all items of the last one are in, so two versions of an
 *            item cannot overtake each other
 *   sweep    reads each item of the copy in the source. What is not there any more, or has another key of the copy, is deleted from the
 * copy
 *
 * The feed does not tell deletes, nor the key that an item had before: that is what the sweep is for. At the cut-over nobody writes to the
 * source, so after follow, sweep, follow the two are equal. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/memory.h"
#include "doc/json.h"
#include "doc/path.h"
#include "tool/endpoint.h"
#include "tool/item_key.h"
#include "tool/journal.h"
#include "tool/progress.h"
#include "tool/steer.h"
#include "tool/terminal.h"

static remote_given given = {.endpoint = REMOTE_ENDPOINT};

static struct {
    const char *create, *throughput, *follow, *cut_over, *merge, *journal, *restart, *requests, *to_endpoint, *to_key, *to_ca;
} asked = {.requests = "16"};

static const tool_option options[] = {
    {"create", "PATHS", "make the target if there is none, with this partition key: /city, or /tenant,/user", &asked.create, false},
    {"throughput", "RU/S", "with --create", &asked.throughput, false},
    {"follow", NULL, "go on until it is interrupted (Ctrl-C), which is the cut-over; again: stop at once", &asked.follow, false},
    {"cut-over", "COMMAND", "run this when the copy has caught up; it makes the source's writers stop", &asked.cut_over, false},
    {"merge", NULL, "into a container that has items; deletes are not copied then", &asked.merge, false},
    {"journal", "FILE", "how far it is", &asked.journal, false},
    {"restart", NULL, "do not go on where an earlier copy stopped", &asked.restart, false},
    {"requests", "N", "requests in flight, each with up to 100 items", &asked.requests, false},
    {"to-endpoint", "URL", "where the target is, if it is another server", &asked.to_endpoint, false},
    {"to-key", "BASE64", "one of its keys", &asked.to_key, true},
    {"to-ca", "FILE", "with https: trust this certificate", &asked.to_ca, false},
    REMOTE_OPTIONS(given),
};

enum { OPTIONS = sizeof options / sizeof *options, PAGE_ITEMS = 1000, IDLE_MS = 200, TRIES = 100, TRY_MS = 200 };

typedef struct copier {
    tesela_client *from_client, *to_client;
    tesela_container *from, *to;
    tesela_changes *feed;
    tesela_bulk *bulk;
    key_paths from_key, to_key;
    arena arena; /* of the paths */
    journal journal;
    progress progress;
    uint64_t copied, removed;
    tesela_error fatal; /* status TESELA_OK: none */
} copier;

/* ---- follow ---- */

static void on_done(void *context, const tesela_bulk_result *result) {
    copier *c = context;
    bool removes = result->tag != NULL; /* an item that changed or went since it was read is not removed */
    bool passes = removes && (result->status == TESELA_NOT_FOUND || result->status == TESELA_PRECONDITION_FAILED);
    if (result->status == TESELA_OK) {
        *(removes ? &c->removed : &c->copied) += 1;
    } else if (!passes && c->fatal.status == TESELA_OK) {
        c->fatal.status = result->status;
        c->fatal.http_status = result->http_status;
        snprintf(c->fatal.message, sizeof c->fatal.message, "the target refused the item %s", result->id ? result->id : "");
    }
}

static bool end_of_page(copier *c) {
    tesela_error error;
    (void)tesela_bulk_finish(c->bulk, &error); /* on_done has seen each result */
    return c->fatal.status == TESELA_OK;
}

static bool copy_page(copier *c, size_t n) {
    buf text = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < n && c->fatal.status == TESELA_OK; i++) {
        size_t length;
        const char *item = tesela_changes_item(c->feed, i, &length);
        buf_clear(&text);
        endpoint_add_bare(&text, slice_of(item, length));
        buf_add_byte(&text, '\0');
        (void)tesela_bulk_add(c->bulk, &(tesela_bulk_operation){.kind = TESELA_BULK_UPSERT, .body = text.p}, &c->fatal);
    }
    buf_free(&text);
    return end_of_page(c);
}

static bool keep_position(copier *c) {
    const char *at = tesela_changes_continuation(c->feed);
    buf_clear(&c->journal.continuation);
    buf_add_slice(&c->journal.continuation, slice_str(at ? at : ""));
    c->journal.items = c->copied;
    return journal_save(&c->journal);
}

static void show(copier *c) {
    tesela_bulk_counts counts = tesela_bulk_counted(c->bulk);
    double charge = counts.charge + tesela_changes_charge(c->feed);
    progress_show(&c->progress, (progress_now){.items = c->copied, .charge = charge, .part = -1});
}

static void pause_ms(long ms) {
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* Copies until there are no more changes at the moment. False: it failed, or was told to stop at once. */
static bool catch_up(copier *c, unsigned stops_allowed) {
    unsigned tries = 0;
    for (;;) {
        size_t n = 0;
        if (endpoint_stops() > stops_allowed) {
            return false;
        }
        tesela_status status = tesela_changes_page(c->feed, &n, &c->fatal);
        if (status != TESELA_OK && status != TESELA_DONE && endpoint_passing(status) && ++tries < TRIES) {
            pause_ms(TRY_MS); /* a range is being split, or the server is away for a moment */
            continue;
        }
        if (status == TESELA_DONE) {
            c->fatal.status = TESELA_OK;
            return keep_position(c);
        }
        c->fatal.status = status;
        if (status != TESELA_OK || !copy_page(c, n) || !keep_position(c)) {
            return false;
        }
        tries = 0;
        show(c);
    }
}

/* ---- sweep ---- */

typedef struct sweeping {
    copier *c;
    arena arena;
    size_t n;
    tesela_item_name names[PAGE_ITEMS];
    tesela_key keys[PAGE_ITEMS];
    const char *etags[PAGE_ITEMS];
    bool stale[PAGE_ITEMS];
    bool failed;
} sweeping;

static void was_read(void *context, size_t i, const tesela_bulk_result *result) {
    sweeping *s = context;
    if (result->status == TESELA_NOT_FOUND) {
        s->stale[i] = true;
    } else if (result->status != TESELA_OK) {
        s->failed = true;
    } else {
        buf bson = buf_init(BUF_NO_LIMIT);
        json_root root;
        if (json_to_bson(slice_of(result->body, result->length), NULL, &bson, &root, NULL) == OK) {
            tesela_key now = item_key_of(&s->arena, &s->c->to_key, buf_view(&bson));
            s->stale[i] = !item_key_same(&now, &s->keys[i]);
        }
        buf_free(&bson);
    }
}

static void add_name(sweeping *s, slice json) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    bson_iter_t it;
    if (json_to_bson(json, NULL, &bson, &root, NULL) == OK && doc_find_key(buf_view(&bson), SLICE_LIT("id"), &it)) {
        size_t i = s->n++;
        s->names[i] =
            (tesela_item_name){item_text_in(&s->arena, doc_text(&it)).p, item_key_of(&s->arena, &s->c->from_key, buf_view(&bson))};
        s->keys[i] = item_key_of(&s->arena, &s->c->to_key, buf_view(&bson));
        s->etags[i] = doc_find_key(buf_view(&bson), SLICE_LIT("_etag"), &it) ? item_text_in(&s->arena, doc_text(&it)).p : NULL;
        s->stale[i] = false;
    }
    buf_free(&bson);
}

static bool remove_stale(sweeping *s) {
    copier *c = s->c;
    for (size_t i = 0; i < s->n && c->fatal.status == TESELA_OK; i++) {
        if (s->stale[i]) {
            tesela_bulk_operation o = {
                .kind = TESELA_BULK_DELETE, .id = s->names[i].id, .key = &s->keys[i], .if_match = s->etags[i], .tag = s};
            (void)tesela_bulk_add(c->bulk, &o, &c->fatal);
        }
    }
    return end_of_page(c);
}

static bool sweep_some(sweeping *s) {
    copier *c = s->c;
    tesela_error error = {0};
    bool good = s->n == 0 || tesela_items_read(c->from, s->names, s->n, was_read, s, &error) == TESELA_OK;
    if (!good || s->failed) {
        c->fatal = error;
        c->fatal.status = error.status ? error.status : TESELA_SERVER_ERROR;
        return false;
    }
    good = remove_stale(s);
    s->n = 0;
    arena_reset(&s->arena);
    return good;
}

static bool sweep(copier *c) {
    sweeping *s = mem_zero(sizeof *s);
    tesela_cursor *cursor = NULL;
    const char *row;
    size_t n;
    s->c = c;
    tesela_status status = tesela_items(c->to, PAGE_ITEMS, NULL, &cursor, &c->fatal);
    bool good = status == TESELA_OK;
    while (good && (status = tesela_cursor_next(cursor, &row, &n, &c->fatal)) == TESELA_OK) {
        add_name(s, slice_of(row, n));
        good = s->n < PAGE_ITEMS || sweep_some(s);
        show(c);
    }
    good = good && status == TESELA_DONE && sweep_some(s);
    tesela_cursor_close(cursor);
    arena_free(&s->arena);
    free(s);
    return good;
}

/* ---- the course ---- */

static bool cut_over(copier *c) {
    if (!asked.cut_over) {
        return true;
    }
    progress_end(&c->progress);
    fflush(stdout);
    int status = system(asked.cut_over); // NOLINT: the user's own command
    if (status != 0) {
        fprintf(stderr, "tesela copy: the cut-over command failed (%d); the copy can go on with the same command.\n", status);
    }
    return status == 0;
}

/* Follows until it is told that the source has no more writers; then makes the copy equal to it. */
static bool run_course(copier *c) {
    bool good = catch_up(c, asked.follow ? 1 : 0);
    while (good && asked.follow && endpoint_stops() == 0) {
        pause_ms(IDLE_MS);
        good = catch_up(c, 1);
    }
    unsigned stops = asked.follow ? 1 : 0;
    return good && cut_over(c) && catch_up(c, stops) && (asked.merge || sweep(c)) && catch_up(c, stops);
}

/* ---- beginning and end ---- */

static bool is_empty(copier *c) {
    tesela_cursor *cursor;
    tesela_error error;
    const char *row;
    bool empty =
        tesela_items(c->to, 1, NULL, &cursor, &error) == TESELA_OK && tesela_cursor_next(cursor, &row, NULL, &error) == TESELA_DONE;
    tesela_cursor_close(cursor);
    if (!empty) {
        fprintf(stderr, "tesela copy: the target has items already: name an empty one, or --merge.\n");
    }
    return empty;
}

static bool open_containers(copier *c, const tool_words *words) {
    bool elsewhere = asked.to_endpoint != NULL;
    c->from_client = endpoint_open(given.endpoint, given.key, given.ca);
    c->to_client = endpoint_open(elsewhere ? asked.to_endpoint : given.endpoint, elsewhere ? asked.to_key : given.key,
                                 elsewhere ? asked.to_ca : given.ca);
    c->from = c->from_client ? endpoint_container(c->from_client, words->list[0]) : NULL;
    c->to = c->to_client ? endpoint_container(c->to_client, words->list[1]) : NULL;
    return c->from && c->to && (!asked.create || endpoint_create("copy", c->to_client, c->to, asked.create, asked.throughput)) &&
           item_key_paths("copy", c->from, &c->arena, &c->from_key) && item_key_paths("copy", c->to, &c->arena, &c->to_key);
}

static bool open_journal(copier *c, const tool_words *words) {
    buf source = buf_init(BUF_NO_LIMIT), target = buf_init(BUF_NO_LIMIT);
    buf_addf(&source, "%s %s", given.endpoint, words->list[0]);
    buf_addf(&target, "%s %s", asked.to_endpoint ? asked.to_endpoint : given.endpoint, words->list[1]);
    buf_add_byte(&source, '\0');
    buf_add_byte(&target, '\0');
    bool good = journal_open(&c->journal, asked.journal, source.p, target.p, asked.restart != NULL);
    buf_free(&source);
    buf_free(&target);
    return good;
}

static bool open_feed(copier *c) {
    uint64_t requests;
    tesela_error error;
    buf_add_byte(&c->journal.continuation, '\0');
    tesela_changes_options o = {.page_items = PAGE_ITEMS, .continuation = c->journal.continuation.n > 1 ? c->journal.continuation.p : NULL};
    if (!tool_read_number("requests", asked.requests, 1, 1000, &requests) || (!c->journal.found && !asked.merge && !is_empty(c))) {
        return false;
    }
    tesela_bulk_options bulk = {
        .requests = (unsigned)requests, .no_body = true, .throttle_wait_ms = 3600 * 1000, .done = on_done, .context = c};
    bool good =
        tesela_changes_open(c->from, &o, &c->feed, &error) == TESELA_OK && tesela_bulk_open(c->to, &bulk, &c->bulk, &error) == TESELA_OK;
    if (!good) {
        endpoint_tell("copy", &error);
    }
    return good;
}

static void close_all(copier *c) {
    tesela_bulk_close(c->bulk);
    tesela_changes_close(c->feed);
    tesela_container_close(c->from);
    tesela_container_close(c->to);
    tesela_client_close(c->from_client);
    tesela_client_close(c->to_client);
    journal_close(&c->journal);
    arena_free(&c->arena);
}

static int finish(copier *c, bool good) {
    progress_end(&c->progress);
    printf("%lu changes copied, %lu items removed in %.1f s\n", (unsigned long)c->copied, (unsigned long)c->removed,
           (double)progress_us(&c->progress) / 1e6);
    if (c->fatal.status != TESELA_OK && !good) {
        endpoint_tell("copy", &c->fatal);
    }
    if (good) {
        journal_remove(&c->journal);
    } else {
        fprintf(stderr, "tesela copy: stopped%s.\n", asked.journal ? "; the same command goes on where it was" : "");
    }
    return good ? 0 : 1;
}

static int run(int argc, char **argv) {
    tool_words words = {0};
    if (!tool_options_read_words(options, OPTIONS, argc, argv, "copy", &words)) {
        return 2;
    }
    if (given.help) {
        tool_help(&tool_copy);
        return 0;
    }
    if (words.n != 2) {
        tool_usage(&tool_copy, stderr);
        return 2;
    }
    copier c = {.arena = arena_init()};
    int status = 2;
    endpoint_take_signals();
    if (open_containers(&c, &words) && open_journal(&c, &words) && open_feed(&c)) {
        progress_begin(&c.progress, 0);
        status = finish(&c, run_course(&c));
    }
    close_all(&c);
    return status;
}

const tool_command tool_copy = {
    .name = "copy",
    .summary = "a live copy of a container, with a cut-over",
    .usage = "DATABASE/SOURCE DATABASE/TARGET [options]",
    .about =
        "Copies a container into another one, which may have another partition key, while applications go on writing to the source. It\n"
        "follows the source's change feed until it has caught up; then comes the cut-over: nobody writes to the source any more, the\n"
        "rest is copied, and items that the source no longer has, or that have another key now, are removed from the copy.\n"
        "\n"
        "With --cut-over it runs a command at that moment, which makes the writers stop. With --follow it goes on until Ctrl-C, for\n"
        "which you stop the writers first. Without either it ends when it has caught up.",
    .options = options,
    .options_n = OPTIONS,
    .notes = "Exit status: 0: the copy is complete. 1: it stopped; with --journal the same command goes on.",
    .examples = "tesela copy shop/orders shop/orders-by-customer --create /customer --follow --journal copy.journal\n"
                "tesela copy shop/orders shop/orders2 --create /customer --cut-over 'systemctl stop shop'\n"
                "tesela copy shop/orders shop/orders --to-endpoint https://name.documents.azure.com --to-key \"$KEY\" --merge",
    .run = run,
};
