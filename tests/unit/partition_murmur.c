/* MurmurHash3: published values, and one for every tail length, computed with the official JavaScript SDK's hash function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "partition/murmur.h"

static void published_32_bit_values(void **state) {
    (void)state;
    assert_int_equal(hash_murmur3_32(SLICE_LIT("")), 0);
    assert_int_equal(hash_murmur3_32(SLICE_LIT("hello")), 0x248bfa47u);
    assert_int_equal(hash_murmur3_32(SLICE_LIT("hello, world")), 0x149bbb7fu);
    assert_int_equal(hash_murmur3_32(SLICE_LIT("The quick brown fox jumps over the lazy dog")), 0x2e4ff723u);
}

static void published_128_bit_values(void **state) {
    (void)state;
    hash128 h = hash_murmur3_128(SLICE_LIT("hello"));
    assert_int_equal(h.h1, 0xcbd8a7b341bd9b02u);
    assert_int_equal(h.h2, 0x5b1e906a48ae1d19u);
    h = hash_murmur3_128(SLICE_LIT("The quick brown fox jumps over the lazy dog."));
    assert_int_equal(h.h1, 0xcd99481f9ee902c9u);
    assert_int_equal(h.h2, 0x695da1a38987b6e7u);
}

/* The SDK prints each half byte by byte, lowest first, hence the byte swaps. Input byte i is i × 37 + 11. */
static const struct {
    size_t n;
    uint32_t h32;
    uint64_t h1_bytes;
    uint64_t h2_bytes;
} sdk_values[] = {
    {0, 0x00000000u, 0x0000000000000000u, 0x0000000000000000u},  {1, 0x4d79446cu, 0xe7f117e6ccc72f93u, 0xdc08456c814b437au},
    {2, 0x6bfe18a9u, 0x9db37154aee5f7cfu, 0x3675c477b2c34985u},  {3, 0x389b84e7u, 0xb1a481deb8c0fa6au, 0x43b26a81fbf4dc0cu},
    {4, 0x1939e63du, 0x729f1fb8d1eea4d3u, 0xcd20a4d92af24c8fu},  {5, 0xa4811facu, 0x0b997f08400f33b0u, 0x0bf5639975f993adu},
    {6, 0x2f82c86du, 0x127a07040bf1d132u, 0x7e932938ad91574bu},  {7, 0x0ea050ddu, 0x3b98626668cc4083u, 0xf9f67faadf388fa0u},
    {8, 0x3ae449f2u, 0xd7ce897f0044b1f0u, 0xa1f97a2d832122d0u},  {9, 0x593f000du, 0xb1a0c8ae8e08b3dbu, 0xa909fe2e1824decbu},
    {10, 0x868522c3u, 0x1e374ffdf82ec87fu, 0xb098625916c71a7au}, {11, 0xd3ece69eu, 0x64d520094d5a10ceu, 0xd6c17f729b12c7c5u},
    {12, 0x7d0fe536u, 0xb8bbc3af9fa5ee11u, 0xf8db0d9b584d30deu}, {13, 0x6fa10f80u, 0xe7c40c79c7c00b3cu, 0x7eb2f9120da44bf3u},
    {14, 0xb7b2cf95u, 0x71a1eebe7852f04au, 0x09fb75ea3c2e3027u}, {15, 0x6b580432u, 0xff837fb647f00629u, 0xac1f70e78f33ca49u},
    {16, 0xe6271c29u, 0xfbf05e0c58669cdau, 0xf75f6cbb87ae5a88u}, {17, 0xc792fd21u, 0xd1075e779aeeb878u, 0xe0fc9816309067e3u},
    {18, 0x35176c7fu, 0xd8f705b6e9ec2250u, 0xac678dec1eb2d116u}, {19, 0x2d6746beu, 0x5efde245631a5940u, 0xaf7c0243d6312b3du},
    {20, 0x815bf850u, 0xf359858821eb5af8u, 0xee2468b44aec5ea6u}, {21, 0x54ec73cau, 0xf3b68d41138c122cu, 0xa80f19df988c8193u},
    {22, 0x1195dfbdu, 0x7250039f38c3ffc0u, 0x34f5dcc1aedffa6du}, {23, 0x7ade4401u, 0xaa53dc84fbd4b701u, 0x99faedb924c3d55au},
    {24, 0x50d92d4bu, 0x1ceb61ebfee27283u, 0x031bf0f3aa05f4e8u}, {25, 0x37925386u, 0xa25d9d7243299eedu, 0x13f95fbd43b84b70u},
    {26, 0x27f05464u, 0xc4de7c332e42cd9fu, 0xb58d81860ea98f62u}, {27, 0x8eaaae9bu, 0x74fda002126a4a45u, 0x768bea9803ffa5e3u},
    {28, 0x71f441a9u, 0xde024c1d9f41eac2u, 0xdaeca3cf58e0b282u}, {29, 0xb79c39b0u, 0x41f23c5a42e5b22au, 0x06fcdb00bae3f6beu},
    {30, 0xad8cc658u, 0x8b46735c9530e5fdu, 0x7cdda03b486a2a3eu}, {31, 0xa5df4a5bu, 0x2f53c5d41e06cab1u, 0x63377b9e482669cbu},
    {32, 0x76cd521cu, 0x9b79fe8eeb7473afu, 0xffd6cd4d9200523au}, {33, 0xdf59faadu, 0xa99b09c3888ab808u, 0xf98adfb5bd6fc015u},
    {34, 0x02562827u, 0xb8f17403b7fbe646u, 0x94bdce4a96e370c9u},
};

static void every_length_at_every_alignment(void **state) {
    (void)state;
    char room[64];
    for (size_t offset = 0; offset < 8; offset++) {
        for (size_t i = 0; i < 48; i++) {
            room[offset + i] = (char)(i * 37 + 11);
        }
        for (size_t i = 0; i < sizeof sdk_values / sizeof sdk_values[0]; i++) {
            slice bytes = slice_of(room + offset, sdk_values[i].n);
            hash128 h = hash_murmur3_128(bytes);
            assert_int_equal(hash_murmur3_32(bytes), sdk_values[i].h32);
            assert_int_equal(h.h1, __builtin_bswap64(sdk_values[i].h1_bytes));
            assert_int_equal(h.h2, __builtin_bswap64(sdk_values[i].h2_bytes));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_32_bit_values),
        cmocka_unit_test(published_128_bit_values),
        cmocka_unit_test(every_length_at_every_alignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
