/* settings.h — within account/: parses and checks a container's properties as sent by a client. */
#pragma once

#include "account/account.h"

/* settings_read reads and checks properties (BSON) into `c`, whose arena holds everything; c->settings becomes the canonical form, defaults
 * filled in. E_BAD_REQUEST with the service's sentence. */
typedef struct settings_rules {
    bool hierarchical_allowed; /* the client's API version knows MultiHash keys */
    slice rows;                /* how its rows are identified and stored (container_creation); empty: as in the SQL API */
} settings_rules;

MUST_CHECK err settings_read(op *o, slice properties, settings_rules rules, container *c);

/* The `rows` of stored settings, to pass as settings_rules.rows. */
slice settings_rows(slice settings);

/* The indexing policy of a container's settings, as input for index_policy_parse. In the arena. */
slice settings_indexing_policy(arena *a, const container *c);

/* Sets the values kept for a front end: the API's name in lower-case letters and digits (empty: the SQL API), and a BSON document or
 * nothing. Both are copied to the container's arena. E_BAD_REQUEST; E_TOO_LARGE. */
MUST_CHECK err settings_set_api(op *o, slice api, container *c);
MUST_CHECK err settings_set_memo(op *o, slice memo, container *c);

/* The settings with another id, in the arena. */
slice settings_renamed(arena *a, slice settings, slice id);

/* Checks what only new containers of the SQL API must satisfy: their partition key paths have none of the characters that the service
 * refuses. */
MUST_CHECK err settings_check_new(op *o, const container *c);

/* Checks that a replace leaves key, rows, unique keys and vectors unchanged. */
MUST_CHECK err settings_check_replace(op *o, const container *before, const container *after);

/* Checks the name of a database or container. */
MUST_CHECK err settings_check_name(op *o, slice name);
