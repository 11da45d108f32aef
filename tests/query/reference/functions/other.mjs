// Functions without a category.

import { member } from "../values.mjs";

// The number in an item's _rid: bytes 8 to 15, little-endian.
function documentId([item]) {
  const rid = member(item, "_rid");
  return typeof rid === "string" ? Number(Buffer.from(rid.replaceAll("-", "/"), "base64").readBigUInt64LE(8)) : undefined;
}

export const others = [
  ["IIF", 3, 3, ([test, yes, no]) => (test === true ? yes : no), { seesUndefined: true }],
  ["DOCUMENTID", 1, 1, documentId],
];
