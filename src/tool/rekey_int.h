/* rekey_int.h — within tool/rekey*.c: a container on its way to another partition key. */
#pragma once

#include "tool/endpoint.h"
#include "tool/item_key.h"
#include "tool/journal.h"
#include "tool/progress.h"

typedef enum rekey_state { REKEY_OPEN, REKEY_DONE, REKEY_TAKEN, REKEY_REFUSED } rekey_state;

/* An item of the source as it is now, by what was read or by an event of the log. */
typedef struct rekey_change {
    slice identity; /* its id and its old key: what names it in the source */
    const char *id;
    tesela_key from_key, to_key;
    const char *body;    /* what the target is to have; NULL: nothing, it was deleted */
    tesela_bulk_kind as; /* of the operation under way */
    rekey_state state;
    int status, substatus; /* of a refusal */
} rekey_change;

enum { REKEY_PAGE = 1000, REKEY_REFUSED_MAX = 1000, REKEY_TRIES = 100, REKEY_TRY_MS = 200 };

/* An item that the target did not take. It is read in the source and tried again before the switch. */
typedef struct rekey_refusal {
    char *id, *why;
    tesela_key key;
    int status, substatus;
} rekey_refusal;

typedef struct rekey {
    tesela_client *client;
    tesela_container *from, *to;
    key_paths from_key, to_key;
    arena paths; /* of the keys */
    tesela_changes *log;
    tesela_bulk *bulk;
    journal journal;
    progress progress;
    uint64_t copied, events, removed, total; /* total: items of the source when it began */
    double charge;                           /* of reading the source, and of looking up copies */

    arena page; /* of the changes below */
    size_t n;
    rekey_change *changes;
    bool again; /* a delete failed for a passing reason */

    rekey_refusal *refused;
    size_t refused_n;
    bool expires; /* the source has a time to live */
    const remote *server;
    int64_t claimed_ms; /* when the claim on the container was prolonged, as far as is known; 0: not held */
    tesela_error fatal; /* status TESELA_OK: none */
} rekey;

void rekey_sleep_ms(long ms);

/* ---- rekey_make.c: the new container ---- */

/* Makes the target with the source's settings and the key of `paths`, unless there is an empty one; turns on the source's log of versions.
 * False: prints why. */
bool rekey_make(rekey *r, const char *paths);
/* Settings and scripts of the source as they are now. */
bool rekey_sync_settings(rekey *r);
/* The log of versions as it was: the target has the source's own policy. */
bool rekey_end_log(tesela_container *source, tesela_container *target);
/* Whether the paths are the key, as "/a" or "/a,/b". */
bool rekey_has_key(const key_paths *key, const char *paths);

/* ---- rekey_apply.c: changes applied to the target ----
 *
 * Fill r->changes with rekey_add_item and rekey_add_event, then apply. False: r->fatal says why. */
void rekey_page_begin(rekey *r);
void rekey_add_item(rekey *r, slice json);
bool rekey_add_event(rekey *r, slice json); /* false: it is malformed */
/* `fresh`: most of the items are not in the target. */
bool rekey_apply(rekey *r, bool fresh);
bool rekey_retry_refused(rekey *r);
void rekey_drop_refused(rekey *r);
void rekey_on_done(void *context, const tesela_bulk_result *result); /* of r->bulk */
