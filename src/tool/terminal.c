#include "tool/terminal.h"

#include <bson/bson.h>
#include <math.h>
#include <stdio.h>

typedef struct span {
    uint32_t first, last;
} span;

/* Control characters, and marks that change the direction of text. */
static const span unseen[] = {{0, 0x1F},        {0x7F, 0x9F},     {0x200B, 0x200F}, {0x2028, 0x202E},
                              {0x2060, 0x206F}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}};

/* Characters two columns wide: the large blocks of Unicode's East Asian Width, which is enough for a table. */
static const span wide[] = {{0x1100, 0x115F}, {0x2E80, 0xA4CF}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},  {0xFE30, 0xFE6F},
                            {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};

static const span combining[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
                                 {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};

#define IS_IN(c, spans) is_in((c), (spans), sizeof(spans) / sizeof *(spans))

static bool is_in(uint32_t c, const span *spans, size_t n) {
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        found = found || (c >= spans[i].first && c <= spans[i].last);
    }
    return found;
}

typedef struct glyph {
    slice bytes;
    size_t columns;
    bool shown; /* false: shown as '?' */
} glyph;

static size_t length_of(unsigned char first) {
    return first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
}

/* The next character; an invalid byte counts as one. */
static glyph next_glyph(slice text) {
    static const unsigned char head_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    unsigned char first = (unsigned char)text.p[0];
    size_t n = length_of(first);
    if (n > text.n || !bson_utf8_validate(text.p, n, true)) {
        return (glyph){slice_of(text.p, 1), 1, false};
    }
    uint32_t c = first & head_bits[n];
    for (size_t i = 1; i < n; i++) {
        c = c << 6 | ((unsigned char)text.p[i] & 0x3F);
    }
    slice bytes = slice_of(text.p, n);
    return IS_IN(c, unseen) ? (glyph){bytes, 1, false} : (glyph){bytes, IS_IN(c, wide) ? 2 : IS_IN(c, combining) ? 0 : 1, true};
}

static size_t columns_of(slice text) {
    size_t columns = 0;
    while (text.n) {
        glyph g = next_glyph(text);
        columns += g.columns;
        text = slice_skip(text, g.bytes.n);
    }
    return columns;
}

size_t text_add(buf *out, slice text, size_t columns) {
    bool cut = columns_of(text) > columns;
    size_t used = 0, room = cut && columns ? columns - 1 : columns;
    while (text.n) {
        glyph g = next_glyph(text);
        if (used + g.columns > room) {
            break;
        }
        g.shown ? buf_add_slice(out, g.bytes) : buf_add_byte(out, '?');
        used += g.columns;
        text = slice_skip(text, g.bytes.n);
    }
    if (cut && columns) {
        buf_add_lit(out, "…");
        used++;
    }
    return used;
}

static void add_blanks(buf *out, size_t n) {
    for (size_t i = 0; i < n; i++) {
        buf_add_byte(out, ' ');
    }
}

void text_add_left(buf *out, slice text, size_t columns) {
    size_t used = text_add(out, text, columns);
    add_blanks(out, columns - used);
}

void text_add_right(buf *out, slice text, size_t columns) {
    size_t needed = columns_of(text);
    add_blanks(out, needed < columns ? columns - needed : 0);
    text_add(out, text, columns);
}

void text_add_number(buf *out, double value) {
    char digits[64];
    bool whole = value >= 100 || floor(value) == value;
    int n = snprintf(digits, sizeof digits, whole ? "%.0f" : "%.1f", isfinite(value) ? value : 0);
    int before = whole ? n : n - 2;
    for (int i = 0; i < n; i++) {
        bool comma = i > 0 && i < before && (before - i) % 3 == 0 && digits[i - 1] != '-';
        buf_add(out, ",", comma);
        buf_add_byte(out, digits[i]);
    }
}

void text_add_count(buf *out, double n, const char *singular) {
    text_add_number(out, n);
    buf_addf(out, " %s%s", singular, n == 1 ? "" : "s");
}

/* The byte offset of a UTF-16 unit. A character above U+FFFF (four bytes) has two units. */
static size_t byte_at(slice text, size_t units) {
    size_t at = 0;
    while (at < text.n && units > 0) {
        unsigned char c = (unsigned char)text.p[at];
        size_t bytes = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4, taken = bytes == 4 ? 2 : 1;
        units -= units < taken ? units : taken;
        at += bytes < text.n - at ? bytes : text.n - at;
    }
    return at;
}

static slice line_around(slice text, size_t at) {
    size_t from = at, to = at;
    while (from > 0 && text.p[from - 1] != '\n') {
        from--;
    }
    while (to < text.n && text.p[to] != '\n') {
        to++;
    }
    return slice_of(text.p + from, to - from);
}

void text_add_marked(buf *out, slice text, size_t start, size_t end) {
    size_t from = byte_at(text, start), to = byte_at(text, end);
    slice line = line_around(text, from);
    size_t line_end = (size_t)(line.p - text.p) + line.n;
    to = to < line_end ? to : line_end;
    size_t marked = to > from ? columns_of(slice_of(text.p + from, to - from)) : 0;
    text_add(out, line, SIZE_MAX);
    buf_add_byte(out, '\n');
    add_blanks(out, columns_of(slice_of(line.p, (size_t)(text.p + from - line.p))));
    for (size_t i = 0; i < (marked ? marked : 1); i++) {
        buf_add_byte(out, '^');
    }
    buf_add_byte(out, '\n');
}
