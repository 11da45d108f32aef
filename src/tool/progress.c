#include "tool/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "tool/terminal.h"

enum { SHOW_US = 200000 };

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void progress_begin(progress *p, double done_before) {
    *p = (progress){.on = isatty(STDERR_FILENO) == 1, .began_us = now_us(), .done_before = done_before};
}

int64_t progress_us(const progress *p) {
    return now_us() - p->began_us;
}

static void add_duration(buf *out, double seconds) {
    unsigned long s = seconds < 360000 ? (unsigned long)seconds : 359999;
    if (s >= 3600) {
        buf_addf(out, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    } else {
        buf_addf(out, "%lu:%02lu", s / 60, s % 60);
    }
}

void progress_text(buf *out, const progress_now *now, double done_before) {
    double seconds = now->us > 0 ? (double)now->us / 1e6 : 1e-6;
    text_add_count(out, (double)now->items, "item");
    buf_add_lit(out, "  ");
    text_add_number(out, (double)now->items / seconds);
    buf_add_lit(out, "/s  ");
    text_add_number(out, now->charge / seconds);
    buf_add_lit(out, " RU/s");
    if (now->part >= 0) {
        double done = now->part - done_before;
        buf_addf(out, "  %.0f %%", 100 * now->part);
        if (done > 0.001) {
            buf_add_lit(out, "  ");
            add_duration(out, seconds * (1 - now->part) / done);
            buf_add_lit(out, " left");
        }
    }
    if (now->failed) {
        buf_add_lit(out, "  ");
        text_add_number(out, (double)now->failed);
        buf_add_lit(out, " failed");
    }
}

void progress_show(progress *p, progress_now now) {
    int64_t at = now_us();
    if (!p->on || at - p->shown_us < SHOW_US) {
        return;
    }
    p->shown_us = at;
    now.us = at - p->began_us;
    buf text = buf_init(BUF_NO_LIMIT);
    progress_text(&text, &now, p->done_before);
    fprintf(stderr, "\r\033[K%.*s", (int)text.n, text.p);
    fflush(stderr);
    buf_free(&text);
}

void progress_end(progress *p) {
    if (p->on) {
        fprintf(stderr, "\r\033[K");
    }
}
