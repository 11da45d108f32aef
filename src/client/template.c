/* Templates: what new containers of managed and spillover resolvers are made from. */
#include <stdlib.h>

#include "base/memory.h"
#include "client/json.h"
#include "client/resolver_int.h"
#include "doc/json.h"

struct template {
    char *name; /* with one # */
    char *definition;
    tesela_throughput throughput;
    tesela_texts ids, bodies; /* of stored procedures */
};

static template *checked(template *t, tesela_error *error) {
    const char *at = t->name ? strchr(t->name, '#') : NULL;
    json_walk w;
    if (!at || strchr(at + 1, '#') || !t->definition || !json_is_value(slice_str(t->definition)) ||
        !json_enter(slice_str(t->definition), &w) || !w.object || json_member(slice_str(t->definition), "id").n ||
        t->ids.n != t->bodies.n) {
        client__fail(error, TESELA_BAD_ARGUMENT, "A template needs a name with one #, and a definition as a JSON object without an id.");
        client__template_free(t);
        return NULL;
    }
    return t;
}

static char *copy(const char *text) {
    return text ? mem_text(text, strlen(text)) : NULL;
}

template *client__template_new(const tesela_template *from, tesela_error *error) {
    template *t = mem_zero(sizeof *t);
    t->name = copy(from->name);
    t->definition = copy(from->definition);
    t->throughput = from->throughput;
    for (size_t i = 0; i < from->scripts_count; i++) {
        tesela_texts_add(&t->ids, from->script_ids[i]);
        tesela_texts_add(&t->bodies, from->script_bodies[i]);
    }
    return checked(t, error);
}

template *client__template_read(slice json, tesela_error *error) {
    template *t = mem_zero(sizeof *t);
    slice definition = json_member(json, "definition"), ids = json_member(json, "scripts"), bodies = json_member(json, "scriptBodies");
    double manual = json_number(json_member(json, "throughput"), 0), automatic = json_number(json_member(json, "autoscaleMax"), 0);
    t->name = client__text_member(json, "name");
    t->definition = definition.n ? mem_text(definition.p, definition.n) : NULL;
    t->throughput =
        (tesela_throughput){manual > 0 && manual < 1e9 ? (uint32_t)manual : 0, automatic > 0 && automatic < 1e9 ? (uint32_t)automatic : 0};
    if (!client__texts_read(ids, &t->ids) || !client__texts_read(bodies, &t->bodies)) {
        free(t->name);
        t->name = NULL; /* malformed: `checked` says so */
    }
    return checked(t, error);
}

static void free_texts(tesela_texts *t) {
    for (size_t i = 0; i < t->n; i++) {
        free(t->texts[i]);
    }
    free(t->texts);
}

void client__template_free(template *t) {
    if (t) {
        free(t->name);
        free(t->definition);
        free_texts(&t->ids);
        free_texts(&t->bodies);
        free(t);
    }
}

void client__template_write(const template *t, buf *out) {
    buf_add_lit(out, "{\"name\":");
    json_add_string(out, slice_str(t->name));
    buf_add_lit(out, ",\"definition\":");
    buf_add_slice(out, slice_str(t->definition));
    buf_addf(out, ",\"throughput\":%u,\"autoscaleMax\":%u,\"scripts\":", t->throughput.manual, t->throughput.autoscale_max);
    client__texts_write(out, t->ids.texts, t->ids.n);
    buf_add_lit(out, ",\"scriptBodies\":");
    client__texts_write(out, t->bodies.texts, t->bodies.n);
    buf_add_byte(out, '}');
}

char *client__template_name(const template *t, size_t number) {
    const char *at = strchr(t->name, '#');
    buf out = buf_init(1024);
    buf_addf(&out, "%.*s%zu%s", (int)(at - t->name), t->name, number, at + 1);
    char *name = mem_text(out.p ? out.p : "", out.n);
    buf_free(&out);
    return name;
}

static tesela_status put_scripts(const template *t, tesela_client *client, const char *database, const char *name, tesela_error *error) {
    tesela_container *k;
    tesela_status status = tesela_container_open(client, database, name, &k, error);
    for (size_t i = 0; status == TESELA_OK && i < t->ids.n; i++) {
        status = tesela_script_put(k, t->ids.texts[i], t->bodies.texts[i], NULL, error);
    }
    tesela_container_close(k);
    return status;
}

tesela_status client__template_create(const template *t, tesela_client *client, const char *database, size_t number, tesela_error *error) {
    char *name = client__template_name(t, number);
    buf definition = buf_init(CLIENT_REQUEST_BYTES_MAX);
    json_walk w;
    slice member, value;
    buf_add_lit(&definition, "{\"id\":");
    json_add_string(&definition, slice_str(name));
    json_enter(slice_str(t->definition), &w);
    while (json_next(&w, &member, &value)) {
        buf_add_byte(&definition, ',');
        buf_add_slice(&definition, member);
        buf_add_byte(&definition, ':');
        buf_add_slice(&definition, value);
    }
    buf_add_byte(&definition, '}');
    buf_add_byte(&definition, 0);
    tesela_status status = tesela_container_create(client, database, definition.p, &t->throughput, NULL, error);
    if (status == TESELA_OK || status == TESELA_CONFLICT) { /* of another process, which may not have added the scripts yet */
        status = put_scripts(t, client, database, name, error);
    }
    buf_free(&definition);
    free(name);
    return status;
}
