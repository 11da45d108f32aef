/* serve.h — `tesela serve`: opens the data folder, listens, runs until told to stop. */
#pragma once

int tool_serve(int argc, char **argv);
