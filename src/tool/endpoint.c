#include "tool/endpoint.h"

#include <signal.h>
#include <stdio.h>

#include "access/ring.h"
#include "tool/terminal.h"

static volatile sig_atomic_t stopped;

static void on_signal(int number) {
    (void)number;
    stopped = 1;
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
