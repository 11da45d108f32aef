/* reach.h — what an authenticated client may do: which verbs, in the whole account, one container or one partition key of it.
 *
 * Every way to authenticate fills a reach: a signature or a key (access_reach_of_key), a resource token (access_reach_of_token), SASL
 * (plain.h, scram.h), a shared access signature (sas.h), an Entra ID token (aad.h). A front end keeps the reach as long as the
 * authentication is valid: with HTTP for one request, with connection-oriented protocols for the connection. The latter call
 * access_reach_holds before each request, so that a changed key, an expired token or a withdrawn permission ends the access of open
 * connections.
 *
 * Plain data except for one counted reference, which access_reach_end releases. One thread at a time. */
#pragma once

#include "access/ring.h"
#include "account/users.h"

typedef enum access_verb {
    ACCESS_READ = 1 << 0,   /* items: read, scan, query, follow their changes; the properties of their container */
    ACCESS_INSERT = 1 << 1, /* an upsert needs this and ACCESS_UPDATE */
    ACCESS_UPDATE = 1 << 2,
    ACCESS_DELETE = 1 << 3,
    ACCESS_RUN = 1 << 4,        /* stored procedures */
    ACCESS_LIST = 1 << 5,       /* list and read databases, containers, their settings and throughput, scripts */
    ACCESS_CREATE = 1 << 6,     /* create those resources */
    ACCESS_ALTER = 1 << 7,      /* change those resources */
    ACCESS_DROP = 1 << 8,       /* delete those resources */
    ACCESS_DESCRIBE = 1 << 9,   /* read the account's own settings */
    ACCESS_CONFIGURE = 1 << 10, /* change the account's settings */
    ACCESS_GRANT = 1 << 11,     /* users and permissions, also reading them, since reading a permission yields a token */

    ACCESS_WRITE = ACCESS_INSERT | ACCESS_UPDATE | ACCESS_DELETE,
    ACCESS_ALL_READS = ACCESS_READ | ACCESS_LIST | ACCESS_DESCRIBE, /* the verbs of a read-only key */
    ACCESS_ALL = (1 << 12) - 1,
} access_verb;

typedef enum access_proof { ACCESS_NOBODY, ACCESS_BY_KEY, ACCESS_BY_TOKEN, ACCESS_BY_SAS, ACCESS_BY_ROLE } access_proof;

typedef struct access_sas access_sas;     /* sas.h */
typedef struct access_roles access_roles; /* roles.h */

typedef struct access_reach {
    access_proof proof;        /* all zero: unauthenticated, may do nothing */
    access_key key;            /* the key that signed; for a token the primary key */
    uint64_t serial;           /* serial of that key */
    unsigned verbs;            /* bits of access_verb */
    permission *permission;    /* for a token: a reference; else NULL */
    int64_t until_s;           /* expiry of a token or a shared access signature, seconds since 1970 */
    const access_sas *sas;     /* tables and rows of a shared access signature; lives in the arena it was read into */
    const access_roles *roles; /* roles of an Entra ID token's principal (aad.h), in all scopes; NULL: none; lives in the same arena */
    slice principal;           /* object id of that principal */
} access_reach;

/* ---- making ---- */

/* From a key that the client has proved to have. The key must be in the ring. */
void access_reach_of_key(access_reach *reach_out, const access_ring *ring, access_key key);

/* From a signature, with one of the keys, over a text that the protocol composes: `signature` is the base64 of HMAC-SHA256. E_UNAUTHORIZED:
 * no key signed it. Used for SharedKey and SharedKeyLite of the Table API. */
MUST_CHECK err access_reach_of_signature(const access_ring *ring, slice text, slice signature, access_reach *reach_out);

/* From a password: a key in clear, or a resource token starting at "type=". Errors as access_reach_of_token. */
MUST_CHECK err access_reach_of_password(op *o, const access_ring *ring, account *a, slice password, access_reach *reach_out);

/* From a resource token: `signature` is the part after "sig=" (token.h). Errors as access_token_read; E_FORBIDDEN also if its permission
 * was deleted or changed. On an error the reach allows nothing. */
MUST_CHECK err access_reach_of_token(op *o, const access_ring *ring, account *a, slice signature, access_reach *reach_out);

void access_reach_end(access_reach *r); /* releases the reference; the reach then allows nothing */

/* ---- checking ---- */

/* For a reach that is kept over several requests: whether it is still valid at op->now_s. E_UNAUTHORIZED: the key was changed or removed;
 * E_FORBIDDEN: it has expired, or the permission was deleted or changed. */
MUST_CHECK err access_reach_holds(op *o, const access_reach *r, const access_ring *ring, account *a);

/* Whether all of these verbs are allowed: in the account (`c` NULL), in a whole container (`key` NULL), or with items under that partition
 * key. A permission for a single item or script, and a shared access signature with row bounds, never cover a whole container: callers that
 * support them check further (api/sql/authorization.c, sas.h). The roles of an Entra ID token have scopes by name: callers that accept such
 * tokens check them (api/sql/authorization.c). */
bool access_allows(const access_reach *r, unsigned verbs, const container *c, const pkey *key);

/* Whether the partition key is the granted one, or lies below it if that is a prefix of a hierarchical key. */
bool access_key_is_below(const pkey *key, const pkey *granted);

/* Whether the permission is for this container or for something in it. */
bool access_is_for(const permission *p, const container *c);

/* Returns E_FORBIDDEN with the service's sentence for insufficient permissions. */
err access_refuse(op *o);
