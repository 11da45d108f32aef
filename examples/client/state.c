/* A resolver's state as JSON: printed, shared through a collection, loaded again. */
#include "example.h"

int main(int argc, char **argv) {
    const char *names[] = {"collection1", "collection2"};
    tesela_resolver *resolver, *loaded;
    tesela_container *states;
    char *state;
    begin(argc, argv, "shared");
    collection("shared", "states");
    must(tesela_hash_resolver_new("/userId", names, 2, &(tesela_hash_options){.virtual_nodes = 64}, &resolver, &error));
    must(tesela_resolver_save(resolver, &state, &error));
    printf("%s\n", state);
    tesela_text_free(state);

    must(tesela_container_open(client, "shared", "states", &states, &error));
    must(tesela_resolver_save_item(resolver, states, "users", &error));
    must(tesela_resolver_load_item(states, "users", NULL, &loaded, &error)); /* in another process */
    tesela_resolver_free(loaded);
    tesela_container_close(states);
    end("shared", resolver);
    return 0;
}
