/* scripts.h — stored procedures, triggers and user-defined functions of a container: JavaScript texts with an id.
 *
 * They are resources like databases and containers: in memory, in STORE_META, made, replaced and deleted by an account_change. A version is
 * counted and never changed, so whoever runs one may keep it for as long as it runs. What is in the texts nobody here knows.
 *
 * STORE_META, beside what account.h lists: 'S' · database u32 · container u32 · kind u8 (the enum's) · number u32 → a script. */
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
    uint32_t number; /* counts up over all scripts of the account */
    rid rid;
    slice settings; /* BSON: id, body, of a trigger triggerType and triggerOperation as they were given */
    slice id, body; /* within the settings; both are followed by a zero byte */
    bool post;      /* of a trigger: after the write, not before it */
    trigger_operation operation;
    int64_t ts;
    uint64_t version; /* no other version of any script has it, ever: caches may go by it */
};

/* By id, or, `by_rid`, by rid first. On OK give the result back. E_NOT_FOUND; E_OWNER_NOT_FOUND: the container is gone. */
MUST_CHECK err account_find_script(account *a, const container *c, account_script_kind kind, slice name, bool by_rid,
                                   account_script **script_out);
account_script *account_script_take(account_script *s);
void account_script_give(account_script *s); /* NULL is nothing */

/* In creation order, those with number > after; the visitor returns false to stop. It must not call back into the account. */
void account_each_script(account *a, const container *c, account_script_kind kind, uint32_t after,
                         bool (*visit)(void *, const account_script *), void *context);

bool account_has_scripts(const account *a); /* any, of any container */

/* ---- changing: as in account.h ---- */

typedef struct script_creation {
    account_change base;
    account_name database, container;
    account_script_kind kind;
    slice settings; /* BSON: its id, its body, and of a trigger when it runs */
    bool upsert;    /* replaces what is there; base.if_match is for that one */

    account_script *script_out;
    bool created; /* it was not there before */
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

    account_script *script_out; /* that it deleted */
} script_deletion;

void account_create_script(script_creation *create);
void account_replace_script(script_replacement *replace);
void account_delete_script(script_deletion *remove);
