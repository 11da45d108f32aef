/* `tesela rekey`: a container gets another partition key while it is in use.
 *
 *   make     a container with the new key, and the source's settings and scripts; the source's log of versions is turned on
 *   scan     copies all items
 *   follow   applies the log from before the scan: creates, replaces, deletes, in the order of the old layout
 *   switch   freezes the source (its writers are told to retry), applies the rest of the log, and lets the two containers exchange their
 *            names, in one write of the server
 *
 * The journal has the position in the log, and of the scan while that goes on (journal.line: 0). All of it may be done again: an item is
 * put whole, and where its copies are is looked up. A freeze ends by itself, so a command that dies leaves the source as it was. */
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "base/random.h"
#include "doc/json.h"
#include "tool/rekey_int.h"
#include "tool/remote.h"
#include "tool/steer.h"

static remote_given given = {.endpoint = REMOTE_ENDPOINT};

static struct { const char *key, *as, *journal, *undo, *drop, *freeze, *requests, *wait; } asked = {.freeze = "5", .requests = "16"};

static const tool_option options[] = {
    {"partition-key", "PATHS", "the new key: /city, or /tenant,/user", &asked.key, false},
    {"as", "NAME", "the new container until the switch, and the old one after it; default: CONTAINER-rekey", &asked.as, false},
    {"journal", "FILE", "how far it is; default: DATABASE.CONTAINER.rekey", &asked.journal, false},
    {"undo", NULL, "remove the new container, and leave the old one as it was before", &asked.undo, false},
    {"drop", NULL, "delete the old container after the switch", &asked.drop, false},
    {"wait", NULL, "follow until it is interrupted (Ctrl-C), then switch; again: stop at once", &asked.wait, false},
    {"freeze", "SECONDS", "how long writers may have to wait in the switch; if that does not do, it is tried again", &asked.freeze, false},
    {"requests", "N", "requests in flight, each with up to 100 items", &asked.requests, false},
    REMOTE_OPTIONS(given),
};

enum { OPTIONS = sizeof options / sizeof *options, IDLE_MS = 200, SWITCHES = 20, SPARE_MS = 500, CLAIM_MS = 60000, CLAIM_AGAIN_MS = 15000 };

