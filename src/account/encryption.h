/* encryption.h — client encryption keys of a database, and the check of a container's client encryption policy.
 *
 * Clients encrypt properties of items before they send them. What they encrypt with is kept here: a data key, itself encrypted (*wrapped*)
 * by a key that only the client has, with a note on how to unwrap it. The server can read neither. A container's policy names the
 * properties that clients encrypt, and the key of each.
 *
 * Keys are resources of a database and deleted with it; single ones cannot be deleted, since items may need them. Stored like the rest of
 * the account: in memory and in STORE_META, changed by solo commits. Objects are refcounted and immutable; a replace (a rewrap) makes a
 * new object. Any thread.
 *
 * Records in STORE_META: 'K' · database u32 · key u32 → a key. */
#pragma once

#include "account/account.h"

enum { ENCRYPTION_KEYS_MAX = 20, ENCRYPTION_KEY_BYTES_MAX = 64 * 1024 }; /* keys of a database, as in the service; bytes of one as BSON */

typedef struct encryption_key {
    atomic_uint refs;
    uint32_t number;
    rid rid;
    slice settings; /* BSON: id, encryptionAlgorithm, wrappedDataEncryptionKey, keyWrapMetadata */
    slice id;       /* points into settings */
    int64_t ts;
    uint64_t version;
} encryption_key;

/* As account_database: on OK the caller releases the result. E_NOT_FOUND; E_OWNER_NOT_FOUND: the database does not exist. */
MUST_CHECK err account_encryption_key(account *a, slice database, bool database_by_rid, slice name, bool by_rid, encryption_key **key_out);
void encryption_key_give(encryption_key *k); /* NULL is allowed */

/* Visits, in creation order, those with number > after, as account_each_database does. */
void account_each_encryption_key(account *a, const database *d, uint32_t after, bool (*visit)(void *, const encryption_key *),
                                 void *context);

/* ---- changing: as in account.h ---- */

typedef struct encryption_key_creation {
    account_change base;
    account_name database;
    slice settings; /* BSON as above; other members are dropped */

    encryption_key *key_out;
} encryption_key_creation;

typedef struct encryption_key_replacement {
    account_change base;
    account_name database, key;
    slice settings; /* with the same id */

    encryption_key *key_out;
} encryption_key_replacement;

void account_create_encryption_key(encryption_key_creation *create);
void account_replace_encryption_key(encryption_key_replacement *replace);
