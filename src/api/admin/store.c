/* GET /_tesela/store: where the bytes of each store are, and which work wrote them. */
#include "api/admin/admin_int.h"

err admin_store(admin_request *q) {
    store_figures figures;
    buf_add_lit(&q->body, "{\"stores\":[");
    for (size_t i = 0; account_store_figures(q->admin->account, i, &figures); i++) {
        buf_add(&q->body, ",", i > 0);
        store_figures_json(&figures, &q->body);
    }
    buf_add_lit(&q->body, "]}\n");
    return OK;
}
