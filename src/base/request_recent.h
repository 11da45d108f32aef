/* request_recent.h — the last requests of all protocols, in memory: failed ones always, successful ones while somebody watches.
 *
 * Two rings of a few hundred entries, one for each kind, so that successes do not push out failures. At most RECENT_PER_SECOND are recorded
 * in a second; the others cost a lock and a comparison. Entries have what the request log has (request_log.h). Any thread. */
#pragma once

#include "base/request_log.h"

enum { RECENT_KEPT = 256, RECENT_PER_SECOND = 200, RECENT_PATH_BYTES = 256, RECENT_NAME_BYTES = 24 };

typedef struct recent_request {
    uint64_t number; /* from 1, in the order in which the requests ended */
    int64_t ts_ms;
    char api[RECENT_NAME_BYTES], verb[RECENT_NAME_BYTES], path[RECENT_PATH_BYTES]; /* visible ASCII; long paths are cut */
    unsigned status, substatus;
    double charge_ru;
    int64_t us;
    int64_t range; /* negative: none */
    bool failed;
} recent_request;

void request_recent_watch(bool on); /* each watcher calls it with true, and later with false */
bool request_recent_is_watched(void);
void request_recent_note(const request_log_entry *entry);

/* Copies those after this number, oldest first; if there are more than `max`, the newest of them. */
size_t request_recent(uint64_t after, recent_request *found, size_t max);
