/* users.h — users of a database, and their permissions: for whom resource tokens are made, and what a token lets its bearer do.
 *
 * A user is a name. A permission gives its user one mode of access to one resource: a container, one partition key of a container, an
 * item, an attachment or a script. What it is for was looked up when it was made and is kept by number, never by name: a container or an
 * item that is made again under the old name is another one, and the permission is not for it. A user has at most one permission for a
 * resource.
 *
 * Kept like all of the account: in memory, in STORE_META, changed by solo commits; objects are counted and never changed, a replace makes
 * another with a version that no other change ever had. Any thread. */
#pragma once

#include "account/account.h"

typedef struct user {
    atomic_uint refs;
    uint32_t number;
    rid rid;
    char *id;
    int64_t ts;
    uint64_t version;
} user;

typedef enum permission_mode { PERMISSION_READ, PERMISSION_ALL } permission_mode;

typedef struct grant {
    permission_mode mode;
    slice word;      /* for the mode, as it was written: SDKs differ in its case */
    rid_kind kind;   /* RID_CONTAINER, RID_DOCUMENT, RID_ATTACHMENT, RID_SPROC, RID_TRIGGER, RID_UDF */
    rid container;   /* that it is or lies in */
    uint64_t number; /* of the item or the script; of the item that an attachment is attached to */
    slice child;     /* the attachment's name */
    pkey key;        /* n 0: none; of a container: only what is under this key */
    slice link;      /* the resource as it was named */
} grant;

/* An arena of its own holds the texts. */
typedef struct permission {
    atomic_uint refs;
    arena arena;
    uint32_t number;
    rid rid;
    slice id;
    grant grant;
    int64_t ts;
    uint64_t version;
} permission;

/* ---- finding ---- */

/* As account_database: on OK give the result back. E_NOT_FOUND; E_OWNER_NOT_FOUND: the database or the user is not there. */
MUST_CHECK err account_user(account *a, slice database, bool database_by_rid, slice name, bool by_rid, user **user_out);
MUST_CHECK err account_permission(account *a, const user *u, slice name, bool by_rid, permission **permission_out);

/* The permission with this rid, as long as it is there in this version; NULL: gone or changed. */
permission *account_permission_valid(account *a, const rid *permission_rid, uint64_t version);

void user_give(user *u);
void permission_give(permission *p);

/* In creation order, those with number > after, as account_each_database. */
void account_each_user(account *a, const database *d, uint32_t after, bool (*visit)(void *, const user *), void *context);
void account_each_permission(account *a, const user *u, uint32_t after, bool (*visit)(void *, const permission *), void *context);

/* ---- changing: as in account.h. With `upsert` a creation replaces what is there; base.if_match is for that one. ---- */

typedef struct user_creation {
    account_change base;
    account_name database;
    slice id;
    bool upsert;

    user *user_out;
    bool created; /* it was not there before */
} user_creation;

typedef struct user_replacement {
    account_change base;
    account_name database, user;
    slice id; /* the name it gets */

    user *user_out;
} user_replacement;

typedef struct user_deletion { /* and of its permissions */
    account_change base;
    account_name database, user;
} user_deletion;

/* E_NOT_FOUND: the container that the grant is for is not there any more. E_CONFLICT: the name is taken, or the user has another permission
 * for the same resource. The grant's bytes are the caller's until done. */
typedef struct permission_creation {
    account_change base;
    account_name database, user;
    slice id;
    grant grant;
    bool upsert;

    permission *permission_out;
    bool created;
} permission_creation;

typedef struct permission_replacement {
    account_change base;
    account_name database, user, permission;
    slice id; /* the name it gets */
    grant grant;

    permission *permission_out;
} permission_replacement;

typedef struct permission_deletion {
    account_change base;
    account_name database, user, permission;
} permission_deletion;

void account_create_user(user_creation *create);
void account_replace_user(user_replacement *replace);
void account_delete_user(user_deletion *remove);
void account_create_permission(permission_creation *create);
void account_replace_permission(permission_replacement *replace);
void account_delete_permission(permission_deletion *remove);
