#include "net/framing.h"

#include "base/hex.h"
#include "base/limits.h"
#include "net/head.h"

const http_limits http_limits_default = {
    .head_bytes = LIMIT_HEADER_BYTES,
    .url_bytes = LIMIT_URL_BYTES,
    .fields = LIMIT_HEADER_COUNT,
    .body_bytes = LIMIT_BODY_BYTES,
    .discard_bytes = 16 * 1024 * 1024,
};

/* ---- the head ---- */

static void refuse(http_framing *f, err code) { /* the first reason counts */
    f->refusal = f->refusal ? f->refusal : code;
}

static http_framing *framing_of(http_parser *parser) {
    return (http_framing *)((char *)parser - offsetof(http_framing, parser));
}

static uint32_t offset(const http_framing *f, const char *at) {
    return (uint32_t)(at - f->base);
}

static slice bytes_of(const http_framing *f, http_span s) {
    return (slice){f->base + s.at, s.n};
}

/* The top bits of those of eight bytes that are control characters; bytes above one that is may be marked too. */
static uint64_t controls(const char *p) {
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t x;
    memcpy(&x, p, sizeof x);
    uint64_t del = x ^ (ones * 0x7F);
    return (((x - ones * 0x20) & ~x) | ((del - ones) & ~del)) & tops;
}

static bool has_control_singly(const char *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7F) {
            return true;
        }
    }
    return false;
}

/* Whether there is a control character other than a tab. Checks eight bytes at a time, the last eight again if need be. Bytes are checked
 * singly if there are fewer, or after a hit, which may be a tab. */
static bool has_control(const char *p, size_t n) {
    if (n < 8) {
        return has_control_singly(p, n);
    }
    uint64_t hit = controls(p + n - 8);
    for (size_t i = 0; i + 8 < n; i += 8) {
        hit |= controls(p + i);
    }
    return hit && has_control_singly(p, n);
}

void http__record_own(http_framing *f, http_own_field own) {
    slice value = bytes_of(f, f->value);
    switch (own) {
    case HTTP_OWN_HOST:
        if (f->host_seen) {
            refuse(f, E_BAD_REQUEST);
        }
        f->host_seen = true;
        f->host = f->value;
        break;
    case HTTP_OWN_ORIGIN:
        if (f->origin_seen) {
            refuse(f, E_BAD_REQUEST);
        }
        f->origin_seen = true;
        f->origin = f->value;
        break;
    case HTTP_OWN_EXPECT:
        f->expects_continue |= slice_eq_nocase(value, SLICE_LIT("100-continue"));
        break;
    case HTTP_OWN_UPGRADE:
        f->upgrade_h2c = slice_eq_nocase(value, SLICE_LIT("h2c"));
        f->upgrade_websocket = slice_eq_nocase(value, SLICE_LIT("websocket"));
        break;
    case HTTP_OWN_TRANSFER_ENCODING:
        if (f->chunked || !slice_eq_nocase(value, SLICE_LIT("chunked"))) {
            refuse(f, E_BAD_REQUEST);
        }
        f->chunked = true;
        break;
    case HTTP_OWN_CONTENT_LENGTH: /* http-parser, or head.c, reads these */
    case HTTP_OWN_CONNECTION:
    case HTTP_OWN_PROXY_CONNECTION:
    case HTTP_OWN_NONE:
        break;
    }
}

/* Returns the offset after a field's line, which must read "name:", blanks, value, blanks, CR LF; 0 if it does not. The parser has seen the
 * end of the line, so all of these bytes exist. */
static uint32_t field_line_end(http_framing *f) {
    const char *p = f->base;
    uint32_t at = f->name.at + f->name.n;
    if (p[at] != ':' || memchr(p + f->name.at, ' ', f->name.n)) {
        return 0;
    }
    at++;
    while (p[at] == ' ' || p[at] == '\t') {
        at++;
    }
    if (f->value.n == 0) {
        f->value.at = at; /* for an empty value, http-parser points after the line */
    }
    uint32_t end = f->value.at + f->value.n;
    return f->value.at == at && p[end] == '\r' && p[end + 1] == '\n' && !has_control(p + at, f->value.n) ? end + 2 : 0;
}

