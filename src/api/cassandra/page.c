#include "api/cassandra/page.h"

enum { PAGE_VERSION = 1 };

slice cass_page_write(arena *a, const cass_page *p) {
    buf out = buf_init(BUF_NO_LIMIT);
    buf_add_byte(&out, PAGE_VERSION);
    cass_put_long(&out, p->left);
    cass_put_long(&out, p->partition_left);
    cass_put_int(&out, (int32_t)p->partition);
    cass_put_int(&out, (int32_t)p->range);
    cass_put_bytes(&out, p->place);
    cass_put_bytes(&out, p->key);
    slice bytes = arena_copy(a, buf_view(&out));
    buf_free(&out);
    return bytes;
}

bool cass_page_read(slice bytes, cass_page *p) {
    uint8_t version;
    int32_t partition, range;
    bool null = false;
    bool good = cass_take_byte(&bytes, &version) && version == PAGE_VERSION && cass_take_long(&bytes, &p->left) &&
                cass_take_long(&bytes, &p->partition_left) && cass_take_int(&bytes, &partition) && cass_take_int(&bytes, &range) &&
                cass_take_bytes(&bytes, &p->place, &null) && !null && cass_take_bytes(&bytes, &p->key, &null) && !null && bytes.n == 0;
    if (good) {
        p->partition = (uint32_t)partition;
        p->range = (uint32_t)range;
    }
    return good && p->left >= 0 && p->partition_left >= 0 && partition >= 0 && range >= 0;
}
