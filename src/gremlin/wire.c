/* wire.c — messages: requests in, responses out. */
#include "gremlin/wire.h"

#include <stdio.h>

#include "base/hex.h"
#include "doc/json.h"
#include "gremlin/wire_int.h"
#include "text/text.h"

static const char *const mimes[] = {
    [GREMLIN_GRAPHSON_1] = "application/vnd.gremlin-v1.0+json",
    [GREMLIN_GRAPHSON_2_UNTYPED] = "application/vnd.gremlin-v2.0+json;types=false",
    [GREMLIN_GRAPHSON_2] = "application/vnd.gremlin-v2.0+json",
    [GREMLIN_GRAPHSON_3] = "application/vnd.gremlin-v3.0+json",
    [GREMLIN_GRAPHBINARY_1] = "application/vnd.graphbinary-v1.0",
};

bool gremlin_format_of(slice mime, gremlin_format *format_out) {
    for (gremlin_format format = 0; format <= GREMLIN_GRAPHBINARY_1; format++) {
        if (slice_eq(mime, slice_str(mimes[format]))) {
            *format_out = format;
            return true;
        }
    }
    *format_out = GREMLIN_GRAPHSON_3;
    return slice_eq(mime, SLICE_LIT("application/json"));
}

const char *gremlin_format_mime(gremlin_format format) {
    return mimes[format];
}

/* ---- what all formats share ---- */

err gremlin__malformed(source *s, const char *format, ...) {
    char said[400];
    va_list args;
    va_start(args, format);
    vsnprintf(said, sizeof said, format, args);
    va_end(args);
    return op_fail(s->op, E_BAD_REQUEST, "The message is malformed: %s", said);
}

err gremlin__deeper(source *s) {
    return ++s->depth > s->limits->depth ? gremlin__malformed(s, "nested deeper than %u levels", s->limits->depth) : OK;
}

bool gremlin__uuid_read(slice text, uint8_t bytes[16]) {
    size_t digits = 0;
    for (size_t i = 0; i < text.n; i++) {
        int d = hex_digit(text.p[i]);
        if (text.p[i] == '-' && digits > 0) {
            continue;
        }
        if (d < 0 || digits == 32) {
            return false;
        }
        bytes[digits / 2] = (uint8_t)(digits % 2 ? bytes[digits / 2] | d : d << 4);
        digits++;
    }
    return digits == 32;
}

void gremlin__uuid_write(buf *out, const uint8_t bytes[16]) {
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            buf_add_byte(out, '-');
        }
        char digits[2];
        hex_write(bytes[i], digits);
        buf_add(out, digits, sizeof digits);
    }
}

/* with(…) of bytecode may name a computer or a strategy that does not make sense here: those are refused by the builder. */
err gremlin__instruction(source *s, gremlin_draft *d, slice name, const gremlin_items *args) {
    bool of_source = d->traversal.source && d->n == 0 && gremlin_is_source_method(name);
    return of_source ? gremlin_draft_source(s->builder, d, name, args->at, args->n)
                     : gremlin_draft_step(s->builder, d, name, args->at, args->n);
}

/* ---- requests ---- */

static const gremlin_value *member(gremlin_value map, const char *name) {
    for (size_t i = 0; gremlin_is_map(map) && i < map.map->n; i++) {
        const gremlin_pair *pair = &map.map->at[i];
        if (pair->key.type == GREMLIN_STRING && slice_is(gremlin_text(pair->key), name)) {
            return &pair->value;
        }
    }
    return NULL;
}

static slice text_member(gremlin_value map, const char *name) {
    const gremlin_value *v = member(map, name);
    return v && (v->type == GREMLIN_STRING || v->type == GREMLIN_BINARY) ? gremlin_text(*v) : SLICE_EMPTY;
}

static int64_t whole_member(gremlin_value map, const char *name, int64_t otherwise) {
    const gremlin_value *v = member(map, name);
    int64_t number = otherwise;
    if (v && gremlin_is_number(*v)) {
        (void)gremlin_as_long(*v, &number);
    }
    return number;
}

static slice session_of(source *s, gremlin_value args) {
    const gremlin_value *v = member(args, "session");
    if (v && v->type == GREMLIN_UUID) {
        buf text = buf_init(64);
        gremlin__uuid_write(&text, v->uuid);
        slice kept = arena_copy(s->arena, buf_view(&text));
        buf_free(&text);
        return kept;
    }
    return text_member(args, "session");
}