static void record(http_framing *f) {
    if (++f->fields > f->limits->fields) {
        refuse(f, E_TOO_MANY_HEADERS);
        return;
    }
    while (f->value.n && (f->base[f->value.at + f->value.n - 1] == ' ' || f->base[f->value.at + f->value.n - 1] == '\t')) {
        f->value.n--;
    }
    const http_name *known = http__name_find(f->names, f->base + f->name.at, f->name.n);
    if (known && !http__record(f, known)) {
        refuse(f, E_TOO_MANY_HEADERS);
    }
}

/* Returns where the next line begins; 0 after a refusal. */
static uint32_t finish_field(http_framing *f) {
    f->field_open = false;
    uint32_t end = f->refusal ? 0 : field_line_end(f);
    if (end) {
        record(f);
    } else {
        refuse(f, E_BAD_REQUEST);
    }
    return end;
}

static int on_url(http_parser *parser, const char *at, size_t n) {
    http_framing *f = framing_of(parser);
    if (f->url.n == 0) {
        f->url.at = offset(f, at);
    }
    f->url.n += (uint32_t)n;
    return 0;
}

static int on_name(http_parser *parser, const char *at, size_t n) {
    http_framing *f = framing_of(parser);
    if (f->field_open && f->value_open && finish_field(f) != offset(f, at)) {
        refuse(f, E_BAD_REQUEST);
    }
    if (!f->field_open) {
        f->field_open = true;
        f->value_open = false;
        f->name = (http_span){offset(f, at), 0};
    }
    f->name.n += (uint32_t)n;
    return 0;
}

static int on_value(http_parser *parser, const char *at, size_t n) {
    http_framing *f = framing_of(parser);
    if (!f->value_open || f->value.n == 0) {
        f->value_open = true;
        f->value = (http_span){offset(f, at), 0};
    }
    if (n && f->value.at + f->value.n != offset(f, at)) {
        refuse(f, E_BAD_REQUEST); /* the value is folded over several lines */
    }
    f->value.n += (uint32_t)n;
    return 0;
}

/* Returns the offset of the first field, after "GET /path HTTP/1.1" CR LF with single blanks; 0 if the request line differs from that. */
static uint32_t request_line_end(const http_framing *f) {
    const http_parser *parser = &f->parser;
    const char *end = f->base + f->url.at + f->url.n;
    bool strict = f->url.at == strlen(http_method_str((enum http_method)parser->method)) + 1 && parser->http_major == 1 &&
                  parser->http_minor <= 1 && memcmp(end, " HTTP/1.", 8) == 0 && end[9] == '\r' && end[10] == '\n';
    return strict ? f->url.at + f->url.n + 11 : 0;
}

bool http_url_allowed(slice url, const http_limits *limits) {
    unsigned bad = url.n > limits->url_bytes;
    for (size_t i = 0; i < url.n; i++) {
        bad |= ((unsigned char)url.p[i] - 0x21u > 0x7E - 0x21u) | (url.p[i] == '#');
    }
    return !bad;
}

static void check_head(http_framing *f) {
    slice url = bytes_of(f, f->url);
    unsigned flags = f->parser.flags;
    bool upgrade = (flags & F_UPGRADE) && (flags & F_CONNECTION_UPGRADE);
    f->websocket = upgrade && f->upgrade_websocket;
    if (f->parser.method == HTTP_CONNECT) {
        refuse(f, E_METHOD);
    } else if (!http_url_allowed(url, f->limits)) {
        refuse(f, E_BAD_REQUEST);
    } else if (upgrade && !f->upgrade_websocket && !f->upgrade_h2c) { /* a server may ignore h2c, which Java clients offer */
        refuse(f, E_BAD_REQUEST);
    } else if (!f->http10 && !f->host_seen) {
        refuse(f, E_BAD_REQUEST);
    } else if (f->chunked && (f->http10 || (flags & F_CONTENTLENGTH))) {
        refuse(f, E_BAD_REQUEST);
    }
}

static void plan_body(http_framing *f, uint64_t length) {
    f->left = length;
    f->body_too_large = f->left > f->limits->body_bytes;
    f->expects_continue &= !f->http10 && (f->left || f->chunked);
    /* A client that waits for "100 Continue" need not send a body that would only be discarded. */
    f->abandon = f->left > f->limits->discard_bytes || (f->body_too_large && f->expects_continue);
    f->body.at = f->parsed = f->head_n;
}

