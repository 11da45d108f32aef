// errors.mjs — what the service says of a wrong query: a code, where in the text, and a sentence.

export class QueryError extends Error {
  // code: "SC1001", …; a number where the service gives one; undefined where it gives only a sentence. start, end: [start, end) of the text.
  constructor(code, message, start, end) {
    super(message);
    Object.assign(this, { code, start, end });
  }
}

export function fail(code, node, message) {
  throw new QueryError(code, message, node?.start, node?.end);
}
