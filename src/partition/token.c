#include "partition/token.h"

#include "cql/function.h"

/* The inverse of cql_key_text: six bits a character; what is left at the end is padding. */
static bool read_key_text(arena *a, slice text, cql_value *v) {
    static const char alphabet[] = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
    char *bytes = arena_alloc(a, text.n + 1);
    size_t n = 0;
    unsigned held = 0, bits = 0;
    for (size_t i = 0; i < text.n; i++) {
        const char *at = text.p[i] ? strchr(alphabet, text.p[i]) : NULL;
        if (!at) {
            return false;
        }
        held = (held << 6 | (unsigned)(at - alphabet)) & 0x3FFF;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            bytes[n++] = (char)(held >> bits);
        }
    }
    *v = cql_value_of(slice_of(bytes, n));
    return true;
}

static bool read_component(op *o, unsigned kind, const pkey_value *value, cql_value *v) {
    doc_element e = {.type = (bson_type_t)value->bson, .value = value->text};
    if (value->type != PKEY_TYPED) {
        return false;
    }
    if (kind != TOKEN_KEY_TEXT) {
        return cql_bson_read(o, cql_type_of((cql_kind)kind), &e, v) == OK;
    }
    return e.type == BSON_TYPE_UTF8 && read_key_text(o->arena, doc_element_text(&e), v);
}

bool token_of(const pkey_definition *definition, const pkey *key, int64_t *token_out) {
    char room[2048], key_room[LIMIT_KEY_BYTES];
    arena a = {.at = room, .end = room + sizeof room};
    buf bytes = {.p = key_room, .cap = sizeof key_room, .max = sizeof key_room};
    cql_value values[LIMIT_KEY_COMPONENTS];
    op o;
    op_init(&o, &a, 0);
    bool good = key->n == definition->n;
    for (size_t i = 0; good && i < key->n; i++) {
        good = read_component(&o, definition->token_kinds[i], &key->values[i], &values[i]);
    }
    good = good && cql_partition_bytes(&bytes, values, (uint32_t)key->n) && buf_ok(&bytes);
    if (good) {
        *token_out = cql_token(buf_view(&bytes));
    }
    arena_free(&a);
    return good;
}
