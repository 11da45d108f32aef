#include "api/table/multipart.h"

enum { BOUNDARY_MAX = 70 /* RFC 2046, section 5.1.1 */ };

static table_error fail(op *o, const char *why) {
    op_fail(o, E_BAD_REQUEST, "The batch is malformed: %s.", why);
    return TABLE_INVALID_INPUT;
}

/* ---- lines ---- */

/* The next line without its end; the rest begins after it. */
static slice take_line(slice *rest) {
    const char *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
    slice line = slice_of(rest->p, end ? (size_t)(end - rest->p) : rest->n);
    *rest = slice_skip(*rest, line.n + 1);
    line.n -= line.n && line.p[line.n - 1] == '\r';
    return line;
}

typedef enum delimiter { NO_DELIMITER, NEXT_PART, LAST_PART } delimiter;

/* "--boundary" or "--boundary--", and blanks. */
static delimiter delimiter_of(slice line, slice boundary) {
    if (line.n < boundary.n + 2 || memcmp(line.p, "--", 2) != 0 || memcmp(line.p + 2, boundary.p, boundary.n) != 0) {
        return NO_DELIMITER;
    }
    slice after = slice_trim(slice_skip(line, boundary.n + 2));
    return after.n == 0 ? NEXT_PART : slice_eq(after, SLICE_LIT("--")) ? LAST_PART : NO_DELIMITER;
}

/* The content up to the next delimiter, without the line end before it. False: the delimiter is missing. */
static bool take_part(slice *rest, slice boundary, slice *part_out, delimiter *ended_by) {
    const char *from = rest->p;
    while (rest->n) {
        const char *line_from = rest->p;
        *ended_by = delimiter_of(take_line(rest), boundary);
        if (*ended_by != NO_DELIMITER) {
            size_t n = (size_t)(line_from - from);
            n -= n && from[n - 1] == '\n';
            n -= n && from[n - 1] == '\r';
            *part_out = slice_of(from, n);
            return true;
        }
    }
    return false;
}

static bool take_field(slice line, slice *name_out, slice *value_out) {
    const char *colon = line.n ? memchr(line.p, ':', line.n) : NULL;
    if (!colon) {
        return false;
    }
    *name_out = slice_trim(slice_of(line.p, (size_t)(colon - line.p)));
    *value_out = slice_trim(slice_skip(line, (size_t)(colon - line.p) + 1));
    return true;
}

static void skip_blank_lines(slice *rest) {
    slice next = *rest;
    while (next.n && take_line(&next).n == 0) {
        *rest = next;
    }
}

/* ---- boundaries ---- */

static bool is_boundary(slice text) {
    bool good = text.n > 0 && text.n <= BOUNDARY_MAX;
    for (size_t i = 0; good && i < text.n; i++) {
        good = text.p[i] > ' ' && text.p[i] < 0x7F && text.p[i] != '"';
    }
    return good;
}

slice multipart_boundary(slice type) {
    slice kind = SLICE_LIT("multipart/mixed"), word = SLICE_LIT("boundary=");
    if (type.n < kind.n || !slice_eq_nocase(slice_of(type.p, kind.n), kind)) {
        return SLICE_EMPTY;
    }
    for (slice rest = slice_skip(type, kind.n); rest.n >= word.n; rest = slice_skip(rest, 1)) {
        if (slice_eq_nocase(slice_of(rest.p, word.n), word)) {
            slice value = slice_skip(rest, word.n);
            const char *end = value.n ? memchr(value.p, ';', value.n) : NULL;
            value = slice_trim(slice_of(value.p, end ? (size_t)(end - value.p) : value.n));
            bool quoted = value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"';
            value = quoted ? slice_of(value.p + 1, value.n - 2) : value;
            return is_boundary(value) ? value : SLICE_EMPTY;
        }
    }
    return SLICE_EMPTY;
}

/* ---- parts ---- */

