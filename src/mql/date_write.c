/* date_write.c — formats dates. */
#include "mql/date_text.h"

static const char writing[] = "bBdGHjLmMSwuUVYzZ";
static const char reading[] = "bBdGHjLmMSuVYzZ";

int mql_date_check_format(slice format, bool for_reading, char *letter_out) {
    *letter_out = 0;
    for (size_t i = 0; i < format.n; i++) {
        if (format.p[i] != '%') {
            continue;
        }
        if (++i == format.n) {
            return 18535;
        }
        *letter_out = format.p[i];
        if (*letter_out != '%' && (!*letter_out || !strchr(for_reading ? reading : writing, *letter_out))) {
            return 18536;
        }
    }
    return 0;
}

/* The parts of a date that the format's letters print. */
typedef struct moment {
    mql_parts p;
    int64_t local;
    int32_t offset_s;
} moment;

static bool add_padded(buf *out, int64_t n, int width) {
    buf_addf(out, "%0*lld", width, (long long)n);
    return n >= 0 && n <= 9999;
}

static void add_offset(buf *out, int32_t seconds) {
    int32_t minutes = (seconds < 0 ? -seconds : seconds) / 60;
    buf_addf(out, "%c%02d%02d", seconds < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

static bool add_letter(buf *out, char letter, const moment *m) {
    mql_iso_parts iso;
    switch (letter) {
    case 'Y':
        return add_padded(out, m->p.year, 4);
    case 'm':
        return add_padded(out, m->p.month, 2);
    case 'd':
        return add_padded(out, m->p.day, 2);
    case 'H':
        return add_padded(out, m->p.hour, 2);
    case 'M':
        return add_padded(out, m->p.minute, 2);
    case 'S':
        return add_padded(out, m->p.second, 2);
    case 'L':
        return add_padded(out, m->p.ms, 3);
    case 'j':
        return add_padded(out, mql_calendar_yearday(m->local), 3);
    case 'w':
        return add_padded(out, mql_calendar_weekday(m->local), 1);
    case 'U':
        return add_padded(out, mql_calendar_week(m->local), 2);
    case 'G':
    case 'V':
    case 'u':
        iso = mql_calendar_iso(m->local);
        return letter == 'G'   ? add_padded(out, iso.year, 4)
               : letter == 'V' ? add_padded(out, iso.week, 2)
                               : add_padded(out, iso.weekday, 1);
    case 'B':
        buf_addf(out, "%s", mql_month_names[m->p.month - 1]);
        return true;
    case 'b':
        buf_addf(out, "%.3s", mql_month_names[m->p.month - 1]);
        return true;
    case 'z':
        add_offset(out, m->offset_s);
        return true;
    case 'Z':
        buf_add_i64(out, m->offset_s / 60);
        return true;
    default:
        buf_add_byte(out, '%');
        return true;
    }
}

bool mql_date_write(buf *out, slice format, int64_t ms, mql_zone_ref zone) {
    moment m = {.local = mql_zone_local(zone, ms), .offset_s = mql_zone_offset(zone, ms)};
    m.p = mql_calendar_split(m.local);
    for (size_t i = 0; i < format.n && buf_ok(out); i++) {
        if (format.p[i] != '%') {
            buf_add_byte(out, format.p[i]);
        } else if (!add_letter(out, i + 1 < format.n ? format.p[++i] : '%', &m)) {
            return false;
        }
    }
    return true;
}
