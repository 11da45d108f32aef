/* log.h — one structured line per event, on standard error: time, level, module, message, then key=value fields.
 *
 *   2026-11-15T09:12:33.123Z info  net: listening address=127.0.0.1:8081 tls=auto
 *
 * Values with blanks or quotes are quoted. Secrets must not be passed: keys, tokens and signatures are never logged. */
#pragma once

typedef enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG } log_level;

void log_set_level(log_level level);
log_level log_get_level(void);
int log_level_parse(const char *word, log_level *level_out); /* 0 when the word is a level */

/* `fields` is a printf format such as "address=%s:%d"; it may be "". Any thread. */
void log_write(log_level level, const char *module, const char *message, const char *fields, ...) __attribute__((format(printf, 4, 5)));

#define log_error(module, message, ...) log_write(LOG_ERROR, module, message, __VA_ARGS__)
#define log_warn(module, message, ...) log_write(LOG_WARN, module, message, __VA_ARGS__)
#define log_info(module, message, ...) log_write(LOG_INFO, module, message, __VA_ARGS__)
#define log_debug(module, message, ...)                                                                                                    \
    do {                                                                                                                                   \
        if (log_get_level() >= LOG_DEBUG) {                                                                                                \
            log_write(LOG_DEBUG, module, message, __VA_ARGS__);                                                                            \
        }                                                                                                                                  \
    } while (0)

/* Makes a value safe for a field: quotes it, escapes control characters, truncates it to the buffer. Returns `into`, or "" if the buffer is
 * too small. */
const char *log_value(char *into, unsigned long into_bytes, const char *p, unsigned long n);
