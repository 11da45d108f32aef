// Tests of a server, for all suites that start one.

import { it } from "node:test";

// Defines a test of a server (a function that gives it, since it starts later). If the test fails, the message includes what the server wrote to
// standard error meanwhile.
export function itOn(serverOf, name, test, options = {}) {
  it(name, options, async () => {
    const server = serverOf();
    const from = server.stderr.length;
    try {
      await test();
    } catch (error) {
      const said = server.stderr.slice(from).trimEnd();
      const gone = server.child.exitCode ?? server.child.signalCode;
      if (gone !== null) error.message += `\nThe server is gone (${gone}).`;
      if (said) error.message += `\nThe server said:\n${said}`;
      throw error;
    }
  });
}
