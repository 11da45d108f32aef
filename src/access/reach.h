/* reach.h — what someone who has authenticated may do: with which verbs, in the whole account, one container or one partition key of it.
 *
 * Every way to authenticate fills a reach: a signature or a key (access_reach_of_key), a resource token (access_reach_of_token), SASL
 * (plain.h, scram.h), a shared access signature (sas.h). A front end keeps it as long as what was proven is to count: of HTTP for one
 * request, of a connection-oriented protocol for the connection. The latter asks access_reach_holds before each request, so that a changed
 * key, an expired token or a withdrawn permission ends what they opened.
 *
 * Pure data but for one counted reference, which access_reach_end gives back. One thread at a time. */
#pragma once

#include "access/ring.h"
#include "account/users.h"

typedef enum access_verb {
    ACCESS_READ = 1 << 0,   /* items: read, scan, query, follow their changes; the properties of their container */
    ACCESS_INSERT = 1 << 1, /* an upsert needs this and the next */
    ACCESS_UPDATE = 1 << 2,
    ACCESS_DELETE = 1 << 3,
    ACCESS_RUN = 1 << 4,        /* stored procedures */
    ACCESS_LIST = 1 << 5,       /* databases, containers, their settings and throughput, scripts: see all of them */
    ACCESS_CREATE = 1 << 6,     /* make them */
    ACCESS_ALTER = 1 << 7,      /* change them */
    ACCESS_DROP = 1 << 8,       /* remove them */
    ACCESS_DESCRIBE = 1 << 9,   /* read the account's own settings */
    ACCESS_CONFIGURE = 1 << 10, /* change those */
    ACCESS_GRANT = 1 << 11,     /* users and permissions, also to read them: whoever reads a permission is given a token */

    ACCESS_WRITE = ACCESS_INSERT | ACCESS_UPDATE | ACCESS_DELETE,
    ACCESS_ALL_READS = ACCESS_READ | ACCESS_LIST | ACCESS_DESCRIBE, /* what a read-only key may */
    ACCESS_ALL = (1 << 12) - 1,
} access_verb;

typedef enum access_proof { ACCESS_NOBODY, ACCESS_BY_KEY, ACCESS_BY_TOKEN, ACCESS_BY_SAS } access_proof;

typedef struct access_sas access_sas; /* sas.h */

typedef struct access_reach {
    access_proof proof;     /* all zero: nobody, who may do nothing */
    access_key key;         /* that it rests on: the one that signed; of a token the primary one */
    uint64_t serial;        /* of that key */
    unsigned verbs;         /* of access_verb */
    permission *permission; /* of a token: a reference; else NULL */
    int64_t until_s;        /* of a token, a shared access signature: good until then, seconds since 1970 */
    const access_sas *sas;  /* of a shared access signature: the tables and rows it is for; as long as the arena it was read into */
} access_reach;

/* ---- making ---- */

/* Whoever has shown that key. The key must be in the ring. */
void access_reach_of_key(access_reach *reach_out, const access_ring *ring, access_key key);

/* Whoever has signed the text, which a protocol composes, with one of the keys: `signature` is the base64 of HMAC-SHA256. E_UNAUTHORIZED:
 * no key signed it. SharedKey and SharedKeyLite of the Table API are this. */
MUST_CHECK err access_reach_of_signature(const access_ring *ring, slice text, slice signature, access_reach *reach_out);

/* Whoever has sent a password: one of the keys as it is, or a resource token from "type=" on. Errors as access_reach_of_token. */
MUST_CHECK err access_reach_of_password(op *o, const access_ring *ring, account *a, slice password, access_reach *reach_out);

/* Whoever has sent a token: `signature` is what follows "sig=" (token.h). Errors as access_token_read; E_FORBIDDEN also if its permission
 * is gone or changed. On an error the reach is nobody's. */
MUST_CHECK err access_reach_of_token(op *o, const access_ring *ring, account *a, slice signature, access_reach *reach_out);

void access_reach_end(access_reach *r); /* gives the reference back; it is nobody's then */

/* ---- asking ---- */

/* For those who keep a reach over several requests: whether it still counts at op->now_s. E_UNAUTHORIZED: the key was changed or removed;
 * E_FORBIDDEN: its time is over, or the permission is gone or changed. */
MUST_CHECK err access_reach_holds(op *o, const access_reach *r, const access_ring *ring, account *a);

/* Whether all of these verbs are allowed: in the account (`c` NULL), in the whole of a container (`key` NULL), or with items under that
 * partition key. A permission for a single item or script, and a shared access signature with row bounds, reach no container as a whole:
 * whoever knows such things asks further (api/sql/access.c, sas.h). */
bool access_allows(const access_reach *r, unsigned verbs, const container *c, const pkey *key);

/* The partition key is the granted one or, if that is a prefix of a hierarchical key, lies below it. */
bool access_key_is_below(const pkey *key, const pkey *granted);

/* The permission is for this container or for something in it. */
bool access_is_for(const permission *p, const container *c);

/* The sentence that whoever may not is told: E_FORBIDDEN. */
err access_refuse(op *o);
