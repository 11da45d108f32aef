/* Resolvers that create collections from a template: managed, and spillover. */
#include "example.h"

int main(int argc, char **argv) {
    tesela_template users = {.name = "users-#", .definition = "{\"partitionKey\":{\"paths\":[\"/id\"],\"kind\":\"Hash\",\"version\":2}}"};
    tesela_template logs = {.name = "logs-#", .definition = users.definition};
    tesela_spillover_options hundred = {.items = 100, .check_every = 50};
    tesela_resolver *managed, *spillover;
    tesela_cursor *cursor;
    begin(argc, argv, "made");

    /* Three collections of one template, and a hash ring over them. */
    must(tesela_managed_resolver_new(client, "made", "/userId", &users, 3, NULL, &managed, &error));

    /* A new collection as the last one fills. */
    must(tesela_spillover_resolver_new(client, "made", &logs, &hundred, &spillover, &error));
    tesela_client_set_resolver(client, "made", spillover);
    for (int i = 0; i < 250; i++) {
        char item[32];
        snprintf(item, sizeof item, "{\"id\":\"%d\"}", i);
        must(tesela_database_create_item(client, "made", item, NULL, NULL, &error));
    }
    must(tesela_containers(client, "made", &cursor, &error));
    print(cursor);
    tesela_resolver_free(managed);
    end("made", spillover);
    return 0;
}
