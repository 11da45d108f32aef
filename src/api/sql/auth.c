/* Measured on 86 bytes: 240 ns with SHA256_* and copied states, 430 to 590 with HMAC_* or EVP_MAC_* and a context of each thread's own,
 * 1050 with EVP_MAC_CTX_dup. SHA256_* are marked as deprecated in favour of those, but they are the same code underneath, and a hash state
 * in them is a plain value that any thread may copy. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "api/sql/auth.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <time.h>

#include "base/base64.h"
#include "base/memory.h"

const char sql_key_emulator[] = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

enum {
    KEY_BYTES_MAX = 256,
    SIGNATURE_TEXT = 44,
    DATE_TEXT = 29,
    SKEW_S = 15 * 60,
    TOKEN_BYTES_MAX = 16 * 1024, /* the service's limit for the longest kind */
    SHOWN_MAX = 600,             /* of the text to sign, in the error's sentence */
};

/* ---- keys ---- */

typedef struct keyed_hash {
    bool present;
    SHA256_CTX inner; /* has taken in key ^ 36… */
    SHA256_CTX outer; /* has taken in key ^ 5C… */
} keyed_hash;

struct sql_key_ring {
    keyed_hash keys[SQL_KEY_COUNT];
};

sql_key_ring *sql_key_ring_new(void) {
    return mem_zero(sizeof(sql_key_ring));
}

void sql_key_ring_free(sql_key_ring *ring) {
    if (ring) {
        OPENSSL_cleanse(ring, sizeof *ring);
        free(ring);
    }
}

static void start_hash(SHA256_CTX *state, const unsigned char *key, unsigned char mask) {
    unsigned char block[SHA256_CBLOCK];
    for (size_t i = 0; i < sizeof block; i++) {
        block[i] = key[i] ^ mask;
    }
    SHA256_Init(state);
    SHA256_Update(state, block, sizeof block);
    OPENSSL_cleanse(block, sizeof block);
}

static bool start_key(keyed_hash *hash, slice base64) {
    char room[KEY_BYTES_MAX];
    unsigned char block[SHA256_CBLOCK] = {0};
    buf bytes = {.p = room, .cap = sizeof room, .max = sizeof room};
    bool good = base64_decode(&bytes, base64) && bytes.n > 0;
    if (good && bytes.n > sizeof block) {
        SHA256((const unsigned char *)room, bytes.n, block);
    } else if (good) {
        memcpy(block, room, bytes.n);
    }
    if (good) {
        start_hash(&hash->inner, block, 0x36);
        start_hash(&hash->outer, block, 0x5C);
        hash->present = true;
    }
    OPENSSL_cleanse(room, sizeof room);
    OPENSSL_cleanse(block, sizeof block);
    return good;
}

bool sql_key_ring_set(sql_key_ring *ring, sql_key key, slice base64) {
    return start_key(&ring->keys[key], base64);
}

/* What two keys leave in the hash is the same only if they are. All are compared, whichever matches. */
bool sql_key_ring_find(const sql_key_ring *ring, slice base64, sql_key *key_out) {
    keyed_hash given = {0};
    bool good = start_key(&given, base64);
    *key_out = SQL_KEY_COUNT;
    for (sql_key key = SQL_KEY_COUNT; good && key-- > SQL_KEY_PRIMARY;) {
        const keyed_hash *own = &ring->keys[key];
        int differs = CRYPTO_memcmp(given.inner.h, own->inner.h, sizeof own->inner.h);
        *key_out = own->present && !differs ? key : *key_out;
    }
    OPENSSL_cleanse(&given, sizeof given);
    return *key_out != SQL_KEY_COUNT;
}

static void hash_with_key(const keyed_hash *key, slice text, unsigned char out[SHA256_DIGEST_LENGTH]) {
    SHA256_CTX state = key->inner;
    SHA256_Update(&state, text.p, text.n);
    SHA256_Final(out, &state);
    state = key->outer;
    SHA256_Update(&state, out, SHA256_DIGEST_LENGTH);
    SHA256_Final(out, &state);
}

bool sql_auth_sign(const sql_key_ring *ring, sql_key key, slice text, buf *out) {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    if (!ring->keys[key].present) {
        return false;
    }
    hash_with_key(&ring->keys[key], text, digest);
    base64_encode(out, slice_of(digest, sizeof digest));
    return true;
}

/* ---- dates ---- */

/* Three letters in lower case as a number. */
#define WORD(a, b, c) ((a) << 16 | (b) << 8 | (c))

static const int week_days[] = {WORD('s', 'u', 'n'), WORD('m', 'o', 'n'), WORD('t', 'u', 'e'), WORD('w', 'e', 'd'),
                                WORD('t', 'h', 'u'), WORD('f', 'r', 'i'), WORD('s', 'a', 't')};