typedef enum outcome { DONE, STOPPED, REFUSED } outcome;

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void rekey_sleep_ms(long ms) {
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

static void show(rekey *r) {
    double charge = tesela_bulk_counted(r->bulk).charge + (r->log ? tesela_changes_charge(r->log) : 0) + r->charge;
    bool scans = r->journal.line == 0 && r->total;
    double part = scans ? (double)r->copied / (double)r->total : -1;
    progress_show(&r->progress,
                  (progress_now){.items = r->copied + r->events, .failed = r->refused_n, .charge = charge, .part = part < 1 ? part : 1});
}

/* ---- the admin API ---- */

static void add_names(buf *body, const rekey *r) {
    buf_add_lit(body, "{\"database\":");
    json_add_string(body, slice_str(tesela_container_database(r->from)));
    buf_add_lit(body, ",\"container\":");
    json_add_string(body, slice_str(tesela_container_name(r->from)));
}

static int64_t number_in(slice bson, const char *name) {
    bson_iter_t it;
    return doc_find_key(bson, slice_str(name), &it) && BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_int64(&it) : 0;
}

static bool post(const remote *server, const char *path, buf *body, remote_answer *answer) {
    char why[REMOTE_WHY_BYTES] = "";
    bool answered = remote_ask(server, "POST", slice_str(path), buf_view(body), answer, why, sizeof why);
    buf_free(body);
    return answered && answer->status == 200;
}

/* 0: it cannot be frozen at the moment. */
static int64_t freeze(const rekey *r, const remote *server, uint64_t ms) {
    buf body = buf_init(BUF_NO_LIMIT);
    remote_answer answer = {0};
    add_names(&body, r);
    buf_addf(&body, ",\"ms\":%lu}", (unsigned long)ms);
    int64_t token = post(server, "/_tesela/freeze", &body, &answer) ? number_in(buf_view(&answer.bson), "freeze") : 0;
    remote_answer_free(&answer);
    return token;
}

static void thaw(const rekey *r, const remote *server, int64_t token) {
    buf body = buf_init(BUF_NO_LIMIT);
    remote_answer answer = {0};
    add_names(&body, r);
    buf_addf(&body, ",\"freeze\":%ld}", (long)token);
    (void)post(server, "/_tesela/thaw", &body, &answer); /* else the freeze ends by itself */
    remote_answer_free(&answer);
}

static bool exchange(const rekey *r, const remote *server, int64_t token) {
    buf body = buf_init(BUF_NO_LIMIT);
    remote_answer answer = {0};
    add_names(&body, r);
    buf_add_lit(&body, ",\"with\":");
    json_add_string(&body, slice_str(tesela_container_name(r->to)));
    buf_addf(&body, ",\"freeze\":%ld}", (long)token);
    bool good = post(server, "/_tesela/switch", &body, &answer);
    remote_answer_free(&answer);
    return good;
}

/* Keeps other commands from the container for a minute; false: another one has it. A server that does not answer is met elsewhere. */
static bool claim(rekey *r, unsigned ms) {
    buf body = buf_init(BUF_NO_LIMIT);
    remote_answer answer = {0};
    char why[REMOTE_WHY_BYTES];
    add_names(&body, r);
    buf_addf(&body, ",\"claim\":%lu,\"ms\":%u}", (unsigned long)r->journal.offset, ms);
    bool answered = remote_ask(r->server, "POST", SLICE_LIT("/_tesela/claim"), buf_view(&body), &answer, why, sizeof why);
    bool refused = answered && answer.status == 409;
    r->claimed_ms = refused ? 0 : now_ms();
    remote_answer_free(&answer);
    buf_free(&body);
    return !refused;
}

/* The claimant is in the journal from the start, so that a command that was killed can go on at once. */
static bool begin_claim(rekey *r, bool keep) {
    random_source random;
    random_seed_system(&random);
    r->journal.offset = r->journal.offset ? r->journal.offset : 1 + random_below(&random, UINT64_C(1) << 53);
    if (!claim(r, CLAIM_MS)) {
        fprintf(
            stderr,
            "tesela rekey: another rekey of %s is under way, with another journal (or one was killed less than a minute ago): wait for its "
            "end, or stop it.\n",
            tesela_container_name(r->from));
        return false;
    }
    return !keep || r->journal.found || journal_save(&r->journal);
}

static bool keep_claim(rekey *r) {
    if (now_ms() - r->claimed_ms < CLAIM_AGAIN_MS || claim(r, CLAIM_MS)) {
        return true;
    }
    r->fatal.status = TESELA_CONFLICT;
    snprintf(r->fatal.message, sizeof r->fatal.message, "another rekey of the container has begun meanwhile");
    return false;
}

static void end_claim(rekey *r) {
    if (r->claimed_ms) {
        (void)claim(r, 1); /* else it ends by itself */
    }
}

typedef struct standing {
    bool known, there, retired;
    uint64_t items;
} standing;

static standing standing_of(const remote *server, tesela_container *k) {
    standing s = {0};
    remote_answer answer = {0};
    char why[REMOTE_WHY_BYTES];
    buf path = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&path, "/_tesela/ranges?limit=1");
    remote_add_param(&path, "database", slice_str(tesela_container_database(k)));
    remote_add_param(&path, "container", slice_str(tesela_container_name(k)));
    bool answered = remote_ask(server, "GET", buf_view(&path), SLICE_EMPTY, &answer, why, sizeof why);
    bson_iter_t it, list, one;
    s.known = answered && (answer.status == 200 || answer.status == 404);
    if (answered && answer.status == 200 && doc_find_key(buf_view(&answer.bson), SLICE_LIT("containers"), &it) &&
        bson_iter_recurse(&it, &list) && bson_iter_next(&list) && bson_iter_recurse(&list, &one)) {
        s.there = true;
        while (bson_iter_next(&one)) {
            s.retired = s.retired || strcmp(bson_iter_key(&one), "retired") == 0;
            s.items = strcmp(bson_iter_key(&one), "items") == 0 ? (uint64_t)bson_iter_as_int64(&one) : s.items;
        }
    }
    remote_answer_free(&answer);
    buf_free(&path);
    return s;
}

/* ---- the journal: the log's position, a line break, the scan's ---- */

static bool keep_positions(rekey *r, const char *scan) {
    const char *at = tesela_changes_continuation(r->log);
    buf_clear(&r->journal.continuation);
    buf_add_slice(&r->journal.continuation, slice_str(at ? at : ""));
    buf_add_byte(&r->journal.continuation, '\n');
    buf_add_slice(&r->journal.continuation, slice_str(scan ? scan : ""));
    r->journal.items = r->copied;
    r->journal.failed = r->refused_n;
    return at && journal_save(&r->journal);
}

