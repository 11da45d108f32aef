/* A hash ring that grows while it is used. */
#include "example.h"

static bool on_progress(void *unused, const tesela_ring_progress *p) {
    (void)unused;
    fprintf(stderr, "%-8s looked at %llu, moved %llu\n", p->phase, (unsigned long long)p->looked_at, (unsigned long long)p->moved);
    return true;
}

int main(int argc, char **argv) {
    const char *names[] = {"part0", "part1", "part2", "part3"};
    tesela_ring_options options = {.refresh_ms = 100, .request_ms = 200};
    tesela_ring_change_options change = {.progress = on_progress};
    tesela_resolver *ring;
    tesela_container *states;
    uint64_t moved;
    begin(argc, argv, "ring");
    collection("ring", "states");
    for (int i = 0; i < 4; i++) {
        collection("ring", names[i]);
    }
    must(tesela_container_open(client, "ring", "states", &states, &error));
    must(tesela_ring_create(states, "users", "ring", "/userId", names, 3, &options, &error));
    must(tesela_ring_open(client, states, "users", NULL, &ring, &error));
    tesela_client_set_resolver(client, "ring", ring);
    for (int i = 0; i < 200; i++) {
        char item[64];
        snprintf(item, sizeof item, "{\"id\":\"%d\",\"userId\":\"user-%d\"}", i, i);
        must(tesela_database_create_item(client, "ring", item, NULL, NULL, &error));
    }
    must(tesela_ring_change(client, states, "users", names, 4, &change, &moved, &error)); /* others read and write meanwhile */
    printf("moved %llu of 200 items\n", (unsigned long long)moved);
    tesela_container_close(states);
    end("ring", ring);
    return 0;
}
