// errors.mjs — an error of the service: a code, a location in the text, and a message.

export class QueryError extends Error {
  // code: "SC1001", …; a number if the service gives one; undefined if it gives a message only. start, end: [start, end) in the text.
  constructor(code, message, start, end) {
    super(message);
    Object.assign(this, { code, start, end });
  }
}

export function fail(code, node, message) {
  throw new QueryError(code, message, node?.start, node?.end);
}