/* Items that were refused are not in the journal: if there were any, all items are read again. The log goes on where it was. */
static void begin_scan_again(rekey *r) {
    slice text = buf_view(&r->journal.continuation);
    const char *end = text.n ? memchr(text.p, '\n', text.n) : NULL;
    if (end && r->journal.failed) {
        r->journal.line = r->journal.items = 0;
        r->journal.continuation.n = (size_t)(end - text.p) + 1;
    }
}

/* A new log begins now: what it gives until it has caught up is in the scan too. */
static bool open_log(rekey *r) {
    slice text = buf_view(&r->journal.continuation);
    const char *end = text.n ? memchr(text.p, '\n', text.n) : NULL;
    char *at = end ? mem_text(text.p, (size_t)(end - text.p)) : NULL;
    tesela_changes_options o = {.all_versions = true, .from_now = true, .page_items = REKEY_PAGE, .continuation = at};
    tesela_status status = tesela_changes_open(r->from, &o, &r->log, &r->fatal);
    free(at);
    size_t n;
    while (status == TESELA_OK && !end && (status = tesela_changes_page(r->log, &n, &r->fatal)) == TESELA_OK) {
    }
    bool good = status == TESELA_OK || status == TESELA_DONE;
    r->fatal.status = good ? TESELA_OK : status;
    return good && (end || keep_positions(r, NULL));
}

/* ---- scan and follow ---- */

static bool stopped(void) {
    return endpoint_stops() > (asked.wait ? 1 : 0);
}

static bool scan_page(rekey *r, tesela_cursor *cursor, size_t n) {
    for (size_t from = 0; from < n; from += REKEY_PAGE) {
        rekey_page_begin(r);
        for (size_t i = from; i < n && i < from + REKEY_PAGE; i++) {
            size_t length;
            const char *row = tesela_cursor_row(cursor, i, &length);
            rekey_add_item(r, slice_of(row, length));
        }
        if (!rekey_apply(r, true)) {
            return false;
        }
    }
    r->copied += n;
    return keep_positions(r, tesela_cursor_continuation(cursor));
}

/* Goes on where the journal says. */
static tesela_cursor *open_scan(rekey *r) {
    slice text = buf_view(&r->journal.continuation);
    const char *end = text.n ? memchr(text.p, '\n', text.n) : NULL;
    slice rest = end ? slice_skip(text, (size_t)(end - text.p) + 1) : SLICE_EMPTY;
    char *at = rest.n ? mem_text(rest.p, rest.n) : NULL;
    tesela_cursor *cursor = NULL;
    tesela_status status = tesela_items(r->from, REKEY_PAGE, at, &cursor, &r->fatal);
    free(at);
    return status == TESELA_OK ? cursor : NULL;
}

static bool scan(rekey *r) {
    tesela_cursor *cursor = open_scan(r);
    unsigned tries = 0;
    tesela_status status = TESELA_OK;
    bool good = cursor != NULL;
    while (good && status == TESELA_OK) {
        size_t n = 0;
        status = tesela_cursor_page(cursor, &n, &r->fatal);
        if (status != TESELA_OK && status != TESELA_DONE && endpoint_passing(status) && ++tries < REKEY_TRIES) {
            rekey_sleep_ms(REKEY_TRY_MS);
            status = TESELA_OK;
            continue;
        }
        tries = 0;
        good = !stopped() && keep_claim(r) && (status != TESELA_OK || scan_page(r, cursor, n));
        show(r);
    }
    r->charge += cursor ? tesela_cursor_charge(cursor) : 0;
    tesela_cursor_close(cursor);
    if (good && status == TESELA_DONE) {
        r->fatal.status = TESELA_OK;
        r->journal.line = 1;
        return keep_positions(r, NULL);
    }
    return false;
}

static bool follow_page(rekey *r, size_t n) {
    rekey_page_begin(r);
    for (size_t i = 0; i < n; i++) {
        size_t length;
        const char *event = tesela_changes_item(r->log, i, &length);
        if (r->n == REKEY_PAGE) { /* a page may be longer than asked for: a batch is not divided */
            if (!rekey_apply(r, false)) {
                return false;
            }
            rekey_page_begin(r);
        }
        if (!rekey_add_event(r, slice_of(event, length))) {
            r->fatal.status = TESELA_BAD_RESPONSE;
            snprintf(r->fatal.message, sizeof r->fatal.message, "an event of the log is malformed");
            return false;
        }
    }
    r->events += n;
    return rekey_apply(r, false) && keep_positions(r, NULL);
}

