/* lines.h — reads a file line by line, in bounded memory. A line that is longer than the limit is skipped, and reported as such. */
#pragma once

#include <stdio.h>

#include "base/buf.h"

typedef struct lines {
    FILE *file;
    const char *name; /* for messages */
    buf line;
    uint64_t number; /* of the line read last, from 1 */
    uint64_t offset; /* bytes up to its end */
    bool too_long;   /* the line exceeded the limit: `line` has its beginning */
} lines;

/* "-" is standard input. False: the file cannot be opened; prints why. */
bool lines_open(lines *l, const char *name, size_t line_max);
void lines_close(lines *l);

/* False at the end of the file, or if it cannot be read further (ferror). The line is without its line break. */
bool lines_next(lines *l);
bool lines_blank(const lines *l);
bool lines_failed(const lines *l); /* after the end: reading failed; prints why */
