#include "access/scram.h"

#include <assert.h>
#include <bson/bson.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/memory.h"

/* ---- secrets ---- */

typedef struct secret {
    bool present;
    unsigned char stored_key[ACCESS_SCRAM_HASH_MAX];
    unsigned char server_key[ACCESS_SCRAM_HASH_MAX];
} secret;

struct access_scram_secrets {
    access_scram_setup setup;
    secret keys[ACCESS_SCRAM_COUNT][ACCESS_KEY_COUNT];
};

static const EVP_MD *hash_of(access_scram_kind kind) {
    return kind == ACCESS_SCRAM_SHA_256 ? EVP_sha256() : EVP_sha1();
}

static size_t hash_bytes(access_scram_kind kind) {
    return kind == ACCESS_SCRAM_SHA_256 ? 32 : 20;
}

static void mac(access_scram_kind kind, const unsigned char *key, slice text, unsigned char out[ACCESS_SCRAM_HASH_MAX]) {
    unsigned n = ACCESS_SCRAM_HASH_MAX;
    const unsigned char *made = HMAC(hash_of(kind), key, (int)hash_bytes(kind), (const unsigned char *)text.p, text.n, out, &n);
    assert(made);
}

static void hash(access_scram_kind kind, const unsigned char *bytes, unsigned char out[ACCESS_SCRAM_HASH_MAX]) {
    int good = EVP_Digest(bytes, hash_bytes(kind), out, NULL, hash_of(kind), NULL);
    assert(good == 1);
}

bool access_scram_offers(const access_scram_secrets *s, access_scram_kind kind) {
    return s && s->setup.user && kind < ACCESS_SCRAM_COUNT && (s->setup.kinds & 1u << kind);
}

/* MongoDB's SCRAM-SHA-1 hashes the name with the password, so its secrets are for one name. */
static bool is_user(const access_scram_setup *setup, access_scram_kind kind, slice name) {
    bool same = name.n == strlen(setup->user) && CRYPTO_memcmp(name.p, setup->user, name.n) == 0;
    return same || (setup->any_user && kind != ACCESS_SCRAM_SHA_1_MONGO);
}

bool access_scram_offers_to(const access_scram_secrets *s, access_scram_kind kind, slice user) {
    return access_scram_offers(s, kind) && is_user(&s->setup, kind, user);
}

access_scram_secrets *access_scram_secrets_new(const access_scram_setup *setup) {
    access_scram_secrets *s = mem_zero(sizeof *s);
    assert(setup->salt_n && setup->salt_n <= ACCESS_SCRAM_SALT_MAX && setup->iterations);
    s->setup = *setup;
    return s;
}

void access_scram_secrets_free(access_scram_secrets *s) {
    if (s) {
        OPENSSL_cleanse(s, sizeof *s);
        free(s);
    }
}

void access_scram_secrets_copy(access_scram_secrets *s, const access_scram_secrets *from, access_key key) {
    for (access_scram_kind kind = 0; kind < ACCESS_SCRAM_COUNT; kind++) {
        s->keys[kind][key] = from->keys[kind][key];
    }
}

enum { MD5_HEX = 32 };

/* MongoDB, "SCRAM-SHA-1": the password is replaced by hex(MD5(user:mongo:password)). */
static void hash_for_mongo(const char *user, slice password, char hex[static MD5_HEX]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[EVP_MAX_MD_SIZE];
    buf text = buf_init(BUF_NO_LIMIT);
    buf_addf(&text, "%s:mongo:", user);
    buf_add_slice(&text, password);
    int good = EVP_Digest(text.p, text.n, digest, NULL, EVP_md5(), NULL);
    assert(good == 1);
    for (unsigned i = 0; i < MD5_HEX; i++) {
        hex[i] = digits[digest[i / 2] >> (i % 2 ? 0 : 4) & 15];
    }
    OPENSSL_cleanse(text.p, text.n);
    OPENSSL_cleanse(digest, sizeof digest);
    buf_free(&text);
}

