// Items: a query, its rows page by page, what it cost and why; each row can be opened, items can be added, uploaded and downloaded.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { adminPost, ApiError, queryItems, type Answer, type Item, type Json, type Page } from "../../api";
import * as format from "../../format";
import { createItem, keyFromText, stepsOf, withoutSystem } from "../../items";
import { text } from "../../i18n";
import { Notice, Problem, problemText, Segments } from "../../parts/common";
import { Editor } from "../../parts/editor";
import { EstimateNote, useEstimate } from "../../parts/estimate";
import { Explanation, type Explained } from "../../parts/explain";
import { download, JsonView, Rows } from "../../parts/rows";
import { canWriteItems, session } from "../../state";
import type { ContainerProperties } from "./explorer";
import { ForeignNote } from "./foreign";
import { ItemDialog } from "./item";

interface Result {
  pages: Json[][];
  continuation: string | null;
  cut: boolean; // there are more rows than one page over all partitions may have
  charge: number;
  ms: number;
  explanation: Explained | null;
}

// A gateway answers these for one partition key only; over all of them the server runs one page by itself.
const needsWhole = (query: string) => /\b(order\s+by|group\s+by|distinct|top|offset|limit|count|sum|avg|min|max)\b/i.test(query.replace(/"(\\.|[^"])*"|'(\\.|[^'])*'/g, ""));

const ROWS_WHOLE = 10_000;

function useQuery({ place }: ContainerProperties) {
  const result = useSignal<Result | null>(null);
  const problem = useSignal<unknown>(undefined);
  const busy = useSignal(false);
  const asked = useRef({ query: "", key: undefined as Json[] | undefined, limit: 100 });

  const explain = (documents: boolean) =>
    adminPost<Explained>("explain", {
      ...place,
      query: asked.current.query,
      maxItemCount: documents ? ROWS_WHOLE : asked.current.limit,
      ...(documents ? { documents } : {}),
      ...(asked.current.key ? { partitionKey: asked.current.key } : {}),
    });

  const page = (continuation: string | null): Promise<Answer<Page>> =>
    queryItems(place.database, place.container, { query: asked.current.query, parameters: [] }, { limit: asked.current.limit, continuation, key: asked.current.key });

  async function whole(): Promise<Result> {
    const e = await explain(true);
    return { pages: split((e.documents ?? []) as Json[], asked.current.limit), continuation: null, cut: e.more, charge: e.requestCharge, ms: e.tookMs, explanation: e };
  }

  async function first(): Promise<Result> {
    const hasAdmin = session.value!.overview !== null;
    if (hasAdmin && !asked.current.key && needsWhole(asked.current.query)) return whole();
    try {
      const found = await page(null);
      return { pages: [found.body.Documents], continuation: found.continuation, cut: false, charge: found.charge, ms: found.ms, explanation: null };
    } catch (why) {
      if (hasAdmin && why instanceof ApiError && why.status === 400) return whole();
      throw why;
    }
  }

  async function attempt(work: () => Promise<Result>) {
    busy.value = true;
    problem.value = undefined;
    try {
      result.value = await work();
    } catch (why) {
      problem.value = why;
    }
    busy.value = false;
  }

  return {
    result,
    problem,
    busy,
    run: (query: string, key: Json[] | undefined, limit: number) => {
      asked.current = { query, key, limit };
      return attempt(first);
    },
    next: () =>
      attempt(async () => {
        const before = result.value!;
        const found = await page(before.continuation);
        return { ...before, pages: [...before.pages, found.body.Documents], continuation: found.continuation, charge: before.charge + found.charge, ms: found.ms };
      }),
    explain: () => attempt(async () => ({ ...result.value!, explanation: await explain(false) })),
  };
}

function split(rows: Json[], n: number): Json[][] {
  const pages = Array.from({ length: Math.ceil(rows.length / n) }, (_, i) => rows.slice(i * n, (i + 1) * n));
  return pages.length ? pages : [[]];
}

// ---- results ----

interface ResultProperties {
  result: Result;
  busy: boolean;
  next: () => Promise<void>;
  explain: () => Promise<void>;
  onOpen: (item: Item) => void;
}

function Results({ result, busy, next, explain, onOpen }: ResultProperties) {
  const at = useSignal(result.pages.length - 1);
  const shape = useSignal<"table" | "json">("table");
  const page = Math.min(at.value, result.pages.length - 1);
  const rows = result.pages[page]!;
  const before = result.pages.slice(0, page).reduce((sum, p) => sum + p.length, 0);
  const total = result.pages.reduce((sum, p) => sum + p.length, 0);
  const forward = async () => {
    if (page === result.pages.length - 1) await next();
    at.value = page + 1;
  };
  const summary = text("resultSummary", { from: format.count(rows.length ? before + 1 : 0), to: format.count(before + rows.length), total: `${format.count(total)}${result.continuation || result.cut ? "+" : ""}`, ru: format.ru(result.charge), time: format.duration(result.ms * 1000) });
  return (
    <>
      <div class="buttons results">
        <span role="status" class="summary">
          {summary}
        </span>
        <span class="space" />
        <Segments label={text("resultAs")} value={shape.value} choices={[["table", text("asTable")], ["json", "JSON"]]} onChoose={(s) => (shape.value = s)} />
        {result.explanation === null && session.value!.overview && (
          <button type="button" class="quiet" disabled={busy} onClick={() => void explain()}>
            {text("explain")}
          </button>
        )}
        <button type="button" class="quiet" onClick={() => download("items.json", JSON.stringify(result.pages.flat(), null, 2))}>
          {text("download")}
        </button>
      </div>
      {result.cut && <Notice kind="warning">{text("resultCut", { n: format.count(ROWS_WHOLE) })}</Notice>}
      {shape.value === "table" ? <Rows rows={rows} onOpen={onOpen} /> : <JsonView value={rows} />}
      <div class="buttons">
        <button type="button" class="quiet" disabled={page === 0} onClick={() => (at.value = page - 1)}>
          {text("previousPage")}
        </button>
        <button type="button" class="quiet" disabled={busy || (page === result.pages.length - 1 && !result.continuation)} onClick={() => void forward()}>
          {text("nextPage")}
        </button>
      </div>
      {result.explanation && <Explanation of={result.explanation} />}
    </>
  );
}

