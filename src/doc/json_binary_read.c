/* Cosmos binary JSON to text: one pass over the bytes. Strings are checked to be UTF-8, and every length against the end of its parent. */
#include <math.h>
#include <unistr.h>

#include "base/limits.h"
#include "doc/json_binary_int.h"
#include "doc/number.h"

const char *const json__system_strings[BINARY_SYSTEM_STRINGS] = {
    "$s",
    "$t",
    "$v",
    "_attachments",
    "_etag",
    "_rid",
    "_self",
    "_ts",
    "attachments/",
    "coordinates",
    "geometry",
    "GeometryCollection",
    "id",
    "url",
    "Value",
    "label",
    "LineString",
    "link",
    "MultiLineString",
    "MultiPoint",
    "MultiPolygon",
    "name",
    "Name",
    "Type",
    "Point",
    "Polygon",
    "properties",
    "type",
    "value",
    "Feature",
    "FeatureCollection",
    "_id",
};

typedef struct reader {
    const uint8_t *p; /* the whole document */
    size_t n;
    size_t at;  /* the next byte */
    size_t end; /* end of the enclosing container */
    buf *out;
    buf text; /* the last unpacked string */
    const char *reason;
} reader;

static bool fail(reader *r, const char *reason) {
    r->reason = r->reason ? r->reason : reason;
    return false;
}

/* ---- bytes ---- */

static const uint8_t *take(reader *r, size_t n) {
    if (r->end - r->at < n) {
        fail(r, "unexpected end of the value");
        return NULL;
    }
    r->at += n;
    return r->p + r->at - n;
}

static uint64_t load(const uint8_t *p, size_t n) {
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        value |= (uint64_t)p[i] << (8 * i);
    }
    return value;
}

static bool take_number(reader *r, size_t n, uint64_t *value_out) {
    const uint8_t *p = take(r, n);
    *value_out = p ? load(p, n) : 0;
    return p != NULL;
}

/* ---- strings ---- */

/* Reads n characters of `bits` bits each: indexes into an alphabet, or offsets from `base`. */
static bool unpack(reader *r, size_t n, unsigned bits, unsigned base, const char *alphabet) {
    const uint8_t *p = take(r, (n * bits + 7) / 8);
    unsigned held = 0, held_n = 0;
    if (!p) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (held_n < bits) {
            held |= (unsigned)*p++ << held_n;
            held_n += 8;
        }
        unsigned c = held & ((1u << bits) - 1);
        held >>= bits;
        held_n -= bits;
        buf_add_byte(&r->text, alphabet ? alphabet[c] : (char)(base + c));
    }
    return held == 0 || fail(r, "a packed string with unused bits that are not zero");
}

static const char hex_lower[] = "0123456789abcdef", hex_upper[] = "0123456789ABCDEF", date_characters[] = " 0123456789:-.TZ";

static bool read_packed(reader *r, unsigned marker) {
    static const struct {
        uint8_t length_bytes, bits;
        bool has_base;
        const char *alphabet;
    } kinds[] = {
        {1, 4, false, hex_lower}, {1, 4, false, hex_upper}, {1, 4, false, date_characters},
        {1, 4, true, NULL},       {1, 5, true, NULL},       {1, 6, true, NULL},
        {1, 7, false, NULL},      {2, 7, false, NULL},
    };
    unsigned kind = marker - BINARY_HEX_LOWER;
    uint64_t n, base = 0;
    return take_number(r, kinds[kind].length_bytes, &n) && (!kinds[kind].has_base || take_number(r, 1, &base)) &&
           unpack(r, n, kinds[kind].bits, (unsigned)base, kinds[kind].alphabet);
}

static void add_hex_byte(buf *out, uint8_t byte, const char *digits, bool low_first) {
    buf_add_byte(out, digits[low_first ? byte & 15 : byte >> 4]);
    buf_add_byte(out, digits[low_first ? byte >> 4 : byte & 15]);
}

static bool read_guid(reader *r, const char *digits, bool low_first) {
    const uint8_t *p = take(r, BINARY_GUID_BYTES);
    for (size_t i = 0; p && i < BINARY_GUID_BYTES; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            buf_add_byte(&r->text, '-');
        }
        add_hex_byte(&r->text, p[i], digits, low_first);
    }
    return p != NULL;
}

static bool read_quoted_guid(reader *r) {
    buf_add_byte(&r->text, '"');
    bool good = read_guid(r, hex_lower, true);
    buf_add_byte(&r->text, '"');
    return good;
}

