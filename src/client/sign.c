#include "client/sign.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/hmac.h"
#include "base/memory.h"

struct sign_key {
    hmac_key signs;
};

sign_key *client__sign_key_new(slice key) {
    sign_key *k = mem_zero(sizeof *k);
    hmac_key_set(&k->signs, key);
    return k;
}

void client__sign_key_free(sign_key *k) {
    if (k) {
        hmac_key_wipe(&k->signs);
        free(k);
    }
}

void client__percent(buf *out, slice text) {
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if ((c < 0x80 && isalnum(c)) || c == '-' || c == '_' || c == '.' || c == '~') {
            buf_add_byte(out, (char)c);
        } else {
            char coded[3] = {'%', digits[c >> 4], digits[c & 15]};
            buf_add(out, coded, 3);
        }
    }
}

static void add_lower(buf *out, slice text) {
    for (size_t i = 0; i < text.n; i++) {
        buf_add_byte(out, (char)tolower((unsigned char)text.p[i]));
    }
    buf_add_byte(out, '\n');
}

void client__sign(const sign_key *k, const char *verb, const char *type, slice link, slice date, buf *out) {
    buf text = buf_init(64 * 1024), encoded = buf_init(256);
    unsigned char mac[HMAC_BYTES];
    add_lower(&text, slice_str(verb));
    add_lower(&text, slice_str(type));
    buf_add_slice(&text, link);
    buf_add_byte(&text, '\n');
    add_lower(&text, date);
    buf_add_byte(&text, '\n');
    hmac_sign(&k->signs, buf_view(&text), mac);
    base64_encode(&encoded, slice_of(mac, sizeof mac));
    buf_add_lit(out, "type%3Dmaster%26ver%3D1.0%26sig%3D");
    client__percent(out, buf_view(&encoded));
    buf_free(&text);
    buf_free(&encoded);
}
