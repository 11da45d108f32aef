#include "access/plain.h"

#include <bson/bson.h>

#include "base/limits.h"

static bool cut_at_zero(slice *rest, slice *part_out) {
    const char *zero = rest->n ? memchr(rest->p, '\0', rest->n) : NULL;
    if (!zero) {
        return false;
    }
    *part_out = slice_of(rest->p, (size_t)(zero - rest->p));
    *rest = slice_skip(*rest, part_out->n + 1);
    return true;
}

static bool is_text(slice s) {
    return bson_utf8_validate(s.p, s.n, false);
}

err access_plain_read(op *o, slice message, access_plain *out) {
    access_plain plain;
    slice rest = message;
    *out = (access_plain){0};
    bool good = message.n <= LIMIT_SASL_BYTES && cut_at_zero(&rest, &plain.identity) && cut_at_zero(&rest, &plain.user);
    plain.password = rest; /* checked below to be UTF-8 without a zero byte */
    if (!good || !plain.user.n || !plain.password.n || !is_text(plain.identity) || !is_text(plain.user) || !is_text(plain.password)) {
        return op_fail(o, E_BAD_AUTHORIZATION,
                       "A SASL PLAIN message must be [identity] NUL user NUL password, in UTF-8, and at most %d bytes long.",
                       LIMIT_SASL_BYTES);
    }
    *out = plain;
    return OK;
}

err access_plain_check(op *o, const access_ring *ring, account *a, slice message, slice *user_out, access_reach *r) {
    access_plain plain;
    *user_out = SLICE_EMPTY;
    *r = (access_reach){0};
    TRY(access_plain_read(o, message, &plain));
    *user_out = plain.user;
    if (plain.identity.n && !slice_eq(plain.identity, plain.user)) {
        return op_fail(o, E_UNAUTHORIZED, "A user cannot act as another one: leave the authorization identity empty.");
    }
    return access_reach_of_password(o, ring, a, plain.password, r);
}
