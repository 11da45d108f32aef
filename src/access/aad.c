#include "access/aad.h"

#include <cjose/cjose.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "doc/json.h"
#include "doc/path.h"

enum { SKEW_S = 5 * 60, FILE_BYTES_MAX = 16 << 20, KEYS_MAX = 100 };

typedef struct issuer_key {
    slice id;
    cjose_jwk_t *key;
} issuer_key;

struct access_aad {
    arena arena;
    slice issuer, audiences;
    issuer_key keys[KEYS_MAX];
    size_t keys_n;
    access_roles roles;
    bool any;
};

/* ---- files ---- */

static bool read_file(arena *a, const char *path, slice *text_out, char *why) {
    FILE *f = fopen(path, "rb");
    if (!f) {
        snprintf(why, ACCESS_AAD_WHY_BYTES, "%s cannot be read: %s", path, strerror(errno));
        return false;
    }
    buf text = buf_init(FILE_BYTES_MAX);
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;) {
        buf_add(&text, part, n);
    }
    bool good = !ferror(f) && buf_ok(&text);
    *text_out = arena_copy(a, buf_view(&text));
    buf_free(&text);
    fclose(f);
    if (!good) {
        snprintf(why, ACCESS_AAD_WHY_BYTES, "%s cannot be read, or has more than %d bytes", path, FILE_BYTES_MAX);
    }
    return good;
}

static slice text_in(slice document, const char *name) {
    bson_iter_t it;
    return doc_find_key(document, slice_str(name), &it) && BSON_ITER_HOLDS_UTF8(&it) ? doc_text(&it) : SLICE_EMPTY;
}

/* Keys of other kinds than RSA, and those for other uses, are passed over. */
static bool add_key(access_aad *aad, slice given) {
    cjose_err e;
    slice use = text_in(given, "use");
    if (!slice_eq(text_in(given, "kty"), SLICE_LIT("RSA")) || (use.n && !slice_eq(use, SLICE_LIT("sig")))) {
        return true;
    }
    buf json = buf_init(BUF_NO_LIMIT);
    json_from_bson(&json, given);
    cjose_jwk_t *key = aad->keys_n < KEYS_MAX ? cjose_jwk_import(json.p, json.n, &e) : NULL;
    buf_free(&json);
    if (key) {
        aad->keys[aad->keys_n++] = (issuer_key){.id = arena_copy(&aad->arena, text_in(given, "kid")), .key = key};
    }
    return key;
}

static bool read_key_set(access_aad *aad, slice set) {
    bson_iter_t it, each;
    bool good = doc_find_key(set, SLICE_LIT("keys"), &it) && BSON_ITER_HOLDS_ARRAY(&it) && bson_iter_recurse(&it, &each);
    while (good && bson_iter_next(&each)) {
        uint32_t n = 0;
        const uint8_t *p = NULL;
        if (BSON_ITER_HOLDS_DOCUMENT(&each)) {
            bson_iter_document(&each, &n, &p);
        }
        good = n && add_key(aad, slice_of(p, n));
    }
    return good && aad->keys_n;
}