/* MongoDB's clients expect salts of four bytes less than the hash: 28 with SHA-256, 16 with SHA-1. */
static slice salt_of(const access_scram_setup *setup, access_scram_kind kind) {
    size_t n = hash_bytes(kind) - 4;
    return slice_of(setup->salt, setup->salt_n < n ? setup->salt_n : n);
}

static void derive(const access_scram_setup *setup, access_scram_kind kind, slice password, secret *out) {
    unsigned char salted[ACCESS_SCRAM_HASH_MAX], client_key[ACCESS_SCRAM_HASH_MAX];
    slice salt = salt_of(setup, kind);
    int good = PKCS5_PBKDF2_HMAC(password.p, (int)password.n, (const unsigned char *)salt.p, (int)salt.n, (int)setup->iterations,
                                 hash_of(kind), (int)hash_bytes(kind), salted);
    assert(good == 1);
    mac(kind, salted, SLICE_LIT("Client Key"), client_key);
    hash(kind, client_key, out->stored_key);
    mac(kind, salted, SLICE_LIT("Server Key"), out->server_key);
    out->present = true;
    OPENSSL_cleanse(salted, sizeof salted);
    OPENSSL_cleanse(client_key, sizeof client_key);
}

void access_scram_secrets_add(access_scram_secrets *s, access_key key, slice password) {
    char hex[MD5_HEX];
    for (access_scram_kind kind = 0; kind < ACCESS_SCRAM_COUNT; kind++) {
        if (!access_scram_offers(s, kind)) {
            continue;
        }
        if (kind == ACCESS_SCRAM_SHA_1_MONGO) {
            hash_for_mongo(s->setup.user, password, hex);
        }
        derive(&s->setup, kind, kind == ACCESS_SCRAM_SHA_1_MONGO ? slice_of(hex, sizeof hex) : password, &s->keys[kind][key]);
    }
    OPENSSL_cleanse(hex, sizeof hex);
}

/* ---- messages ---- */

/* UTF-8 without a zero byte. */
static bool is_message(slice message) {
    return message.n && message.n <= LIMIT_SASL_BYTES && bson_utf8_validate(message.p, message.n, false);
}

/* Cuts "x=value" off the front, up to a comma or the end. */
static bool take(slice *rest, char name, slice *value_out) {
    if (rest->n < 2 || rest->p[0] != name || rest->p[1] != '=') {
        return false;
    }
    const char *comma = memchr(rest->p, ',', rest->n);
    size_t n = comma ? (size_t)(comma - rest->p) : rest->n;
    *value_out = slice_of(rest->p + 2, n - 2);
    *rest = slice_skip(*rest, n + 1);
    return true;
}

/* Extensions that may be ignored: each "x=value". RFC 5802 defines none yet; "m" is a mandatory one and must not be ignored. */
static bool are_extensions(slice rest) {
    slice value;
    while (rest.n) {
        bool letter = (rest.p[0] >= 'a' && rest.p[0] <= 'z') || (rest.p[0] >= 'A' && rest.p[0] <= 'Z');
        if (!letter || rest.p[0] == 'm' || !take(&rest, rest.p[0], &value) || !value.n) {
            return false;
        }
    }
    return true;
}

static bool is_nonce(slice nonce) {
    for (size_t i = 0; i < nonce.n; i++) {
        if (nonce.p[i] < 0x21 || nonce.p[i] > 0x7E || nonce.p[i] == ',') {
            return false;
        }
    }
    return nonce.n > 0 && nonce.n <= ACCESS_SCRAM_NONCE_MAX;
}

/* A name has "=2C" for a comma and "=3D" for an equals sign, and no other "=". */
static bool read_name(slice raw, char *to, size_t *n_out) {
    size_t n = 0;
    for (size_t i = 0; i < raw.n; i++) {
        if (raw.p[i] != '=') {
            to[n++] = raw.p[i];
            continue;
        }
        slice code = slice_of(raw.p + i + 1, raw.n - i - 1 < 2 ? 0 : 2);
        bool comma = slice_eq(code, SLICE_LIT("2C"));
        if (!comma && !slice_eq(code, SLICE_LIT("3D"))) {
            return false;
        }
        to[n++] = comma ? ',' : '=';
        i += 2;
    }
    *n_out = n;
    return n > 0;
}

