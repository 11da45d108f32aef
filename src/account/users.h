/* users.h — users of a database and their permissions. A resource token is issued for a permission and grants what it says.
 *
 * A user is a name. A permission gives its user one mode of access to one resource: a container, one partition key of a container, an
 * item, an attachment or a script. The resource is looked up when the permission is made, and is stored by number, not by name: if a
 * container or an item is deleted and created again under the same name, the permission does not apply to the new one. Two kinds of
 * permission are by name: one for a resource that does not exist yet (RID_NONE, looked up whenever it is used), and one for an item without
 * its partition key, which is for the items of that id under all keys. A user has at most one permission for a resource.
 *
 * Stored like the rest of the account: in memory and in STORE_META, changed by solo commits. Objects are refcounted and immutable; a
 * replace makes a new object with a unique version. Any thread. */
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
    slice word;    /* the mode as written by the client: SDKs differ in its case */
    rid_kind kind; /* RID_NONE: what `link` will name, and the next three are empty; RID_CONTAINER, RID_DOCUMENT, RID_ATTACHMENT, RID_SPROC,
                      RID_TRIGGER, RID_UDF */
    rid container; /* the granted container, or the one that holds the resource */
    uint64_t number; /* number of the item or script; for an attachment, of its item; 0: any item with the id `child` */
    slice child;     /* the attachment's name, or that id */
    pkey key;        /* n 0: none; for a container: access is limited to this key */
    slice link;      /* the resource's link as the client wrote it */
} grant;

/* Its arena holds the texts. */
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

/* As account_database: on OK the caller releases the result. E_NOT_FOUND; E_OWNER_NOT_FOUND: the database or the user does not exist. */
MUST_CHECK err account_user(account *a, slice database, bool database_by_rid, slice name, bool by_rid, user **user_out);
MUST_CHECK err account_permission(account *a, const user *u, slice name, bool by_rid, permission **permission_out);

/* The permission with this rid if it still has this version; NULL: deleted or changed. */
permission *account_permission_valid(account *a, const rid *permission_rid, uint64_t version);

/* A copy of a permission for what its link names now. The caller releases it. */
permission *permission_resolved(const permission *p, const grant *g);

void user_give(user *u);
void permission_give(permission *p);

/* Visits, in creation order, those with number > after, as account_each_database does. */
void account_each_user(account *a, const database *d, uint32_t after, bool (*visit)(void *, const user *), void *context);
void account_each_permission(account *a, const user *u, uint32_t after, bool (*visit)(void *, const permission *), void *context);

/* ---- changing: as in account.h. With `upsert` a creation replaces an existing resource; base.if_match then applies to it. ---- */

typedef struct user_creation {
    account_change base;
    account_name database;
    slice id;
    bool upsert;

    user *user_out;
    bool created; /* it did not exist before */
} user_creation;

typedef struct user_replacement {
    account_change base;
    account_name database, user;
    slice id; /* the name it gets */

    user *user_out;
} user_replacement;

typedef struct user_deletion { /* deletes its permissions too */
    account_change base;
    account_name database, user;
} user_deletion;

/* E_NOT_FOUND: the granted container no longer exists. E_CONFLICT: the name is taken, or the user has another permission for the same
 * resource. The caller keeps the grant's bytes alive until `done`. */
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
