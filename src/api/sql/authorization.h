/* authorization.h — within api/sql: authorization.
 *
 * A request is signed with a key or carries a resource token or an Entra ID token. A key reads and writes everything. A read-only key reads
 * everything except permissions, since reading a permission yields a token. A resource token (access/token.h) grants what its permission
 * says, within the permission's one container, and only operations that authorization.c's table lists: a new operation is closed to tokens
 * by default.
 *
 *     permission for       the bearer may
 *     a container          do everything with its items, attachments and conflicts; read its scripts; run its stored procedures (All)
 *     a partition key      the same with items, in requests that name this key (or one below it, if it is a prefix);
 *                          no bulk, no reading of scripts
 *     an item              read, replace, patch, delete it and its attachments; no queries, no batches
 *     an attachment        read, replace, delete it
 *     a stored procedure   read it, run it (All)
 *     a trigger, function  read it
 *
 * Every permission also lets its bearer read the account, the container's properties and its ranges, which SDKs request first.
 * Mode Read allows only the reads above. No token gives access to other containers, databases, offers, users or permissions, or may
 * write containers or scripts. */
/* An Entra ID token (access/aad.h) grants what the roles of its principal say: the data of their scopes and the metadata that SDKs need for
 * it, by a second table; managing is closed to it. */
#pragma once

#include "api/sql/sql_int.h"

/* Reads the authorization field and fills q->reach. E_UNAUTHORIZED and the other errors of auth.h and access/token.h; E_FORBIDDEN: the
 * token has expired, or its permission was deleted or changed. */
MUST_CHECK err sql_access_authenticate(sql_request *q);

/* Whether the request may be handled. Call it after sql_access_authenticate. `reads`: the operation changes nothing. E_FORBIDDEN with the
 * service's sentence. If a token for an item addresses it by rid, the route is rewritten to the item's id. */
MUST_CHECK err sql_access_check(sql_request *q, bool reads);

/* Whether the request is a POST that queries a feed; only feeds that support queries count. */
bool sql_access_is_query(const sql_request *q);

/* Whether the request may see statistics of the whole container, which name other partition keys: true for a key, and for a token whose
 * permission is for the whole container. */
bool sql_access_covers_container(const sql_request *q);

/* Checks that q->container is the one that the request's token is for. OK if there is no token. */
MUST_CHECK err sql_access_check_container(sql_request *q);
