/* The program tesela: `tesela serve` and the command-line tools. */
#include "tool/tool.h"

int main(int argc, char **argv) {
    return tool_main(argc, argv);
}
