/* access.h — within api/sql: who may do what.
 *
 * A request comes with one of three things. A key reads and writes everything; a read-only key reads everything but permissions, since
 * whoever reads those gets tokens. A resource token (access/token.h) does what its permission says, in the one container that the
 * permission is for, and nothing that access.c's table does not list: an operation that nobody thought of is refused to tokens.
 *
 *     permission for       lets its bearer
 *     a container          do all with its items, their attachments and conflicts; read its scripts; run its stored procedures (All)
 *     a partition key      the same with items, in requests that name this key (or one below it, if it is a prefix);
 *                          no bulk, no reading of scripts
 *     an item              read, replace, patch, delete it and its attachments; no queries, no batches
 *     an attachment        read, replace, delete it
 *     a stored procedure   read it, run it (All)
 *     a trigger, function  read it
 *
 * Each of them also lets its bearer read the account, the container's properties and its ranges, which SDKs ask for before anything else.
 * Read gives the reading part of it. Never: other containers, writing containers or scripts, databases, offers, users, permissions. */
#pragma once

#include "api/sql/sql_int.h"

/* Reads the authorization field and fills q->reach. E_UNAUTHORIZED and friends as in auth.h and access/token.h; E_FORBIDDEN: the token's
 * time is over, or its permission is gone or changed. */
MUST_CHECK err sql_access_authenticate(sql_request *q);

/* Whether the request may be handled. After sql_access_authenticate; `reads`: the operation changes nothing. E_FORBIDDEN with the service's
 * sentence. An item that a token for an item addresses by rid is addressed by its id from then on. */
MUST_CHECK err sql_access_check(sql_request *q, bool reads);

/* A POST that is a query, of a feed that knows queries. */
bool sql_access_is_query(const sql_request *q);

/* Whether the request may see statistics of the whole container, which name other partition keys: it was signed with a key, or its token is
 * for the whole container. */
bool sql_access_sees_all(const sql_request *q);

/* The container that was found is the one that the request's token is for, or there is no token. */
MUST_CHECK err sql_access_check_container(sql_request *q);
