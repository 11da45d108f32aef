#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Atomic log_level threshold = LOG_INFO;
static const char *const words[] = {"error", "warn", "info", "debug"};

void log_set_level(log_level level) {
    threshold = level;
}

log_level log_get_level(void) {
    return threshold;
}

int log_level_parse(const char *word, log_level *level_out) {
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i]) == 0) {
            *level_out = (log_level)i;
            return 0;
        }
    }
    return -1;
}

void log_write(log_level level, const char *module, const char *message, const char *fields, ...) {
    if (level > threshold) {
        return;
    }
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);

    char line[2048];
    size_t n = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &utc);
    n += (size_t)snprintf(line + n, sizeof line - n, ".%03ldZ %-5s %s: %s", now.tv_nsec / 1000000, words[level], module, message);
    if (*fields && n < sizeof line - 2) {
        line[n++] = ' ';
        va_list args;
        va_start(args, fields);
        int k = vsnprintf(line + n, sizeof line - n, fields, args);
        va_end(args);
        n += k > 0 ? (size_t)k : 0;
    }
    n = n < sizeof line - 1 ? n : sizeof line - 1;
    for (size_t i = 0; i < n; i++) { /* an event is one line, so line breaks become blanks */
        line[i] = line[i] == '\n' || line[i] == '\r' ? ' ' : line[i];
    }
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, n) < 0) {
        return; /* standard error is closed; nothing can be done */
    }
}

const char *log_value(char *into, unsigned long into_bytes, const char *p, unsigned long n) {
    unsigned long at = 0;
    if (into_bytes < 8) {
        return "";
    }
    into[at++] = '"';
    for (unsigned long i = 0; i < n && at + 6 < into_bytes; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c == '"' || c == '\\') {
            into[at++] = '\\';
            into[at++] = (char)c;
        } else if (c < 0x20 || c == 0x7F) {
            at += (unsigned long)snprintf(into + at, into_bytes - at, "\\x%02x", c);
        } else {
            into[at++] = (char)c;
        }
    }
    into[at++] = '"';
    into[at] = 0;
    return into;
}
