#include "access/token.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "base/base64.h"
#include "base/date.h"

enum {
    FORMAT = 1,
    AT_PERMISSION = 1,
    AT_VERSION = 17,
    AT_FROM = 25,
    AT_UNTIL = 33,
    AT_RANDOM = 41,
    PAYLOAD_BYTES = 49,
    PERMISSION_BYTES = AT_VERSION - AT_PERMISSION,
    MAC_BYTES = ACCESS_MAC_BYTES,
    MAC_TEXT = 44,
    PAYLOAD_TEXT = 68,
    CLOCK_BACK_S = 15 * 60, /* tolerates tokens issued slightly in the future: the clock may have been set back */
};

#define PREFIX "type=resource&ver=1&sig="

static void put_number(unsigned char *at, uint64_t value) {
    value = htobe64(value);
    memcpy(at, &value, sizeof value);
}

static uint64_t get_number(const unsigned char *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return be64toh(value);
}

void access_token_write(buf *out, const unsigned char key[ACCESS_TOKEN_KEY_BYTES], const access_token *token) {
    unsigned char payload[PAYLOAD_BYTES] = {FORMAT};
    unsigned char mac[MAC_BYTES];
    assert(token->permission.n == PERMISSION_BYTES);
    memcpy(payload + AT_PERMISSION, token->permission.bytes, PERMISSION_BYTES);
    put_number(payload + AT_VERSION, token->version);
    put_number(payload + AT_FROM, (uint64_t)token->from_s);
    put_number(payload + AT_UNTIL, (uint64_t)token->until_s);
    int random = RAND_bytes(payload + AT_RANDOM, PAYLOAD_BYTES - AT_RANDOM);
    assert(random == 1);
    access_mac(key, slice_of(payload, sizeof payload), mac);
    buf_add_lit(out, PREFIX);
    base64_encode(out, slice_of(mac, sizeof mac));
    buf_add_byte(out, ';');
    base64_encode(out, slice_of(payload, sizeof payload));
    buf_add_byte(out, ';');
}

bool access_token_cut(slice text, slice *signature_out) {
    slice prefix = SLICE_LIT(PREFIX);
    *signature_out = slice_skip(text, prefix.n);
    return slice_starts(text, prefix);
}

static bool decode(slice text, unsigned char *to, size_t n) {
    buf bytes = {.p = (char *)to, .cap = n, .max = n};
    return base64_decode(&bytes, text) && bytes.n == n;
}

/* "{44 characters};{68 characters}", with or without a semicolon at the end. */
static bool split(slice text, unsigned char mac[MAC_BYTES], unsigned char payload[PAYLOAD_BYTES]) {
    size_t whole = MAC_TEXT + 1 + PAYLOAD_TEXT;
    bool closed = text.n == whole + 1 && text.p[whole] == ';';
    return (text.n == whole || closed) && text.p[MAC_TEXT] == ';' && decode(slice_of(text.p, MAC_TEXT), mac, MAC_BYTES) &&
           decode(slice_of(text.p + MAC_TEXT + 1, PAYLOAD_TEXT), payload, PAYLOAD_BYTES);
}

static err check_times(op *o, const access_token *t) {
    char from[40], until[40], now[40];
    if (o->now_s < t->until_s && t->from_s <= o->now_s + CLOCK_BACK_S) {
        return OK;
    }
    return op_fail(o, E_FORBIDDEN,
                   "The authorization token is not valid at the current time. Please create another token and retry (token start time: %s, "
                   "token expiry time: %s, current server time: %s).",
                   date_http(t->from_s, from), date_http(t->until_s, until), date_http(o->now_s, now));
}

err access_token_read(op *o, const unsigned char key[ACCESS_TOKEN_KEY_BYTES], slice signature, access_token *token_out) {
    unsigned char mac[MAC_BYTES], expected[MAC_BYTES], payload[PAYLOAD_BYTES];
    *token_out = (access_token){0};
    if (!split(signature, mac, payload)) {
        return E_BAD_AUTHORIZATION;
    }
    access_mac(key, slice_of(payload, sizeof payload), expected);
    if (CRYPTO_memcmp(mac, expected, sizeof mac) != 0 || payload[0] != FORMAT) {
        return E_UNAUTHORIZED;
    }
    access_token t = {
        .permission = {.n = PERMISSION_BYTES},
        .version = get_number(payload + AT_VERSION),
        .from_s = (int64_t)get_number(payload + AT_FROM),
        .until_s = (int64_t)get_number(payload + AT_UNTIL),
    };
    memcpy(t.permission.bytes, payload + AT_PERMISSION, PERMISSION_BYTES);
    TRY(check_times(o, &t));
    *token_out = t;
    return OK;
}
