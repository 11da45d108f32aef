#include "tool/options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/slice.h"

static const tool_option *find(const tool_option *options, size_t n, slice name) {
    for (size_t i = 0; i < n; i++) {
        if (slice_eq(slice_str(options[i].name), name)) {
            return &options[i];
        }
    }
    return NULL;
}

/* For a secret, keeps a copy and wipes argv, which ps shows. */
static const char *keep(const tool_option *option, char *value) {
    if (!option->secret) {
        return value;
    }
    char *copy = strdup(value);
    if (!copy) {
        abort();
    }
    explicit_bzero(value, strlen(value));
    return copy;
}

/* A switch in the environment also has a value, which may turn it off. */
static bool is_off(const tool_option *option, const char *value) {
    static const char *const words[] = {"false", "off", "no", "0"};
    bool off = false;
    for (size_t i = 0; i < sizeof words / sizeof *words && !option->value; i++) {
        off = off || strcasecmp(value, words[i]) == 0;
    }
    return off;
}

static void read_environment(const tool_option *options, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char name[96];
        snprintf(name, sizeof name, "TESELA_%s", options[i].name);
        for (char *c = name; *c; c++) {
            *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
        }
        char *value = getenv(name);
        if (value && *value && !is_off(&options[i], value)) {
            *options[i].text = keep(&options[i], value);
        }
    }
}

/* Reads one option, and its value if that is the next argument. Advances *i. */
static bool read_option(const tool_option *options, size_t n, int argc, char **argv, int *i, const char *command) {
    char *word = argv[*i], *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const tool_option *option = length > 2 && strncmp(word, "--", 2) == 0 ? find(options, n, slice_of(word + 2, length - 2)) : NULL;
    if (!option) {
        fprintf(stderr, "tesela %s: unknown option '%.*s'. 'tesela %s --help' lists them.\n", command, (int)length, word, command);
        return false;
    }
    if (!option->value) {
        *option->text = "true";
    } else if (equals) {
        *option->text = keep(option, equals + 1);
    } else if (*i + 1 < argc) {
        *option->text = keep(option, argv[++*i]);
    } else {
        fprintf(stderr, "tesela %s: --%s needs a value: --%s %s\n", command, option->name, option->name, option->value);
        return false;
    }
    return true;
}

bool tool_options_read_words(const tool_option *options, size_t n, int argc, char **argv, const char *command, tool_words *words) {
    read_environment(options, n);
    for (int i = 1; i < argc; i++) {
        bool word = argv[i][0] != '-' || argv[i][1] == '\0';
        if (words && word && words->n < TOOL_WORDS_MAX) {
            words->list[words->n++] = argv[i];
        } else if (!read_option(options, n, argc, argv, &i, command)) {
            return false;
        }
    }
    return true;
}

bool tool_options_read(const tool_option *options, size_t n, int argc, char **argv, const char *command) {
    return tool_options_read_words(options, n, argc, argv, command, NULL);
}

void tool_options_help(const tool_option *options, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char flag[64];
        if (!options[i].help) {
            continue;
        }
        snprintf(flag, sizeof flag, "--%s%s%s", options[i].name, options[i].value ? " " : "", options[i].value ? options[i].value : "");
        printf("  %-40s %s", flag, options[i].help);
        if (options[i].value && *options[i].text && !options[i].secret) {
            printf(" [%s]", *options[i].text);
        }
        printf("\n");
    }
}

bool tool_read_number(const char *flag, const char *text, uint64_t least, uint64_t most, uint64_t *value_out) {
    if (slice_to_u64(slice_str(text), value_out) && *value_out >= least && *value_out <= most) {
        return true;
    }
    fprintf(stderr, "tesela: --%s must be a number from %lu to %lu, not '%s'.\n", flag, (unsigned long)least, (unsigned long)most, text);
    return false;
}

bool tool_read_port(const char *flag, const char *text, int *port_out) {
    uint64_t port;
    if (strcmp(text, "off") == 0) {
        *port_out = -1;
        return true;
    }
    if (!slice_to_u64(slice_str(text), &port) || port > 65535) {
        fprintf(stderr, "tesela: --%s must be a port (0 picks a free one) or 'off', not '%s'.\n", flag, text);
        return false;
    }
    *port_out = (int)port;
    return true;
}

bool tool_read_bytes(const char *flag, const char *text, uint64_t *bytes_out) {
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {{"", 1}, {"B", 1}, {"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}, {"TB", (uint64_t)1 << 40}};
    slice all = slice_trim(slice_str(text));
    size_t digits = 0;
    while (digits < all.n && isdigit((unsigned char)all.p[digits])) {
        digits++;
    }
    slice unit = slice_trim(slice_skip(all, digits));
    uint64_t number;
    if (slice_to_u64(slice_of(all.p, digits), &number)) {
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            if (slice_eq_nocase(unit, slice_str(units[i].unit)) && !__builtin_mul_overflow(number, units[i].bytes, bytes_out)) {
                return true;
            }
        }
    }
    fprintf(stderr, "tesela: --%s must be a size such as 50GB or 64MB, not '%s'.\n", flag, text);
    return false;
}
