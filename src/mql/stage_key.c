/* stage_key.c — values as keys of hash tables. */
#include "doc/order.h"
#include "mql/collation.h"
#include "mql/stages.h"

err mql__value_key(mql_run *r, mql_value v, buf *key) {
    TRY(mql_pay(r, 2 + v.bytes.n / 32));
    if (mql_is_missing(v)) {
        v = mql_null();
    }
    if (r->collation && mql_is_text(v)) {
        buf_add_byte(key, 0);
        mql_collation_key(r->collation, mql_as_text(v), key);
    } else {
        doc_element e = {{"", 0}, v.bytes, v.type};
        size_t before = key->n;
        doc_order_spell(key, &e, false);
        if (!buf_ok(key) && !(key->budget && key->budget->exceeded)) { /* nested too deeply for the ordered encoding: use its bytes */
            key->overflow = false;
            key->n = before;
            buf_add_byte(key, (char)0xff);
            buf_add_byte(key, (char)v.type);
            buf_add_slice(key, v.bytes);
        }
    }
    return buf_ok(key) ? OK : key->budget && key->budget->exceeded ? budget_error(key->budget) : E_MEMORY;
}
