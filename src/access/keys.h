/* keys.h — the account's keys while the server runs: where they came from, and how they change without a restart.
 *
 * Loops check requests against a ring (ring.h) that is never changed: a change makes another and swaps the pointer, so the way of a
 * request costs one load and takes no lock. The ring that was replaced is wiped and freed once every loop has come round since. Requests
 * in flight have been checked and are answered; from then on the old key is refused.
 *
 * Keys of a file are read again when asked (SIGHUP, /_tesela/keys/reload), and a new one is written there before it counts. What cannot be
 * used changes nothing. Keys that were given as flags, and the emulator's, stay as they are until a restart. Key texts are in this module's
 * memory alone, are wiped when replaced, and are never logged. */
#pragma once

#include "access/scram.h"
#include "net/server.h"

typedef struct access_keys access_keys;

typedef enum access_key_source { ACCESS_KEYS_WELL_KNOWN, ACCESS_KEYS_GIVEN, ACCESS_KEYS_FILE } access_key_source;

enum { ACCESS_KEY_TEXT_BYTES = 360, ACCESS_KEYS_WHY_BYTES = 512 };

/* As the service's management API calls the kinds: "primary", "secondary", "primaryReadonly", "secondaryReadonly". */
extern const char *const access_key_names[ACCESS_KEY_COUNT];
bool access_key_parse(slice name, access_key *key_out); /* in any case, dashes are passed over: primary-read-only */

typedef struct access_keys_options {
    const char *given[ACCESS_KEY_COUNT]; /* base64; NULL: not set. Without the first, the emulator's */
    const char *file;                    /* instead: the keys in their order, one a line, "-" for none */
    bool exposed;                        /* other machines reach the server: the emulator's key is refused, for any of the four, … */
    bool allow_well_known;               /* … unless this is set; then each reading of the keys logs a warning */
    const char *scram_user;              /* the account's name, if a front end offers SCRAM (scram.h); NULL: none does */
    unsigned scram_kinds; /* 1 << access_scram_kind, or'ed; each key of each kind costs a millisecond or two when it is set */
} access_keys_options;

/* NULL, and why: no base64, the same key twice, no such file, the emulator's key on a server that is exposed. */
access_keys *access_keys_open(const access_keys_options *options, char why[static ACCESS_KEYS_WHY_BYTES]);
/* Before net_run: sets the server whose loops use the ring, and turns its guard (net/guard.h) on while the emulator's key is in the ring.
 */
void access_keys_serve(access_keys *keys, net_server *server);
void access_keys_close(access_keys *keys); /* after net_close */

/* Any loop's thread; the ring stays until the loop goes on to something else. */
const access_ring *access_keys_ring(const access_keys *keys);

/* ---- telling; any thread, but not a loop's: they may wait for a change ---- */
access_key_source access_keys_source(const access_keys *keys);
const char *access_keys_file(const access_keys *keys); /* NULL: none */
bool access_keys_text(access_keys *keys, access_key key,
                      char text_out[static ACCESS_KEY_TEXT_BYTES]); /* false: not set. Wipe it after use */
uint64_t access_keys_changes(const access_keys *keys);              /* since the start */

/* ---- changing; any thread ---- */

/* The file again. False, and why: everything stays as it was. */
bool access_keys_reload(access_keys *keys, char why[static ACCESS_KEYS_WHY_BYTES]);

/* The same, asked for by a signal handler and done by a timer of a loop, which waits for nobody. */
void access_keys_reload_soon(access_keys *keys);
void access_keys_tick(access_keys *keys);

/* What is in the file now, with another key of this kind: 64 random bytes. */
bool access_keys_regenerate(access_keys *keys, access_key key, char why[static ACCESS_KEYS_WHY_BYTES]);
