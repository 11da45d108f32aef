/* Effective partition keys: every value here was observed on the service or computed by an official SDK, unless a comment says
 * otherwise. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "partition/epk.h"

static const pkey_definition v1 = {.kind = PKEY_HASH, .version = 1, .n = 1};
static const pkey_definition v2 = {.kind = PKEY_HASH, .version = 2, .n = 1};
static const pkey_definition multi = {.kind = PKEY_MULTI_HASH, .version = 2, .n = 3};

static pkey_value text(const char *s) {
    return (pkey_value){.type = PKEY_STRING, .text = slice_str(s)};
}

static pkey_value number(double x) {
    return (pkey_value){.type = PKEY_NUMBER, .number = x};
}

static pkey_value word(pkey_type type) {
    return (pkey_value){.type = type};
}

static void expect_hex(const epk *e, const char *hex) {
    buf out = buf_init(BUF_NO_LIMIT);
    epk_write(&out, e);
    buf_add_byte(&out, 0);
    assert_string_equal(out.p, hex);
    buf_free(&out);
}

static void expect(pkey_value value, const char *hex_v1, const char *hex_v2) {
    pkey key = {.n = 1, .values = {value}};
    epk e;
    if (hex_v1) {
        epk_of(&v1, &key, &e);
        expect_hex(&e, hex_v1);
    }
    if (hex_v2) {
        epk_of(&v2, &key, &e);
        expect_hex(&e, hex_v2);
    }
}

static char *repeated(const char *piece, size_t times, const char *before, const char *after) {
    char *s = calloc(1, strlen(before) + times * strlen(piece) + strlen(after) + 1);
    strcpy(s, before);
    for (size_t i = 0; i < times; i++) {
        strcat(s, piece);
    }
    return strcat(s, after);
}

static void strings(void **state) {
    (void)state;
    expect(text("redmond"), "05C1EFE313830C087366656E706F6500", "22E342F38A486A088463DFF7838A5963");
    expect(text("partitionKey"), "05C1E1B3D9CD2608716273756A756A706F4C667A00", NULL);
    expect(text(""), "05C1CF33970FF80800", "32E9366E637A71B4E710384B2F4970A0");
    expect(text("aa"), "05C1C7B7270FE008626200", "05033626483AE80D00E44FBD35362B19");
    expect(text("ñandú"), "05C1E55DC5BD1208C4B2626F65C4BB00", "233EE0CC62285278ABC00DA6E215E5A0");
    expect(text("日本語"), "05C1E31DE9C91E08E798A6E79DADE9AB9F00", "3F0624929BDE45571F050DCA6A1CB775");
    expect(text("😀"), "05C1814D5F9C08F1A0998100", "28D7FCB721E75FBE0DAC3D71DAB82766");
    pkey_value zero_inside = {.type = PKEY_STRING, .text = SLICE_LIT("a\0b")};
    expect(zero_inside, "05C1E3353F57460862016300", "1B3FD025E76645CED4D34BF084ED3B74");
}

static void long_strings_are_cut_in_version_1_only(void **state) {
    (void)state;
    char *key = repeated("a", 110, "", "");
    char *hex = repeated("62", 100, "05C1EB5921F70608", "00");
    expect(text(key), hex, "0BA3E9CA8EE4C14538828D1612A4B652");
    free(key);
    free(hex);
    key = repeated("z", 2048, "", "");
    expect(text(key), NULL, "0F959578B933D390292C6E349D7E1ECE");
    free(key);
    key = repeated("z", 70000, "", ""); /* beyond every limit, which is checked elsewhere; the hash must still work */
    epk e;
    pkey_value value = text(key);
    epk_hash_v2(&value, 1, &e);
    assert_int_equal(e.n, 16);
    free(key);
}

/* 99 units and an emoji of two units: truncation leaves half of the emoji, which becomes U+FFFD. The hash is the JavaScript SDK's. The text
 * then has 102 bytes, so 101 of them are appended, without a terminator: the service (unlike that SDK) counts bytes. */
