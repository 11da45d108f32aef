/* example.h — what the examples share: a client of the endpoint in argv[1] (http://localhost:8081), a database of their own, and errors. */
#include <stdio.h>
#include <stdlib.h>
#include <tesela/tesela.h>

#define KEY "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

static tesela_error error;
static tesela_client *client;

/* Ends the program if a call fails. */
#define must(call)                                                                                                                         \
    do {                                                                                                                                   \
        if ((call) != TESELA_OK) {                                                                                                         \
            fprintf(stderr, "%s\n  %s: %s\n", #call, tesela_status_text(error.status), error.message);                                     \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

static inline void begin(int argc, char **argv, const char *database) {
    tesela_client_options options = {.endpoint = argc > 1 ? argv[1] : "http://localhost:8081", .key = KEY};
    must(tesela_client_open(&options, &client, &error));
    tesela_database_delete(client, database, NULL, NULL);
    must(tesela_database_create(client, database, NULL, NULL, &error));
}

static inline void collection(const char *database, const char *name) {
    char definition[256];
    snprintf(definition, sizeof definition, "{\"id\":\"%s\",\"partitionKey\":{\"paths\":[\"/id\"],\"kind\":\"Hash\",\"version\":2}}", name);
    must(tesela_container_create(client, database, definition, NULL, NULL, &error));
}

/* Prints all rows of a cursor and closes it. */
static inline void print(tesela_cursor *cursor) {
    const char *row;
    while (tesela_cursor_next(cursor, &row, NULL, &error) == TESELA_OK) {
        printf("%.100s\n", row);
    }
    tesela_cursor_close(cursor);
}

static inline void end(const char *database, tesela_resolver *resolver) {
    tesela_client_set_resolver(client, database, NULL);
    tesela_resolver_free(resolver);
    must(tesela_database_delete(client, database, NULL, &error));
    tesela_client_close(client);
}
