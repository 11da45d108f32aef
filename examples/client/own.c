/* A resolver of one's own: its key is made of two properties, and users of one region are together on the ring of another resolver. */
#include "example.h"
#include <string.h>

static tesela_status key_of(void *ring, const char *item, tesela_texts *key, tesela_error *e) {
    char region[50] = "", kind[50] = "", both[104];
    const char *at = strstr(item, "\"region\":\""), *then = strstr(item, "\"kind\":\"");
    (void)ring, (void)e, sscanf(at ? at + 10 : "", "%49[^\"]", region), sscanf(then ? then + 8 : "", "%49[^\"]", kind);
    snprintf(both, sizeof both, "\"%s/%s\"", region, kind);
    return tesela_texts_add(key, both), TESELA_OK;
}

static tesela_status for_create(void *ring, const char *key, tesela_texts *names, tesela_error *e) {
    return tesela_resolver_for_create(ring, key, names, e);
}

static tesela_status for_read(void *ring, const char *key, tesela_texts *names, tesela_error *e) {
    return tesela_resolver_for_read(ring, key, names, e);
}

int main(int argc, char **argv) {
    const char *names[] = {"places0", "places1"};
    tesela_resolver *ring, *own;
    begin(argc, argv, "places");
    collection("places", names[0]), collection("places", names[1]);
    must(tesela_hash_resolver_new("/id", names, 2, NULL, &ring, &error));
    must(tesela_resolver_new(&(tesela_resolver_functions){key_of, for_create, for_read, NULL}, ring, &own, &error));
    tesela_client_set_resolver(client, "places", own);
    must(tesela_database_create_item(client, "places", "{\"id\":\"1\",\"region\":\"east\",\"kind\":\"bar\"}", NULL, NULL, &error));
    tesela_cursor *cursor;
    must(tesela_database_query(client, "places", "\"east/bar\"", "SELECT c.id, c.kind FROM c", NULL, NULL, &cursor, &error));
    print(cursor);
    end("places", own);
    tesela_resolver_free(ring);
    return 0;
}