static void a_cut_through_a_surrogate_pair_leaves_a_replacement_character(void **state) {
    (void)state;
    char *key = repeated("x", 99, "", "😀tail");
    char *hex = repeated("79", 99, "05C1E919E5FF6E08", "F0C0");
    expect(text(key), hex, "3D7D23CB4ABE95B6C4EEFA80FC00378F");
    free(key);
    free(hex);
    key = repeated("é", 120, "", "");
    hex = repeated("C4AA", 50, "05C1D9C91DF1D808", "C4");
    expect(text(key), hex, "070C377218250E32042458E68C80F1E7");
    free(key);
    free(hex);
    key = repeated("日", 101, "", "");
    hex = repeated("E798A6", 33, "05C1B3537D7B4008", "E798");
    expect(text(key), hex, "25560CAA7BDA04842A9CEAF46BD6ADC0");
    free(key);
    free(hex);
}

static void words(void **state) {
    (void)state;
    expect(word(PKEY_NULL), "05C1ED45D7475601", "378867E4430E67857ACE5C908374FE16");
    expect(word(PKEY_TRUE), "05C1D7C5A903D803", "0E711127C5B5A8E4726AC6DD306A3E59");
    expect(word(PKEY_FALSE), "05C1DB857D857C02", "2FE1BE91E90A3439635E0E9E37361EF2");
    expect(word(PKEY_UNDEFINED), "05C1D529E345DC00", "11622DAA78F835834610ABE56EFF5CB5");
}

static void numbers(void **state) {
    (void)state;
    expect(number(5), "05C1D9C1C5517C05C014", "19C08621B135968252FB34B4CF66F811");
    expect(number(5.5), "05C1D7A771716C05C016", "0E2EE47829D1AF775EEFB6540FD1D0ED");
    expect(number(12313.1221), "05C1ED154D592E05C0C90723F50FC925D8", "27E7ECA8F2EE3E53424DE8D5220631C6");
    expect(number(123456789), "05C1D9E1A5311C05C19DB7CD8B40", "1F56D2538088EBA82CCF988F36E16760");
    expect(number(2), "05C1D93569113805C000", NULL);
    expect(number(0), "05C1BF6DA11560058000", "155B95BEDAC4B1E9EC1CDC9BB0DDDE58");
    expect(number(-0.0), "05C1E703ED99A0058000", "3D018BB1DF3DB27235766E81FD10406E");
    expect(number(-1), "05C1D1A5BDDF9C054010", "19938E7A936C1C5B9E3AE842BBC16839");
    expect(number(1e300), "05C1AB5FCFAF8005FE37F30F918103D738", "1234CB21048B20039B22F11DBB13CD7B");
    expect(number(-1.5), "05C1E901090F44054008", "151793206780805FF6E1DCAE6C787B6A");
    expect(number(4294967295), "05C1D7039DA9C405C1EFFFFFFFFE", "1C5EC0509C295B272D724C16A09F6D15");
    expect(number(9007199254740992), "05C1E53167392405C340", "15335910D01122E3D99DA5DE569B065D");
}

static void many_components_hash_as_one_in_version_2(void **state) {
    (void)state;
    const pkey_value values[] = {text("redmond"),  number(50),      number(5.5), word(PKEY_TRUE),
                                 word(PKEY_FALSE), word(PKEY_NULL), text(""),    number(12313.1221)};
    epk e;
    epk_hash_v2(values, sizeof values / sizeof values[0], &e);
    expect_hex(&e, "1A5E512F591E980E07A6D8AD5BD5AB2F");
}

#define REDMOND "22E342F38A486A088463DFF7838A5963"
#define FIVE_AND_A_HALF "0E2EE47829D1AF775EEFB6540FD1D0ED"
#define TRUE_HASH "0E711127C5B5A8E4726AC6DD306A3E59"

static void hierarchical_keys_are_hashed_level_by_level(void **state) {
    (void)state;
    pkey key = {.n = 3, .values = {text("redmond"), number(5.5), word(PKEY_TRUE)}};
    epk e;
    epk_of(&multi, &key, &e);
    expect_hex(&e, REDMOND FIVE_AND_A_HALF TRUE_HASH);
}

static void a_prefix_spans_all_keys_under_it(void **state) {
    (void)state;
    pkey whole = {.n = 3, .values = {text("redmond"), number(5.5), word(PKEY_TRUE)}};
    pkey prefix = whole;
    epk min;
    epk max;
    epk inside;
    epk_of(&multi, &whole, &inside);
    prefix.n = 2;
    epk_prefix_range(&multi, &prefix, &min, &max);
    expect_hex(&min, REDMOND FIVE_AND_A_HALF);
    expect_hex(&max, REDMOND FIVE_AND_A_HALF "FF");
    assert_true(epk_cmp(&min, &inside) < 0 && epk_cmp(&inside, &max) < 0);
    prefix.n = 1;
    epk_prefix_range(&multi, &prefix, &min, &max);
    expect_hex(&min, REDMOND);
    expect_hex(&max, REDMOND "FF");
    prefix.n = 0;
    epk_prefix_range(&multi, &prefix, &min, &max);
    expect_hex(&min, "");
    expect_hex(&max, "FF");
    epk_of(&v2, &prefix, &inside);
    expect_hex(&inside, "");
}