static void add_base64(buf *out, const uint8_t *p, size_t n, bool url, bool padded) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    for (size_t i = 0; i < n; i += 3) {
        size_t k = n - i < 3 ? n - i : 3;
        uint32_t group = (uint32_t)p[i] << 16 | (k > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (k > 2 ? p[i + 2] : 0);
        for (size_t c = 0; c <= k; c++) {
            unsigned six = group >> (18 - 6 * c) & 63;
            buf_add_byte(out, six < 62 ? letters[six] : six == 62 ? (url ? '-' : '+') : (url ? '_' : '/'));
        }
        for (size_t c = k; padded && c < 3; c++) {
            buf_add_byte(out, '=');
        }
    }
}

static bool read_base64(reader *r, unsigned marker) {
    bool url = marker >= BINARY_BASE64_URL_1, two = marker == BINARY_BASE64_2 || marker == BINARY_BASE64_URL_2;
    uint64_t groups, padding;
    if (!take_number(r, two ? 2 : 1, &groups) || !take_number(r, 1, &padding)) {
        return false;
    }
    bool padded = padding <= 2;
    padding = padded ? padding : (uint8_t)~padding;
    if (padding > 2 || groups * 4 < padding) {
        return fail(r, "a base64 string with too much padding");
    }
    size_t n = (size_t)(groups * 3 - padding);
    const uint8_t *p = take(r, n);
    if (p) {
        add_base64(&r->text, p, n, url, padded);
    }
    return p != NULL;
}

static bool read_plain(reader *r, size_t n, slice *text_out) {
    const uint8_t *p = take(r, n);
    if (p && u8_check(p, n)) {
        return fail(r, "a string is not UTF-8");
    }
    *text_out = slice_of(p, n);
    return p != NULL;
}

static bool read_string_of(reader *r, unsigned marker, slice *text_out);

/* Reads the string at another offset of the document, then continues after the reference. */
static bool read_reference(reader *r, unsigned marker, slice *text_out) {
    uint64_t target;
    if (!take_number(r, marker - BINARY_REFERENCE_1 + 1, &target)) {
        return false;
    }
    size_t at = r->at, end = r->end;
    if (target >= r->n || (r->p[target] >= BINARY_REFERENCE_1 && r->p[target] <= BINARY_REFERENCE_4)) {
        return fail(r, "a reference that does not point to a string");
    }
    r->at = (size_t)target + 1;
    r->end = r->n;
    bool good = read_string_of(r, r->p[target], text_out);
    r->at = at;
    r->end = end;
    return good;
}

static bool read_unpacked(reader *r, unsigned marker, slice *text_out) {
    buf_clear(&r->text);
    bool good = marker <= BINARY_BASE64_URL_2  ? read_base64(r, marker)
                : marker == BINARY_GUID_LOWER  ? read_guid(r, hex_lower, true)
                : marker == BINARY_GUID_UPPER  ? read_guid(r, hex_upper, true)
                : marker == BINARY_GUID_QUOTED ? read_quoted_guid(r)
                                               : read_packed(r, marker);
    *text_out = buf_view(&r->text);
    return good && (!u8_check((const uint8_t *)r->text.p, r->text.n) || fail(r, "a string is not UTF-8"));
}

static bool read_string_of(reader *r, unsigned marker, slice *text_out) {
    uint64_t n;
    *text_out = SLICE_EMPTY;
    if (marker >= BINARY_STRING && marker < BINARY_STRING_END) {
        return read_plain(r, marker - BINARY_STRING, text_out);
    }
    if (marker >= BINARY_STRING_1 && marker <= BINARY_STRING_4) {
        return take_number(r, 1u << (marker - BINARY_STRING_1), &n) && read_plain(r, (size_t)n, text_out);
    }
    if (marker >= BINARY_SYSTEM_STRING && marker < BINARY_USER_STRING) {
        *text_out = slice_str(json__system_strings[marker - BINARY_SYSTEM_STRING]);
        return true;
    }
    if (marker >= BINARY_BASE64_1 && marker <= BINARY_PACKED_7_2) {
        return read_unpacked(r, marker, text_out);
    }
    if (marker >= BINARY_REFERENCE_1 && marker <= BINARY_REFERENCE_4) {
        return read_reference(r, marker, text_out);
    }
    return fail(r, marker >= BINARY_USER_STRING && marker < BINARY_USER_STRING_END ? "user dictionary strings are not supported"
                                                                                   : "expected a string");
}

static bool write_string(reader *r, unsigned marker) {
    slice text;
    bool good = read_string_of(r, marker, &text);
    if (good) {
        json_add_string(r->out, text);
    }
    return good;
}

