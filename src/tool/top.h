/* top.h — `tesela top`: containers and ranges of a running server, second by second. */
#pragma once

int tool_top(int argc, char **argv);
