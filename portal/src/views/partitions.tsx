// Partitions: whether the key spreads the data and the load, at a glance; then each tile, the largest keys, and what was split and why.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { admin } from "../api";
import * as format from "../format";
import { text, type TextName } from "../i18n";
import { widthOf, type Container, type HotKeys, type Range, type Reshape } from "../model";
import { Fact, Notice, Panel, Problem, Segments, useRead } from "../parts/common";
import { Mosaic, valueOf, type Metric } from "../parts/mosaic";
import { Spark } from "../parts/spark";
import { address, container, live, ranges, session } from "../state";

const UNEVEN = 2.5; // times the average
const NEAR_LIMIT = 0.7;
const LEAST_RU = 0.05; // RU/s of a key that is shown among the hottest
const SIZES_MS = 10_000; // sizes of keys are read so often while the view is open

// ---- the verdict ----

function storageVerdict(c: Container, list: Range[]): { kind: "good" | "warning" | "plain"; words: string } {
  const total = list.reduce((sum, r) => sum + valueOf(r, "storage"), 0);
  if (!c.items) return { kind: "plain", words: text("empty") };
  if (list.length < 2) return { kind: "plain", words: text("onePartition", { bytes: format.bytes(total), items: format.count(c.items) }) };
  const worst = list.reduce((a, b) => (valueOf(b, "storage") / widthOf(b) > valueOf(a, "storage") / widthOf(a) ? b : a));
  const part = valueOf(worst, "storage") / total;
  const times = part / widthOf(worst);
  const few = c.logicalPartitions < list.length ? " " + text("fewKeys", { keys: format.count(c.logicalPartitions), partitions: list.length }) : "";
  return times > UNEVEN || part > 0.6
    ? { kind: "warning", words: text("uneven", { id: worst.id, part: format.percent(part), width: format.percent(widthOf(worst)) }) + few }
    : { kind: "good", words: text("even", { times: format.decimal(times, 1) }) };
}

function heatVerdict(list: Range[]): { kind: "good" | "warning" | "plain"; words: string } {
  const total = list.reduce((sum, r) => sum + r.ruPerSecond, 0);
  if (!total) return { kind: "plain", words: text("idle") };
  const worst = list.reduce((a, b) => (b.ruPerSecond > a.ruPerSecond ? b : a));
  const part = worst.ruPerSecond / total;
  const times = part * list.length;
  return list.length > 1 && times > UNEVEN
    ? { kind: "warning", words: text("heatUneven", { id: worst.id, part: format.percent(part) }) }
    : { kind: "good", words: text("heatEven", { times: format.decimal(times, 1) }) };
}

// ---- one tile ----