/* Applies the log until there is no more at the moment, or until a time (0: none). False: it failed, or was told to stop. */
static bool catch_up(rekey *r, int64_t until_ms, bool *in_time_out) {
    unsigned tries = 0;
    *in_time_out = true;
    for (;;) {
        size_t n = 0;
        if (stopped() || !keep_claim(r)) {
            return false;
        }
        if (until_ms && now_ms() > until_ms) {
            *in_time_out = false;
            return true;
        }
        tesela_status status = tesela_changes_page(r->log, &n, &r->fatal);
        if (status == TESELA_DONE) {
            r->fatal.status = TESELA_OK;
            return true;
        }
        if (status != TESELA_OK && endpoint_passing(status) && ++tries < REKEY_TRIES) {
            rekey_sleep_ms(REKEY_TRY_MS);
            continue;
        }
        r->fatal.status = status;
        if (status != TESELA_OK || !follow_page(r, n)) {
            return false;
        }
        tries = 0;
        show(r);
    }
}

/* ---- the switch ---- */

static bool tell_refused(rekey *r) {
    progress_end(&r->progress);
    for (size_t i = 0; i < r->refused_n; i++) {
        buf id = buf_init(BUF_NO_LIMIT);
        json_add_string(&id, slice_str(r->refused[i].id));
        printf("refused (%d): %.*s: %s\n", r->refused[i].status, (int)id.n, id.p, r->refused[i].why);
        buf_free(&id);
    }
    return keep_positions(r, NULL);
}

/* A last check, while nobody writes: both have as many items. Where items expire, one may have removed more of them than the other. */
static bool same_number(rekey *r, const remote *server) {
    standing source = standing_of(server, r->from), target = standing_of(server, r->to);
    if (r->expires || !source.known || !target.known || source.items == target.items) {
        return true;
    }
    r->fatal.status = TESELA_SERVER_ERROR;
    snprintf(r->fatal.message, sizeof r->fatal.message,
             "the copy has %lu items, the container %lu: nothing was switched; --undo, and begin anew", (unsigned long)target.items,
             (unsigned long)source.items);
    return false;
}

/* *again_out: the freeze was too short, or could not be had. */
static outcome frozen_part(rekey *r, const remote *server, uint64_t ms, bool *again_out) {
    int64_t began = now_ms(), token = freeze(r, server, ms);
    bool in_time = true;
    *again_out = token == 0;
    if (*again_out) {
        return STOPPED;
    }
    bool good = catch_up(r, began + (int64_t)ms - SPARE_MS, &in_time);
    good = good && in_time && (r->refused_n == 0 || rekey_retry_refused(r));
    *again_out = !in_time;
    good = good && (r->refused_n || !in_time || same_number(r, server));
    if (good && r->refused_n == 0 && exchange(r, server, token)) {
        printf("switched: writers waited for up to %ld ms\n", (long)(now_ms() - began));
        return DONE;
    }
    standing now = standing_of(server, r->to);
    for (unsigned tries = 0; !now.known && tries < REKEY_TRIES; tries++) { /* the answer may have been lost, not the switch */
        rekey_sleep_ms(REKEY_TRY_MS);
        now = standing_of(server, r->to);
    }
    if (now.retired) {
        return DONE;
    }
    thaw(r, server, token);
    *again_out = *again_out || (good && r->refused_n == 0);
    return good && r->refused_n ? REFUSED : STOPPED;
}

static outcome switch_names(rekey *r, const remote *server, uint64_t ms) {
    for (unsigned tries = 0; tries < SWITCHES; tries++) {
        bool in_time, again;
        if (!rekey_sync_settings(r) || !catch_up(r, 0, &in_time) || !rekey_retry_refused(r)) {
            return STOPPED;
        }
        outcome end = r->refused_n ? REFUSED : frozen_part(r, server, ms, &again);
        if (end != STOPPED || !again) {
            return end;
        }
        rekey_sleep_ms(IDLE_MS);
    }
    r->fatal.status = TESELA_UNAVAILABLE;
    snprintf(r->fatal.message, sizeof r->fatal.message,
             "the writers are faster than the copy can follow: a longer --freeze, or more --requests");
    return STOPPED;
}