// ---- upload ----

// A JSON array, one object, or an object a line.
function itemsOf(content: string): Item[] {
  try {
    const value = JSON.parse(content) as Json;
    return (Array.isArray(value) ? value : [value]) as Item[];
  } catch (why) {
    const lines = content.split("\n").filter((line) => line.trim());
    if (lines.length < 2) throw why;
    return lines.map((line) => JSON.parse(line) as Item);
  }
}

function Upload({ place, collection }: ContainerProperties) {
  const done = useSignal<{ n: number; of: number } | null>(null);
  const problem = useSignal("");
  const input = useRef<HTMLInputElement>(null);
  async function send(files: FileList | null) {
    problem.value = "";
    try {
      const items = itemsOf(await files![0]!.text());
      done.value = { n: 0, of: items.length };
      for (const [i, item] of items.entries()) {
        await sendOne(item);
        done.value = { n: i + 1, of: items.length };
      }
    } catch (why) {
      problem.value = text("uploadFailed", { n: (done.value?.n ?? 0) + 1, why: problemText(why) });
    }
    input.current!.value = "";
  }
  // Waits as long as the server asks for when throughput is short.
  async function sendOne(item: Item) {
    for (;;) {
      try {
        return await createItem(place, collection, withoutSystem(item), true);
      } catch (why) {
        if (!(why instanceof ApiError) || why.status !== 429) throw why;
        await new Promise((over) => setTimeout(over, why.retryMs));
      }
    }
  }
  return (
    <>
      <input ref={input} type="file" accept=".json,.jsonl,application/json" class="unseen" tabIndex={-1} aria-label={text("upload")} onChange={(e) => void send(e.currentTarget.files)} />
      <button type="button" class="quiet" onClick={() => input.current!.click()}>
        {text("upload")}
      </button>
      {done.value && !problem.value && (
        <span role="status">
          {done.value.n < done.value.of && <progress value={done.value.n} max={done.value.of} aria-label={text("upload")} />} {text("uploaded", { n: format.count(done.value.n), of: format.count(done.value.of) })}
        </span>
      )}
      {problem.value && <Notice kind="error">{problem.value}</Notice>}
    </>
  );
}

export function Items(properties: ContainerProperties) {
  const { place, collection } = properties;
  const query = useSignal("SELECT * FROM c");
  const key = useSignal("");
  const limit = useSignal(100);
  const open = useSignal<Item | "new" | null>(null);
  const seen = useRef(new Set<string>(["id", ...(collection.partitionKey?.paths ?? []).map((path) => stepsOf(path)[0]!)]));
  const { result, problem, busy, run, next, explain } = useQuery(properties);
  const estimate = useEstimate(place, query.value, keyFromText(key.value), limit.value);
  const start = () => void run(query.value, keyFromText(key.value), limit.value);
  for (const row of result.value?.pages[0]?.slice(0, 50) ?? []) for (const name of row && typeof row === "object" ? Object.keys(row) : []) seen.current.add(name);
  return (
    <section class="panel" aria-label={text("items")}>
      <ForeignNote />
      <Editor language="sql" label={text("query")} start={query.value} onChange={(v) => (query.value = v)} onRun={start} names={() => [...seen.current]} />
      <div class="buttons">
        <button type="button" onClick={start} disabled={busy.value} title="Ctrl+Enter">
          {text("run")}
        </button>
        <label class="line">
          {text("partitionKeyValue")}
          <input value={key.value} placeholder={text("all")} onInput={(e) => (key.value = e.currentTarget.value)} />
        </label>
        <label class="line">
          {text("pageSize")}
          <select value={limit.value} onChange={(e) => (limit.value = Number(e.currentTarget.value))}>
            {[20, 100, 500, 1000].map((n) => (
              <option key={n} value={n}>
                {n}
              </option>
            ))}
          </select>
        </label>
        <span class="space" />
        {canWriteItems.value && (
          <>
            <button type="button" class="quiet" onClick={() => (open.value = "new")}>
              {text("newItem")}
            </button>
            <Upload {...properties} />
          </>
        )}
      </div>
      <EstimateNote of={estimate} />
      <Problem of={problem.value} />
      {busy.value && !result.value && <p class="about">{text("loading")}</p>}
      {result.value && <Results result={result.value} busy={busy.value} next={next} explain={explain} onOpen={(item) => (open.value = item)} />}
      {open.value && <ItemDialog place={place} collection={collection} item={open.value === "new" ? null : open.value} onClose={() => (open.value = null)} onChanged={() => result.value && start()} />}
    </section>
  );
}
