#include "tool/lines.h"

#include <errno.h>

static void tell(const lines *l, const char *what) {
    fprintf(stderr, "tesela: %s cannot be %s: %s.\n", l->name, what, strerror(errno));
}

bool lines_open(lines *l, const char *name, size_t line_max) {
    bool standard = strcmp(name, "-") == 0;
    *l = (lines){.file = standard ? stdin : fopen(name, "rb"), .name = standard ? "standard input" : name, .line = buf_init(line_max)};
    if (!l->file) {
        tell(l, "opened");
    }
    return l->file != NULL;
}

void lines_close(lines *l) {
    if (l->file && l->file != stdin) {
        fclose(l->file);
    }
    buf_free(&l->line);
}

bool lines_next(lines *l) {
    int c;
    buf_clear(&l->line);
    l->too_long = false;
    while ((c = getc_unlocked(l->file)) != EOF && c != '\n') {
        l->offset++;
        if (l->line.n == l->line.max) {
            l->too_long = true;
        } else {
            buf_add_byte(&l->line, (char)c);
        }
    }
    l->offset += c == '\n';
    bool there = c == '\n' || l->line.n > 0;
    l->number += there;
    if (l->line.n && l->line.p[l->line.n - 1] == '\r') {
        l->line.n--;
    }
    return there;
}

bool lines_blank(const lines *l) {
    return slice_trim(buf_view(&l->line)).n == 0;
}

bool lines_failed(const lines *l) {
    if (ferror(l->file)) {
        tell(l, "read");
    }
    return ferror(l->file) != 0;
}
