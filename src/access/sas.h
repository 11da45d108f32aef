/* sas.h — shared access signatures of Table storage: parameters of a URL that allow their bearer some operations for some time.
 *
 * Whoever has an account key makes them; the server keeps no list. There are two kinds. An *account* signature is for all tables:
 *
 *     sv=2019-02-02&ss=t&srt=sco&sp=rl&se=2026-11-16T15:00:00Z&sig=…
 *
 * srt says what it is for: s the service's own settings, c tables, o entities; sp what may be done: r query entities, a add, u update,
 * d delete, l list tables, c or w create them. A *table* signature is for one table (tn) and its entities (sp of r, a, u, d), or for those
 * between two keys: spk and srk the first, epk and erk the last. Either may name a start (st), addresses (sip) and https alone (spr).
 *
 * Parameters are percent-decoded, "+" is a blank except in sig, none may occur twice. The signature is checked before anything else is
 * judged, in constant time. A signature made with a read-only key allows only reads. Versions (sv) from 2015-04-05 on. Stored access
 * policies (si) are not kept, so what names one is refused. Any thread. */
#pragma once

#include "access/reach.h"

/* Which rows: p NULL is no bound. A row bound counts within its partition bound only, as in (partition, row) order. */
struct access_sas {
    bool is_account; /* for every table */
    slice table;     /* else this one, in any case of letters */
    slice from_partition, from_row;
    slice to_partition, to_row;
};

typedef struct access_sas_request {
    slice query;            /* of the URL as sent, without "?" */
    slice account;          /* the account's name as clients call it, which signatures name */
    const uint8_t *address; /* of the client, 16 bytes; IPv4 mapped */
    bool secure;            /* it came over TLS */
} access_sas_request;

/* The query has a signature: it is to be checked in place of an authorization field. */
bool access_sas_is_there(slice query);

/* Fills the reach; what it points to lives in op->arena. E_NO_AUTHORIZATION: no signature; E_BAD_AUTHORIZATION: a parameter is missing,
 * doubled or malformed; E_UNAUTHORIZED: no key signed it; E_FORBIDDEN: not at op->now_s, not from there, not over http, a policy. */
MUST_CHECK err access_sas_check(op *o, const access_ring *ring, const access_sas_request *request, access_reach *reach_out);

/* ---- asking; verbs are the reach's ---- */

bool access_sas_is_for(const access_sas *s, slice table); /* of an account signature always */
bool access_sas_is_bounded(const access_sas *s);

/* Whether an entity lies between the bounds. Queries return those that do; writes of others are refused. */
bool access_sas_covers(const access_sas *s, slice partition, slice row);