static err read_args(source *s, gremlin_request *r) {
    const gremlin_value *gremlin = member(r->args, "gremlin"), *bindings = member(r->args, "bindings");
    r->script = text_member(r->args, "gremlin");
    if (gremlin && gremlin->type == GREMLIN_TRAVERSAL) {
        r->traversal = gremlin->traversal;
    }
    r->bindings = bindings && gremlin_is_map(*bindings) ? *bindings : gremlin_null();
    r->language = text_member(r->args, "language");
    r->sasl = text_member(r->args, "sasl");
    r->sasl_mechanism = text_member(r->args, "saslMechanism");
    r->session = session_of(s, r->args);
    r->user_agent = text_member(r->args, "userAgent");
    r->batch_size = whole_member(r->args, "batchSize", 0);
    r->timeout_ms = whole_member(r->args, "evaluationTimeout", whole_member(r->args, "scriptEvaluationTimeout", -1));
    r->bare = slice_eq(text_member(r->args, "materializeProperties"), SLICE_LIT("tokens"));
    return OK;
}

static err read_json_request(source *s, slice payload, gremlin_request *r) {
    gremlin_value message;
    TRY(gremlin__graphson_read_request(s, payload, r, &message));
    if (!gremlin_is_map(message)) {
        return gremlin__malformed(s, "a request is an object");
    }
    const gremlin_value *args = member(message, "args");
    r->op = text_member(message, "op");
    r->processor = text_member(message, "processor");
    r->args = args && gremlin_is_map(*args) ? *args : gremlin_map_of(s->arena, GREMLIN_MAP, NULL, 0);
    return r->has_id ? read_args(s, r) : gremlin__malformed(s, "requestId must be a UUID");
}

/* version · uuid · text op · text processor · int32 n · n × (typed key, typed value) */
static err read_binary_request(source *s, slice payload, gremlin_request *r) {
    gremlin_pairs pairs = {0};
    size_t n;
    uint64_t version;
    if (!slice_take_be(&payload, 1, &version) || version != 0x81 || payload.n < 16) {
        return gremlin__malformed(s, "not GraphBinary 1");
    }
    memcpy(r->id, payload.p, 16);
    r->has_id = true;
    payload = slice_skip(payload, 16);
    TRY(gremlin__binary_text(s, &payload, &r->op));
    TRY(gremlin__binary_text(s, &payload, &r->processor));
    TRY(gremlin__binary_size(s, &payload, 4, &n));
    for (size_t i = 0; i < n; i++) {
        gremlin_value key, value;
        TRY(gremlin__binary_read(s, &payload, &key));
        TRY(gremlin__binary_read(s, &payload, &value));
        gremlin_pairs_add(s->arena, &pairs, key, value);
    }
    if (payload.n) {
        return gremlin__malformed(s, "bytes after the request");
    }
    r->args = gremlin_pairs_map(s->arena, &pairs, GREMLIN_MAP);
    return read_args(s, r);
}

/* The console's mime type ends with -stringd, which only GraphBinary has. */
static bool take_mime(slice mime, gremlin_request *r) {
    slice end = SLICE_LIT("-stringd");
    r->texts = mime.n > end.n && slice_eq(slice_skip(mime, mime.n - end.n), end);
    mime.n -= r->texts ? end.n : 0;
    return gremlin_format_of(mime, &r->format) && (!r->texts || r->format == GREMLIN_GRAPHBINARY_1);
}

err gremlin_request_read(op *o, const gremlin_limits *limits, slice message, bool is_text, gremlin_request *request_out) {
    source s = {.op = o, .arena = o->arena, .builder = gremlin_build(o, limits), .limits = limits};
    *request_out = (gremlin_request){.format = GREMLIN_GRAPHSON_3, .timeout_ms = -1};
    if (!is_text) {
        size_t mime_n = message.n ? (unsigned char)message.p[0] : 0;
        if (message.n < 1 + mime_n || !take_mime(slice_of(message.p + 1, mime_n), request_out)) {
            return gremlin__malformed(&s, "it does not begin with the mime type of a format that is known");
        }
        message = slice_skip(message, 1 + mime_n);
    }
    return request_out->format == GREMLIN_GRAPHBINARY_1 ? read_binary_request(&s, message, request_out)
                                                        : read_json_request(&s, message, request_out);
}

err gremlin_value_read(op *o, const gremlin_limits *limits, gremlin_format format, slice bytes, gremlin_value *value_out) {
    source s = {.op = o, .arena = o->arena, .builder = gremlin_build(o, limits), .limits = limits};
    if (format != GREMLIN_GRAPHBINARY_1) {
        return gremlin__graphson_read(&s, bytes, value_out);
    }
    TRY(gremlin__binary_read(&s, &bytes, value_out));
    return bytes.n ? gremlin__malformed(&s, "bytes after the value") : OK;
}

bool gremlin_value_write(buf *out, gremlin_format format, gremlin_value v) {
    return format == GREMLIN_GRAPHBINARY_1 ? gremlin__binary_write(out, v) : gremlin__graphson_write(out, format, v);
}

/* ---- results ---- */

