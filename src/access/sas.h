/* sas.h — shared access signatures of Table storage: URL parameters that allow certain operations for a limited time.
 *
 * The owner of an account key makes them; the server keeps no list. There are two kinds. An *account* signature is for all tables:
 *
 *     sv=2019-02-02&ss=t&srt=sco&sp=rl&se=2026-11-16T15:00:00Z&sig=…
 *
 * srt is the kind of resource: s the service's own settings, c tables, o entities. sp is the operations: r query entities, a add, u update,
 * d delete, l list tables, c or w create tables. A *table* signature is for one table (tn) and its entities (sp of r, a, u, d), or for the
 * entities from the key (spk, srk) to the key (epk, erk). Both kinds may have a start (st), addresses (sip) and require https (spr).
 *
 * Parameters are percent-decoded, "+" is a blank except in sig, and none may occur twice. The signature is checked before anything else is
 * evaluated, in constant time. A signature made with a read-only key allows only reads. Versions (sv) from 2015-04-05 on.
 *
 * A table signature may name a stored access policy (si) of its table. The policy gives the start, the expiry and the operations that the
 * parameters leave out; what is in both is rejected. Deleting the policy ends all signatures that name it. Any thread. */
#pragma once

#include "access/reach.h"

/* The rows it covers; p NULL: no bound. A row bound applies only within its partition bound, in (partition, row) order. */
struct access_sas {
    bool is_account; /* for every table */
    slice table;     /* else this one, ignoring case */
    slice from_partition, from_row;
    slice to_partition, to_row;
};

/* A stored access policy; p NULL: it does not say. */
typedef struct access_sas_policy {
    slice start, expiry, permissions;
} access_sas_policy;

typedef struct access_sas_request {
    slice query;            /* query of the URL as sent, without "?" */
    slice account;          /* the account's name as clients know it; it is part of the signed text */
    const uint8_t *address; /* the client's address, 16 bytes; IPv4 mapped */
    bool secure;            /* received over TLS */

    /* Finds a policy of a table; its texts live in the operation's arena. NULL: there are none. */
    bool (*find_policy)(void *context, op *o, slice table, slice id, access_sas_policy *policy_out);
    void *context;
} access_sas_request;

/* Whether the query has a signature, which is then checked instead of an authorization field. */
bool access_sas_is_there(slice query);

/* Fills the reach, which points into op->arena. E_NO_AUTHORIZATION: no signature; E_BAD_AUTHORIZATION: a parameter is missing, repeated or
 * malformed, it is not valid at op->now_s, or the table does not have the policy that it names; E_UNAUTHORIZED: no key signed it;
 * E_FORBIDDEN: not valid for this address or over http. */
MUST_CHECK err access_sas_check(op *o, const access_ring *ring, const access_sas_request *request, access_reach *reach_out);

/* ---- checking; the verbs are in the reach ---- */

bool access_sas_is_for(const access_sas *s, slice table); /* always true for an account signature */
bool access_sas_is_bounded(const access_sas *s);

/* Whether an entity lies within the bounds. Queries return only such entities; writes of others are rejected. */
bool access_sas_covers(const access_sas *s, slice partition, slice row);
