#include "tool/reset.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/folder.h"

static struct { const char *data, *yes, *help; } given;

static const tool_option options[] = {
    {"data", "DIR", "the data folder; there is no default", &given.data, false},
    {"yes", NULL, "do not ask", &given.yes, false},
    {"help", NULL, "this text", &given.help, false},
};

enum { OPTIONS = sizeof options / sizeof *options };

/* Asks for confirmation at a terminal; without one --yes is required. */
static bool is_meant(void) {
    char answer[16] = "";
    if (given.yes) {
        return true;
    }
    if (!isatty(STDIN_FILENO)) {
        fprintf(stderr, "tesela reset: this deletes all databases in %s. Say --yes if that is meant.\n", given.data);
        return false;
    }
    printf("All databases in %s will be deleted. Type yes to go on: ", given.data);
    fflush(stdout);
    return fgets(answer, sizeof answer, stdin) && strcmp(answer, "yes\n") == 0;
}

static int run(int argc, char **argv) {
    char why[1024];
    if (!tool_options_read(options, OPTIONS, argc, argv, "reset")) {
        return 2;
    }
    if (given.help) {
        tool_help(&tool_reset);
        return 0;
    }
    if (!given.data) {
        fprintf(stderr, "tesela reset: --data says which folder.\n");
        return 2;
    }
    if (!is_meant()) {
        return 2;
    }
    if (store_folder_reset(given.data, why, sizeof why) != OK) {
        fprintf(stderr, "tesela: %s.\n", why);
        return 1;
    }
    printf("%s is empty; its certificate is kept.\n", given.data);
    return 0;
}

const tool_command tool_reset = {
    .name = "reset",
    .summary = "delete everything that a data folder holds",
    .usage = "--data DIR [--yes]",
    .about = "Deletes all databases of a data folder, so that the next 'tesela serve' begins with none. The self-signed certificate stays, "
             "since\n"
             "clients may trust it. A folder that is not tesela's, or that a server has open, is not touched.",
    .options = options,
    .options_n = OPTIONS,
    .examples = "tesela reset --data ./data\n"
                "tesela reset --data /var/lib/tesela --yes   # in a script",
    .run = run,
};
