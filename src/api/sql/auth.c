#include "api/sql/auth.h"

#include "base/date.h"
#include "base/percent.h"

enum {
    SKEW_S = 15 * 60,
    FIELD_BYTES_MAX = 16 * 1024, /* the service's limit for the longest kind of field */
    SHOWN_MAX = 600,             /* bytes of the text to sign that the error message shows */
};

/* ---- dates ---- */

static err refuse_time(op *o, int64_t signed_s) {
    char from[40];
    char to[40];
    char now[40];
    return op_fail(o, E_UNAUTHORIZED,
                   "The authorization token is not valid at the current time. Please create another token and retry (token start time: %s, "
                   "token expiry time: %s, current server time: %s).",
                   date_http(signed_s, from), date_http(signed_s + SKEW_S, to), date_http(o->now_s, now));
}

static err check_date(op *o, slice date) {
    int64_t signed_s = 0;
    if (date.n == 0) {
        return op_fail(o, E_UNAUTHORIZED, "Authorization token mandates Date headers. Please pass in RFC 1123 style date format.");
    }
    if (!date_parse_http(date, &signed_s)) {
        return op_fail(o, E_UNAUTHORIZED, "The input date header is invalid format. Please pass in RFC 1123 style date format.");
    }
    int64_t skew = signed_s - o->now_s;
    return skew > SKEW_S || skew < -SKEW_S ? refuse_time(o, signed_s) : OK;
}

/* ---- the field ---- */

static bool decode_token(arena *a, slice raw, slice *token_out) {
    *token_out = raw;
    if (!memchr(raw.p, '%', raw.n)) {
        return true;
    }
    size_t n = 0;
    char *text = arena_alloc_aligned(a, raw.n, 1);
    bool good = percent_decode(raw, text, &n);
    *token_out = slice_of(text, n);
    return good;
}

/* Cuts "name=value" off the front, up to the end character or the end of the text. */
static bool take_field(slice *token, slice name, char end, slice *value_out) {
    slice field = *token;
    const char *stop = memchr(field.p, end, field.n);
    field.n = stop ? (size_t)(stop - field.p) : field.n;
    *token = slice_skip(*token, field.n + 1);
    if (field.n <= name.n || !slice_eq_nocase(slice_of(field.p, name.n), name)) {
        return false;
    }
    *value_out = slice_skip(field, name.n);
    return true;
}

/* The message repeats only type names known to us: an unknown one could be a secret that the client put in the wrong place. */
static err refuse_type(op *o, slice type) {
    static const char *const known[] = {"aad", "sas", "resource"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (slice_eq_nocase(type, slice_str(known[i]))) {
            return op_fail(o, E_UNAUTHORIZED, "Authorization tokens of type '%s' are not accepted here. Please sign with an account key.",
                           known[i]);
        }
    }
    return E_BAD_AUTHORIZATION;
}

static bool split_token(arena *a, slice raw, slice *type_out, slice *version_out, slice *signature_out) {
    slice token;
    return raw.n <= FIELD_BYTES_MAX && decode_token(a, raw, &token) && take_field(&token, SLICE_LIT("type="), '&', type_out) &&
           take_field(&token, SLICE_LIT("ver="), '&', version_out) && take_field(&token, SLICE_LIT("sig="), ',', signature_out);
}

/* Tokens made by the service have version 1; signatures have version 1.0. */
err sql_auth_read(op *o, slice field, sql_authorization *out) {
    slice type, version;
    *out = (sql_authorization){0};
    if (field.n == 0) {
        return E_NO_AUTHORIZATION;
    }
    if (!split_token(o->arena, field, &type, &version, &out->signature)) {
        return E_BAD_AUTHORIZATION;
    }
    bool first = slice_eq(version, SLICE_LIT("1.0"));
    if (slice_eq_nocase(type, SLICE_LIT("master"))) {
        return first ? OK : E_BAD_AUTHORIZATION;
    }
    out->is_jwt = slice_eq_nocase(type, SLICE_LIT("aad")) && first;
    if (out->is_jwt) {
        return OK;
    }
    out->is_token = slice_eq_nocase(type, SLICE_LIT("resource")) && (first || slice_eq(version, SLICE_LIT("1")));
    return out->is_token ? OK : refuse_type(o, type);
}

/* ---- the check ---- */

static void add_lower(buf *out, slice s) {
    if (!buf_reserve(out, s.n)) {
        return;
    }
    char *to = out->p + out->n;
    for (size_t i = 0; i < s.n; i++) {
        to[i] = (char)(s.p[i] >= 'A' && s.p[i] <= 'Z' ? s.p[i] | 0x20 : s.p[i]);
    }
    out->n += s.n;
}

static slice text_to_sign(arena *a, const sql_auth_request *r, slice link) {
    size_t room = r->verb.n + r->route->type.n + link.n + r->x_ms_date.n + r->date.n + 8;
    buf text = {.p = arena_alloc_aligned(a, room, 1), .cap = room, .max = room};
    add_lower(&text, r->verb);
    buf_add_byte(&text, '\n');
    buf_add_slice(&text, r->route->type);
    buf_add_byte(&text, '\n');
    buf_add_slice(&text, link);
    buf_add_byte(&text, '\n');
    add_lower(&text, r->x_ms_date);
    buf_add_byte(&text, '\n');
    if (r->x_ms_date.n == 0) {
        add_lower(&text, r->date);
    }
    buf_add_byte(&text, '\n');
    return buf_view(&text);
}

static err refuse_signature(op *o, slice text) {
    size_t n = text.n < SHOWN_MAX ? text.n : SHOWN_MAX;
    while (n < text.n && ((unsigned char)text.p[n] & 0xC0) == 0x80) { /* do not cut within a character */
        n--;
    }
    return op_fail(
        o, E_UNAUTHORIZED,
        "The input authorization token can't serve the request. The wrong key is being used or the expected payload is not built "
        "as per the protocol. For more info: https://aka.ms/cosmosdb-tsg-unauthorized. Server used the following payload to sign: "
        "'%.*s'",
        (int)n, text.p);
}

err sql_auth_verify(op *o, const access_ring *ring, const sql_auth_request *request, slice signature_text, access_key *key_out) {
    unsigned char signature[ACCESS_MAC_BYTES];
    *key_out = ACCESS_KEY_COUNT;
    TRY(check_date(o, request->x_ms_date.n ? request->x_ms_date : request->date));
    bool readable = access_signature_read(signature_text, signature);
    slice text = text_to_sign(o->arena, request, request->route->link);
    if (readable && access_ring_verify(ring, text, signature, key_out)) {
        return OK;
    }
    if (request->route->link_rid.p) {
        text = text_to_sign(o->arena, request, request->route->link_rid);
        if (readable && access_ring_verify(ring, text, signature, key_out)) {
            return OK;
        }
    }
    return refuse_signature(o, text);
}

err sql_auth_check(op *o, const access_ring *ring, const sql_auth_request *request, slice field, access_key *key_out) {
    sql_authorization authorization;
    *key_out = ACCESS_KEY_COUNT;
    TRY(sql_auth_read(o, field, &authorization));
    if (authorization.is_token || authorization.is_jwt) {
        return refuse_type(o, authorization.is_jwt ? SLICE_LIT("aad") : SLICE_LIT("resource"));
    }
    return sql_auth_verify(o, ring, request, authorization.signature, key_out);
}
