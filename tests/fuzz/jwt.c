/* Entra ID tokens. The first byte chooses: a token as it is; or claims, which we sign ourselves, so that what lies behind the signature is
 * reached too.
 *
 * A token that we did not sign is never accepted, and one that a server accepts is refused by a server that expects another issuer. */
#include <assert.h>
#include <cjose/cjose.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "access/aad.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { NOW = 1794839400 /* 2026-11-16T14:30:00Z */ };

static const char roles[] =
    "[{\"principal\":\"a\",\"role\":\"reader\",\"scope\":\"/dbs/d\"},{\"principal\":\"g\",\"role\":\"contributor\",\"scope\":\"/\"}]";

static cjose_jwk_t *key;

static void write_file(char *path, const char *text) {
    int file = mkstemp(path);
    assert(file >= 0);
    ssize_t written = write(file, text, strlen(text));
    assert(written == (ssize_t)strlen(text));
    close(file);
}

static access_aad *open_for(const char *issuer, const char *audience, const char *keys) {
    char keys_path[] = "/tmp/tesela-fuzz-XXXXXX", roles_path[] = "/tmp/tesela-fuzz-XXXXXX", why[ACCESS_AAD_WHY_BYTES];
    write_file(keys_path, keys);
    write_file(roles_path, roles);
    access_aad *made = access_aad_open(
        &(access_aad_options){.issuer = issuer, .audience = audience, .keys_file = keys_path, .roles_file = roles_path}, why);
    assert(made);
    unlink(keys_path);
    unlink(roles_path);
    return made;
}

/* The second expects another issuer. */
static access_aad *const *servers(void) {
    static access_aad *made[2];
    cjose_err e;
    if (!made[0]) {
        key = cjose_jwk_create_RSA_random(2048, (const uint8_t *)"\x01\x00\x01", 3, &e);
        assert(key && cjose_jwk_set_kid(key, "k", 1, &e));
        char *json = cjose_jwk_to_json(key, false, &e);
        buf set = buf_init(BUF_NO_LIMIT);
        buf_addf(&set, "{\"keys\":[%s]}", json);
        buf_add_byte(&set, 0);
        made[0] = open_for("i", "x,y", set.p);
        made[1] = open_for("j", "x,y", set.p);
        cjose_get_dealloc()(json);
        buf_free(&set);
    }
    return made;
}

static err check(const access_aad *aad, slice token, int64_t now_s, access_reach *reach_out) {
    arena a = arena_init();
    op o;
    op_init(&o, &a, now_s);
    err code = access_reach_of_jwt(&o, aad, token, reach_out);
    assert((code == OK) == (reach_out->proof == ACCESS_BY_ROLE) && reach_out->verbs == 0);
    if (code == OK) {
        (void)access_roles_in(reach_out->roles, SLICE_LIT("d"), SLICE_LIT("c"));
    }
    arena_free(&a);
    return code;
}

static void check_signed(slice claims) {
    cjose_err e;
    const char *text;
    access_reach reach;
    cjose_header_t *header = cjose_header_new(&e);
    assert(cjose_header_set(header, CJOSE_HDR_ALG, CJOSE_HDR_ALG_RS256, &e) && cjose_header_set(header, CJOSE_HDR_KID, "k", &e));
    access_aad *const *by = servers();
    cjose_jws_t *jws = cjose_jws_sign(key, header, (const uint8_t *)claims.p, claims.n, &e);
    if (jws && cjose_jws_export(jws, &text, &e) && check(by[0], slice_str(text), NOW, &reach) == OK) {
        err code = check(by[1], slice_str(text), NOW, &reach);
        assert(code == E_UNAUTHORIZED);
    }
    cjose_jws_release(jws);
    cjose_header_release(header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    access_reach reach;
    if (n < 1) {
        return 0;
    }
    slice input = slice_of(data + 1, n - 1);
    if (data[0] & 1) {
        check_signed(input);
    } else {
        err code = check(servers()[0], input, NOW, &reach);
        assert(code != OK);
    }
    return 0;
}