static void components_past_the_definition_do_not_count(void **state) {
    (void)state;
    pkey key = {.n = 3, .values = {text("redmond"), number(5.5), word(PKEY_TRUE)}};
    pkey_definition two = {.kind = PKEY_MULTI_HASH, .version = 2, .n = 2};
    pkey_definition fixed = {.kind = PKEY_HASH, .version = 1, .n = 0};
    epk e;
    epk_of(&two, &key, &e);
    expect_hex(&e, REDMOND FIVE_AND_A_HALF);
    epk_of(&v1, &key, &e);
    expect_hex(&e, "05C1EFE313830C087366656E706F6500");
    epk_of(&fixed, &key, &e);
    expect_hex(&e, "");
}

/* ---- bounds ---- */

static void expect_boundary(const pkey_definition *d, uint32_t i, uint32_t n, const char *hex) {
    epk e;
    epk_boundary(d, i, n, &e);
    expect_hex(&e, hex);
}

static void equal_ranges_are_the_services(void **state) {
    (void)state;
    const pkey_definition *both[] = {&v2, &multi};
    for (int k = 0; k < 2; k++) {
        expect_boundary(both[k], 0, 4, "");
        expect_boundary(both[k], 1, 4, "0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
        expect_boundary(both[k], 2, 4, "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFE");
        expect_boundary(both[k], 3, 4, "2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFD");
        expect_boundary(both[k], 4, 4, "FF");
        expect_boundary(both[k], 1, 2, "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
        expect_boundary(both[k], 1, 3, "15555555555555555555555555555555");
    }
    expect_boundary(&v1, 0, 5, "");
    expect_boundary(&v1, 1, 5, "05C1C9CD673398");
    expect_boundary(&v1, 2, 5, "05C1D9CD673398");
    expect_boundary(&v1, 5, 5, "FF");
    expect_boundary(&v1, 0, 1, "");
    expect_boundary(&v1, 1, 1, "FF");
}

static void boundaries_rise(void **state) {
    (void)state;
    const pkey_definition *all[] = {&v1, &v2, &multi};
    for (int k = 0; k < 3; k++) {
        for (uint32_t n = 1; n <= 300; n += n < 20 ? 1 : 47) {
            epk last = epk_min();
            for (uint32_t i = 1; i <= n; i++) {
                epk e;
                epk_boundary(all[k], i, n, &e);
                assert_true(epk_cmp(&last, &e) < 0);
                last = e;
            }
        }
    }
}

/* Parts cut one after another from the remaining range all have the same width, by epk_position. */
static void equal_parts_have_equal_widths(void **state) {
    (void)state;
    const pkey_definition *all[] = {&v1, &v2, &multi};
    for (int k = 0; k < 3; k++) {
        epk last = epk_min(), end = epk_max(), e, at_once;
        assert_true(epk_position(all[k], &last) == 0 && epk_position(all[k], &end) == 1);
        for (uint32_t i = 1; i < 7; i++) {
            assert_true(epk_part(all[k], &last, &end, 1, 7 - i + 1, &e));
            double width = epk_position(all[k], &e) - epk_position(all[k], &last);
            assert_true(width > 1 / 7.0 - 1e-8 && width < 1 / 7.0 + 1e-8);
            last = epk_min();
            assert_true(epk_part(all[k], &last, &end, i, 7, &at_once));
            width = epk_position(all[k], &at_once) - epk_position(all[k], &e);
            assert_true(width > -1e-8 && width < 1e-8);
            last = e;
        }
    }
}

static void expect_middle(const pkey_definition *d, const char *min, const char *max, const char *hex) {
    epk low;
    epk high;
    epk e;
    assert_true(epk_parse(slice_str(min), &low));
    assert_true(epk_parse(slice_str(max), &high));
    assert_true(epk_middle(d, &low, &high, &e));
    expect_hex(&e, hex);
}

#define ZEROS "000000000000000000000000000000" /* 30 digits */

static void middles_by_version(void **state) {
    (void)state;
    expect_middle(&v2, "", "FF", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
    expect_middle(&v2, "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "FF", "2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
    expect_middle(&v2, "", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
    /* V1: the middle of the whole space is boundary 1 of 2, as in the .NET SDK's test; and the mean of 0x33333333 and 0x66666666 */
    epk half;
    epk middle;
    epk low = epk_min();
    epk high = epk_max();
    epk_boundary(&v1, 1, 2, &half);
    assert_true(epk_middle(&v1, &low, &high, &middle));
    assert_int_equal(epk_cmp(&half, &middle), 0);
    expect_middle(&v1, "05C1C9CD673398", "05C1D9CD673398", "05C1D399CD6730");
    /* for a bound that is a whole V1 key, its hash counts */
    assert_true(epk_parse(SLICE_LIT("05C1C9CD673398087366656E706F6500"), &low));
    assert_true(epk_parse(SLICE_LIT("05C1D9CD673398"), &high));
    assert_true(epk_middle(&v1, &low, &high, &middle));
    expect_hex(&middle, "05C1D399CD6730");
}

static void middles_of_hierarchies(void **state) {
    (void)state;
    expect_middle(&multi, "", "FF", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
    /* same first level: the whole second level is halved */
    expect_middle(&multi, REDMOND, REDMOND "FF", REDMOND "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
    /* [20, 40] to [21, 10]: no room at the first level, so 20 stays, and the second level is halved from 40 to its end */
    expect_middle(&multi, ZEROS "20" ZEROS "40", ZEROS "21" ZEROS "10",
                  ZEROS "20"
                        "2000000000000000000000000000001F");
    expect_middle(&multi, ZEROS "20", ZEROS "30" ZEROS "01", ZEROS "28");
}

static void ranges_too_narrow_have_no_middle(void **state) {
    (void)state;
    epk low;
    epk high;
    epk e;
    assert_true(epk_parse(SLICE_LIT(ZEROS "20"), &low));
    assert_true(epk_parse(SLICE_LIT(ZEROS "21"), &high));
    assert_false(epk_middle(&v2, &low, &high, &e));
    assert_true(epk_middle(&multi, &low, &high, &e)); /* but the levels below have room */
    assert_false(epk_middle(&v2, &high, &high, &e));
    assert_false(epk_middle(&v1, &low, &low, &e));
}

static void expect_cut(const pkey_definition *d, const char *left, const char *right, const char *hex) {
    epk low;
    epk high;
    epk e;
    assert_true(epk_parse(slice_str(left), &low));
    assert_true(epk_parse(slice_str(right), &high));
    epk_cut(d, &low, &high, &e);
    expect_hex(&e, hex);
}

static void cuts_are_the_shortest_boundaries_between_keys(void **state) {
    (void)state;
    expect_cut(&v2, ZEROS "20", ZEROS "21", ZEROS "21");
    expect_cut(&v2, FIVE_AND_A_HALF, REDMOND, REDMOND);
    expect_cut(&multi, FIVE_AND_A_HALF REDMOND REDMOND, REDMOND REDMOND REDMOND, REDMOND);
    expect_cut(&multi, REDMOND FIVE_AND_A_HALF REDMOND, REDMOND TRUE_HASH REDMOND, REDMOND TRUE_HASH);
    expect_cut(&multi, REDMOND REDMOND FIVE_AND_A_HALF, REDMOND REDMOND TRUE_HASH, REDMOND REDMOND TRUE_HASH);
    /* 5 and 5.5, "redmond" and "": different hashes; then two keys with one hash, and -0 and 0, whose hashes differ but values do not */
    expect_cut(&v1, "05C1D7A771716C05C016", "05C1D9C1C5517C05C014", "05C1D9C1C5517C");
    expect_cut(&v1, "05C1CF33970FF80800", "05C1EFE313830C087366656E706F6500", "05C1EFE313830C");
    expect_cut(&v1, "05C1EFE313830C087366656E706F6500", "05C1EFE313830C087366656E706F6600", "05C1EFE313830C087366656E706F6600");
    expect_cut(&v1, "05C1BF6DA11560058000", "05C1E703ED99A0058000", "05C1E703ED99A0");
    expect_cut(&v1, "058000058000", "058000058010", "058000058010"); /* the hash 0 */
}

static pkey random_key(random_source *r, size_t n) {
    pkey key = {.n = n};
    for (size_t i = 0; i < n; i++) {
        key.values[i] = number((double)random_below(r, i + 1 < n ? 3 : 1000));
    }
    return key;
}

static void cuts_lie_between(void **state) {
    (void)state;
    const pkey_definition *all[] = {&v1, &v2, &multi};
    random_source r;
    random_seed(&r, 11);
    for (int i = 0; i < 20000; i++) {
        const pkey_definition *d = all[i % 3];
        pkey keys[] = {random_key(&r, d->n), random_key(&r, d->n)};
        epk a;
        epk b;
        epk cut;
        epk_of(d, &keys[0], &a);
        epk_of(d, &keys[1], &b);
        int c = epk_cmp(&a, &b);
        if (c != 0) {
            epk_cut(d, c < 0 ? &a : &b, c < 0 ? &b : &a, &cut);
            assert_true(epk_cmp(c < 0 ? &a : &b, &cut) < 0 && epk_cmp(&cut, c < 0 ? &b : &a) <= 0);
            assert_true(d == &v1 ? cut.n <= 10 : cut.n % 16 == 0);
        }
    }
}

/* ---- text ---- */

static void bounds_from_outside(void **state) {
    (void)state;
    epk e;
    assert_true(epk_parse(SLICE_LIT(""), &e));
    assert_int_equal(e.n, 0);
    assert_true(epk_parse(SLICE_LIT("FF"), &e));
    epk max = epk_max();
    assert_int_equal(epk_cmp(&e, &max), 0);
    assert_true(epk_parse(SLICE_LIT("05c1eF"), &e));
    expect_hex(&e, "05C1EF");
    assert_false(epk_parse(SLICE_LIT("F"), &e));
    assert_int_equal(e.n, 0);
    assert_false(epk_parse(SLICE_LIT("0G"), &e));
    assert_false(epk_parse(SLICE_LIT("0\0"), &e));
    assert_false(epk_parse(SLICE_LIT("0x12"), &e));
    assert_false(epk_parse(SLICE_LIT(" FF "), &e));
    assert_false(epk_parse(SLICE_LIT("@1"), &e));
    char digits[2 * EPK_BYTES_MAX + 2];
    memset(digits, 'A', sizeof digits);
    assert_true(epk_parse(slice_of(digits, 2 * EPK_BYTES_MAX), &e));
    assert_int_equal(e.n, EPK_BYTES_MAX);
    assert_false(epk_parse(slice_of(digits, sizeof digits), &e));
}

static void order_is_the_order_of_texts(void **state) {
    (void)state;
    static const char *const ordered[] = {"",           "00",         "0000", "05C1", "05C1C9CD673398", "05C1C9CD67339808", "1F", REDMOND,
                                          REDMOND "00", REDMOND "FF", "3F",   "FF"};
    size_t n = sizeof ordered / sizeof ordered[0];
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            epk a;
            epk b;
            assert_true(epk_parse(slice_str(ordered[i]), &a) && epk_parse(slice_str(ordered[j]), &b));
            int c = epk_cmp(&a, &b);
            int texts = strcmp(ordered[i], ordered[j]);
            assert_true((c > 0) - (c < 0) == (texts > 0) - (texts < 0));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings),
        cmocka_unit_test(long_strings_are_cut_in_version_1_only),
        cmocka_unit_test(a_cut_through_a_surrogate_pair_leaves_a_replacement_character),
        cmocka_unit_test(words),
        cmocka_unit_test(numbers),
        cmocka_unit_test(many_components_hash_as_one_in_version_2),
        cmocka_unit_test(hierarchical_keys_are_hashed_level_by_level),
        cmocka_unit_test(a_prefix_spans_all_keys_under_it),
        cmocka_unit_test(components_past_the_definition_do_not_count),
        cmocka_unit_test(equal_ranges_are_the_services),
        cmocka_unit_test(boundaries_rise),
        cmocka_unit_test(equal_parts_have_equal_widths),
        cmocka_unit_test(middles_by_version),
        cmocka_unit_test(middles_of_hierarchies),
        cmocka_unit_test(ranges_too_narrow_have_no_middle),
        cmocka_unit_test(cuts_are_the_shortest_boundaries_between_keys),
        cmocka_unit_test(cuts_lie_between),
        cmocka_unit_test(bounds_from_outside),
        cmocka_unit_test(order_is_the_order_of_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
