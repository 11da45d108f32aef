/* progress.h — a line on the terminal that shows how far a transfer is: its rate, its charge, the time left. Nothing if it is no terminal.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct progress {
    bool on;
    int64_t began_us, shown_us;
    double done_before; /* part that was done when it began */
} progress;

typedef struct progress_now {
    uint64_t items, failed;
    double charge;
    double part; /* 0 to 1; negative: not known */
    int64_t us;  /* since it began */
} progress_now;

void progress_begin(progress *p, double done_before);
void progress_show(progress *p, progress_now now); /* at most five times a second */
void progress_end(progress *p);                    /* removes the line */
int64_t progress_us(const progress *p);

/* The line's text: "12,345 items  1,234/s  5,678 RU/s  61 %  3:20 left  2 failed". Pure. */
void progress_text(buf *out, const progress_now *now, double done_before);