static bool read_keys(access_aad *aad, const char *path, char *why) {
    slice text;
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    if (!read_file(&aad->arena, path, &text, why)) {
        return false;
    }
    bool good = json_to_bson(text, NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT && read_key_set(aad, buf_view(&bson));
    buf_free(&bson);
    if (!good) {
        snprintf(why, ACCESS_AAD_WHY_BYTES, "%s is no JSON Web Key Set with RSA keys, at most %d", path, KEYS_MAX);
    }
    return good;
}

static bool read_roles(access_aad *aad, const char *path, char *why) {
    slice text;
    char reason[256];
    if (!read_file(&aad->arena, path, &text, why)) {
        return false;
    }
    bool good = access_roles_read(&aad->arena, text, &aad->roles, reason, sizeof reason);
    if (!good) {
        snprintf(why, ACCESS_AAD_WHY_BYTES, "%s: %s", path, reason);
    }
    return good;
}

/* ---- open and close ---- */

access_aad *access_aad_open(const access_aad_options *options, char why[static ACCESS_AAD_WHY_BYTES]) {
    static const access_assignment everything = {.role = ACCESS_CONTRIBUTOR};
    access_aad *aad = mem_zero(sizeof *aad);
    aad->arena = arena_init();
    aad->any = options->any;
    aad->roles = (access_roles){.list = &everything, .n = 1};
    if (aad->any) {
        return aad;
    }
    aad->issuer = slice_str(options->issuer);
    aad->audiences = slice_str(options->audience);
    if (!read_keys(aad, options->keys_file, why) || !read_roles(aad, options->roles_file, why)) {
        access_aad_close(aad);
        return NULL;
    }
    return aad;
}

void access_aad_close(access_aad *aad) {
    if (aad) {
        for (size_t i = 0; i < aad->keys_n; i++) {
            cjose_jwk_release(aad->keys[i].key);
        }
        arena_free(&aad->arena);
        free(aad);
    }
}

/* ---- signatures ---- */

static err refuse(op *o, const char *why) {
    return op_fail(o, E_UNAUTHORIZED, "The Entra ID token is not accepted: %s.", why);
}

static const cjose_jwk_t *find_key(const access_aad *aad, const char *id) {
    for (size_t i = 0; id && i < aad->keys_n; i++) {
        if (slice_eq(aad->keys[i].id, slice_str(id))) {
            return aad->keys[i].key;
        }
    }
    return NULL;
}

static err verify(op *o, const access_aad *aad, cjose_jws_t *jws) {
    cjose_err e;
    cjose_header_t *header = cjose_jws_get_protected(jws);
    const char *algorithm = cjose_header_get(header, CJOSE_HDR_ALG, &e);
    const cjose_jwk_t *key = find_key(aad, cjose_header_get(header, CJOSE_HDR_KID, &e));
    if (!algorithm || strcmp(algorithm, CJOSE_HDR_ALG_RS256) != 0) {
        return refuse(o, "it must be signed with RS256");
    }
    if (!key) {
        return refuse(o, "the key that signed it is not known");
    }
    return cjose_jws_verify(jws, key, &e) ? OK : refuse(o, "its signature is wrong");
}

/* One part of a compact token. cjose decodes padding in the middle of a text by an assertion, so nothing but the alphabet reaches it. */
static bool is_base64url(slice part) {
    for (size_t i = 0; i < part.n; i++) {
        unsigned char c = (unsigned char)part.p[i];
        if (!(c < 128 && isalnum(c)) && c != '-' && c != '_') {
            return false;
        }
    }
    return part.n % 4 != 1;
}

/* Divides a token into header, claims and signature; false if it does not have this form. */
static bool split_token(slice token, slice parts_out[3]) {
    for (size_t i = 0; i < 3; i++) {
        const char *dot = i < 2 && token.n ? memchr(token.p, '.', token.n) : NULL;
        parts_out[i] = slice_of(token.p, dot ? (size_t)(dot - token.p) : token.n);
        if ((i < 2 && !dot) || !is_base64url(parts_out[i])) {
            return false;
        }
        token = dot ? slice_skip(token, parts_out[i].n + 1) : SLICE_EMPTY;
    }
    return true;
}

/* The claims as JSON, in the operation's arena. */
static err read_signed(op *o, const access_aad *aad, slice token, slice *json_out) {
    cjose_err e;
    uint8_t *p = NULL;
    size_t n = 0;
    cjose_jws_t *jws = cjose_jws_import(token.p, token.n, &e);
    if (!jws) {
        return refuse(o, "it is no signed JSON Web Token");
    }
    err code = verify(o, aad, jws);
    if (code == OK && !cjose_jws_get_plaintext(jws, &p, &n, &e)) {
        code = refuse(o, "it has no claims");
    }
    *json_out = code == OK ? arena_copy(o->arena, slice_of(p, n)) : SLICE_EMPTY;
    cjose_jws_release(jws);
    return code;
}

static err read_unsigned(op *o, slice claims, slice *json_out) {
    cjose_err e;
    uint8_t *p = NULL;
    size_t n = 0;
    if (!cjose_base64url_decode(claims.p, claims.n, &p, &n, &e)) {
        return refuse(o, "it is no JSON Web Token");
    }
    *json_out = arena_copy(o->arena, slice_of(p, n));
    cjose_get_dealloc()(p);
    return OK;
}

/* ---- claims ---- */

static err parse_claims(op *o, slice json, slice *claims_out) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    bool good = json_to_bson(json, NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT;
    *claims_out = good ? arena_copy(o->arena, buf_view(&bson)) : SLICE_EMPTY;
    buf_free(&bson);
    return good ? OK : refuse(o, "its claims are no JSON object");
}

static bool number_in(slice claims, const char *name, double *value_out) {
    bson_iter_t it;
    bool there = doc_find_key(claims, slice_str(name), &it) && BSON_ITER_HOLDS_NUMBER(&it);
    *value_out = there ? bson_iter_as_double(&it) : 0;
    return there;
}

static err check_times(op *o, slice claims) {
    double until, from, now = (double)o->now_s;
    if (!number_in(claims, "exp", &until) || !(now < until + SKEW_S)) {
        return refuse(o, "it has expired, or does not say when it does");
    }
    return number_in(claims, "nbf", &from) && !(now > from - SKEW_S) ? refuse(o, "it is not valid yet") : OK;
}

static bool is_listed(slice list, slice name) {
    while (list.n) {
        const char *comma = memchr(list.p, ',', list.n);
        slice one = slice_of(list.p, comma ? (size_t)(comma - list.p) : list.n);
        if (slice_eq(one, name)) {
            return true;
        }
        list = comma ? slice_skip(list, one.n + 1) : SLICE_EMPTY;
    }
    return false;
}

/* Calls `visit` for the text of a claim, or for each text of an array. True: one of the calls was. */
static bool any_text(slice claims, const char *name, bool (*visit)(void *context, slice text), void *context) {
    bson_iter_t it, each;
    bool any = false;
    if (!doc_find_key(claims, slice_str(name), &it)) {
        return false;
    }
    if (BSON_ITER_HOLDS_UTF8(&it)) {
        return visit(context, doc_text(&it));
    }
    bool is_list = BSON_ITER_HOLDS_ARRAY(&it) && bson_iter_recurse(&it, &each);
    while (is_list && bson_iter_next(&each)) {
        any = (BSON_ITER_HOLDS_UTF8(&each) && visit(context, doc_text(&each))) || any;
    }
    return any;
}

static bool is_audience(void *context, slice text) {
    return text.n && is_listed(((const access_aad *)context)->audiences, text);
}

static err check_claims(op *o, const access_aad *aad, slice claims) {
    TRY(check_times(o, claims));
    if (aad->any) {
        return OK;
    }
    if (!slice_eq(text_in(claims, "iss"), aad->issuer)) {
        return refuse(o, "it is from another issuer");
    }
    return any_text(claims, "aud", is_audience, (void *)(uintptr_t)aad) ? OK : refuse(o, "it is for another audience");
}

/* ---- roles ---- */

typedef struct search {
    op *op;
    const access_roles *all, *found;
} search;

static bool add_roles(void *context, slice principal) {
    search *s = context;
    access_roles of = access_roles_of(s->all, principal);
    if (of.n) {
        access_roles *kept = arena_new(s->op->arena, access_roles);
        *kept = of;
        kept->next = s->found;
        s->found = kept;
    }
    return true;
}

/* NULL: the principal has no role. */
static const access_roles *find_roles(op *o, const access_aad *aad, slice claims) {
    search s = {.op = o, .all = &aad->roles};
    if (aad->any) {
        return &aad->roles;
    }
    (void)any_text(claims, "oid", add_roles, &s);
    (void)any_text(claims, "groups", add_roles, &s);
    return s.found;
}

err access_reach_of_jwt(op *o, const access_aad *aad, slice token, access_reach *r) {
    slice parts[3], json, claims;
    *r = (access_reach){0};
    if (!aad) {
        return op_fail(o, E_UNAUTHORIZED, "Authorization tokens of type 'aad' are not accepted here. Please sign with an account key.");
    }
    if (!split_token(token, parts)) {
        return refuse(o, "it is no JSON Web Token");
    }
    TRY(aad->any ? read_unsigned(o, parts[1], &json) : read_signed(o, aad, token, &json));
    TRY(parse_claims(o, json, &claims));
    TRY(check_claims(o, aad, claims));
    *r = (access_reach){.proof = ACCESS_BY_ROLE, .roles = find_roles(o, aad, claims), .principal = text_in(claims, "oid")};
    return OK;
}