static int on_head(http_parser *parser) {
    http_framing *f = framing_of(parser);
    uint32_t end = request_line_end(f);
    f->head_whole = true;
    f->method = (uint8_t)parser->method;
    f->http10 = parser->http_minor == 0;
    f->keep_alive = http_should_keep_alive(parser);
    if (end == 0) {
        refuse(f, E_BAD_REQUEST);
    } else if (f->field_open) {
        end = finish_field(f);
    }
    if (!f->refusal && !(f->base[end] == '\r' && f->base[end + 1] == '\n')) {
        refuse(f, E_BAD_REQUEST);
    }
    if (!f->refusal) {
        f->head_n = end + 2;
        check_head(f);
        plan_body(f, parser->flags & F_CONTENTLENGTH ? parser->content_length : 0);
    }
    return -1; /* stops the parser: bodies are read below */
}

static const http_parser_settings head_settings = {
    .on_url = on_url,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_headers_complete = on_head,
};

/* False: it is left to http-parser, which begins with the first byte. */
static bool read_ordinary_head(http_framing *f, size_t end) {
    http_head head;
    if (f->limits->parser_only || !http__head_read(f, end, &head)) {
        char *base = f->base;
        http_framing_start(f, f->names, f->limits);
        f->base = base;
        http_parser_init(&f->parser, HTTP_REQUEST);
        return false;
    }
    f->head_whole = f->ordinary = true;
    f->method = head.method;
    f->keep_alive = !head.closes;
    f->head_n = head.n;
    plan_body(f, head.length);
    return true;
}

static http_step read_head(http_framing *f, const net_input *in) {
    size_t end = in->n < f->limits->head_bytes ? in->n : f->limits->head_bytes;
    if (end == f->parsed) {
        return HTTP_MORE; /* to the parser, zero bytes would mean the end of the stream */
    }
    if (f->parsed == 0 && read_ordinary_head(f, end)) {
        return HTTP_MORE;
    }
    http_parser_execute(&f->parser, &head_settings, f->base + f->parsed, end - f->parsed);
    if (f->head_whole) {
        return HTTP_MORE;
    }
    if (HTTP_PARSER_ERRNO(&f->parser) != HPE_OK) {
        f->refusal = E_BAD_REQUEST; /* overrides earlier refusals, so that every split into reads gives the same result */
        return HTTP_REFUSED;
    }
    f->parsed = (uint32_t)end;
    if (end == f->limits->head_bytes) {
        f->refusal = E_TOO_MANY_HEADERS;
        return HTTP_REFUSED;
    }
    return HTTP_MORE;
}

/* ---- the body ---- */

static http_step whole(http_framing *f, size_t used) {
    if (f->body_too_large) {
        f->body.n = 0;
    }
    f->used = (uint32_t)used;
    return HTTP_WHOLE;
}

static http_step plain_body(http_framing *f, net_input *in) {
    size_t have = in->n - f->head_n;
    if (!f->body_too_large) {
        f->body.n = (uint32_t)f->left;
        return have < f->left ? HTTP_MORE : whole(f, f->head_n + f->left);
    }
    if (have >= f->left) {
        return whole(f, f->head_n + f->left);
    }
    f->left -= have;
    in->n = f->head_n; /* discards it */
    return HTTP_MORE;
}

/* RFC 9112, 7.1. Each state is named after what comes next. */
typedef enum chunk_state {
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER,
    CHUNK_TRAILER_REST,
    CHUNK_TRAILER_LF,
    CHUNK_LAST_LF,
    CHUNK_DONE,
    CHUNK_BAD,
} chunk_state;

static chunk_state chunk_size(http_framing *f, char c) {
    int digit = hex_digit(c);
    if (digit >= 0 && f->chunk_digits < 8) {
        f->chunk_digits++;
        f->left = f->left * 16 + (unsigned)digit;
        return CHUNK_SIZE;
    }
    if (digit >= 0 || f->chunk_digits == 0) {
        return CHUNK_BAD;
    }
    return c == '\r' ? CHUNK_SIZE_LF : c == ';' ? CHUNK_EXTENSION : CHUNK_BAD;
}

