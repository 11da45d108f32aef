/* steer.h — commands that change, or tell of, a running server: `tesela explain`, `split`, `merge`, `events`, `fault`, `keys`. */
#pragma once

int tool_explain(int argc, char **argv);
int tool_split(int argc, char **argv);
int tool_merge(int argc, char **argv);
int tool_events(int argc, char **argv);
int tool_fault(int argc, char **argv);
int tool_keys(int argc, char **argv);