function Keys({ title, rows }: { title: string; rows: [string, string][] }) {
  return (
    <div>
      <h3>{title}</h3>
      {rows.length === 0 ? (
        <p class="about">{text("none")}</p>
      ) : (
        <table class="keys">
          <tbody>
            {rows.map(([key, value]) => (
              <tr key={key}>
                <th scope="row">
                  <bdi>{format.keyText(key)}</bdi>
                </th>
                <td>{value}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

interface History {
  ru: number[];
  throttled: number[];
}

function TileDetails({ range }: { range: Range }) {
  const { database, container } = address.value;
  const limit = session.value!.overview!.limits.partitionBytes;
  const hot = useRead(() => admin<HotKeys>("hotkeys", { database, container, range: range.id }), [database, container, range.id]);
  const history = useRead(() => admin<History>("history", { database, container, range: range.id, seconds: 600 }), [database, container, range.id]);
  return (
    <Panel title={text("partition", { id: range.id })} about={text("fillOfLimit", { part: format.percent(range.bytes / limit, 1), limit: format.bytes(limit) })}>
      <dl class="facts">
        <Fact name={text("range")}>
          <code>
            {range.min.slice(0, 8) || "00"} – {range.max.slice(0, 8)}
          </code>
        </Fact>
        <Fact name={text("parents")}>{range.parents.join(", ") || "–"}</Fact>
        <Fact name={text("items")}>{format.count(range.items)}</Fact>
        <Fact name={text("logicalPartitions")}>{format.count(range.logicalPartitions)}</Fact>
        <Fact name={text("storage")}>{format.bytes(range.bytes)}</Fact>
        <Fact name={text("index")}>{format.bytes(range.indexBytes)}</Fact>
        <Fact name={text("consumed")}>{format.ruRate(range.ruPerSecond)}</Fact>
        <Fact name={text("share")}>{range.shareRuPerSecond === null ? text("unlimited") : format.ruRate(range.shareRuPerSecond)}</Fact>
        <Fact name={text("throttled")}>{text("perSecond", { n: format.count(range.throttledPerSecond) })}</Fact>
        <Fact name={text("latency")}>
          {text("latencyValue", { average: format.duration(range.latencyAverageUs), max: format.duration(range.latencyMaxUs) })}
        </Fact>
      </dl>
      <Problem of={hot.problem.value ?? history.problem.value} />
      <div class="columns">
        <Keys title={text("hottest")} rows={(hot.value.value?.byRu ?? []).filter((k) => k.ruPerSecond >= LEAST_RU).slice(0, 8).map((k) => [k.key, format.ruRate(k.ruPerSecond)])} />
        <Keys title={text("largest")} rows={(hot.value.value?.bySize ?? []).slice(0, 8).map((k) => [k.key, format.bytes(k.bytes)])} />
        <div>
          <h3>{text("history")}</h3>
          {history.value.value && <Spark values={history.value.value.ru} unit="RU/s" label={text("history")} />}
        </div>
      </div>
    </Panel>
  );
}

// ---- logical partitions ----

function Logical() {
  const { database, container } = address.value;
  const limit = session.value!.overview!.limits.logicalPartitionBytes;
  const sizes = useRead(() => admin<HotKeys>("hotkeys", { database, container }), [database, container]);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && sizes.refresh(), SIZES_MS);
    return () => clearInterval(timer);
  }, []);
  const rows = (sizes.value.value?.bySize ?? []).slice(0, 10);
  const near = rows.filter((k) => k.bytes / limit >= NEAR_LIMIT);
  return (
    <Panel title={text("largestLogical")} about={text("largestAbout", { limit: format.bytes(limit) })}>
      <Problem of={sizes.problem.value} />
      {near.map((k) => (
        <Notice kind="warning" key={k.key}>
          {text("nearLimit", { key: format.keyText(k.key), part: format.percent(k.bytes / limit), limit: format.bytes(limit) })}
        </Notice>
      ))}
      <table class="keys bars">
        <tbody>
          {rows.map((k) => (
            <tr key={k.key}>
              <th scope="row">
                <bdi>{format.keyText(k.key)}</bdi>
              </th>
              <td class="bar">
                <meter class={k.bytes / limit >= NEAR_LIMIT ? "near" : ""} min={0} max={1} value={Math.min(1, k.bytes / limit)} aria-label={text("ofLimit")} />
              </td>
              <td>{format.bytes(k.bytes)}</td>
              <td>{format.percent(k.bytes / limit, 1)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p class="about">{text("none")}</p>}
      {sizes.value.value && !sizes.value.value.sizesComplete && <p class="about">{text("sizesIncomplete")}</p>}
    </Panel>
  );
}

// ---- splits and merges ----

function Timeline() {
  const { database, container } = address.value;
  const events = useRead(() => admin<{ events: Reshape[] }>("events", { database, container, limit: 50 }), [database, container, live.value?.event]);
  const list = events.value.value?.events ?? [];
  return (
    <Panel title={text("timeline")}>
      <Problem of={events.problem.value} />
      {list.length === 0 && <p class="about">{text("noEvents")}</p>}
      <ol class="timeline">
        {list.map((e) => (
          <li key={e.number} class={e.kind}>
            <time dateTime={new Date(e.time).toISOString()}>{format.dateTime(e.time)}</time>
            <strong>{text(e.kind === "split" ? "eventSplit" : "eventMerge", { before: e.before.join(" + "), after: e.after.join(" + ") })}</strong>
            <span>{text(`reason_${e.reason}` as TextName)}</span>
            <small>{text("eventCost", { items: format.count(e.items), bytes: format.bytes(e.bytes), took: format.duration(e.tookUs), held: format.duration(e.heldUs) })}</small>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

export function Partitions() {
  const metric = useSignal<Metric>("storage");
  const selected = useSignal("");
  const list = ranges.value;
  const shown = list.find((range) => range.id === selected.value);
  const verdict = metric.value === "storage" ? storageVerdict(container.value!, list) : heatVerdict(list);
  const choice = <Segments label={text("colour")} value={metric.value} choices={[["storage", text("byStorage")], ["heat", text("byHeat")]]} onChoose={(m) => (metric.value = m)} />;
  return (
    <>
      <Panel title={text("mosaic")} about={text("mosaicAbout", { metric: text(metric.value === "storage" ? "byStorage" : "byHeat") })} actions={choice}>
        {list.length > 0 && <Mosaic ranges={list} metric={metric.value} selected={selected.value} onSelect={(id) => (selected.value = selected.value === id ? "" : id)} />}
        <Notice kind={verdict.kind}>
          <span data-verdict={verdict.kind}>{verdict.words}</span>
        </Notice>
      </Panel>
      {shown ? <TileDetails key={shown.id} range={shown} /> : <p class="about hint">{text("selectTile")}</p>}
      <div class="columns wide">
        <Logical key={address.value.container} />
        <Timeline />
      </div>
    </>
  );
}
