/* Any bytes as a batch of HybridRow records: refused, or read into a BSON array within its limit. The fuzzer cannot guess checksums, so the
 * first byte chooses whether the rest is the body, or the row of one record. */
#include <assert.h>

#include <bson/bson.h>

#include "api/sql/batch_rows.h"
#include "base/crc32.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BSON_MAX = 100000 };

static void add_u32(buf *out, uint32_t value) {
    for (unsigned i = 0; i < 4; i++) {
        buf_add_byte(out, (char)(value >> 8 * i));
    }
}

static void add_record(buf *body, slice row) {
    buf_add_lit(body, "\x81\xF0\xD8\xFF\x7F\x01\x0A\x00\x00\x00\x81\xF1\xD8\xFF\x7F");
    add_u32(body, (uint32_t)row.n);
    add_u32(body, crc32_of(row));
    buf_add_slice(body, row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    slice input = slice_of(data + 1, size ? size - 1 : 0);
    buf body = buf_init(BUF_NO_LIMIT), bson = buf_init(BSON_MAX);
    json_error why = {0};
    if (size && data[0] & 1) {
        add_record(&body, input);
    } else {
        buf_add_slice(&body, input);
    }
    err code = sql_rows_read(buf_view(&body), &bson, &why);
    if (code == OK) {
        bson_iter_t each;
        bool good = bson_iter_init_from_data(&each, (const uint8_t *)bson.p, bson.n);
        assert(good && bson.n <= BSON_MAX);
        while (bson_iter_next(&each)) {
            assert(BSON_ITER_HOLDS_DOCUMENT(&each));
        }
        assert(each.err_off == 0);
    } else {
        assert(bson.n == 0 && buf_ok(&bson));
        assert(code == E_TOO_LARGE || (code == E_BAD_JSON && why.reason && why.offset <= body.n));
    }
    buf_free(&body);
    buf_free(&bson);
    return 0;
}
