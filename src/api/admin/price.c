/* POST /_tesela/price: what writing and reading an item would cost, and why, without doing it. */
#include "api/admin/admin_int.h"
#include "doc/json.h"
#include "item/prices.h"

typedef struct priced {
    slice database, container;
    slice item, before; /* BSON; p NULL: not given */
} priced;

static err read_document(admin_request *q, bson_iter_t *it, const char *name, slice *document_out) {
    if (!BSON_ITER_HOLDS_DOCUMENT(it)) {
        return op_fail(&q->op, E_BAD_REQUEST, "'%s' must be an object: the item, without the server's properties.", name);
    }
    uint32_t n;
    const uint8_t *p;
    bson_iter_document(it, &n, &p);
    *document_out = slice_of((const char *)p, n);
    return OK;
}

static err read_priced(admin_request *q, slice body, priced *p) {
    bson_iter_t it;
    TRY(admin_text(q, body, "database", &p->database));
    TRY(admin_text(q, body, "container", &p->container));
    if (doc_find_key(body, SLICE_LIT("item"), &it)) {
        TRY(read_document(q, &it, "item", &p->item));
    }
    if (doc_find_key(body, SLICE_LIT("before"), &it)) {
        TRY(read_document(q, &it, "before", &p->before));
    }
    return p->item.n ? OK : op_fail(&q->op, E_BAD_REQUEST, "'item' must be given: the item to price.");
}

static void write_prices(admin_request *q, const container *c, const priced *p) {
    buf *out = &q->body;
    item_prices prices = item_prices_of(q->op.arena, c, p->item, p->before);
    buf_addf(out, "{\"bytes\":%zu", p->item.n);
    admin_add(out, "terms", prices.terms);
    admin_add_decimal(out, "perTerm", prices.per_term, 4);
    admin_add_decimal(out, "read", prices.read, 2);
    admin_add_decimal(out, "create", prices.create, 2);
    admin_add_decimal(out, "delete", prices.remove, 2);
    if (p->before.n) {
        admin_add(out, "termsChanged", prices.terms_changed);
        admin_add_decimal(out, "replace", prices.replace, 2);
    }
    buf_add_lit(out, "}\n");
}

/* An item may be much larger than the bodies of other requests, so it is not copied. */
err admin_price(admin_request *q) {
    json_error why = {0};
    json_root root;
    priced p = {0};
    container *c;
    buf body = buf_init_counted(2 * LIMIT_REQUEST_BYTES, q->op.budget);
    err code = json_to_bson(q->http->body, NULL, &body, &root, &why);
    if (code == E_BAD_JSON) {
        op_fail(&q->op, E_BAD_REQUEST, "The body is no JSON: %s at byte %zu.", why.reason, why.offset);
        code = E_BAD_REQUEST;
    } else if (code == OK && root != JSON_OBJECT) {
        code = op_fail(&q->op, E_BAD_REQUEST, "The body must be a JSON object.");
    }
    code = code == OK ? read_priced(q, buf_view(&body), &p) : code;
    code = code == OK ? admin_container(q, p.database, p.container, &c) : code;
    if (code == OK) {
        write_prices(q, c, &p);
        container_give(c);
    }
    buf_free(&body);
    return code;
}
