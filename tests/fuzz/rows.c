/* Any bytes as a file of items: the first byte chooses the format. Every row ends, items are JSON, and reading goes on from each row. */
#include "tool/rows.h"
#include "doc/json.h"
#include "world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(rows_reader *r) {
    rows_result result;
    uint64_t offset = 0;
    while ((result = rows_next(r)) < ROWS_END) {
        buf bson = buf_init(BUF_NO_LIMIT);
        json_root root;
        if (result == ROWS_ITEM) {
            assert_int_equal(json_to_bson(buf_view(&r->row), NULL, &bson, &root, NULL), OK);
        } else {
            assert_true(*r->why != '\0');
        }
        assert_true(r->offset > offset);
        offset = r->offset;
        buf_free(&bson);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static rows_reader r;
    if (n < 2) {
        return 0;
    }
    FILE *file = fmemopen((void *)(uintptr_t)(data + 1), n - 1, "rb");
    if (file && rows_open(&r, file, (rows_format)(data[0] % 3))) {
        check(&r);
    }
    rows_close(&r);
    if (file) {
        fclose(file);
    }
    return 0;
}
