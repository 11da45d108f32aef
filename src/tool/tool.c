#include "tool/tool.h"

#include <stdio.h>
#include <string.h>

#include "tool/reset.h"
#include "tool/serve.h"
#include "tool/steer.h"

static const tool_command *const commands[] = {&tool_serve,  &tool_top,    &tool_explain, &tool_split,   &tool_merge,
                                               &tool_events, &tool_fault,  &tool_keys,    &tool_inspect, &tool_advise,
                                               &tool_export, &tool_import, &tool_copy,    &tool_rekey,   &tool_reset};

enum { COMMANDS = sizeof commands / sizeof *commands };

static void help(void) {
    printf("tesela " TESELA_VERSION " — a database that behaves as Azure Cosmos DB does, on your own machine\n\n"
           "usage: tesela COMMAND [options]\n\n");
    for (size_t i = 0; i < COMMANDS; i++) {
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    }
    printf("\n'tesela COMMAND --help' tells more. For example:\n\n"
           "  tesela serve --data ./data            # http and https on localhost:8081, the emulator's key\n"
           "  tesela serve --data /tmp/t --sql-port 0 --durability relaxed   # for a test suite\n"
           "  tesela top                            # what it does, second by second\n"
           "  tesela fault --status 429 --count 10  # the next ten requests are throttled\n");
}

static const tool_command *find(const char *name) {
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i]->name) == 0) {
            return commands[i];
        }
    }
    fprintf(stderr, "tesela: unknown command '%s'. 'tesela --help' lists them.\n", name);
    return NULL;
}

static int print_man(void) {
    buf page = buf_init(BUF_NO_LIMIT);
    tool_man(&page, commands, COMMANDS);
    fwrite(page.p, 1, page.n, stdout);
    buf_free(&page);
    return 0;
}

/* `tesela help`, `tesela help COMMAND`, and `tesela help --man`, from which the build makes tesela.1. */
static int help_about(const char *word) {
    if (word && strcmp(word, "--man") == 0) {
        return print_man();
    }
    const tool_command *c = word ? find(word) : NULL;
    if (c) {
        tool_help(c);
    } else if (!word) {
        help();
    }
    return c || !word ? 0 : 2;
}

int tool_main(int argc, char **argv) {
    if (argc < 2) {
        help();
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        return help_about(argc > 2 ? argv[2] : NULL);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("tesela " TESELA_VERSION "\n");
        return 0;
    }
    const tool_command *c = find(argv[1]);
    return c ? c->run(argc - 1, argv + 1) : 2;
}
