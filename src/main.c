/* tesela — one program: `tesela serve`, and the tools that go with it. */
#include "tool/tool.h"

int main(int argc, char **argv) {
    return tool_main(argc, argv);
}
