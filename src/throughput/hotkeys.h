/* hotkeys.h — the hottest partition keys of a range: by request units recently spent, and by bytes stored.
 *
 * A sketch of bounded size, always on. By RU: counters for the hottest keys and a table of shared counters for all others (filtered
 * space-saving), halved every minute. At rates up to about 1,000 a second all requests are counted; above that a sample is, weighted so
 * that the sums stay right. By size: the largest partitions seen since the sketch was made or seeded. Keys are identified by a 64-bit hash
 * of the EPK; their text is kept for display, truncated to HOTKEY_TEXT_MAX bytes.
 *
 * Any thread may add, without waiting: if another thread is in the sketch, the RU go to the next sample, and a missed size is reported
 * again with the partition's next write. */
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

/* Writes a key's text and returns its length, at most `max`. Called rarely, and never for a key that the sketch already has. It runs with
 * the sketch locked and must not call the sketch. */
typedef size_t (*hotkey_text)(const void *key, char *into, size_t max);

hotkeys *hotkeys_new(void); /* about 18 KB; a range makes its sketch on its first request */
void hotkeys_free(hotkeys *h);

/* Times are monotonic nanoseconds. */
void hotkeys_spent(hotkeys *h, uint64_t hash, double ru, int64_t now_ns, hotkey_text text, const void *key);
void hotkeys_size(hotkeys *h, uint64_t hash, uint64_t bytes, hotkey_text text, const void *key); /* 0 bytes: the partition is gone */

/* After a split or a merge: copies the recent spending of the keys for which `belongs` is true to the new range's sketch. `belongs` runs
 * with the old sketch locked and must not call it. */
void hotkeys_inherit(hotkeys *to, hotkeys *from, int64_t now_ns, bool (*belongs)(void *context, const hotkey *key), void *context);

/* Seeding reports all existing partitions to the sketch: start, one call each, end. Sizes may be added meanwhile. These functions wait for
 * the lock. */
void hotkeys_seed_start(hotkeys *h);
void hotkeys_seed(hotkeys *h, uint64_t hash, uint64_t bytes, hotkey_text text, const void *key);
void hotkeys_seed_end(hotkeys *h);

/* Whether the sketch was seeded and no omitted partition can be larger than those it shows. If many of the large ones are deleted, this
 * becomes false and the sketch should be seeded again. */
bool hotkeys_sizes_known(hotkeys *h);

/* The top keys, largest first; returns how many. These functions wait for the lock. */
size_t hotkeys_top_by_ru(hotkeys *h, int64_t now_ns, hotkey top[HOTKEYS_TOP]);
size_t hotkeys_top_by_size(hotkeys *h, hotkey top[HOTKEYS_TOP]);
