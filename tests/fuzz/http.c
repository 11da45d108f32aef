/* HTTP framing: the same bytes give the same requests and rejections, however they are divided into reads, and whether head.c or
 * http-parser reads the heads of ordinary requests.
 *
 * The input's first byte seeds the division, its second chooses the limits (small ones, so that short inputs reach them). The rest is what
 * a client sends. */
#include "../unit/framing_client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 2) {
        return 0;
    }
    static http_names *names;
    if (!names) {
        names = http_names_new(framing_fields, FRAMING_FIELDS);
    }
    framing_result whole = framing_compare(slice_of(data + 2, n - 2), names, data[1] & 1, data[0]);
    framing_result_free(&whole);
    return 0;
}
