/* A hash resolver over two collections: creates and queries go to the database. */
#include "example.h"

int main(int argc, char **argv) {
    const char *names[] = {"collection1", "collection2"};
    tesela_resolver *resolver;
    tesela_cursor *cursor;
    begin(argc, argv, "social");
    collection("social", names[0]);
    collection("social", names[1]);

    /* A resolver by the property userId, registered for the database. */
    must(tesela_hash_resolver_new("/userId", names, 2, NULL, &resolver, &error));
    tesela_client_set_resolver(client, "social", resolver);

    /* Each create goes to the collection that the hash of its userId says. */
    must(tesela_database_create_item(client, "social",
                                     "{\"id\":\"J1\",\"userId\":\"@John\",\"region\":\"UnitedStatesEast\",\"status\":\"Available\"}", NULL,
                                     NULL, &error));
    must(tesela_database_create_item(
        client, "social", "{\"id\":\"U4\",\"userId\":\"@Ryan\",\"region\":\"AsiaPacific\",\"status\":\"AppearAway\"}", NULL, NULL, &error));

    /* A query with a key asks one collection. */
    must(tesela_database_query(client, "social", "\"@John\"", "SELECT c.id, c.userId FROM c WHERE c.userId = '@John'", NULL, NULL, &cursor,
                               &error));
    print(cursor);

    /* A query without a key asks all of them, one after the other, and gives one result. */
    must(tesela_database_query(client, "social", NULL, "SELECT c.id, c.status FROM c WHERE c.status = 'Available'", NULL, NULL, &cursor,
                               &error));
    print(cursor);
    end("social", resolver);
    return 0;
}
