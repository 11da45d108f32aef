/* Databases, containers, stored procedures. */
#include <stdlib.h>

#include "base/memory.h"
#include "client/json.h"
#include "client/routing.h"
#include "doc/json.h"
#include <tesela/container.h>

/* ---- names ---- */

static bool good_name(const char *name) {
    return name && *name && strlen(name) <= 255 && !strpbrk(name, "/\\?#") && bson_utf8_validate(name, strlen(name), false);
}

static tesela_status bad_name(tesela_error *error, const char *name) {
    return client__fail(error, TESELA_BAD_ARGUMENT, "'%s' is not a name: 1 to 255 bytes of UTF-8, without / \\ ? #.", name ? name : "");
}

static void add_throughput(exchange *x, const tesela_throughput *t) {
    if (t && t->autoscale_max) {
        char text[64];
        snprintf(text, sizeof text, "{\"maxThroughput\":%u}", t->autoscale_max);
        client__exchange_text(x, "x-ms-cosmos-offer-autopilot-settings", text);
    } else if (t && t->manual) {
        client__exchange_number(x, "x-ms-offer-throughput", t->manual);
    }
}

static void add_json_body(exchange *x, const char *json) {
    x->has_body = true;
    x->body_view = slice_str(json);
    client__exchange_text(x, "Content-Type", "application/json");
}

/* ---- databases ---- */

static exchange *database_exchange(tesela_client *c, const char *verb, const char *database) {
    exchange *x = client__exchange_new(c, verb, "dbs", strcmp(verb, "GET") == 0);
    client__exchange_segment(x, SLICE_LIT("dbs"));
    client__exchange_segment(x, slice_str(database));
    return x;
}

tesela_status tesela_database_create(tesela_client *c, const char *database, const tesela_throughput *throughput,
                                     tesela_response **response_out, tesela_error *error) {
    if (!good_name(database)) {
        return bad_name(error, database);
    }
    exchange *x = client__exchange_new(c, "POST", "dbs", false);
    buf_add_lit(&x->path, "/dbs");
    buf_add_lit(&x->body, "{\"id\":");
    json_add_string(&x->body, slice_str(database));
    buf_add_byte(&x->body, '}');
    x->has_body = true;
    client__exchange_text(x, "Content-Type", "application/json");
    add_throughput(x, throughput);
    return client__exchange_finish(x, response_out, error);
}

tesela_status tesela_database_read(tesela_client *c, const char *database, tesela_response **response_out, tesela_error *error) {
    return good_name(database) ? client__exchange_finish(database_exchange(c, "GET", database), response_out, error)
                               : bad_name(error, database);
}

tesela_status tesela_database_delete(tesela_client *c, const char *database, tesela_response **response_out, tesela_error *error) {
    return good_name(database) ? client__exchange_finish(database_exchange(c, "DELETE", database), response_out, error)
                               : bad_name(error, database);
}

/* ---- containers ---- */

tesela_status tesela_container_create(tesela_client *c, const char *database, const char *definition, const tesela_throughput *throughput,
                                      tesela_response **response_out, tesela_error *error) {
    if (!good_name(database)) {
        return bad_name(error, database);
    }
    exchange *x = database_exchange(c, "POST", database);
    x->type = "colls";
    buf_add_lit(&x->path, "/colls");
    add_json_body(x, definition);
    add_throughput(x, throughput);
    return client__exchange_finish(x, response_out, error);
}

tesela_status tesela_container_open(tesela_client *c, const char *database, const char *container, tesela_container **container_out,
                                    tesela_error *error) {
    *container_out = NULL;
    if (!good_name(database) || !good_name(container)) {
        return bad_name(error, good_name(database) ? container : database);
    }
    tesela_container *k = mem_zero(sizeof *k);
    buf owner = buf_init(1024);
    buf_addf(&owner, "dbs/%s/colls/%s", database, container);
    k->client = c;
    k->database = mem_text(database, strlen(database));
    k->name = mem_text(container, strlen(container));
    k->owner = mem_text(owner.p, owner.n);
    buf_free(&owner);
    pthread_mutex_init(&k->lock, NULL);
    *container_out = k;
    return TESELA_OK;
}

void tesela_container_close(tesela_container *k) {
    if (k) {
        client__routing_give(k->routing);
        pthread_mutex_destroy(&k->lock);
        free(k->database);
        free(k->name);
        free(k->owner);
        free(k);
    }
}

