/* Range and lookup resolvers, and a chain of both: events by date, users by region. */
#include "example.h"

int main(int argc, char **argv) {
    tesela_key_range halves[] = {{"\"2015-04-01\"", "\"2015-04-14\"", "early"}, {"\"2015-04-15\"", "\"2015-04-30\"", "late"}};
    tesela_key_range regions[] = {
        {"\"Norway\"", NULL, "scandinavia"}, {"\"Denmark\"", NULL, "scandinavia"}, {"\"Sweden\"", NULL, "scandinavia"}};
    const char *rest[] = {"rest0", "rest1"}, *north[] = {"north0"};
    tesela_resolver *events, *first, *in_north, *in_rest, *users;
    tesela_cursor *cursor;
    begin(argc, argv, "telemetry");
    collection("telemetry", "early");
    collection("telemetry", "late");
    must(tesela_range_resolver_new("/eventTime", halves, 2, &events, &error));
    tesela_client_set_resolver(client, "telemetry", events);
    must(tesela_database_create_item(client, "telemetry", "{\"id\":\"1\",\"eventTime\":\"2015-04-03\"}", NULL, NULL, &error));
    must(tesela_database_create_item(client, "telemetry", "{\"id\":\"2\",\"eventTime\":\"2015-04-20\"}", NULL, NULL, &error));

    /* A range of keys finds every collection that it touches. */
    must(tesela_database_query(client, "telemetry", "{\"min\":\"2015-04-10\",\"max\":\"2015-04-16\"}", "SELECT c.id, c.eventTime FROM c",
                               NULL, NULL, &cursor, &error));
    print(cursor);

    /* A lookup by region, and within each region a hash ring by user. */
    must(tesela_lookup_resolver_new("/country", regions, 3, "elsewhere", &first, &error));
    must(tesela_hash_resolver_new("/userId", north, 1, NULL, &in_north, &error));
    must(tesela_hash_resolver_new("/userId", rest, 2, NULL, &in_rest, &error));
    tesela_link links[] = {{"scandinavia", in_north}, {"elsewhere", in_rest}};
    must(tesela_chained_resolver_new(first, links, 2, &users, &error));
    tesela_texts *names = tesela_texts_new();
    must(tesela_resolver_for_create(users, "[\"Sweden\",\"@Eva\"]", names, &error));
    printf("@Eva is in %s\n", tesela_texts_get(names, 0));
    tesela_texts_free(names);
    tesela_resolver_free(users);
    end("telemetry", events);
    return 0;
}
