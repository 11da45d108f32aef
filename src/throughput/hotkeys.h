/* hotkeys.h — the hottest partition keys of a range: by request units lately spent, and by bytes stored.
 *
 * A bounded sketch, always on. By RU: a few counters for the hottest keys and a table of small ones for all others (filtered space-saving),
 * halved every minute, fed by a sample of the requests when there are many of them (every request while there are fewer than about 1,000 a
 * second), weighted so that the sums stay true. By size: the largest seen since the sketch was made or seeded. Keys are told apart by a
 * 64-bit hash (of the EPK); their text is kept for people, cut to HOTKEY_TEXT_MAX bytes.
 *
 * Any thread may add, and never waits: what was spent while another thread is in the sketch goes to the next sample, a size seen then is
 * seen again with the partition's next write. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HOTKEYS_TOP = 20, HOTKEY_TEXT_MAX = 128 };

typedef struct hotkeys hotkeys;

typedef struct hotkey {
    uint64_t hash;
    char text[HOTKEY_TEXT_MAX]; /* the key's JSON: ["device-1"] */
    uint8_t text_n;
    double value; /* RU/s over about the last minute, or bytes */
} hotkey;

/* Writes a key's text when the sketch needs it: called rarely, never for a key that is known. Returns its length (at most `max`). It runs
 * inside the sketch and may not call it. */
typedef size_t (*hotkey_text)(const void *key, char *into, size_t max);

hotkeys *hotkeys_new(void); /* about 18 KB; ranges make theirs on their first request */
void hotkeys_free(hotkeys *h);

/* Times are monotonic nanoseconds. */
void hotkeys_spent(hotkeys *h, uint64_t hash, double ru, int64_t now_ns, hotkey_text text, const void *key);
void hotkeys_size(hotkeys *h, uint64_t hash, uint64_t bytes, hotkey_text text, const void *key); /* 0: the partition is gone */

/* What the keys that `belongs` to a new range have lately spent goes on in its sketch, after a split or a merge. `belongs` runs inside the
 * old sketch and may not call it. */
void hotkeys_inherit(hotkeys *to, hotkeys *from, int64_t now_ns, bool (*belongs)(void *context, const hotkey *key), void *context);

/* Seeding tells the sketch of all partitions that there are: start, each of them, end. Sizes may be added meanwhile. These wait. */
void hotkeys_seed_start(hotkeys *h);
void hotkeys_seed(hotkeys *h, uint64_t hash, uint64_t bytes, hotkey_text text, const void *key);
void hotkeys_seed_end(hotkeys *h);

/* Was the sketch seeded, and is none of the partitions that it left out larger than those it shows? Not after many of the large ones were
 * deleted: then it wants to be seeded again. */
bool hotkeys_sizes_known(hotkeys *h);

/* The top, largest first; returns how many. These do wait for a thread that is adding. */
size_t hotkeys_top_by_ru(hotkeys *h, int64_t now_ns, hotkey top[HOTKEYS_TOP]);
size_t hotkeys_top_by_size(hotkeys *h, hotkey top[HOTKEYS_TOP]);