const char *tesela_container_name(const tesela_container *k) {
    return k->name;
}

const char *tesela_container_database(const tesela_container *k) {
    return k->database;
}

tesela_status tesela_container_read(tesela_container *k, tesela_response **response_out, tesela_error *error) {
    return client__exchange_finish(client__container_exchange(k, "GET", "colls", true), response_out, error);
}

tesela_status tesela_container_replace(tesela_container *k, const char *definition, tesela_response **response_out, tesela_error *error) {
    exchange *x = client__container_exchange(k, "PUT", "colls", false);
    add_json_body(x, definition);
    return client__exchange_finish(x, response_out, error);
}

tesela_status tesela_container_delete(tesela_container *k, tesela_response **response_out, tesela_error *error) {
    tesela_status status = client__exchange_finish(client__container_exchange(k, "DELETE", "colls", false), response_out, error);
    client__sessions_forget(k->client->sessions, slice_str(k->owner));
    client__routing_stale(k);
    return status;
}

/* ---- usage ---- */

enum { KILOBYTE = 1024 };             /* the server's unit */
static const double ITEMS_MAX = 9e15; /* no server has more */

/* A number of a field such as "documentsSize=10;documentsCount=3;". */
static double usage_of(slice field, const char *name) {
    buf text = buf_init(64 * 1024);
    buf_add_byte(&text, ';');
    buf_add_slice(&text, field);
    buf_add_byte(&text, 0);
    char wanted[64];
    snprintf(wanted, sizeof wanted, ";%s=", name);
    const char *at = text.p ? strstr(text.p, wanted) : NULL;
    double value = at ? strtod(at + strlen(wanted), NULL) : -1;
    buf_free(&text);
    return value;
}

tesela_status client__container_usage(tesela_container *k, client_usage *usage_out, tesela_error *error) {
    exchange *x = client__container_exchange(k, "GET", "colls", true);
    client__exchange_text(x, "x-ms-documentdb-populatequotainfo", "True");
    tesela_status status = client__exchange_run(x, error);
    if (status == TESELA_OK) {
        slice used = client__response_field(x->response, "x-ms-resource-usage");
        slice quota = client__response_field(x->response, "x-ms-resource-quota");
        usage_out->items = usage_of(used, "documentsCount");
        usage_out->bytes = usage_of(used, "collectionSize") * KILOBYTE;
        usage_out->bytes_most = usage_of(quota, "collectionSize") * KILOBYTE;
    }
    client__exchange_free(x);
    return status;
}

tesela_status tesela_container_item_count(tesela_container *k, int64_t *items_out, tesela_error *error) {
    client_usage used;
    *items_out = -1;
    tesela_status status = client__container_usage(k, &used, error);
    if (status == TESELA_OK && used.items >= 0 && used.items < ITEMS_MAX) {
        *items_out = (int64_t)used.items;
    }
    return status;
}

/* ---- ranges ---- */

struct tesela_ranges {
    routing *routing;
    tesela_range *ranges;
};

tesela_status tesela_container_ranges(tesela_container *k, tesela_ranges **ranges_out, tesela_error *error) {
    routing *r;
    *ranges_out = NULL;
    client__routing_stale(k);
    tesela_status status = client__routing_take(k, &r, error);
    if (status == TESELA_OK) {
        tesela_ranges *list = mem_zero(sizeof *list);
        list->routing = r;
        list->ranges = mem_zero(r->n * sizeof *list->ranges);
        for (size_t i = 0; i < r->n; i++) {
            list->ranges[i] = (tesela_range){r->ranges[i].id, r->ranges[i].min_text, r->ranges[i].max_text};
        }
        *ranges_out = list;
    }
    return status;
}

size_t tesela_ranges_count(const tesela_ranges *list) {
    return list->routing->n;
}

const tesela_range *tesela_ranges_get(const tesela_ranges *list, size_t index) {
    return index < list->routing->n ? &list->ranges[index] : NULL;
}

void tesela_ranges_free(tesela_ranges *list) {
    if (list) {
        client__routing_give(list->routing);
        free(list->ranges);
        free(list);
    }
}

