/* scripts.h — stored procedures, triggers and user-defined functions of a container: JavaScript texts with an id.
 *
 * They are resources like databases and containers: held in memory, stored in STORE_META, changed by an account_change. A version is
 * refcounted and immutable, so a running script keeps its version alive. This module does not interpret the texts.
 *
 * Records in STORE_META: 'S' · database u32 · container u32 · kind u8 (account_script_kind) · number u32 → a script. */
#pragma once

#include "account/account.h"

typedef enum trigger_operation {
    TRIGGER_ALL,
    TRIGGER_CREATE,
    TRIGGER_UPDATE,
    TRIGGER_DELETE,
    TRIGGER_REPLACE,
    TRIGGER_UPSERT,
    TRIGGER_OPERATIONS
} trigger_operation;

extern const char *const trigger_operation_names[TRIGGER_OPERATIONS];

struct account_script {
    atomic_uint refs;
    account_script_kind kind;
    uint32_t number; /* unique in the account, in creation order */
    rid rid;
    slice settings; /* BSON: id and body; for a trigger also triggerType and triggerOperation as given */
    slice id, body; /* point into settings; each is followed by a zero byte */
    bool post;      /* trigger: runs after the write, not before it */
    trigger_operation operation;
    int64_t ts;
    uint64_t version; /* unique over all versions of all scripts: usable as a cache key */
};

/* Finds a script by id; with `by_rid` the name is tried as a rid first. On OK the caller releases the result. E_NOT_FOUND;
 * E_OWNER_NOT_FOUND: the container is gone. */
MUST_CHECK err account_find_script(account *a, const container *c, account_script_kind kind, slice name, bool by_rid,
                                   account_script **script_out);
account_script *account_script_take(account_script *s);
void account_script_give(account_script *s); /* NULL is allowed */

/* Visits, in creation order, the scripts with number > after; the visitor returns false to stop. It must not call back into the account. */
void account_each_script(account *a, const container *c, account_script_kind kind, uint32_t after,
                         bool (*visit)(void *, const account_script *), void *context);

bool account_has_scripts(const account *a); /* whether any container has a script */

/* ---- changing: as in account.h ---- */

typedef struct script_creation {
    account_change base;
    account_name database, container;
    account_script_kind kind;
    slice settings; /* BSON: id, body, and for a trigger when it runs */
    bool upsert;    /* replaces an existing script; base.if_match then applies to it */

    account_script *script_out;
    bool created; /* it did not exist before */
} script_creation;

typedef struct script_replacement {
    account_change base;
    account_name database, container, script;
    account_script_kind kind;
    slice settings;

    account_script *script_out;
} script_replacement;

typedef struct script_deletion {
    account_change base;
    account_name database, container, script;
    account_script_kind kind;

    account_script *script_out; /* the deleted script */
} script_deletion;

void account_create_script(script_creation *create);
void account_replace_script(script_replacement *replace);
void account_delete_script(script_deletion *remove);
