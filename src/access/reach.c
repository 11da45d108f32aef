#include "access/reach.h"

#include "access/sas.h"
#include "access/token.h"

/* ---- making ---- */

void access_reach_of_key(access_reach *r, const access_ring *ring, access_key key) {
    *r = (access_reach){
        .proof = ACCESS_BY_KEY,
        .key = key,
        .serial = access_ring_serial(ring, key),
        .verbs = access_key_is_read_only(key) ? ACCESS_ALL_READS : ACCESS_ALL,
    };
}

err access_reach_of_signature(const access_ring *ring, slice text, slice signature, access_reach *r) {
    unsigned char bytes[ACCESS_MAC_BYTES];
    access_key key;
    *r = (access_reach){0};
    if (!access_signature_read(signature, bytes) || !access_ring_verify(ring, text, bytes, &key)) {
        return E_UNAUTHORIZED;
    }
    access_reach_of_key(r, ring, key);
    return OK;
}

err access_reach_of_password(op *o, const access_ring *ring, account *a, slice password, access_reach *r) {
    slice signature;
    access_key key;
    *r = (access_reach){0};
    if (access_token_cut(password, &signature)) {
        return access_reach_of_token(o, ring, a, signature, r);
    }
    if (!access_ring_find(ring, password, &key)) {
        return op_fail(o, E_UNAUTHORIZED, "The password is none of the account's keys, nor a resource token.");
    }
    access_reach_of_key(r, ring, key);
    return OK;
}

err access_reach_of_token(op *o, const access_ring *ring, account *a, slice signature, access_reach *r) {
    unsigned char key[ACCESS_TOKEN_KEY_BYTES];
    access_token token;
    *r = (access_reach){0};
    if (!access_token_key(ring, key)) {
        return E_UNAUTHORIZED;
    }
    TRY(access_token_read(o, key, signature, &token));
    permission *p = account_permission_valid(a, &token.permission, token.version);
    if (!p) {
        return access_refuse(o);
    }
    *r = (access_reach){
        .proof = ACCESS_BY_TOKEN,
        .key = ACCESS_KEY_PRIMARY,
        .serial = access_ring_serial(ring, ACCESS_KEY_PRIMARY),
        .verbs = p->grant.mode == PERMISSION_ALL ? ACCESS_READ | ACCESS_WRITE | ACCESS_RUN : ACCESS_READ,
        .permission = p,
        .until_s = token.until_s,
    };
    return OK;
}

void access_reach_end(access_reach *r) {
    permission_give(r->permission);
    *r = (access_reach){0};
}

/* ---- checking ---- */

err access_refuse(op *o) {
    o->detail_n = 0;
    return op_fail(o, E_FORBIDDEN,
                   "Insufficient permissions provided in the authorization header for the corresponding request. Please retry with another "
                   "authorization header.");
}

static bool still_granted(const access_reach *r, account *a) {
    permission *now = account_permission_valid(a, &r->permission->rid, r->permission->version);
    permission_give(now);
    return now != NULL;
}

err access_reach_holds(op *o, const access_reach *r, const access_ring *ring, account *a) {
    if (r->proof == ACCESS_NOBODY || access_ring_serial(ring, r->key) != r->serial) {
        return op_fail(o, E_UNAUTHORIZED, "The key that this connection authenticated with has been changed. Connect with the new one.");
    }
    if (r->proof != ACCESS_BY_KEY && o->now_s >= r->until_s) {
        return op_fail(o, E_FORBIDDEN, "The token that this connection authenticated with has expired. Connect with another one.");
    }
    return r->permission && !still_granted(r, a) ? access_refuse(o) : OK;
}

bool access_key_is_below(const pkey *key, const pkey *granted) {
    if (key->n < granted->n) {
        return false;
    }
    pkey prefix = *key;
    prefix.n = granted->n;
    return pkey_equal(&prefix, granted);
}

bool access_is_for(const permission *p, const container *c) {
    return memcmp(c->rid, p->grant.container.bytes, sizeof c->rid) == 0;
}

static bool is_granted(const permission *p, const container *c, const pkey *key) {
    const grant *g = &p->grant;
    return c && access_is_for(p, c) && g->kind == RID_CONTAINER && (g->key.n == 0 || (key && access_key_is_below(key, &g->key)));
}

bool access_allows(const access_reach *r, unsigned verbs, const container *c, const pkey *key) {
    if ((r->verbs & verbs) != verbs) {
        return false;
    }
    switch (r->proof) {
    case ACCESS_BY_KEY:
        return true;
    case ACCESS_BY_TOKEN:
        return is_granted(r->permission, c, key);
    case ACCESS_BY_SAS:
        return access_sas_is_for(r->sas, c ? c->id : SLICE_EMPTY) && !access_sas_is_bounded(r->sas);
    case ACCESS_BY_ROLE: /* see the header */
    case ACCESS_NOBODY:
        break;
    }
    return false;
}