/* The header of a part: its content type, and its id. */
static void take_part_header(slice *rest, slice *type_out, slice *id_out) {
    slice name, value;
    *type_out = *id_out = SLICE_EMPTY;
    for (slice line = take_line(rest); line.n; line = take_line(rest)) {
        if (!take_field(line, &name, &value)) {
            continue;
        }
        if (slice_eq_nocase(name, SLICE_LIT("content-type"))) {
            *type_out = value;
        } else if (slice_eq_nocase(name, SLICE_LIT("content-id"))) {
            *id_out = value;
        }
    }
}

static void keep_field(multipart_request *r, slice name, slice value) {
    struct {
        const char *name;
        slice *to;
    } const fields[] = {{"if-match", &r->if_match},
                        {"prefer", &r->prefer},
                        {"accept", &r->accept},
                        {"x-http-method", &r->method},
                        {"content-id", &r->content_id}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (slice_eq_nocase(name, slice_str(fields[i].name))) {
            *fields[i].to = value;
        }
    }
}

/* "POST http://host/people HTTP/1.1", fields, a blank line, the body. */
static table_error read_request(op *o, slice part, slice id, multipart_request *r) {
    slice name, value;
    *r = (multipart_request){.content_id = id};
    skip_blank_lines(&part);
    slice line = take_line(&part);
    const char *blank = line.n ? memchr(line.p, ' ', line.n) : NULL, *second = blank;
    for (const char *at = blank; at && at < line.p + line.n; at++) {
        second = *at == ' ' ? at : second; /* the last blank: keys in a URL may have some that are not encoded */
    }
    if (!blank || blank == second || !slice_starts(slice_skip(line, (size_t)(second + 1 - line.p)), SLICE_LIT("HTTP/"))) {
        return fail(o, "a part must be an HTTP request");
    }
    r->verb = slice_of(line.p, (size_t)(blank - line.p));
    r->url = slice_trim(slice_of(blank + 1, (size_t)(second - blank - 1)));
    for (line = take_line(&part); line.n; line = take_line(&part)) {
        if (!take_field(line, &name, &value)) {
            return fail(o, "a header field of a part has no colon");
        }
        keep_field(r, name, value);
    }
    skip_blank_lines(&part);
    r->body = slice_trim(part);
    return TABLE_FINE;
}

typedef struct reader {
    op *op;
    multipart_request *requests;
    size_t max, n;
} reader;

static table_error add_request(reader *r, slice part, slice id) {
    if (r->n == r->max) {
        op_fail(r->op, E_BAD_REQUEST, "The batch has more than %zu operations.", r->max);
        return TABLE_OUT_OF_RANGE;
    }
    return read_request(r->op, part, id, &r->requests[r->n++]);
}

static table_error read_changeset(reader *r, slice body, slice boundary) {
    slice part, type, id;
    delimiter ended = NO_DELIMITER;
    if (!take_part(&body, boundary, &part, &ended)) { /* what is before the first delimiter does not count */
        return fail(r->op, "the changeset's boundary is missing");
    }
    while (ended == NEXT_PART) {
        if (!take_part(&body, boundary, &part, &ended)) {
            return fail(r->op, "the changeset is not closed");
        }
        take_part_header(&part, &type, &id);
        TABLE_TRY(add_request(r, part, id));
    }
    return TABLE_FINE;
}

table_error multipart_read(op *o, slice body, slice boundary, multipart_request *requests, size_t max, size_t *n_out, bool *changes_out) {
    reader r = {.op = o, .requests = requests, .max = max};
    slice part, type, id;
    delimiter ended = NO_DELIMITER;
    *n_out = 0;
    *changes_out = false;
    if (!take_part(&body, boundary, &part, &ended) || ended != NEXT_PART || !take_part(&body, boundary, &part, &ended)) {
        return fail(o, "the boundary of its Content-Type is missing");
    }
    if (ended != LAST_PART) {
        return fail(o, "it must have one changeset, or one request alone");
    }
    skip_blank_lines(&part);
    take_part_header(&part, &type, &id);
    slice inner = multipart_boundary(type);
    *changes_out = inner.n > 0;
    TABLE_TRY(inner.n ? read_changeset(&r, part, inner) : add_request(&r, part, id));
    *n_out = r.n;
    return r.n ? TABLE_FINE : fail(o, "it has no operations");
}
