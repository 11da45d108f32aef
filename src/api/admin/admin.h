/* admin.h — administration of a running server: JSON under /_tesela/ (see docs/admin.md), and /metrics for Prometheus.
 *
 * It has no port of its own: an API's front end passes it requests for other paths (sql_options.extra_handler). A request must be signed
 * with an account key as for the SQL API (resource type and link are empty), or send the key as `Authorization: Bearer KEY`; changes
 * need a key that may write. A server that is reachable only from its own machine (`local`) needs no key as long as one of its keys is the
 * emulator's, which is public.
 *
 * Endpoints that take long or block run on workers, one request of each kind at a time, so that they do not use up the workers. */
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

    /* Callbacks of the port's protocol: one returns the authorization field, the other checks the signature in it. */
    slice (*authorization)(const http_request *request);
    err (*check_signature)(op *o, const access_ring *ring, const http_request *request, access_key *key_out);
} admin_options;

/* Everything that the options point to must outlive the admin. */
admin *admin_open(const admin_options *options);
bool admin_handle(void *admin, http_request *request); /* true: the path belongs to it, and it answers */
void admin_stop(admin *a);                             /* waits for running splits and merges, rejects new ones; before account_stop */
void admin_close(admin *a);                            /* after net_close */
