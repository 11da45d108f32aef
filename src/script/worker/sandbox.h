/* sandbox.h — the sandbox that a script worker enters before it reads its first frame.
 *
 * After sandbox_enter the process can compute, use memory up to a limit, use the sockets and pipes that it has, and exit. It cannot open a
 * file, create a socket, start or signal another process, or regain any of these rights. A system call that is not on the list fails with
 * EPERM; one that only an attacker would make kills the process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Call it first. Ensures that the environment is exactly what the engine needs (re-executes the program if not), closes all descriptors but
 * 0 to 3 and changes to the root folder. */
void sandbox_prepare(char **arguments);

/* Call it last, after the engine is warm and its threads are started. The process may use `memory_bytes` more than it does now. False, with
 * the text of a FAULT in *why, if any part failed: the worker must not run then. */
bool sandbox_enter(size_t memory_bytes, const char **why);
