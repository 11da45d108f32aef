/* remote.h — a running server, asked by the commands that watch and steer it, over http or https. Blocking, with time-outs.
 *
 * Requests are signed as the SQL API's are, so that a key never travels. Without a key nothing is sent: a server on this machine that uses
 * the emulator's key asks for none. */
#pragma once

#include "base/buf.h"
#include "tool/options.h"

/* Options that all such commands have. `given` is a remote_given. */
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

/* False, and says why on standard error: no such endpoint, no base64. */
bool remote_open(remote *r, const remote_given *given);

enum { REMOTE_WHY_BYTES = 512 };

typedef struct remote_answer {
    unsigned status;
    buf body;
    buf bson; /* the body, if it is a JSON object */
} remote_answer;

/* One request. `path` is as it goes on the wire; an empty body is none. False: there is no answer, and `why` says so in words that tell
 * what to do. Whatever comes, free the answer. */
bool remote_ask(const remote *r, const char *verb, slice path, slice body, remote_answer *answer_out, char *why, size_t why_n);
void remote_answer_free(remote_answer *a);

/* What came of it: anything but success is told on standard error. */
bool remote_succeeded(bool answered, const remote_answer *a, const char *why);

/* Both, for commands. */
bool remote_command(const remote *r, const char *verb, slice path, slice body, remote_answer *answer_out);

/* "database/container" in two; false, and says so, if it is not. With `database_alone` the container may be missing. */
bool remote_names(const char *text, bool database_alone, slice *database_out, slice *container_out);

/* Adds name=value to a query, percent-encoded; nothing if the value is empty. */
void remote_add_param(buf *path, const char *name, slice value);