static outcome run_course(rekey *r, const remote *server, uint64_t ms) {
    bool in_time;
    bool good = r->journal.line == 1 || scan(r);
    good = good && catch_up(r, 0, &in_time);
    while (good && asked.wait && endpoint_stops() == 0) {
        rekey_sleep_ms(IDLE_MS);
        good = catch_up(r, 0, &in_time);
    }
    return good ? switch_names(r, server, ms) : STOPPED;
}

/* ---- beginning and end ---- */

/* After the switch: `from` has the new key, `to` is the old container. */
static int finish(rekey *r) {
    tesela_error error;
    bool good = rekey_end_log(r->to, r->from);
    journal_remove(&r->journal);
    if (good && asked.drop && tesela_container_delete(r->to, NULL, &error) != TESELA_OK) {
        endpoint_tell("rekey", &error);
        return 1;
    }
    printf("%s has the new key", tesela_container_name(r->from));
    if (asked.drop) {
        printf(".\n");
    } else {
        printf("; %s has the old one, and takes no more writes.\n", tesela_container_name(r->to));
    }
    return good ? 0 : 1;
}

static int undo(rekey *r, const remote *server) {
    standing target = standing_of(server, r->to);
    tesela_error error;
    if (target.retired) {
        fprintf(stderr, "tesela rekey: the switch is done: %s is the old container. Delete it if you do not need it.\n",
                tesela_container_name(r->to));
        return 1;
    }
    if (!target.there) {
        fprintf(stderr, "tesela rekey: there is no container %s.\n", tesela_container_name(r->to));
        return 1;
    }
    if (!begin_claim(r, false) || !rekey_end_log(r->from, r->to)) {
        return 1;
    }
    if (tesela_container_delete(r->to, NULL, &error) != TESELA_OK) {
        endpoint_tell("rekey", &error);
        return 1;
    }
    journal_remove(&r->journal);
    printf("%s is as it was before.\n", tesela_container_name(r->from));
    return 0;
}

static int end_course(rekey *r, outcome end) {
    progress_end(&r->progress);
    printf("%lu items and %lu changes copied, %lu removed in %.1f s\n", (unsigned long)r->copied, (unsigned long)r->events,
           (unsigned long)r->removed, (double)progress_us(&r->progress) / 1e6);
    if (end == DONE) {
        return finish(r);
    }
    if (end == REFUSED) {
        fprintf(stderr,
                "tesela rekey: %zu items cannot have the new key; nothing was switched. Change or delete them, and give the same "
                "command again; or --undo.\n",
                r->refused_n);
        return tell_refused(r) ? 3 : 1;
    }
    if (r->fatal.status != TESELA_OK) {
        endpoint_tell("rekey", &r->fatal);
    }
    fprintf(stderr, "tesela rekey: stopped; the same command goes on where it was, --undo removes what it made.\n");
    return 1;
}

static int begin(rekey *r, const remote *server) {
    uint64_t requests, seconds;
    bool ready;
    tesela_error error;
    if (!tool_read_number("requests", asked.requests, 1, 1000, &requests) || !tool_read_number("freeze", asked.freeze, 1, 60, &seconds)) {
        return 2;
    }
    standing source = standing_of(server, r->from), target = standing_of(server, r->to);
    if (!item_key_paths("rekey", r->from, &r->paths, &r->from_key)) {
        return 2;
    }
    if (rekey_has_key(&r->from_key, asked.key)) {
        ready = target.retired;
        if (!ready) {
            fprintf(stderr, "tesela rekey: %s has this key already.\n", tesela_container_name(r->from));
        }
        return ready ? finish(r) : 2; /* a command that was killed after the switch */
    }
    if (source.retired || target.retired) {
        fprintf(stderr, "tesela rekey: %s is the old container of an earlier rekey. Delete it, or name another one by --as.\n",
                tesela_container_name(source.retired ? r->from : r->to));
        return 2;
    }
    if (!begin_claim(r, true)) {
        return 2;
    }
    begin_scan_again(r);
    r->total = source.items;
    r->copied = r->journal.items;
    if ((!r->journal.found && !rekey_make(r, asked.key)) || !item_key_paths("rekey", r->to, &r->paths, &r->to_key)) {
        return 2;
    }
    if (!rekey_has_key(&r->to_key, asked.key)) {
        fprintf(stderr, "tesela rekey: the journal %s is of another key. --undo removes what was made.\n", r->journal.path);
        return 2;
    }
    tesela_bulk_options bulk = {
        .requests = (unsigned)requests, .no_body = true, .throttle_wait_ms = 3600 * 1000, .done = rekey_on_done, .context = r};
    if (tesela_bulk_open(r->to, &bulk, &r->bulk, &error) != TESELA_OK) {
        endpoint_tell("rekey", &error);
        return 1;
    }
    progress_begin(&r->progress, r->total ? (double)r->copied / (double)r->total : 0);
    outcome end = open_log(r) ? run_course(r, server, seconds * 1000) : STOPPED;
    return end_course(r, end);
}

