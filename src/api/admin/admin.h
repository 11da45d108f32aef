/* admin.h — seeing and steering a running server: JSON under /_tesela/ (what docs/admin.md lists), and /metrics for Prometheus.
 *
 * It has no port of its own: an API's front end asks it about paths that are not its own (sql_options.beside). Who may: whoever signs with
 * an account key as for the SQL API (resource type and link are empty), or sends one as `Authorization: Bearer KEY`; changes need a key
 * that may write. A server that only its own machine reaches (`local`) asks nobody while one of its keys is the emulator's, which everybody
 * knows.
 *
 * Answers that take long, or wait, are made by workers, one of a kind at a time: an admin's questions leave workers for feeds. */
#pragma once

#include "account/account.h"
#include "account/faults.h"
#include "api/sql/attempts.h"
#include "api/sql/keys.h"
#include "net/server.h"
#include "script/pool.h"

typedef struct admin admin;

typedef struct admin_options {
    account *account;
    faults *faults;
    sql_keys *keys;
    sql_attempts *attempts;
    net_server *server;
    script_pool *scripts; /* for queries with user-defined functions */
    bool local;
} admin_options;

/* All that the options name outlives the admin. */
admin *admin_open(const admin_options *options);
bool admin_handle(void *admin,
                  http_request *request); /* true: the path is one of its own, and it answers; the fields are api/sql/fields.h's */
void admin_stop(admin *a);                /* waits for splits and merges under way, and starts no more: before account_stop */
void admin_close(admin *a);               /* after net_close */