/* "n,," or "y,,", optionally with "a=" and the user's own name between the commas. "p=" would ask for channel binding. */
static bool read_header(slice message, size_t *header_n_out, slice *identity_out) {
    *identity_out = SLICE_EMPTY;
    if (message.n < 3 || (message.p[0] != 'n' && message.p[0] != 'y') || message.p[1] != ',') {
        return false;
    }
    slice rest = slice_skip(message, 2);
    const char *comma = memchr(rest.p, ',', rest.n);
    if (!comma) {
        return false;
    }
    slice identity = slice_of(rest.p, (size_t)(comma - rest.p));
    *header_n_out = 2 + identity.n + 1;
    return !identity.n || (take(&identity, 'a', identity_out) && identity_out->n);
}

typedef struct first_message {
    size_t header_n;
    slice identity; /* as sent; empty: none */
    slice name;     /* as sent */
    slice nonce;
} first_message;

static bool read_first(slice message, first_message *m) {
    if (!is_message(message) || !read_header(message, &m->header_n, &m->identity)) {
        return false;
    }
    slice rest = slice_skip(message, m->header_n);
    return take(&rest, 'n', &m->name) && take(&rest, 'r', &m->nonce) && is_nonce(m->nonce) && are_extensions(rest) &&
           (!m->identity.n || slice_eq(m->identity, m->name));
}

typedef struct final_message {
    slice binding, nonce, proof;
    slice without_proof; /* the signed part of the message */
} final_message;

/* The proof is the last attribute; extensions stand before it. */
static bool read_final(slice message, final_message *m) {
    if (!is_message(message)) {
        return false;
    }
    const char *last = memrchr(message.p, ',', message.n);
    if (!last) {
        return false;
    }
    m->without_proof = slice_of(message.p, (size_t)(last - message.p));
    slice rest = m->without_proof, end = slice_skip(message, m->without_proof.n + 1);
    return take(&rest, 'c', &m->binding) && take(&rest, 'r', &m->nonce) && are_extensions(rest) && take(&end, 'p', &m->proof) && !end.n;
}

/* ---- the exchange ---- */

void access_scram_begin(access_scram *s, access_scram_kind kind) {
    unsigned char bytes[ACCESS_SCRAM_NONCE_OURS * 3 / 4];
    buf text = {.p = s->ours, .cap = sizeof s->ours, .max = sizeof s->ours};
    s->kind = kind;
    s->state = SCRAM_FIRST;
    s->known = false;
    s->text_n = s->header_n = s->nonce_at = s->nonce_n = 0;
    int random = RAND_bytes(bytes, sizeof bytes);
    assert(random == 1);
    base64_encode(&text, slice_of(bytes, sizeof bytes)); /* base64 contains no comma */
    s->ours_n = text.n;
}

static err refuse_form(op *o) {
    return op_fail(o, E_BAD_AUTHORIZATION, "A message of the SCRAM exchange is malformed, too long, or asks for channel binding.");
}

static err refuse_user(op *o) {
    return op_fail(o, E_UNAUTHORIZED, "Authentication failed: the user must be the account's name and the password one of its keys.");
}

/* Keeps the text that both sides will sign: the client's message, a comma, ours. */
static err answer_first(op *o, access_scram *s, const access_scram_setup *setup, slice message, buf *reply) {
    char name[LIMIT_SASL_BYTES];
    size_t name_n;
    first_message m;
    if (!read_first(message, &m) || !read_name(m.name, name, &name_n)) {
        return refuse_form(o);
    }
    s->known = is_user(setup, s->kind, slice_of(name, name_n));
    buf text = {.p = s->text, .cap = sizeof s->text, .max = sizeof s->text};
    buf_add_slice(&text, message);
    buf_add_byte(&text, ',');
    size_t ours_at = text.n;
    buf_add_lit(&text, "r=");
    s->nonce_at = text.n;
    buf_add_slice(&text, m.nonce);
    buf_add(&text, s->ours, s->ours_n);
    s->nonce_n = text.n - s->nonce_at;
    buf_add_lit(&text, ",s=");
    base64_encode(&text, salt_of(setup, s->kind));
    buf_add_lit(&text, ",i=");
    buf_add_u64(&text, setup->iterations);
    assert(buf_ok(&text));
    s->text_n = text.n;
    s->header_n = m.header_n;
    s->state = SCRAM_FINAL;
    buf_add(reply, s->text + ours_at, text.n - ours_at);
    return OK;
}

