/* keys.h — the account's keys while the server runs: their source, and changes without a restart.
 *
 * Loops check requests against an immutable ring (ring.h): a change makes a new ring and swaps the pointer, so checking a request costs
 * one load and no lock. The old ring is wiped and freed once every loop has completed an iteration. Requests in flight were already
 * checked and are answered; after that the old key is rejected.
 *
 * Keys from a file are reloaded on request (SIGHUP, /_tesela/keys/reload), and a new key is written to the file before it is valid. A file
 * with errors changes nothing. Keys given as flags, and the emulator's key, cannot change without a restart. Key texts exist only in this
 * module's memory, are wiped when replaced, and are never logged. */
#pragma once

#include "access/scram.h"
#include "net/server.h"

typedef struct access_keys access_keys;

typedef enum access_key_source { ACCESS_KEYS_WELL_KNOWN, ACCESS_KEYS_GIVEN, ACCESS_KEYS_FILE } access_key_source;

enum { ACCESS_KEY_TEXT_BYTES = 360, ACCESS_KEYS_WHY_BYTES = 512 };

/* Names of the kinds as in the service's management API: "primary", "secondary", "primaryReadonly", "secondaryReadonly". */
extern const char *const access_key_names[ACCESS_KEY_COUNT];
bool access_key_parse(slice name, access_key *key_out); /* ignores case and dashes: primary-read-only */

typedef struct access_keys_options {
    const char *given[ACCESS_KEY_COUNT]; /* base64; NULL: not set. If the first is not set, it is the emulator's key */
    const char *file;                    /* used instead of `given`: the keys in this order, one per line, "-" for none */
    bool exposed;           /* other machines can reach the server, so the emulator's key is rejected, unless allow_well_known is set */
    bool allow_well_known;  /* accept the emulator's key even if `exposed`; each load of the keys then logs a warning */
    const char *scram_user; /* the account's name, if a front end offers SCRAM (scram.h); NULL: none does */
    bool scram_any_user;    /* other names are accepted too (scram.h) */
    unsigned scram_kinds;   /* bits 1 << access_scram_kind; each key of each kind costs a millisecond or two when it is set */
} access_keys_options;

/* On error NULL, with the reason in `why`: not base64, the same key twice, no such file, the emulator's key on an exposed server. */
access_keys *access_keys_open(const access_keys_options *options, char why[static ACCESS_KEYS_WHY_BYTES]);
/* Call before net_run: sets the server whose loops use the ring, and turns its guard (net/guard.h) on while the ring has the emulator's
 * key. */
void access_keys_serve(access_keys *keys, net_server *server);
void access_keys_close(access_keys *keys); /* after net_close */

/* Call on a loop's thread; the ring stays valid until the current callback returns to the loop. */
const access_ring *access_keys_ring(const access_keys *keys);

/* ---- queries; any thread except a loop's, since they may wait for a change ---- */
access_key_source access_keys_source(const access_keys *keys);
const char *access_keys_file(const access_keys *keys); /* NULL: none */
bool access_keys_text(access_keys *keys, access_key key,
                      char text_out[static ACCESS_KEY_TEXT_BYTES]); /* false: the key is not set. The caller wipes text_out after use */
uint64_t access_keys_changes(const access_keys *keys);              /* since the start */

/* ---- changing; any thread ---- */

/* Reloads the file. On error false, with the reason in `why`; nothing changes. */
bool access_keys_reload(access_keys *keys, char why[static ACCESS_KEYS_WHY_BYTES]);

/* The same in two steps: a signal handler requests the reload, and a loop's timer (tick) does it without waiting for a lock. */
void access_keys_reload_soon(access_keys *keys);
void access_keys_tick(access_keys *keys);

/* Reloads the file, replaces the key of this kind by 64 random bytes, and writes the file. */
bool access_keys_regenerate(access_keys *keys, access_key key, char why[static ACCESS_KEYS_WHY_BYTES]);