static bool open_all(rekey *r, const char *names) {
    slice database, container;
    buf as = buf_init(BUF_NO_LIMIT), journal = buf_init(BUF_NO_LIMIT), source = buf_init(BUF_NO_LIMIT);
    bool good = remote_names(names, false, &database, &container);
    if (good) {
        buf_addf(&as, "%.*s/%s", (int)database.n, database.p, asked.as ? asked.as : container.p);
        buf_addf(&as, "%s", asked.as ? "" : "-rekey");
        buf_add_byte(&as, '\0');
        buf_addf(&journal, "%.*s.%s.rekey", (int)database.n, database.p, container.p);
        buf_add_byte(&journal, '\0');
        buf_addf(&source, "%s %s", given.endpoint, names);
        buf_add_byte(&source, '\0');
        r->client = endpoint_open(given.endpoint, given.key, given.ca);
        r->from = r->client ? endpoint_container(r->client, names) : NULL;
        r->to = r->from ? endpoint_container(r->client, as.p) : NULL;
        good = r->to && journal_open(&r->journal, asked.journal ? asked.journal : journal.p, source.p, as.p, false);
        r->journal.found = r->journal.found && r->journal.continuation.n; /* else it has only the claimant */
    }
    buf_free(&as);
    buf_free(&journal);
    buf_free(&source);
    return good;
}

static void close_all(rekey *r) {
    tesela_bulk_close(r->bulk);
    tesela_changes_close(r->log);
    tesela_container_close(r->from);
    tesela_container_close(r->to);
    tesela_client_close(r->client);
    rekey_drop_refused(r);
    journal_close(&r->journal);
    arena_free(&r->paths);
    arena_free(&r->page);
}

static int run(int argc, char **argv) {
    tool_words words = {0};
    remote server;
    if (!tool_options_read_words(options, OPTIONS, argc, argv, "rekey", &words)) {
        return 2;
    }
    if (given.help) {
        tool_help(&tool_rekey);
        return 0;
    }
    if (words.n != 1 || (!asked.key && !asked.undo)) {
        tool_usage(&tool_rekey, stderr);
        return 2;
    }
    rekey r = {.paths = arena_init(), .page = arena_init()};
    int status = 2;
    endpoint_take_signals();
    if (remote_open(&server, &given) && open_all(&r, words.list[0])) {
        r.server = &server;
        status = asked.undo ? undo(&r, &server) : begin(&r, &server);
        if (status == 2 && !r.journal.found && r.claimed_ms) {
            journal_remove(&r.journal);
        }
        end_claim(&r);
    }
    close_all(&r);
    return status;
}

const tool_command tool_rekey = {
    .name = "rekey",
    .summary = "another partition key for a container in use",
    .usage = "DATABASE/CONTAINER --partition-key PATHS [options]\nDATABASE/CONTAINER --undo",
    .about = "Copies the container into a new one with another partition key and the same settings, throughput and scripts, while\n"
             "applications go on reading and writing. It turns on the container's log of versions, and applies it to the copy: creates,\n"
             "replaces, deletes. When the copy has caught up, writers are told to retry for a moment (429), the rest is applied, and the\n"
             "two containers exchange their names at once. The old one then takes no more writes; it can be read, and deleted.\n"
             "\n"
             "Items that cannot have the new key (it is too long, or two items would have the same id and key) are listed, and stop the\n"
             "switch.",
    .options = options,
    .options_n = OPTIONS,
    .notes = "Exit status: 0: the container has the new key. 1: it stopped; the same command goes on. 2: a mistake on the command line;\n"
             "nothing was done. 3: items cannot have the new key; nothing was switched.",
    .examples = "tesela rekey shop/orders --partition-key /customer\n"
                "tesela rekey shop/orders --partition-key /tenant,/customer --wait # switches at Ctrl-C\n"
                "tesela rekey shop/orders --undo # before the switch",
    .run = run,
};
