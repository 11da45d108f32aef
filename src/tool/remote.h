/* remote.h — a client of a running server for the commands that watch and control it, over http or https. Blocking, with timeouts.
 *
 * Requests are signed as in the SQL API, so the key itself is never sent. Without a key requests are unsigned: a server on this machine
 * that uses the emulator's key needs no signature. */
#pragma once

#include "base/buf.h"
#include "tool/options.h"

/* Options common to all such commands. `given` is a remote_given. */
typedef struct remote_given {
    const char *endpoint, *key, *ca, *help;
} remote_given;

#define REMOTE_ENDPOINT "http://localhost:8081"
#define REMOTE_OPTIONS(given)                                                                                                              \
    {"endpoint", "URL", "the server's, http or https", &(given).endpoint, false},                                                          \
        {"key", "BASE64", "one of its keys", &(given).key, true},                                                                          \
        {"ca", "FILE", "with https: trust this certificate (PEM), a server's own tls-cert.pem for one", &(given).ca, false}, {             \
        "help", NULL, "this text", &(given).help, false                                                                                    \
    }

typedef struct remote {
    char host[256];
    char port[8];
    bool tls;
    const char *key; /* NULL: none */
    const char *ca;  /* certificates to trust; NULL: the system's */
} remote;

/* Prints an error and returns false if the endpoint is invalid or the key is not base64. */
bool remote_open(remote *r, const remote_given *given);

enum { REMOTE_WHY_BYTES = 512 };

typedef struct remote_answer {
    unsigned status;
    buf body;
    buf bson; /* the body, if it is a JSON object */
} remote_answer;

/* Sends one request. `path` is sent as it is; an empty body means none. False: no answer, with the reason and the remedy in `why`. The
 * caller frees the answer in every case. */
bool remote_ask(const remote *r, const char *verb, slice path, slice body, remote_answer *answer_out, char *why, size_t why_n);
void remote_answer_free(remote_answer *a);

/* Returns whether the request succeeded; otherwise prints the error on standard error. */
bool remote_succeeded(bool answered, const remote_answer *a, const char *why);

/* remote_ask and remote_succeeded together. */
bool remote_command(const remote *r, const char *verb, slice path, slice body, remote_answer *answer_out);

/* Splits "database/container"; prints an error and returns false if it has another form. With `database_alone` the container may be
 * missing. */
bool remote_names(const char *text, bool database_alone, slice *database_out, slice *container_out);

/* Adds name=value to a query, percent-encoded; nothing if the value is empty. */
void remote_add_param(buf *path, const char *name, slice value);
