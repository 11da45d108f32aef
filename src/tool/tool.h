/* tool.h — the command line: one table of commands, each with its own file. */
#pragma once

int tool_main(int argc, char **argv);
