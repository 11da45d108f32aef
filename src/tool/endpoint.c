#include "tool/endpoint.h"

#include <signal.h>
#include <stdio.h>

#include "access/ring.h"
#include "doc/json.h"
#include "doc/path.h"
#include "tool/terminal.h"

static volatile sig_atomic_t stopped;

static void on_signal(int number) {
    (void)number;
    stopped = stopped + 1;
}

void endpoint_take_signals(void) {
    struct sigaction stop = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

bool endpoint_stopped(void) {
    return stopped != 0;
}

unsigned endpoint_stops(void) {
    return (unsigned)stopped;
}

void endpoint_tell(const char *command, const tesela_error *error) {
    buf shown = buf_init(BUF_NO_LIMIT);
    text_add(&shown, slice_str(error->message), SIZE_MAX);
    fprintf(stderr, "tesela %s: %.*s (%s", command, (int)shown.n, shown.p, tesela_status_text(error->status));
    if (error->http_status) {
        fprintf(stderr, ", %d", error->http_status);
    }
    fprintf(stderr, ")\n");
    buf_free(&shown);
}

tesela_client *endpoint_open(const char *endpoint, const char *key, const char *ca) {
    tesela_client_options options = {.endpoint = endpoint,
                                     .key = key ? key : access_key_emulator,
                                     .ca_file = ca,
                                     .application = "tesela-tool",
                                     .throttle_retries = 1000,
                                     .throttle_wait_ms = 3600 * 1000,
                                     .stay = true};
    tesela_client *client;
    tesela_error error;
    if (tesela_client_open(&options, &client, &error) != TESELA_OK) {
        fprintf(stderr, "tesela: --endpoint %s: %s\n", endpoint, error.message);
        return NULL;
    }
    return client;
}

tesela_container *endpoint_container(tesela_client *client, const char *names) {
    slice database, container;
    tesela_container *opened = NULL;
    tesela_error error;
    buf name = buf_init(BUF_NO_LIMIT);
    if (!remote_names(names, false, &database, &container)) {
        return NULL;
    }
    buf_add_slice(&name, database);
    buf_add_byte(&name, '\0');
    if (tesela_container_open(client, name.p, container.p, &opened, &error) != TESELA_OK) {
        fprintf(stderr, "tesela: %s: %s\n", names, error.message);
    }
    buf_free(&name);
    return opened;
}

bool endpoint_passing(tesela_status status) {
    switch (status) {
    case TESELA_UNAUTHORIZED:
    case TESELA_NOT_FOUND: /* of a write: the container is gone */
    case TESELA_GONE:
    case TESELA_THROTTLED:
    case TESELA_RETRY_WITH:
    case TESELA_SERVER_ERROR:
    case TESELA_UNAVAILABLE:
    case TESELA_TIMEOUT:
    case TESELA_NO_CONNECTION:
    case TESELA_TLS:
    case TESELA_CANCELLED:
        return true;
    default:
        return false;
    }
}

/* ---- containers ---- */

static bool definition_of(buf *out, slice id, const char *paths) {
    slice rest = slice_str(paths);
    size_t n = 0;
    buf list = buf_init(BUF_NO_LIMIT);
    while (rest.n) {
        const char *comma = memchr(rest.p, ',', rest.n);
        slice path = slice_of(rest.p, comma ? (size_t)(comma - rest.p) : rest.n);
        buf_addf(&list, "%s", n++ ? "," : "");
        json_add_string(&list, slice_trim(path));
        rest = slice_skip(rest, path.n + 1);
    }
    buf_add_lit(out, "{\"id\":");
    json_add_string(out, id);
    buf_addf(out, ",\"partitionKey\":{\"paths\":[%.*s],\"kind\":\"%s\",\"version\":2}}", (int)list.n, list.n ? list.p : "",
             n > 1 ? "MultiHash" : "Hash");
    buf_add_byte(out, '\0');
    buf_free(&list);
    return n >= 1 && n <= 3;
}

/* TESELA_FORBIDDEN: a key that may not make databases. */
static bool make(const char *command, tesela_client *client, tesela_container *container, const char *definition, uint32_t ru) {
    tesela_error error;
    tesela_throughput throughput = {.manual = ru};
    const char *database = tesela_container_database(container);
    tesela_status made = tesela_database_create(client, database, NULL, NULL, &error);
    if (made == TESELA_OK || made == TESELA_CONFLICT || made == TESELA_FORBIDDEN) {
        made = tesela_container_create(client, database, definition, ru ? &throughput : NULL, NULL, &error);
    }
    if (made != TESELA_OK && made != TESELA_CONFLICT) {
        endpoint_tell(command, &error);
        return false;
    }
    return true;
}

bool endpoint_create(const char *command, tesela_client *client, tesela_container *container, const char *paths, const char *throughput) {
    uint64_t ru = 0;
    buf definition = buf_init(BUF_NO_LIMIT);
    if (throughput && !tool_read_number("throughput", throughput, 400, 1000000, &ru)) {
        return false;
    }
    bool good =
        bson_utf8_validate(paths, strlen(paths), false) && definition_of(&definition, slice_str(tesela_container_name(container)), paths);
    if (!good) {
        fprintf(stderr, "tesela %s: --create must be one to three paths such as /city or /tenant,/user, not '%s'.\n", command, paths);
    }
    good = good && make(command, client, container, definition.p, (uint32_t)ru);
    buf_free(&definition);
    return good;
}

void endpoint_add_bare(buf *out, slice json) {
    static const char *const names[] = {"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"};
    enum { NAMES = sizeof names / sizeof *names };
    slice drop[NAMES];
    json_root root;
    buf bson = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < NAMES; i++) {
        drop[i] = slice_str(names[i]);
    }
    if (json_to_bson(json, &(json_options){.drop = drop, .drop_n = NAMES}, &bson, &root, NULL) == OK && root == JSON_OBJECT) {
        json_from_bson(out, buf_view(&bson));
    }
    buf_free(&bson);
}
