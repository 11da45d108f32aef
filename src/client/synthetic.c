#include <tesela/synthetic.h>

#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

tesela_status tesela_synthetic_join(const char *const *parts, size_t count, const char *separator, char *room, size_t room_bytes) {
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        int more = snprintf(room + n, room_bytes - n, "%s%s", i ? separator : "", parts[i]);
        if (more < 0 || (size_t)more >= room_bytes - n) {
            return TESELA_LIMIT;
        }
        n += (size_t)more;
    }
    if (count == 0 && room_bytes) {
        *room = 0;
    }
    return room_bytes ? TESELA_OK : TESELA_LIMIT;
}

tesela_status tesela_synthetic_suffix(const char *base, unsigned suffix, char *room, size_t room_bytes) {
    int n = snprintf(room, room_bytes, "%s.%u", base, suffix);
    return n >= 0 && (size_t)n < room_bytes ? TESELA_OK : TESELA_LIMIT;
}

/* Bias is below 2^-32 for any number of suffixes that makes sense. */
static tesela_status from_bytes(const char *base, const unsigned char bytes[8], unsigned suffixes, char *room, size_t room_bytes) {
    uint64_t number = 0;
    if (suffixes == 0) {
        return TESELA_BAD_ARGUMENT;
    }
    for (int i = 0; i < 8; i++) {
        number = number << 8 | bytes[i];
    }
    return tesela_synthetic_suffix(base, (unsigned)(number % suffixes) + 1, room, room_bytes);
}

tesela_status tesela_synthetic_random(const char *base, unsigned suffixes, char *room, size_t room_bytes) {
    unsigned char bytes[8];
    return RAND_bytes(bytes, sizeof bytes) == 1 ? from_bytes(base, bytes, suffixes, room, room_bytes) : TESELA_UNAVAILABLE;
}

tesela_status tesela_synthetic_hashed(const char *base, const char *property, unsigned suffixes, char *room, size_t room_bytes) {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)property, strlen(property), digest);
    return from_bytes(base, digest, suffixes, room, room_bytes);
}
