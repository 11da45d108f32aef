/* command.h — a command of the program as data. `--help` and the manual page tesela(1) are both written from it. */
#pragma once

#include <stdio.h>

#include "base/buf.h"
#include "tool/options.h"

typedef struct tool_command {
    const char *name;
    const char *summary; /* one line, for the list of commands */
    const char *usage;   /* the arguments, one line for each form: "DATABASE/CONTAINER RANGE [options]" */
    const char *about;   /* paragraphs with a blank line between */
    const tool_option *options;
    size_t options_n;
    const char *notes;    /* paragraphs printed after the options; NULL: none */
    const char *examples; /* one command per line, with an optional comment after " # " */
    int (*run)(int argc, char **argv);
} tool_command;

void tool_help(const tool_command *c);            /* on standard output */
void tool_usage(const tool_command *c, FILE *to); /* only the forms */

/* The manual page of all commands, in the man macros of roff. */
void tool_man(buf *out, const tool_command *const *commands, size_t n);
