// How a query ran and why, in the reader's language. The server sends figures and reasons (src/query/reasons.h); the words are this page's.
import * as format from "../format";
import { counted, text, type TextName } from "../i18n";

export interface Reason {
  id: string;
  name?: string;
  n?: number;
  side?: string;
}

interface Part {
  range: string;
  way: "all" | "index" | "order" | "keys" | "entries" | "nearest";
  condition?: string;
  and?: string[];
  path?: string;
  order?: string;
  backward?: boolean;
  vectors?: number;
  vectorsMissing?: number;
  reason?: Reason;
  items: number;
  indexEntries: number;
  itemsLoaded: number;
  itemsCovered: number;
  itemsMatched: number;
  itemsPassed: number;
}

interface Condition {
  text: string;
  answered: boolean;
  exactly?: boolean;
  namesPartition?: boolean;
  path?: string;
  reason?: Reason;
}

export interface Explained {
  documents?: unknown[];
  rows: number;
  more: boolean;
  requestCharge: number;
  tookMs: number;
  functionCalls?: number;
  functionMs?: number;
  partitionKey: unknown[] | null;
  parts: Part[];
  conditions: Condition[];
  adviceReasons: Reason[];
}

const PARTS_SHOWN = 20;
const milliseconds = (ms: number) => format.duration(ms * 1000);

export function reasonWords(reason: Reason): string {
  const words = text(`why_${reason.id}` as TextName, { name: reason.name ?? "", n: format.count(reason.n ?? 0) });
  return reason.side ? text("whySide", { side: reason.side, why: words }) : words;
}

function headWords(e: Explained): string {
  const head = text("explainedHead", { rows: counted("nRows", e.rows), ru: format.ru(e.requestCharge), time: milliseconds(e.tookMs) });
  const calls = e.functionCalls === undefined ? "" : text("explainedCalls", { calls: counted("nCalls", e.functionCalls), time: milliseconds(e.functionMs ?? 0) });
  return `${head}${calls}${e.more ? text("explainedMore") : ""}`;
}

function foundWords(part: Part): string {
  return text("wayIndex", { condition: part.condition ?? "" }) + (part.and ?? []).map((condition) => text("wayAnd", { condition })).join("");
}

function wayWords(part: Part): string {
  switch (part.way) {
    case "index":
      return foundWords(part);
    case "order":
      return text(part.backward ? "wayOrderBackward" : "wayOrder", { path: part.order ?? "" });
    case "keys":
      return text("wayKeys", { path: part.path ?? "" });
    case "entries":
      return text("wayEntries") + (part.condition ? `: ${foundWords(part)}` : "");
    case "nearest":
      return text("wayNearest", { path: part.path ?? "", n: format.count(part.vectors ?? 0) }) + (part.vectorsMissing ? text("wayNearestMissing", { n: format.count(part.vectorsMissing) }) : "");
    default:
      return part.reason ? reasonWords(part.reason) : "";
  }
}

function workWords(part: Part): string {
  const did: string[] = [];
  if (part.indexEntries) did.push(text("didEntries", { entries: counted("nEntries", part.indexEntries) }));
  if (part.way === "entries") did.push(text("didCount", { items: counted("nItems", part.itemsCovered) }));
  if (part.way !== "entries" || part.itemsLoaded) did.push(text("didLoad", { items: counted("nItems", part.itemsLoaded) }));
  did.push(text("didMatch", { n: format.count(part.itemsMatched) }));
  if (part.itemsPassed) did.push(text("didPass", { n: format.count(part.itemsPassed) }));
  return did.join(", ");
}

function conditionWords(c: Condition): string {
  if (!c.answered) return text("conditionAsked", { why: c.reason ? reasonWords(c.reason) : "" });
  if (c.namesPartition) return text("conditionPartition");
  return text(c.path ? "conditionIndexPath" : "conditionIndex", { path: c.path ?? "" }) + (c.exactly ? "" : text("conditionMaybe"));
}

function PartLine({ part, partition }: { part: Part; partition: unknown[] | null }) {
  const name = partition ? text("explainedKey", { key: format.keyText(JSON.stringify(partition)) }) : text("partition", { id: part.range });
  return (
    <li>
      <strong>
        <bdi>{name}</bdi>
      </strong>
      {part.items > 0 && ` (${counted("nItems", part.items)})`}: {wayWords(part)}; {workWords(part)}.
    </li>
  );
}

export function Explanation({ of }: { of: Explained }) {
  return (
    <section aria-label={text("explanation")} class="explanation">
      <h3>{text("explanation")}</h3>
      <p>{headWords(of)}</p>
      <ul>
        {of.parts.slice(0, PARTS_SHOWN).map((part) => (
          <PartLine key={part.range} part={part} partition={of.partitionKey} />
        ))}
        {of.parts.length > PARTS_SHOWN && <li>{text("explainedOthers", { n: format.count(of.parts.length - PARTS_SHOWN) })}</li>}
        {of.parts.length === 0 && <li>{text("explainedNothing")}</li>}
      </ul>
      {of.conditions.length > 0 && <h3>{text("conditions")}</h3>}
      <ul>
        {of.conditions.map((c, i) => (
          <li key={i}>
            <code>{c.text}</code>: {conditionWords(c)}
          </li>
        ))}
      </ul>
      {of.adviceReasons.length > 0 && <h3>{text("advice")}</h3>}
      <ul>
        {of.adviceReasons.map((reason, i) => (
          <li key={i}>{reasonWords(reason)}</li>
        ))}
      </ul>
    </section>
  );
}
