/* endpoint.h — a client of libtesela from the options that commands share, for commands that move items. */
#pragma once

#include <tesela/tesela.h>

#include "tool/remote.h"

/* Without a key the emulator's is used, as a server on this machine expects. NULL: prints why. */
tesela_client *endpoint_open(const char *endpoint, const char *key, const char *ca);

/* Opens DATABASE/CONTAINER. NULL: prints why. */
tesela_container *endpoint_container(tesela_client *client, const char *names);

/* Makes the container, and its database, unless they exist. `paths` is /a or /a,/b; `throughput` may be NULL. False: prints why. */
bool endpoint_create(const char *command, tesela_client *client, tesela_container *container, const char *paths, const char *throughput);

/* Appends an item without what the server adds to it. Nothing, if it is no object. */
void endpoint_add_bare(buf *out, slice json);

/* Prints an error as "tesela import: …", safe for a terminal. */
void endpoint_tell(const char *command, const tesela_error *error);

/* Whether the same request may succeed later: then a transfer stops, and can be resumed. */
bool endpoint_passing(tesela_status status);

/* SIGINT and SIGTERM set a flag, so that a transfer ends in order. */
void endpoint_take_signals(void);
bool endpoint_stopped(void);
unsigned endpoint_stops(void); /* how many signals came */
