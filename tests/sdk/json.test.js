// Round trips of JSON text: every value is preserved, and the text is byte for byte as expected.

import { assert, suite, refused, key, withoutSystem } from "./harness.js";

suite("json", (t) => {
  let path;
  let count = 0;

  // Creates an item with these members, given as text; returns their text in the answer to a read.
  const echo = async (members) => {
    path ??= await t.containerPath();
    const id = `${++count}`;
    const body = Buffer.concat([Buffer.from(`{"id":"${id}","pk":"a",`), Buffer.from(members), Buffer.from("}")]);
    const made = await t.rest.post(`${path}/docs`, body, { headers: key("a") });
    assert.equal(made.status, 201, made.text);
    const read = await t.rest.get(`${path}/docs/${id}`, { headers: key("a") });
    assert.equal(read.text, made.text);
    const start = `{"id":"${id}","pk":"a",`;
    assert.ok(read.text.startsWith(start), read.text);
    return read.text.slice(start.length, read.text.indexOf(',"_rid":'));
  };

  const same = async (members) => assert.equal(await echo(members), members);
  const becomes = async (members, expected) => assert.equal(await echo(members), expected, members);
  const bad = async (text) => {
    path ??= await t.containerPath();
    refused(await t.rest.post(`${path}/docs`, text, { headers: key("a") }), 400, { text: "The request payload is invalid. Ensure to provide a valid request payload." });
  };

  t.it("keeps integers of 64 bits exactly", async () => {
    for (const number of ["0", "1", "-1", "9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808", "2147483647", "2147483648", "-2147483648", "-2147483649"]) {
      await same(`"n":${number}`);
    }
    await becomes('"n":9223372036854775808', '"n":9223372036854776000');
    await becomes('"n":18446744073709551615', '"n":18446744073709552000');
    await becomes('"n":-9223372036854775809', '"n":-9223372036854776000');
  });

  t.it("writes doubles in the shortest text that reads as the same", async () => {
    for (const number of ["0.1", "0.2", "0.30000000000000004", "1.5", "-1.5", "3.141592653589793", "1e+21", "1.7976931348623157e+308", "5e-324", "2.2250738585072014e-308", "1e-7", "0.000001", "123456789012345680000"]) {
      await same(`"n":${number}`);
    }
    await becomes('"n":1e21', '"n":1e+21');
    await becomes('"n":1E2', '"n":100');
    await becomes('"n":1.0', '"n":1');
    await becomes('"n":-0', '"n":0');
    await becomes('"n":-0.0', '"n":0');
    await becomes('"n":0.1000000000000000055511151231257827', '"n":0.1');
    await becomes('"n":123456789.123456789', '"n":123456789.12345679');
    await becomes('"n":1e-400', '"n":0');
  });

  t.it("keeps the order of keys, and of two the last at the first's place", async () => {
    await same('"z":1,"a":2,"m":{"y":1,"b":2},"0":3,"10":4,"9":5,"":6');
    await becomes('"a":1,"b":2,"a":3', '"a":3,"b":2');
    await becomes('"o":{"x":1,"y":[],"x":{"z":1}}', '"o":{"x":{"z":1},"y":[]}');
    path ??= await t.containerPath();
    const twice = await t.rest.post(`${path}/docs`, '{"id":"first","pk":"b","id":"second","pk":"a"}', { headers: key("a") });
    assert.equal(twice.json.id, "second");
  });

  t.it("keeps any Unicode, in values and in keys", async () => {
    await same('"ñ":"áéíóú ß Ω я 中文 日本語 العربية हिन्दी","emoji":"😀👩‍👩‍👧‍👦🇪🇸","😀":"key"');
    await becomes('"e":"\\u00e1\\ud83d\\ude00\\u4e2d"', '"e":"á😀中"');
    await becomes('"k\\u00e9y":1', '"kéy":1');
    await same('"combining":"e\u0301","line":"\u2028\u2029","bom":"\ufeff","private":"\ue000","last":"\u{10ffff}"');
  });

  t.it("escapes what must be escaped, and nothing else", async () => {
    await same('"s":"\\" \\\\ \\b \\f \\n \\r \\t"');
    await becomes('"s":"\\/ \\u0041 \\u007f"', '"s":"/ A \x7f"');
    const controls = JSON.parse(`{${await echo('"s":"\\u0000\\u0001\\u001f"')}}`);
    assert.equal(controls.s, "\u0000\u0001\u001f");
  });

  t.it("keeps NUL in values and in keys", async () => {
    const back = JSON.parse(`{${await echo('"a\\u0000b":"c\\u0000d","a":1')}}`);
    assert.deepEqual(back, { "a\u0000b": "c\u0000d", a: 1 });
  });

  t.it("makes U+FFFD of lone surrogates", async () => {
    await becomes('"s":"\\ud800"', '"s":"\ufffd"');
    await becomes('"s":"a\\udc00b"', '"s":"a\ufffdb"');
    await becomes('"s":"\\ud800\\ud800\\udc00"', '"s":"\ufffd\u{10000}"');
    await becomes('"\\udfff":1', '"\ufffd":1');
  });

  t.it("keeps every kind of value, empty ones too", async () => {
    await same('"t":true,"f":false,"n":null,"a":[],"o":{},"s":"","aa":[[],[[]],{}],"mixed":[1,"1",null,true,{"a":[{}]}]');
    await becomes('\n\t"a" : [ 1 , 2 ]\r\n , "b" : { } ', '"a":[1,2],"b":{}');
  });

  t.it("takes 128 levels and not 129", async () => {
    const nested = (levels) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
    await same(`"n":${nested(127)}`);
    await bad(`{"id":"deep","pk":"a","n":${nested(128)}}`);
    await same(`"n":${'{"a":'.repeat(127)}1${"}".repeat(127)}`);
    await bad(`{"id":"deep","pk":"a","n":${'{"a":'.repeat(128)}1${"}".repeat(128)}}`);
    await bad(`{"id":"deep","pk":"a","n":${"[".repeat(100_000)}`);
  });

  t.it("refuses what is no JSON, and writes nothing", async () => {
    const texts = [
      "", " ", "{", "}", "null", "1", '"x"', "[]", "true", '{"id":"1","pk":"a"', '{"id":"1","pk":"a"}}', '{"id":"1","pk":"a",}', '{"id":"1" "pk":"a"}', "{'id':'1'}", '{id:"1"}',
      '{"id":"1","pk":"a","v":01}', '{"id":"1","pk":"a","v":1.}', '{"id":"1","pk":"a","v":.5}', '{"id":"1","pk":"a","v":+1}', '{"id":"1","pk":"a","v":1e}', '{"id":"1","pk":"a","v":NaN}',
      '{"id":"1","pk":"a","v":Infinity}', '{"id":"1","pk":"a","v":1e400}', '{"id":"1","pk":"a","v":-1e400}', '{"id":"1","pk":"a","v":tru}', '{"id":"1","pk":"a","v":"\n"}',
      '{"id":"1","pk":"a","v":"\\x"}', '{"id":"1","pk":"a","v":"\\u12"}', '{"id":"1","pk":"a","v":[1,]}', '{"id":"1","pk":"a","v":[1 2]}', '{"id":"1","pk":"a"}x', '{"id":"1","pk":"a","v":1}/* */',
      '{"id":"1","pk":"a","v":0x10}', '{"id":"1","pk":"a",,"v":1}', '{:1}', '{"a"}', '{"a":}', "\ufeff{}x",
    ];
    for (const text of texts) await bad(text);
    const bytes = (...values) => Buffer.concat([Buffer.from('{"id":"1","pk":"a","v":"'), Buffer.from(values), Buffer.from('"}')]);
    for (const values of [[0xff], [0xc0, 0x80], [0xc3], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xe2, 0x82], [0x80]]) await bad(bytes(...values));
    assert.equal((await t.rest.get(`${path}/docs/1`, { headers: key("a") })).json.v, undefined);
  });

  t.it("is the same through the SDK, in feeds and in batches", async () => {
    const container = await t.container();
    const item = { id: "1", pk: "a", z: [0.1, { "ñ/~": "😀" }], a: null, m: -5e-324, "k\u0000": "v\u0000" };
    await container.items.create(item);
    assert.deepEqual(withoutSystem((await container.item("1", "a").read()).resource), item);
    const { resources } = await container.items.readAll().fetchAll();
    assert.deepEqual(resources.map(withoutSystem), [item]);
    const { result } = await container.items.batch([{ operationType: "Create", resourceBody: { ...item, id: "2" } }, { operationType: "Read", id: "2" }], "a");
    assert.deepEqual(withoutSystem(result[1].resourceBody), { ...item, id: "2" });
    assert.deepEqual(Object.keys(result[1].resourceBody).slice(0, 6), Object.keys(item));
  });
});
