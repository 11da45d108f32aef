#include "base/crc32c.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

enum { LANES = 8, BYTE_VALUES = 256 };

/* table[k][b]: the effect of byte b that is followed by k more bytes ("slicing by eight"). */
static uint32_t table[LANES][BYTE_VALUES];
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_table(void) {
    static const uint32_t polynomial = 0x82F63B78u; /* reflected */
    for (uint32_t b = 0; b < BYTE_VALUES; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
        }
        table[0][b] = crc;
    }
    for (unsigned k = 1; k < LANES; k++) {
        for (uint32_t b = 0; b < BYTE_VALUES; b++) {
            table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 0xFF];
        }
    }
}

static uint32_t eight_bytes(uint32_t crc, const unsigned char *p) {
    crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    return table[7][crc & 0xFF] ^ table[6][crc >> 8 & 0xFF] ^ table[5][crc >> 16 & 0xFF] ^ table[4][crc >> 24] ^ table[3][p[4]] ^
           table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
}

uint32_t crc32c_by_table(uint32_t crc, slice more) {
    const unsigned char *p = (const unsigned char *)more.p;
    size_t n = more.n;
    pthread_once(&made, make_table);
    crc = ~crc;
    for (; n >= LANES; p += LANES, n -= LANES) {
        crc = eight_bytes(crc, p);
    }
    for (; n; p++, n--) {
        crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xFF];
    }
    return ~crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const unsigned char *p, size_t n) {
    uint64_t wide = crc, word;
    for (; n >= sizeof word; p += sizeof word, n -= sizeof word) {
        memcpy(&word, p, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; n; p++, n--) {
        crc = __builtin_ia32_crc32qi(crc, *p);
    }
    return crc;
}
#endif

uint32_t crc32c_extend(uint32_t crc, slice more) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2")) {
        return ~by_instruction(~crc, (const unsigned char *)more.p, more.n);
    }
#endif
    return crc32c_by_table(crc, more);
}

uint32_t crc32c(slice bytes) {
    return crc32c_extend(0, bytes);
}