static const int months[] = {WORD('j', 'a', 'n'), WORD('f', 'e', 'b'), WORD('m', 'a', 'r'), WORD('a', 'p', 'r'),
                             WORD('m', 'a', 'y'), WORD('j', 'u', 'n'), WORD('j', 'u', 'l'), WORD('a', 'u', 'g'),
                             WORD('s', 'e', 'p'), WORD('o', 'c', 't'), WORD('n', 'o', 'v'), WORD('d', 'e', 'c')};

static int lower(char c) {
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static int index_of(const int *words, int count, const char *p) {
    int word = WORD(lower(p[0]) & 0xFF, lower(p[1]) & 0xFF, lower(p[2]) & 0xFF);
    for (int i = 0; i < count; i++) {
        if (words[i] == word) {
            return i;
        }
    }
    return -1;
}

static int digits(const char *p, int n) {
    int value = 0;
    for (int i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return -1;
        }
        value = value * 10 + (p[i] - '0');
    }
    return value;
}

/* Days since 1970-01-01 of a date of the Gregorian calendar: years counted from March, so that the leap day is the last. */
static int64_t days_of(int year, int month, int day) {
    int y = month < 2 ? year - 1 : year;
    int m = (month + 10) % 12;
    return 365 * (int64_t)y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static int month_days(int year, int month) {
    static const char counts[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return counts[month] + (month == 1 && leap);
}

static bool has_shape_of_date(const char *p) {
    return p[3] == ',' && p[4] == ' ' && p[7] == ' ' && p[11] == ' ' && p[16] == ' ' && p[19] == ':' && p[22] == ':' &&
           slice_eq_nocase(slice_of(p + 25, 4), SLICE_LIT(" GMT"));
}

bool sql_date_parse(slice text, int64_t *seconds_out) {
    *seconds_out = 0;
    if (text.n != DATE_TEXT || !has_shape_of_date(text.p)) {
        return false;
    }
    const char *p = text.p;
    int week_day = index_of(week_days, 7, p);
    int day = digits(p + 5, 2);
    int month = index_of(months, 12, p + 8);
    int year = digits(p + 12, 4);
    int hour = digits(p + 17, 2);
    int minute = digits(p + 20, 2);
    int second = digits(p + 23, 2);
    if (year < 1970 || month < 0 || day < 1 || day > month_days(year, month)) {
        return false;
    }
    int64_t days = days_of(year, month, day);
    if (week_day != (days + 4) % 7 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) {
        return false;
    }
    *seconds_out = ((days * 24 + hour) * 60 + minute) * 60 + second;
    return true;
}

const char *sql_date_text(int64_t seconds, char room[40]) {
    struct tm parts;
    time_t t = (time_t)seconds;
    gmtime_r(&t, &parts);
    strftime(room, 40, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    return room;
}

static err refuse_time(op *o, int64_t signed_s) {
    char from[40];
    char to[40];
    char now[40];
    return op_fail(o, E_UNAUTHORIZED,
                   "The authorization token is not valid at the current time. Please create another token and retry (token start time: %s, "
                   "token expiry time: %s, current server time: %s).",
                   sql_date_text(signed_s, from), sql_date_text(signed_s + SKEW_S, to), sql_date_text(o->now_s, now));
}

static err check_date(op *o, slice date) {
    int64_t signed_s = 0;
    if (date.n == 0) {
        return op_fail(o, E_UNAUTHORIZED, "Authorization token mandates Date headers. Please pass in RFC 1123 style date format.");
    }
    if (!sql_date_parse(date, &signed_s)) {
        return op_fail(o, E_UNAUTHORIZED, "The input date header is invalid format. Please pass in RFC 1123 style date format.");
    }
    int64_t skew = signed_s - o->now_s;
    return skew > SKEW_S || skew < -SKEW_S ? refuse_time(o, signed_s) : OK;
}

/* ---- the token ---- */

static bool decode_token(arena *a, slice raw, slice *token_out) {
    *token_out = raw;
    if (!memchr(raw.p, '%', raw.n)) {
        return true;
    }
    size_t n = 0;
    char *text = arena_alloc_aligned(a, raw.n, 1);
    bool good = sql_percent_decode(raw, text, &n);
    *token_out = slice_of(text, n);
    return good;
}

/* Cuts "name=value" off the front, up to the end character or the end of all. */
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

/* Only words of ours are repeated: what is in the field instead of a type could be a secret in the wrong place. */
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
    return raw.n <= TOKEN_BYTES_MAX && decode_token(a, raw, &token) && take_field(&token, SLICE_LIT("type="), '&', type_out) &&
           take_field(&token, SLICE_LIT("ver="), '&', version_out) && take_field(&token, SLICE_LIT("sig="), ',', signature_out);
}

/* The service writes version 1 into the tokens that it makes, and everyone 1.0 into signatures. */
bool sql_auth_is_token(arena *a, slice authorization, slice *signature_out) {
    slice type, version;
    return authorization.n && split_token(a, authorization, &type, &version, signature_out) &&
           slice_eq_nocase(type, SLICE_LIT("resource")) && (slice_eq(version, SLICE_LIT("1")) || slice_eq(version, SLICE_LIT("1.0")));
}

bool sql_auth_token_key(const sql_key_ring *ring, unsigned char key_out[SQL_TOKEN_KEY_BYTES]) {
    const keyed_hash *primary = &ring->keys[SQL_KEY_PRIMARY];
    if (primary->present) {
        hash_with_key(primary, SLICE_LIT("tesela: resource tokens, 1"), key_out); /* begins like no text that a client signs: no line end */
    }
    return primary->present;
}

void sql_auth_mac(const unsigned char key[SQL_TOKEN_KEY_BYTES], slice bytes, unsigned char mac_out[SQL_MAC_BYTES]) {
    keyed_hash hash;
    unsigned char block[SHA256_CBLOCK] = {0};
    memcpy(block, key, SQL_TOKEN_KEY_BYTES);
    start_hash(&hash.inner, block, 0x36);
    start_hash(&hash.outer, block, 0x5C);
    hash_with_key(&hash, bytes, mac_out);
    OPENSSL_cleanse(block, sizeof block);
    OPENSSL_cleanse(&hash, sizeof hash);
}

static err read_token(op *o, slice raw, slice *signature_out) {
    slice type = SLICE_EMPTY;
    slice version = SLICE_EMPTY;
    if (raw.n == 0) {
        return E_NO_AUTHORIZATION;
    }
    if (!split_token(o->arena, raw, &type, &version, signature_out)) {
        return E_BAD_AUTHORIZATION;
    }
    if (!slice_eq_nocase(type, SLICE_LIT("master"))) {
        return refuse_type(o, type);
    }
    return slice_eq(version, SLICE_LIT("1.0")) ? OK : E_BAD_AUTHORIZATION;
}

/* ---- the check ---- */

static void add_lower(buf *out, slice s) {
    if (!buf_reserve(out, s.n)) {
        return;
    }
    char *to = out->p + out->n;
    for (size_t i = 0; i < s.n; i++) {
        to[i] = (char)lower(s.p[i]);
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

static bool find_key(const sql_key_ring *ring, slice text, const unsigned char *signature, sql_key *key_out) {
    for (sql_key key = SQL_KEY_PRIMARY; key < SQL_KEY_COUNT; key++) {
        unsigned char expected[SHA256_DIGEST_LENGTH];
        if (!ring->keys[key].present) {
            continue;
        }
        hash_with_key(&ring->keys[key], text, expected);
        if (CRYPTO_memcmp(expected, signature, sizeof expected) == 0) {
            *key_out = key;
            return true;
        }
    }
    return false;
}

static err refuse_signature(op *o, slice text) {
    size_t n = text.n < SHOWN_MAX ? text.n : SHOWN_MAX;
    while (n < text.n && ((unsigned char)text.p[n] & 0xC0) == 0x80) { /* never in the middle of a character */
        n--;
    }
    return op_fail(
        o, E_UNAUTHORIZED,
        "The input authorization token can't serve the request. The wrong key is being used or the expected payload is not built "
        "as per the protocol. For more info: https://aka.ms/cosmosdb-tsg-unauthorized. Server used the following payload to sign: "
        "'%.*s'",
        (int)n, text.p);
}

err sql_auth_check(op *o, const sql_key_ring *ring, const sql_auth_request *request, sql_key *key_out) {
    slice signature_text = SLICE_EMPTY;
    *key_out = SQL_KEY_COUNT;
    TRY(read_token(o, request->authorization, &signature_text));
    TRY(check_date(o, request->x_ms_date.n ? request->x_ms_date : request->date));
    char room[SHA256_DIGEST_LENGTH];
    buf bytes = {.p = room, .cap = sizeof room, .max = sizeof room};
    bool readable = signature_text.n == SIGNATURE_TEXT && base64_decode(&bytes, signature_text) && bytes.n == sizeof room;
    const unsigned char *signature = (const unsigned char *)room;
    slice text = text_to_sign(o->arena, request, request->route->link);
    if (readable && find_key(ring, text, signature, key_out)) {
        return OK;
    }
    if (request->route->link_rid.p) {
        text = text_to_sign(o->arena, request, request->route->link_rid);
        if (readable && find_key(ring, text, signature, key_out)) {
            return OK;
        }
    }
    return refuse_signature(o, text);
}