/* ---- numbers ---- */

static bool write_double(reader *r, double value) {
    if (!isfinite(value)) {
        return fail(r, "a number is not finite");
    }
    if (value == 0 && signbit(value)) {
        buf_add_lit(r->out, "-0"); /* number_write_double would write 0 */
    } else {
        json_add_double(r->out, value);
    }
    return true;
}

static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double float_of(uint64_t bits) {
    uint32_t half = (uint32_t)bits;
    float value;
    memcpy(&value, &half, sizeof value);
    return value;
}

/* The size of a number after its marker; 0: the marker is not that of a number. */
static size_t number_bytes(unsigned marker) {
    switch (marker) {
    case BINARY_U8:
    case BINARY_TYPED_U8:
    case BINARY_TYPED_I8:
        return 1;
    case BINARY_I16:
    case BINARY_TYPED_I16:
        return 2;
    case BINARY_I32:
    case BINARY_FLOAT32:
    case BINARY_TYPED_I32:
    case BINARY_TYPED_U32:
        return 4;
    case BINARY_U64:
    case BINARY_I64:
    case BINARY_DOUBLE:
    case BINARY_FLOAT64:
    case BINARY_TYPED_I64:
        return 8;
    default:
        return 0;
    }
}

static bool write_number(reader *r, unsigned marker) {
    uint64_t bits;
    if (!take_number(r, number_bytes(marker), &bits)) {
        return false;
    }
    switch (marker) {
    case BINARY_U8:
    case BINARY_U64:
    case BINARY_TYPED_U8:
    case BINARY_TYPED_U32:
        buf_add_u64(r->out, bits);
        return true;
    case BINARY_TYPED_I8:
        buf_add_i64(r->out, (int8_t)bits);
        return true;
    case BINARY_I16:
    case BINARY_TYPED_I16:
        buf_add_i64(r->out, (int16_t)bits);
        return true;
    case BINARY_I32:
    case BINARY_TYPED_I32:
        buf_add_i64(r->out, (int32_t)bits);
        return true;
    case BINARY_I64:
    case BINARY_TYPED_I64:
        buf_add_i64(r->out, (int64_t)bits);
        return true;
    case BINARY_FLOAT32:
        return write_double(r, float_of(bits));
    default:
        return write_double(r, double_of(bits));
    }
}

/* ---- arrays and objects ---- */

static bool write_value(reader *r, unsigned depth);

static bool write_numbers(reader *r, unsigned marker, size_t n) {
    buf_add_byte(r->out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i) {
            buf_add_byte(r->out, ',');
        }
        if (!write_number(r, marker)) {
            return false;
        }
    }
    buf_add_byte(r->out, ']');
    return buf_ok(r->out);
}

/* Uniform arrays hold typed numbers only. */
static bool is_uniform(unsigned marker) {
    return number_bytes(marker) && (marker == BINARY_FLOAT32 || marker == BINARY_FLOAT64 || marker >= BINARY_TYPED_U8);
}

static bool write_uniform(reader *r, unsigned marker) {
    bool nested = marker >= BINARY_NUMBER_ARRAYS_1;
    size_t width = marker == BINARY_NUMBERS_1 || marker == BINARY_NUMBER_ARRAYS_1 ? 1 : 2;
    uint64_t inner = 0, item, n, arrays = 1;
    if ((nested && !take_number(r, 1, &inner)) || !take_number(r, 1, &item) || !take_number(r, width, &n) ||
        (nested && !take_number(r, width, &arrays))) {
        return false;
    }
    if (!is_uniform((unsigned)item) || (nested && inner != marker - 2)) {
        return fail(r, "a number array whose items are not numbers");
    }
    if (!nested) {
        return write_numbers(r, (unsigned)item, (size_t)n);
    }
    buf_add_byte(r->out, '[');
    for (uint64_t i = 0; i < arrays; i++) {
        if (i) {
            buf_add_byte(r->out, ',');
        }
        if (!write_numbers(r, (unsigned)item, (size_t)n)) {
            return false;
        }
    }
    buf_add_byte(r->out, ']');
    return true;
}

static bool write_member(reader *r, bool is_object, unsigned depth) {
    if (is_object) {
        const uint8_t *marker = take(r, 1);
        if (!marker || !write_string(r, *marker)) {
            return false;
        }
        buf_add_byte(r->out, ':');
    }
    return write_value(r, depth + 1) && buf_ok(r->out);
}

