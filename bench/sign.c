#define OPENSSL_SUPPRESS_DEPRECATED /* SHA256_*: a hash state that can be copied for the price of a memcpy */
#include "sign.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 64, KEY_BYTES_MAX = 128 };

bool sign_init(signer *s, const char *key_base64) {
    unsigned char key[KEY_BYTES_MAX + 3] = {0}, block[BLOCK] = {0};
    size_t n = strlen(key_base64);
    if (n == 0 || n % 4 != 0 || n / 4 * 3 > KEY_BYTES_MAX) {
        return false;
    }
    int decoded = EVP_DecodeBlock(key, (const unsigned char *)key_base64, (int)n);
    size_t bytes = decoded < 0 ? 0 : (size_t)decoded - (key_base64[n - 1] == '=') - (key_base64[n - 2] == '=');
    if (bytes == 0) {
        return false;
    }
    if (bytes > BLOCK) {
        SHA256(key, bytes, block);
    } else {
        memcpy(block, key, bytes);
    }
    for (int i = 0; i < BLOCK; i++) {
        block[i] ^= 0x36;
    }
    SHA256_Init(&s->inner);
    SHA256_Update(&s->inner, block, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
        block[i] ^= 0x36 ^ 0x5c;
    }
    SHA256_Init(&s->outer);
    SHA256_Update(&s->outer, block, BLOCK);
    return true;
}

size_t sign_base64(const signer *s, const char *text, size_t n, char *out) {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256_CTX c = s->inner;
    SHA256_Update(&c, text, n);
    SHA256_Final(digest, &c);
    c = s->outer;
    SHA256_Update(&c, digest, sizeof digest);
    SHA256_Final(digest, &c);
    return (size_t)EVP_EncodeBlock((unsigned char *)out, digest, sizeof digest);
}

size_t sign_text(const signer *s, const char *text, size_t n, char *out) {
    char base64[48], *p = out;
    size_t length = sign_base64(s, text, n, base64);
    for (size_t i = 0; i < length; i++) {
        if (isalnum((unsigned char)base64[i])) {
            *p++ = base64[i];
            continue;
        }
        *p++ = '%';
        memcpy(p, base64[i] == '+' ? "2B" : base64[i] == '/' ? "2F" : "3D", 2);
        p += 2;
    }
    return (size_t)(p - out);
}

void sign_date(time_t now, char *date, char *lower) {
    char text[DATE_BYTES + 1];
    struct tm t;
    gmtime_r(&now, &t);
    strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &t);
    memcpy(date, text, DATE_BYTES);
    for (int i = 0; i < DATE_BYTES; i++) {
        lower[i] = (char)tolower((unsigned char)text[i]);
    }
}
