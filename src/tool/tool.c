#include "tool/tool.h"

#include <stdio.h>
#include <string.h>

#include "tool/serve.h"
#include "tool/steer.h"
#include "tool/top.h"

typedef struct command {
    const char *name;
    const char *help;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
    {"serve", "serve a data folder", tool_serve},
    {"top", "watch the containers and ranges of a running server", tool_top},
    {"explain", "what a query does, why, and what would help", tool_explain},
    {"split", "split a range by hand", tool_split},
    {"merge", "merge two neighbouring ranges by hand", tool_merge},
    {"events", "list splits and merges, and why", tool_events},
    {"fault", "make requests fail or wait, to test clients", tool_fault},
    {"keys", "list a running server's keys, or make another", tool_keys},
};

static void help(void) {
    printf("tesela " TESELA_VERSION " — a database that behaves as Azure Cosmos DB does, on your own machine\n\n"
           "usage: tesela COMMAND [options]\n\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        printf("  %-10s %s\n", commands[i].name, commands[i].help);
    }
    printf("\n'tesela COMMAND --help' tells more. For example:\n\n"
           "  tesela serve --data ./data            # http and https on localhost:8081, the emulator's key\n"
           "  tesela serve --data /tmp/t --sql-port 0 --durability relaxed   # for a test suite\n"
           "  tesela top                            # what it does, second by second\n"
           "  tesela fault --status 429 --count 10  # the next ten requests are throttled\n");
}

int tool_main(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        help();
        return argc < 2 ? 2 : 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("tesela " TESELA_VERSION "\n");
        return 0;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "tesela: unknown command '%s'. 'tesela --help' lists them.\n", argv[1]);
    return 2;
}
