/* settings.h — within account/: a container's properties, from what a client sends to what the container works with. */
#pragma once

#include "account/account.h"

/* Reads and checks properties (BSON) into `c`, whose arena keeps everything; c->settings becomes the canonical form, defaults filled in.
 * E_BAD_REQUEST with the service's sentence. */
typedef struct settings_rules {
    bool hierarchical_allowed; /* MultiHash keys: the client's API version knows them */
    slice rows;                /* how its rows are told apart and kept (container_creation); empty: as the SQL API's */
} settings_rules;

MUST_CHECK err settings_read(op *o, slice properties, settings_rules rules, container *c);

/* The rows of settings that were read before, for rules. */
slice settings_rows(slice settings);

/* The indexing policy of a container's settings, as index_policy_parse wants it. In the arena. */
slice settings_indexing_policy(arena *a, const container *c);

/* What is kept for a front end: a name of an API in small letters and digits (empty: the SQL API's), and a BSON document or nothing. Both
 * are copied to the container's arena. E_BAD_REQUEST; E_TOO_LARGE. */
MUST_CHECK err settings_set_api(op *o, slice api, container *c);
MUST_CHECK err settings_set_memo(op *o, slice memo, container *c);

/* The settings of a container under another name, in the arena. */
slice settings_renamed(arena *a, slice settings, slice id);

/* What a replace may not change: key, rows, unique keys, vectors. */
MUST_CHECK err settings_check_replace(op *o, const container *before, const container *after);

/* Names of databases and containers. */
MUST_CHECK err settings_check_name(op *o, slice name);
