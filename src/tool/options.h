/* options.h — flags of a command, each also as an environment variable: --sql-port is TESELA_SQL_PORT. The flag wins. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tool_option {
    const char *name;  /* without dashes */
    const char *value; /* placeholder for its value in the help: "DIR"; NULL: a switch */
    const char *help;  /* NULL: not listed */
    const char **text; /* receives the value as given; preset to the default */
    bool secret;       /* wiped from the process listing once read */
} tool_option;

/* Reads argv[1…] and the environment. On an error prints what to do on standard error and returns false. */
bool tool_options_read(const tool_option *options, size_t n, int argc, char **argv, const char *command);

/* The positional arguments of a command, at most TOOL_WORDS_MAX: tesela split DATABASE/CONTAINER RANGE. */
enum { TOOL_WORDS_MAX = 4 };
typedef struct tool_words {
    const char *list[TOOL_WORDS_MAX];
    size_t n;
} tool_words;
bool tool_options_read_words(const tool_option *options, size_t n, int argc, char **argv, const char *command, tool_words *words);
void tool_options_help(const tool_option *options, size_t n);

/* Parsers of values. Each prints what is wrong and returns false on an error. */
bool tool_read_port(const char *flag, const char *text, int *port_out); /* a number, 0, or off (-1) */
bool tool_read_number(const char *flag, const char *text, uint64_t least, uint64_t most, uint64_t *value_out);
bool tool_read_bytes(const char *flag, const char *text, uint64_t *bytes_out); /* 50GB, 64 MB, 4096 */
