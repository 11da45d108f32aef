#include "base/request_log.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/request_recent.h"

enum { NAME_BYTES = 24, PATH_BYTES = 512, RANGE_BYTES = 24 };

bool request_log_is_on;
static request_log_rules rules;

void request_log_set(const request_log_rules *given) {
    rules = *given;
    request_log_is_on = rules.one_of || rules.slow_us;
}

bool request_log_explains(void) {
    return rules.slow_us > 0;
}

bool request_log_is_slow(int64_t us) {
    return rules.slow_us && us >= rules.slow_us;
}

/* Each thread counts separately, so that threads do not contend. */
unsigned request_log_choose(int64_t us, bool failed) {
    static _Thread_local unsigned seen;
    bool access = rules.one_of && seen++ % rules.one_of == 0;
    bool recent = failed || request_recent_is_watched();
    return (access ? REQUEST_LOG_ACCESS : 0u) | (request_log_is_slow(us) ? REQUEST_LOG_SLOW : 0u) | (recent ? REQUEST_LOG_RECENT : 0u);
}

bool request_log_may_want(bool failed) {
    return failed || request_log_is_on || request_recent_is_watched();
}

void request_log_plain(char *into, size_t into_n, slice text) {
    size_t n = text.n < into_n - 1 ? text.n : into_n - 1;
    for (size_t i = 0; i < n; i++) {
        char c = text.p[i];
        into[i] = (char)(c > 0x20 && c < 0x7F && c != '"' ? c : '?');
    }
    memcpy(into + n, n ? "" : "-", n ? 1 : 2);
}

static void write_one(log_level level, const char *module, const request_log_entry *e, slice explanation) {
    char message[NAME_BYTES + PATH_BYTES + 2], verb[NAME_BYTES], path[PATH_BYTES], range[RANGE_BYTES] = "-";
    request_log_plain(verb, sizeof verb, e->verb);
    request_log_plain(path, sizeof path, e->path);
    snprintf(message, sizeof message, "%s %s", verb, path);
    if (e->range >= 0) {
        snprintf(range, sizeof range, "%ld", (long)e->range);
    }
    log_write(level, module, message, "api=%s status=%u substatus=%u ru=%.2f ms=%.2f range=%s activity=%.*s%s%.*s", e->api, e->status,
              e->substatus, e->charge_ru, (double)e->us / 1000, range, (int)e->activity.n, e->activity.p ? e->activity.p : "",
              explanation.n ? " " : "", (int)explanation.n, explanation.p ? explanation.p : "");
}

void request_log_write(unsigned wanted, const request_log_entry *e) {
    if (wanted & REQUEST_LOG_RECENT) {
        request_recent_note(e);
    }
    if (wanted & REQUEST_LOG_ACCESS) {
        write_one(LOG_INFO, "access", e, SLICE_EMPTY);
    }
    if (wanted & REQUEST_LOG_SLOW) {
        write_one(LOG_WARN, "slow", e, e->explanation);
    }
}
