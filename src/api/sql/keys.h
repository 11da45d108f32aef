/* keys.h — the account's keys while the server runs: where they came from, and how they change without a restart.
 *
 * Loops check requests against a ring (auth.h) that is never changed: a change makes another and swaps the pointer, so the way of a
 * request costs one load and takes no lock. The ring that was replaced is wiped and freed once every loop has come round since. Requests
 * in flight have been checked and are answered; from then on the old key is refused.
 *
 * Keys of a file are read again when asked (SIGHUP, /_tesela/keys/reload), and a new one is written there before it counts. What cannot be
 * used changes nothing. Keys that were given as flags, and the emulator's, stay as they are until a restart. Key texts are in this module's
 * memory alone, are wiped when replaced, and are never logged. */
#pragma once

#include "api/sql/auth.h"
#include "net/server.h"

typedef struct sql_keys sql_keys;

typedef enum sql_key_source { SQL_KEYS_WELL_KNOWN, SQL_KEYS_GIVEN, SQL_KEYS_FILE } sql_key_source;

enum { SQL_KEY_TEXT_BYTES = 360, SQL_KEYS_WHY_BYTES = 512 };

/* As the service's management API calls the kinds: "primary", "secondary", "primaryReadonly", "secondaryReadonly". */
extern const char *const sql_key_names[SQL_KEY_COUNT];
bool sql_key_parse(slice name, sql_key *key_out); /* in any case, dashes are passed over: primary-read-only */

typedef struct sql_keys_options {
    const char *given[SQL_KEY_COUNT]; /* base64; NULL: not set. Without the first, the emulator's */
    const char *file;                 /* instead: the keys in their order, one a line, "-" for none */
    bool exposed;                     /* other machines reach the server: the emulator's key is refused, for any of the four, … */
    bool allow_well_known;            /* … unless this is set; then each reading of the keys logs a warning */
} sql_keys_options;

/* NULL, and why: no base64, the same key twice, no such file, the emulator's key on a server that is exposed. */
sql_keys *sql_keys_open(const sql_keys_options *options, char why[static SQL_KEYS_WHY_BYTES]);
/* Before net_run: sets the server whose loops use the ring, and turns its guard (net/guard.h) on while the emulator's key is in the ring.
 */
void sql_keys_serve(sql_keys *keys, net_server *server);
void sql_keys_close(sql_keys *keys); /* after net_close */

/* Any loop's thread; the ring stays until the loop goes on to something else. */
const sql_key_ring *sql_keys_ring(const sql_keys *keys);

/* ---- telling; any thread, but not a loop's: they may wait for a change ---- */
sql_key_source sql_keys_source(const sql_keys *keys);
const char *sql_keys_file(const sql_keys *keys);                                           /* NULL: none */
bool sql_keys_text(sql_keys *keys, sql_key key, char text_out[static SQL_KEY_TEXT_BYTES]); /* false: not set. Wipe it after use */
uint64_t sql_keys_changes(const sql_keys *keys);                                           /* since the start */

/* ---- changing; any thread ---- */

/* The file again. False, and why: everything stays as it was. */
bool sql_keys_reload(sql_keys *keys, char why[static SQL_KEYS_WHY_BYTES]);

/* The same, asked for by a signal handler and done by a timer of a loop, which waits for nobody. */
void sql_keys_reload_soon(sql_keys *keys);
void sql_keys_tick(sql_keys *keys);

/* What is in the file now, with another key of this kind: 64 random bytes. */
bool sql_keys_regenerate(sql_keys *keys, sql_key key, char why[static SQL_KEYS_WHY_BYTES]);
