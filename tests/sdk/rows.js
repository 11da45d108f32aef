// rows.js — batches as the .NET SDK sends and reads them: HybridRow records of the schemas Microsoft.Azure.Cosmos.BatchApi. Written from the
// format's description, apart from the server. Node.js's own modules only.

const kinds = { Create: 0, Patch: 1, Read: 2, Delete: 4, Replace: 5, Upsert: 20 };
const schemas = { segment: 2147473648, record: 2147473649, operation: 2145473648, result: 2145473649 };

const u32 = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
};
const head = (schema) => Buffer.concat([Buffer.from([0x81]), u32(schemas[schema])]);

// Seven bits a byte, the lowest first.
function number(value) {
  const bytes = [];
  for (; value >= 0x80; value = Math.floor(value / 128)) bytes.push((value % 128) | 0x80);
  return Buffer.from([...bytes, value]);
}
const sized = (value) => {
  const bytes = Buffer.isBuffer(value) ? value : Buffer.from(value, "utf8");
  return Buffer.concat([number(bytes.length), bytes]);
};

export function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return ~crc >>> 0;
}

export const segment = Buffer.concat([head("segment"), Buffer.from([1]), u32(10)]);
export const record = (row) => Buffer.concat([head("record"), u32(row.length), u32(crc32(row)), row]);

// An operation as in JSON, with resourceBody as an object, text or bytes.
export function operation({ operationType, partitionKey, id, resourceBody, indexingDirective, ifMatch, ifNoneMatch, minimalReturnPreference, more }) {
  const body = resourceBody === undefined || Buffer.isBuffer(resourceBody) || typeof resourceBody === "string" ? resourceBody : JSON.stringify(resourceBody);
  const variable = [partitionKey, undefined, id, undefined, body];
  const present = variable.reduce((bits, value, i) => bits | (value === undefined ? 0 : 4 << i), 3);
  const sparse = [[indexingDirective, 8], [ifMatch, 9], [ifNoneMatch, 10]].filter(([value]) => value !== undefined);
  return Buffer.concat([
    head("operation"), Buffer.from([present]), u32(kinds[operationType] ?? operationType), u32(2),
    ...variable.filter((value) => value !== undefined).map(sized),
    ...sparse.map(([value, name]) => Buffer.concat([Buffer.from([20, name]), sized(value)])),
    ...(minimalReturnPreference === undefined ? [] : [Buffer.from([minimalReturnPreference ? 3 : 2, 12])]),
    ...(more ? [more] : []),
  ]);
}

export const batch = (operations) => Buffer.concat([segment, ...operations.map((one) => record(operation(one)))]);

// The results of an answer: { statusCode, subStatusCode, eTag, resourceBody, retryAfterMilliseconds, requestCharge }.
export function results(bytes) {
  let at = 0;
  const take = (n) => {
    if (at + n > bytes.length) throw new Error("the rows end too early");
    return bytes.subarray(at, (at += n));
  };
  const expect = (schema) => {
    if (take(1)[0] !== 0x81 || take(4).readUInt32LE() !== schemas[schema]) throw new Error(`not a ${schema}`);
  };
  const takeNumber = () => {
    for (let value = 0, scale = 1; ; scale *= 128) {
      const byte = take(1)[0];
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
  };
  const found = [];
  expect("segment");
  if (take(1)[0] !== 1 || take(4).readUInt32LE() !== 10) throw new Error("not a plain segment");
  while (at < bytes.length) {
    expect("record");
    const n = take(4).readUInt32LE();
    if (take(4).readUInt32LE() !== crc32(bytes.subarray(at, at + n))) throw new Error("wrong checksum");
    const end = at + n;
    expect("result");
    const present = take(1)[0];
    const result = { statusCode: take(4).readInt32LE(), subStatusCode: take(4).readInt32LE() };
    if (present & 4) result.eTag = take(takeNumber()).toString("utf8");
    if (present & 8) result.resourceBody = JSON.parse(take(takeNumber()).toString("utf8"));
    while (at < end) {
      const [type, name] = take(2);
      if (type === 11 && name === 5) result.retryAfterMilliseconds = take(4).readUInt32LE();
      else if (type === 16 && name === 6) result.requestCharge = take(8).readDoubleLE();
      else throw new Error(`sparse field ${name} of type ${type}`);
    }
    if (at !== end) throw new Error("a row is longer than its record");
    found.push(result);
  }
  return found;
}