/* Skips extensions and trailers, within a bound. */
static chunk_state chunk_ignored(http_framing *f, char c, chunk_state at_cr, chunk_state otherwise) {
    if (c == '\r') {
        return at_cr;
    }
    return has_control(&c, 1) || ++f->overhead > f->limits->head_bytes ? CHUNK_BAD : otherwise;
}

static chunk_state expect(char c, char wanted, chunk_state then) {
    return c == wanted ? then : CHUNK_BAD;
}

static chunk_state chunk_next_size(http_framing *f, char c) {
    f->left = 0;
    f->chunk_digits = 0;
    return expect(c, '\n', CHUNK_SIZE);
}

static chunk_state chunk_control(http_framing *f, char c) {
    switch ((chunk_state)f->chunk_state) {
    case CHUNK_SIZE:
        return chunk_size(f, c);
    case CHUNK_EXTENSION:
        return chunk_ignored(f, c, CHUNK_SIZE_LF, CHUNK_EXTENSION);
    case CHUNK_SIZE_LF:
        return expect(c, '\n', f->left ? CHUNK_DATA : CHUNK_TRAILER);
    case CHUNK_DATA_CR:
        return expect(c, '\r', CHUNK_DATA_LF);
    case CHUNK_DATA_LF:
        return chunk_next_size(f, c);
    case CHUNK_TRAILER:
        return chunk_ignored(f, c, CHUNK_LAST_LF, CHUNK_TRAILER_REST);
    case CHUNK_TRAILER_REST:
        return chunk_ignored(f, c, CHUNK_TRAILER_LF, CHUNK_TRAILER_REST);
    case CHUNK_TRAILER_LF:
        return expect(c, '\n', CHUNK_TRAILER);
    case CHUNK_LAST_LF:
        return expect(c, '\n', CHUNK_DONE);
    default:
        return CHUNK_BAD;
    }
}

/* Moves the chunk's data up to the rest of the body, over the bytes that framed it. */
static void chunk_data(http_framing *f, const char *p, size_t n) {
    f->seen += n;
    f->left -= n;
    if (f->seen > f->limits->body_bytes) {
        f->body_too_large = true;
        f->abandon = f->seen > f->limits->discard_bytes;
        f->body.n = 0;
    } else {
        memmove(f->base + f->body.at + f->body.n, p, n);
        f->body.n += (uint32_t)n;
    }
    if (f->left == 0) {
        f->chunk_state = CHUNK_DATA_CR;
    }
}

static http_step chunked_body(http_framing *f, net_input *in) {
    size_t at = f->parsed;
    while (at < in->n) {
        if (f->chunk_state == CHUNK_DATA) {
            size_t n = in->n - at < f->left ? in->n - at : (size_t)f->left;
            chunk_data(f, in->p + at, n);
            at += n;
            if (f->abandon) {
                return whole(f, at);
            }
            continue;
        }
        f->chunk_state = (uint8_t)chunk_control(f, in->p[at++]);
        if (f->chunk_state == CHUNK_DONE) {
            return whole(f, at);
        }
        if (f->chunk_state == CHUNK_BAD) {
            refuse(f, E_BAD_REQUEST);
            return HTTP_REFUSED;
        }
    }
    in->n = f->parsed = f->head_n + f->body.n; /* all bytes were parsed; only head and body are kept */
    return HTTP_MORE;
}

/* ---- */

void http_framing_start(http_framing *f, const http_names *names, const http_limits *limits) {
    memset(f, 0, offsetof(http_framing, found));
    memset(&f->head_whole, 0, sizeof *f - offsetof(http_framing, head_whole));
    f->names = names;
    f->limits = limits;
}

http_step http_framing_next(http_framing *f, net_input *in) {
    f->base = in->p;
    if (!f->head_whole) {
        http_step step = read_head(f, in);
        if (!f->head_whole) {
            return step;
        }
    }
    if (f->refusal) {
        return HTTP_REFUSED;
    }
    if (f->abandon) {
        return whole(f, in->n);
    }
    http_step step = f->chunked ? chunked_body(f, in) : plain_body(f, in);
    if (step == HTTP_MORE && f->expects_continue) {
        f->expects_continue = false;
        return HTTP_CONTINUE;
    }
    return step;
}
