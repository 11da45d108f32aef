/* admin.h — seeing and steering a running server: JSON under /_tesela/ (what docs/admin.md lists), and /metrics for Prometheus.
 *
 * It has no port of its own: an API's front end asks it about paths that are not its own (sql_options.extra_handler). Who may: whoever
 * signs with an account key as for the SQL API (resource type and link are empty), or sends one as `Authorization: Bearer KEY`; changes
 * need a key that may write. A server that only its own machine reaches (`local`) asks nobody while one of its keys is the emulator's,
 * which everybody knows.
 *
 * Answers that take long, or wait, are made by workers, one of a kind at a time: an admin's questions leave workers for feeds. */
#pragma once

#include "access/attempts.h"
#include "access/keys.h"
#include "account/account.h"
#include "account/faults.h"
#include "net/server.h"
#include "script/pool.h"

typedef struct admin admin;

typedef struct admin_options {
    account *account;
    faults *faults;
    access_keys *keys;
    access_attempts *attempts;
    net_server *server;
    script_pool *scripts; /* for queries with user-defined functions */
    bool local;

    /* The protocol of the port that carries it: where the authorization field is, and how a signature in it is checked. */
    slice (*authorization)(const http_request *request);
    err (*check_signature)(op *o, const access_ring *ring, const http_request *request, access_key *key_out);
} admin_options;

/* All that the options name outlives the admin. */
admin *admin_open(const admin_options *options);
bool admin_handle(void *admin, http_request *request); /* true: the path is one of its own, and it answers */
void admin_stop(admin *a);                             /* waits for splits and merges under way, and starts no more: before account_stop */
void admin_close(admin *a);                            /* after net_close */
