#include "base/units.h"

#include <stdio.h>

void bytes_text(char *text, size_t text_n, uint64_t bytes) {
    static const char *const names[] = {"KB", "MB", "GB", "TB"};
    double value = (double)bytes / 1024;
    size_t i = 0;
    if (bytes < 1024) {
        snprintf(text, text_n, "%lu bytes", (unsigned long)bytes);
        return;
    }
    for (; value >= 1024 && i + 1 < sizeof names / sizeof *names; i++) {
        value /= 1024;
    }
    snprintf(text, text_n, "%.*f %s", value == (double)(uint64_t)value ? 0 : 1, value, names[i]);
}
