/* Throughput: the offer of a database or container, found by its resource id. */
#include <stdlib.h>

#include "client/json.h"
#include "client/routing.h"
#include "doc/json.h"

/* Reads the resource and appends its _rid. */
static tesela_status rid_of(exchange *x, buf *rid, tesela_error *error) {
    tesela_status status = client__exchange_run(x, error);
    if (status == TESELA_OK && !json_text(json_member(client__response_body(x->response), "_rid"), rid)) {
        status = client__fail(error, TESELA_BAD_RESPONSE, "The resource has no _rid.");
    }
    client__exchange_free(x);
    return status;
}

/* Asks for the offer of a resource; `offer_out` gets its JSON. */
static tesela_status find_offer(tesela_client *c, slice rid, buf *offer_out, tesela_error *error) {
    exchange *x = client__exchange_new(c, "POST", "offers", true);
    json_walk w;
    slice offer;
    buf_add_lit(&x->path, "/offers");
    x->has_body = true;
    client__exchange_text(x, "Content-Type", "application/query+json");
    client__exchange_text(x, "x-ms-documentdb-isquery", "True");
    buf_add_lit(&x->body,
                "{\"query\":\"SELECT * FROM root r WHERE r.offerResourceId = @rid\",\"parameters\":[{\"name\":\"@rid\",\"value\":");
    json_add_string(&x->body, rid);
    buf_add_lit(&x->body, "}]}");
    tesela_status status = client__exchange_run(x, error);
    if (status == TESELA_OK) {
        if (json_enter(json_member(client__response_body(x->response), "Offers"), &w) && json_next(&w, NULL, &offer)) {
            buf_add_slice(offer_out, offer);
        } else {
            status = client__fail(error, TESELA_NOT_FOUND, "The resource has no throughput of its own.");
        }
    }
    client__exchange_free(x);
    return status;
}

static void read_offer(slice offer, tesela_throughput *out) {
    slice content = json_member(offer, "content"), automatic = json_member(content, "offerAutopilotSettings");
    *out = (tesela_throughput){0};
    if (automatic.n > 4 && *automatic.p == '{') {
        out->autoscale_max = (uint32_t)json_whole(json_member(automatic, "maxThroughput"), 0, UINT32_MAX, 0);
    } else {
        out->manual = (uint32_t)json_whole(json_member(content, "offerThroughput"), 0, UINT32_MAX, 0);
    }
}

/* Writes the offer again with another content; all other members stay. */
static void write_offer(slice offer, const tesela_throughput *t, buf *out) {
    json_walk w;
    slice name, value;
    char between = '{';
    json_enter(offer, &w);
    while (json_next(&w, &name, &value)) {
        buf_add_byte(out, between);
        between = ',';
        buf_add_slice(out, name);
        buf_add_byte(out, ':');
        if (!slice_eq(name, SLICE_LIT("\"content\""))) {
            buf_add_slice(out, value);
        } else if (t->autoscale_max) {
            buf_addf(out, "{\"offerAutopilotSettings\":{\"maxThroughput\":%u}}", t->autoscale_max);
        } else {
            buf_addf(out, "{\"offerThroughput\":%u}", t->manual);
        }
    }
    buf_add_byte(out, '}');
}

static tesela_status put_offer(tesela_client *c, slice offer, const tesela_throughput *t, tesela_error *error) {
    buf rid = buf_init(64);
    tesela_throughput before;
    read_offer(offer, &before);
    if (!json_text(json_member(offer, "_rid"), &rid)) {
        buf_free(&rid);
        return client__fail(error, TESELA_BAD_RESPONSE, "The offer has no _rid.");
    }
    exchange *x = client__exchange_new(c, "PUT", "offers", false);
    client__exchange_segment(x, SLICE_LIT("offers"));
    client__exchange_segment(x, buf_view(&rid));
    buf_clear(&x->link); /* an offer is signed by its id alone, in lower case */
    for (size_t i = 0; i < rid.n; i++) {
        buf_add_byte(&x->link, rid.p[i] >= 'A' && rid.p[i] <= 'Z' ? (char)(rid.p[i] | 0x20) : rid.p[i]);
    }
    x->has_body = true;
    client__exchange_text(x, "Content-Type", "application/json");
    if ((before.autoscale_max != 0) != (t->autoscale_max != 0)) {
        client__exchange_text(
            x, t->autoscale_max ? "x-ms-cosmos-migrate-offer-to-autopilot" : "x-ms-cosmos-migrate-offer-to-manual-throughput", "true");
    }
    write_offer(offer, t, &x->body);
    buf_free(&rid);
    return client__exchange_finish(x, NULL, error);
}

static tesela_status get(tesela_client *c, exchange *resource, tesela_throughput *out, tesela_error *error) {
    buf rid = buf_init(64), offer = buf_init(1 << 20);
    *out = (tesela_throughput){0};
    tesela_status status = rid_of(resource, &rid, error);
    if (status == TESELA_OK) {
        status = find_offer(c, buf_view(&rid), &offer, error);
    }
    if (status == TESELA_OK) {
        read_offer(buf_view(&offer), out);
    }
    buf_free(&rid);
    buf_free(&offer);
    return status;
}

static tesela_status set(tesela_client *c, exchange *resource, const tesela_throughput *t, tesela_error *error) {
    buf rid = buf_init(64), offer = buf_init(1 << 20);
    tesela_status status = rid_of(resource, &rid, error);
    if (status == TESELA_OK) {
        status = find_offer(c, buf_view(&rid), &offer, error);
    }
    if (status == TESELA_OK) {
        status = put_offer(c, buf_view(&offer), t, error);
    }
    buf_free(&rid);
    buf_free(&offer);
    return status;
}

static exchange *database_read(tesela_client *c, const char *database) {
    exchange *x = client__exchange_new(c, "GET", "dbs", true);
    client__exchange_segment(x, SLICE_LIT("dbs"));
    client__exchange_segment(x, slice_str(database));
    return x;
}

tesela_status tesela_database_throughput(tesela_client *c, const char *database, tesela_throughput *out, tesela_error *error) {
    return get(c, database_read(c, database), out, error);
}

tesela_status tesela_database_set_throughput(tesela_client *c, const char *database, const tesela_throughput *t, tesela_error *error) {
    return set(c, database_read(c, database), t, error);
}

tesela_status tesela_container_throughput(tesela_container *k, tesela_throughput *out, tesela_error *error) {
    return get(k->client, client__container_exchange(k, "GET", "colls", true), out, error);
}

tesela_status tesela_container_set_throughput(tesela_container *k, const tesela_throughput *t, tesela_error *error) {
    return set(k->client, client__container_exchange(k, "GET", "colls", true), t, error);
}