/* Writes the members up to the end of the container, or one member. */
static bool write_members(reader *r, bool is_object, bool one, unsigned depth) {
    for (bool first = true; one ? first : r->at < r->end; first = false) {
        if (!first) {
            buf_add_byte(r->out, ',');
        }
        if (!write_member(r, is_object, depth)) {
            return false;
        }
    }
    return true;
}

/* Reads the length and skips the count, which is redundant. */
static bool take_length(reader *r, unsigned form, size_t *n_out) {
    size_t width = (size_t)1 << (form < BINARY_LC1 ? form - BINARY_L1 : form - BINARY_LC1);
    uint64_t n;
    if (!take_number(r, width, &n) || (form >= BINARY_LC1 && !take(r, width))) {
        return false;
    }
    *n_out = (size_t)n;
    return n <= r->end - r->at || fail(r, "an array or object is longer than its parent");
}

static bool write_container(reader *r, unsigned marker, unsigned depth) {
    bool is_object = marker >= BINARY_OBJECT, good = true;
    unsigned form = marker - (is_object ? BINARY_OBJECT : BINARY_ARRAY);
    size_t end = r->end, n = 0;
    if (depth >= LIMIT_JSON_DEPTH) {
        return fail(r, "nested too deeply");
    }
    buf_add_byte(r->out, is_object ? '{' : '[');
    if (form == BINARY_ONE) {
        good = write_members(r, is_object, true, depth);
    } else if (form != BINARY_EMPTY) {
        good = take_length(r, form, &n);
        r->end = good ? r->at + n : end;
        good = good && write_members(r, is_object, false, depth);
    }
    buf_add_byte(r->out, is_object ? '}' : ']');
    r->end = end;
    return good;
}

/* ---- values ---- */

static bool write_bytes(reader *r, unsigned marker) {
    uint64_t n;
    if (!take_number(r, 1u << (marker - BINARY_BYTES_1), &n)) {
        return false;
    }
    const uint8_t *p = take(r, (size_t)n);
    if (p) {
        buf_add_byte(r->out, '"');
        add_base64(r->out, p, (size_t)n, false, true);
        buf_add_byte(r->out, '"');
    }
    return p != NULL;
}

static bool write_guid(reader *r) {
    buf_clear(&r->text);
    bool good = read_guid(r, hex_lower, false);
    json_add_string(r->out, buf_view(&r->text));
    return good;
}

static bool write_value(reader *r, unsigned depth) {
    const uint8_t *p = take(r, 1);
    if (!p) {
        return false;
    }
    unsigned marker = *p;
    if (marker < BINARY_SYSTEM_STRING) {
        buf_add_u64(r->out, marker);
        return true;
    }
    if (marker >= BINARY_ARRAY && marker < BINARY_OBJECT_END) {
        return write_container(r, marker, depth);
    }
    if (marker >= BINARY_NUMBERS_1 && marker <= BINARY_NUMBER_ARRAYS_2) {
        return depth + 1 < LIMIT_JSON_DEPTH ? write_uniform(r, marker) : fail(r, "nested too deeply");
    }
    if (number_bytes(marker)) {
        return write_number(r, marker);
    }
    if (marker >= BINARY_BYTES_1 && marker <= BINARY_BYTES_4) {
        return write_bytes(r, marker);
    }
    switch (marker) {
    case BINARY_NULL:
        buf_add_lit(r->out, "null");
        return true;
    case BINARY_FALSE:
        buf_add_lit(r->out, "false");
        return true;
    case BINARY_TRUE:
        buf_add_lit(r->out, "true");
        return true;
    case BINARY_GUID:
        return write_guid(r);
    default:
        return marker < BINARY_U64 ? write_string(r, marker) : fail(r, "an unknown kind of value");
    }
}

err json_binary_to_text(slice binary, buf *out, json_error *why) {
    size_t before = out->n;
    reader r = {.p = (const uint8_t *)binary.p, .n = binary.n, .at = 1, .end = binary.n, .out = out, .text = buf_init(BUF_NO_LIMIT)};
    bool good = json_is_binary(binary) ? write_value(&r, 0) : fail(&r, "not Cosmos binary JSON");
    if (good && r.at != r.n) {
        good = fail(&r, "extra bytes after the value");
    }
    buf_free(&r.text);
    err code = !buf_ok(out) ? E_TOO_LARGE : good ? OK : E_BAD_JSON;
    if (code != OK) {
        out->n = before;
        out->overflow = false;
    }
    if (why) {
        *why = (json_error){.offset = r.at, .reason = r.reason};
    }
    return code;
}
