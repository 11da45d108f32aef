/* token.c — tokens of Cassandra's Murmur3Partitioner, and timeuuids. */
#include "cql/function_int.h"

static uint64_t rotate(uint64_t x, unsigned by) {
    return x << by | x >> (64 - by);
}

static uint64_t mix(uint64_t k) {
    k ^= k >> 33;
    k *= 0xFF51AFD7ED558CCDu;
    k ^= k >> 33;
    k *= 0xC4CEB9FE1A85EC53u;
    return k ^ k >> 33;
}

static uint64_t little_endian(const unsigned char *p) {
    uint64_t word = 0;
    for (int i = 7; i >= 0; i--) {
        word = word << 8 | p[i];
    }
    return word;
}

enum { BLOCK = 16 };
static const uint64_t C1 = 0x87C37B91114253D5u, C2 = 0x4CF5AD432745937Fu;

static void add_block(const unsigned char *p, uint64_t *h1, uint64_t *h2) {
    *h1 ^= rotate(little_endian(p) * C1, 31) * C2;
    *h1 = (rotate(*h1, 27) + *h2) * 5 + 0x52DCE729;
    *h2 ^= rotate(little_endian(p + 8) * C2, 33) * C1;
    *h2 = (rotate(*h2, 31) + *h1) * 5 + 0x38495AB5;
}

/* The bytes after the last block. Java's bytes are signed, so one above 7F sets all higher bits: that is the difference to MurmurHash3. */
static uint64_t tail(const unsigned char *p, size_t n) {
    uint64_t word = 0;
    for (size_t i = 0; i < n; i++) {
        word ^= (uint64_t)(int64_t)(signed char)p[i] << (8 * i);
    }
    return word;
}

int64_t cql_token(slice key) {
    const unsigned char *p = (const unsigned char *)key.p;
    uint64_t h1 = 0, h2 = 0;
    size_t blocks = key.n / BLOCK, rest = key.n % BLOCK;
    if (key.n == 0) {
        return INT64_MIN;
    }
    for (size_t i = 0; i < blocks; i++) {
        add_block(p + i * BLOCK, &h1, &h2);
    }
    p += blocks * BLOCK;
    if (rest > 8) {
        h2 ^= rotate(tail(p + 8, rest - 8) * C2, 33) * C1;
    }
    if (rest) {
        h1 ^= rotate(tail(p, rest < 8 ? rest : 8) * C1, 31) * C2;
    }
    h1 ^= key.n;
    h2 ^= key.n;
    h1 += h2;
    h2 += h1;
    h1 = mix(h1) + mix(h2);
    return (int64_t)h1 == INT64_MIN ? INT64_MAX : (int64_t)h1;
}

bool cql_partition_bytes(buf *out, const cql_value *values, uint32_t n) {
    if (n == 1) {
        buf_add_slice(out, values[0].bytes);
        return true;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (values[i].bytes.n > 65535) {
            return false;
        }
        buf_add_byte(out, (char)(values[i].bytes.n >> 8));
        buf_add_byte(out, (char)values[i].bytes.n);
        buf_add_slice(out, values[i].bytes);
        buf_add_byte(out, 0);
    }
    return true;
}

/* ---- timeuuids: 100 ns since 1582-10-15 ---- */

#define EPOCH_100NS INT64_C(0x01B21DD213814000) /* of 1970 */

static uint64_t time_of(slice uuid) {
    const unsigned char *u = (const unsigned char *)uuid.p;
    uint64_t time = u[6] & 0x0Fu;
    static const unsigned char order[] = {7, 4, 5, 0, 1, 2, 3};
    for (size_t i = 0; i < sizeof order; i++) {
        time = time << 8 | u[order[i]];
    }
    return time;
}

int64_t cql_timeuuid_ms(slice uuid) {
    int64_t since = (int64_t)time_of(uuid) - EPOCH_100NS;
    return since / 10000 - (since % 10000 < 0);
}

void cql__timeuuid_of(int64_t since_1970_100ns, uint64_t rest, uint8_t uuid_out[16]) {
    static const unsigned char order[] = {3, 2, 1, 0, 5, 4, 7, 6}; /* from the lowest byte of the time up */
    uint64_t time = (uint64_t)(since_1970_100ns + EPOCH_100NS) & 0x0FFFFFFFFFFFFFFFu;
    for (size_t i = 0; i < 8; i++) {
        uuid_out[order[i]] = (uint8_t)(time >> (8 * i));
        uuid_out[15 - i] = (uint8_t)(rest >> (8 * i));
    }
    uuid_out[6] = (uint8_t)((uuid_out[6] & 0x0F) | 0x10);
}

/* The time never stands still in a thread, and each thread has its own random clock sequence and node. */
void cql_timeuuid_make(random_source *random, int64_t now_us, uint8_t uuid_out[16]) {
    static _Thread_local int64_t last;
    static _Thread_local uint64_t rest;
    if (rest == 0) {
        rest = (random_u64(random) & 0x3FFFFFFFFFFFFFFFu) | 0x8000000000000000u |
               0x0000010000000000u; /* variant; multicast bit: no real node */
    }
    int64_t now = now_us * 10;
    last = now > last ? now : last + 1;
    cql__timeuuid_of(last, rest, uuid_out);
}