static bool add_once(gremlin_results *r, gremlin_value v) {
    size_t before = r->bytes.n;
    if (r->n && r->format != GREMLIN_GRAPHBINARY_1) {
        buf_add_byte(&r->bytes, ',');
    }
    if (!gremlin_value_write(&r->bytes, r->format, v) || !buf_ok(&r->bytes)) {
        r->bytes.n = before < r->bytes.n ? before : r->bytes.n;
        return false;
    }
    r->n++;
    return true;
}

static bool add_text(gremlin_results *r, gremlin_value v, int64_t bulk) {
    buf text = buf_init_counted(BUF_NO_LIMIT, r->bytes.budget);
    gremlin_show(&text, v);
    r->bytes.overflow |= text.overflow;
    bool added = buf_ok(&text);
    for (int64_t i = 0; added && i < bulk; i++) {
        added = add_once(r, gremlin_string(buf_view(&text)));
    }
    buf_free(&text);
    return added;
}

bool gremlin_results_add(gremlin_results *r, gremlin_value v, int64_t bulk) {
    gremlin_traverser traverser = {v, bulk};
    if (r->texts) {
        return add_text(r, v, bulk);
    }
    if (r->traversers) {
        return add_once(r, (gremlin_value){.type = GREMLIN_TRAVERSER, .traverser = &traverser});
    }
    for (int64_t i = 0; i < bulk; i++) {
        if (!add_once(r, v)) {
            return false;
        }
    }
    return true;
}

void gremlin_results_clear(gremlin_results *r) {
    buf_clear(&r->bytes);
    r->n = 0;
}

void gremlin_results_free(gremlin_results *r) {
    buf_free(&r->bytes);
    r->n = 0;
}

/* ---- responses ---- */

static void write_json_attributes(buf *out, gremlin_format format, gremlin_value attributes) {
    bool typed = format == GREMLIN_GRAPHSON_3;
    size_t n = gremlin_is_map(attributes) ? attributes.map->n : 0;
    buf_add_slice(out, typed ? SLICE_LIT("{\"@type\":\"g:Map\",\"@value\":[") : SLICE_LIT("{"));
    for (size_t i = 0; i < n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(",") : SLICE_EMPTY);
        json_add_string(out, gremlin_text(attributes.map->at[i].key));
        buf_add_byte(out, typed ? ',' : ':');
        (void)gremlin__graphson_write(out, typed ? format : GREMLIN_GRAPHSON_1, attributes.map->at[i].value);
    }
    buf_add_slice(out, typed ? SLICE_LIT("]}") : SLICE_LIT("}"));
}

static void write_json(buf *out, const gremlin_request *q, int code, slice message, gremlin_value attributes,
                       const gremlin_results *results) {
    bool typed = q->format == GREMLIN_GRAPHSON_3;
    buf_add_lit(out, "{\"requestId\":\"");
    gremlin__uuid_write(out, q->id);
    buf_addf(out, "\",\"status\":{\"message\":");
    json_add_string(out, message);
    buf_addf(out, ",\"code\":%d,\"attributes\":", code);
    write_json_attributes(out, q->format, attributes);
    buf_add_lit(out, "},\"result\":{\"data\":");
    if (results) {
        buf_add_slice(out, typed ? SLICE_LIT("{\"@type\":\"g:List\",\"@value\":[") : SLICE_LIT("["));
        buf_add_slice(out, buf_view(&results->bytes));
        buf_add_slice(out, typed ? SLICE_LIT("]}") : SLICE_LIT("]"));
    } else {
        buf_add_lit(out, "null");
    }
    buf_add_lit(out, ",\"meta\":");
    write_json_attributes(out, q->format, gremlin_null());
    buf_add_lit(out, "}}");
}

/* version · 00 uuid · int32 code · 00 text message · map attributes · map meta · typed data */
static void write_binary(buf *out, const gremlin_request *q, int code, slice message, gremlin_value attributes,
                         const gremlin_results *results) {
    size_t n = gremlin_is_map(attributes) ? attributes.map->n : 0;
    buf_add_lit(out, "\x81\x00");
    buf_add(out, q->id, 16);
    buf_add_be32(out, (uint32_t)code);
    buf_add_byte(out, 0);
    gremlin__binary_add_text(out, message);
    buf_add_be32(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        (void)gremlin__binary_write(out, attributes.map->at[i].key);
        (void)gremlin__binary_write(out, attributes.map->at[i].value);
    }
    buf_add_be32(out, 0);
    if (results) {
        buf_add_lit(out, "\x09\x00");
        buf_add_be32(out, (uint32_t)results->n);
        buf_add_slice(out, buf_view(&results->bytes));
    } else {
        buf_add_lit(out, "\xfe\x01");
    }
}

void gremlin_response_write(buf *out, const gremlin_request *request, int code, slice message, gremlin_value attributes,
                            const gremlin_results *results) {
    if (request->format == GREMLIN_GRAPHBINARY_1) {
        write_binary(out, request, code, message, attributes, results);
    } else {
        write_json(out, request, code, message, attributes, results);
    }
}
