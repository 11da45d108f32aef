// The portal's texts: all in both languages, with the same places; each one used, each one that the pages or the server name there.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";

const root = new URL("../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");

function textsOf(language) {
  const source = read(`portal/src/texts/${language}.ts`);
  const body = source.slice(source.indexOf("= {") + 2, source.lastIndexOf("}") + 1);
  return new Function(`return ${body}`)();
}

function sources(folder = "portal/src/") {
  return readdirSync(new URL(folder, root), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? (entry.name === "texts" ? [] : sources(`${folder}${entry.name}/`)) : /\.tsx?$/.test(entry.name) ? [read(folder + entry.name)] : [],
  );
}

const en = textsOf("en"), es = textsOf("es");
const code = sources().join("\n");
const places = (text) => [...text.matchAll(/\{\w+\}/g)].map(([place]) => place);

// Names that are put together in the code, and where their other half comes from.
const reasons = [...read("src/query/reasons.h").matchAll(/^ {4}X\(\w+, "([^"]+)"/gm)].map(([, id]) => id);
const events = [...read("docs/admin.md").match(/reason \(([^)]+)\)/)[1].matchAll(/`([^`]+)`/g)].map(([, id]) => id);
const operations = [...read("src/throughput/meter.c").match(/names\[METER_WORKS\] = \{([^}]+)\}/)[1].matchAll(/"(\w+)"/g)].map(([, id]) => id);
const composed = { why_: reasons, reason_: events, op_: operations };

describe("the portal's texts", () => {
  it("are the same in both languages, with the same places", () => {
    assert.ok(Object.keys(en).length > 300);
    assert.deepEqual(Object.keys(es).sort(), Object.keys(en).sort());
    for (const name of Object.keys(en)) assert.deepEqual(new Set(places(es[name])), new Set(places(en[name])), name);
    for (const name of Object.keys(en)) assert.equal(es[name].split("|").length, en[name].split("|").length, name);
  });

  it("have no text twice, and none that is not translated", () => {
    const same = Object.keys(en).filter((name) => en[name] === es[name] && /[a-z]{3}/.test(en[name].replace(/\{\w+\}|RU\/s/g, "")));
    assert.deepEqual(same, ["title", "manual", "scripts"]);
  });

  it("have a text for each reason, event and operation of the server", () => {
    assert.ok(reasons.length > 30 && events.length === 5 && operations.length === 7, `${reasons.length} ${events.length} ${operations.length}`);
    for (const [prefix, ids] of Object.entries(composed)) {
      const known = Object.keys(en).filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
      assert.deepEqual(known.sort(), [...ids].sort(), prefix);
    }
  });

  it("are all used, and nothing else is", () => {
    const named = new Set([...code.matchAll(/"([\w-]+)"/g)].map(([, name]) => name).concat([...code.matchAll(/(?:text|counted)\((\w+) as TextName/g)].map(([, name]) => name)));
    const unused = Object.keys(en).filter((name) => !named.has(name) && !Object.keys(composed).some((prefix) => name.startsWith(prefix)) && !["sprocs", "triggers", "udfs"].includes(name));
    assert.deepEqual(unused, []);
    for (const [, name] of code.matchAll(/\b(?:text|counted)\("([\w-]+)"/g)) assert.ok(name in en, name);
  });

  // Words between tags, or in labels, that do not come from a text.
  it("are the only words of the pages", () => {
    const words = [...code.matchAll(/>\s*([A-Za-z][a-z]+(?: [a-z]+)*)\s*<\//g)].map(([, word]) => word);
    const labels = [...code.matchAll(/(?:aria-label|title|placeholder|label)="([^"]*[a-z]{3}[^"]*)"/g)].map(([, label]) => label);
    assert.deepEqual([...new Set([...words, ...labels])].sort(), ["Ctrl+Enter", "English", "Post", "Pre", "tesela"]);
  });
});