tesela_status tesela_container_epk(tesela_container *k, const tesela_key *key, char *text, tesela_error *error) {
    routing *r;
    pkey value;
    *text = 0;
    if (!key || !client__key_of(key, &value)) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The partition key has a value that is not UTF-8, or a number that is not finite.");
    }
    tesela_status status = client__routing_take(k, &r, error);
    if (status != TESELA_OK) {
        return status;
    }
    if (value.n > r->definition.n) {
        status = client__fail(error, TESELA_BAD_ARGUMENT, "The partition key has more components than the container's.");
    } else {
        epk e;
        buf hex = buf_init(TESELA_EPK_TEXT);
        epk_of(&r->definition, &value, &e);
        epk_write(&hex, &e);
        memcpy(text, hex.p ? hex.p : "", hex.n);
        text[hex.n] = 0;
        buf_free(&hex);
    }
    client__routing_give(r);
    return status;
}

/* ---- scripts ---- */

const char *const client__script_types[] = {[TESELA_PROCEDURE] = "sprocs", [TESELA_TRIGGER] = "triggers", [TESELA_FUNCTION] = "udfs"};

static exchange *script_exchange_of(tesela_container *k, tesela_script_kind kind, const char *verb, const char *id) {
    const char *type = client__script_types[kind];
    exchange *x = client__container_exchange(k, verb, type, false);
    if (id) {
        client__exchange_segment(x, slice_str(type));
        client__exchange_segment(x, slice_str(id));
    } else {
        buf_addf(&x->path, "/%s", type);
    }
    return x;
}

static exchange *script_exchange(tesela_container *k, const char *verb, const char *id) {
    return script_exchange_of(k, TESELA_PROCEDURE, verb, id);
}

tesela_status tesela_script_define(tesela_container *k, tesela_script_kind kind, const char *id, const char *definition,
                                   tesela_response **response_out, tesela_error *error) {
    if (!good_name(id) || !definition || (unsigned)kind > TESELA_FUNCTION) {
        return bad_name(error, id);
    }
    exchange *x = script_exchange_of(k, kind, "POST", NULL);
    add_json_body(x, definition);
    tesela_status status = client__exchange_finish(x, response_out, error);
    if (status == TESELA_CONFLICT) {
        x = script_exchange_of(k, kind, "PUT", id);
        add_json_body(x, definition);
        status = client__exchange_finish(x, response_out, error);
    }
    return status;
}

static void add_script(exchange *x, const char *id, const char *body) {
    x->has_body = true;
    client__exchange_text(x, "Content-Type", "application/json");
    buf_add_lit(&x->body, "{\"id\":");
    json_add_string(&x->body, slice_str(id));
    buf_add_lit(&x->body, ",\"body\":");
    json_add_string(&x->body, slice_str(body));
    buf_add_byte(&x->body, '}');
}

tesela_status tesela_script_put(tesela_container *k, const char *id, const char *body, tesela_response **response_out,
                                tesela_error *error) {
    if (!good_name(id) || !body || !bson_utf8_validate(body, strlen(body), false)) {
        return bad_name(error, id);
    }
    exchange *x = script_exchange(k, "POST", NULL);
    add_script(x, id, body);
    tesela_status status = client__exchange_finish(x, response_out, error);
    if (status == TESELA_CONFLICT) {
        x = script_exchange(k, "PUT", id);
        add_script(x, id, body);
        status = client__exchange_finish(x, response_out, error);
    }
    return status;
}

tesela_status tesela_script_delete(tesela_container *k, const char *id, tesela_response **response_out, tesela_error *error) {
    return good_name(id) ? client__exchange_finish(script_exchange(k, "DELETE", id), response_out, error) : bad_name(error, id);
}

tesela_status tesela_script_run(tesela_container *k, const char *id, const tesela_key *key, const char *arguments,
                                tesela_response **response_out, tesela_error *error) {
    buf header = buf_init(16 * 1024);
    if (!good_name(id) || (key && !client__key_write(key, &header))) {
        buf_free(&header);
        return client__fail(error, TESELA_BAD_ARGUMENT, "The script's name or the partition key is malformed.");
    }
    exchange *x = script_exchange(k, "POST", id);
    client__exchange_field(x, "x-ms-documentdb-partitionkey", buf_view(&header));
    add_json_body(x, arguments ? arguments : "[]");
    buf_free(&header);
    return client__exchange_finish(x, response_out, error);
}