/* Tries all keys even after a match. `signed_text` is RFC 5802's AuthMessage. */
static bool find_key(const access_scram_secrets *secrets, access_scram_kind kind, slice signed_text,
                     const unsigned char proof[ACCESS_SCRAM_HASH_MAX], access_key *key_out) {
    unsigned char client_key[ACCESS_SCRAM_HASH_MAX], stored_key[ACCESS_SCRAM_HASH_MAX];
    size_t n = hash_bytes(kind);
    *key_out = ACCESS_KEY_COUNT;
    for (access_key key = ACCESS_KEY_PRIMARY; key < ACCESS_KEY_COUNT; key++) {
        const secret *own = &secrets->keys[kind][key];
        if (!own->present) {
            continue;
        }
        mac(kind, own->stored_key, signed_text, client_key);
        for (size_t i = 0; i < n; i++) {
            client_key[i] ^= proof[i];
        }
        hash(kind, client_key, stored_key);
        *key_out = CRYPTO_memcmp(stored_key, own->stored_key, n) == 0 ? key : *key_out;
    }
    OPENSSL_cleanse(client_key, sizeof client_key);
    return *key_out != ACCESS_KEY_COUNT;
}

static bool is_bound_to_header(const access_scram *s, slice binding) {
    char room[LIMIT_SASL_BYTES * 2];
    buf text = {.p = room, .cap = sizeof room, .max = sizeof room};
    base64_encode(&text, slice_of(s->text, s->header_n));
    return slice_eq(buf_view(&text), binding);
}

static err answer_final(op *o, access_scram *s, const access_ring *ring, slice message, buf *reply, access_reach *r) {
    const access_scram_secrets *secrets = access_ring_scram(ring);
    unsigned char proof[ACCESS_SCRAM_HASH_MAX], signature[ACCESS_SCRAM_HASH_MAX];
    char room[sizeof s->text + LIMIT_SASL_BYTES + 1];
    buf bytes = {.p = (char *)proof, .cap = sizeof proof, .max = sizeof proof};
    buf text = {.p = room, .cap = sizeof room, .max = sizeof room};
    final_message m;
    access_key key;
    if (!read_final(message, &m) || !is_bound_to_header(s, m.binding) || !slice_eq(m.nonce, slice_of(s->text + s->nonce_at, s->nonce_n)) ||
        !base64_decode(&bytes, m.proof) || bytes.n != hash_bytes(s->kind)) {
        return refuse_form(o);
    }
    buf_add(&text, s->text + s->header_n, s->text_n - s->header_n);
    buf_add_byte(&text, ',');
    buf_add_slice(&text, m.without_proof);
    bool found = find_key(secrets, s->kind, buf_view(&text), proof, &key);
    if (!(found & s->known)) {
        return refuse_user(o);
    }
    mac(s->kind, secrets->keys[s->kind][key].server_key, buf_view(&text), signature);
    buf_add_lit(reply, "v=");
    base64_encode(reply, slice_of(signature, hash_bytes(s->kind)));
    access_reach_of_key(r, ring, key);
    s->state = SCRAM_DONE;
    return OK;
}

err access_scram_step(op *o, access_scram *s, const access_ring *ring, slice message, buf *reply, access_reach *r) {
    const access_scram_secrets *secrets = access_ring_scram(ring);
    access_scram_state state = s->state;
    *r = (access_reach){0};
    s->state = SCRAM_FAILED; /* overwritten if this step succeeds */
    if (!access_scram_offers(secrets, s->kind) || (state != SCRAM_FIRST && state != SCRAM_FINAL)) {
        return op_fail(o, E_UNAUTHORIZED, "This SCRAM mechanism is not offered, or the exchange is over: begin another one.");
    }
    return state == SCRAM_FIRST ? answer_first(o, s, &secrets->setup, message, reply) : answer_final(o, s, ring, message, reply, r);
}
