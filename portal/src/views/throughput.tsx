// Throughput: what is provisioned, what is consumed and for what, what was refused; and how to change it.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { admin } from "../api";
import * as format from "../format";
import { changeThroughput, readThroughput, type Provisioned } from "../items";
import { text, type TextName } from "../i18n";
import type { Container } from "../model";
import { Chart, type Series } from "../parts/chart";
import { Notice, Panel, Problem, problemText, Segments, useRead } from "../parts/common";
import { Mosaic } from "../parts/mosaic";
import { address, canWrite, container, live, ranges } from "../state";

type Span = "hour" | "day";
type Mode = "manual" | "autoscale";

interface Step {
  second: number;
  before: number;
  after: number;
}

interface History {
  stepSeconds: number;
  from: number;
  count: number;
  ru: number[];
  throttled: number[];
  provisioned: (number | null)[]; // null: not known
  provisionedChanges: Step[];
  ruByOperation: Record<string, number[]>;
}

const OPERATIONS = ["read", "query", "changes", "create", "replace", "delete", "script"];
const REREAD_MS = 30_000; // what was paid for; the lines themselves go on with the stream

// ---- charts ----

// The history as it was read, and what the stream has brought since: one value a second. Changes of the throughput come with the history only, since
// the stream may leave values out; it is read again when the stream shows another value.
interface Added {
  time: number;
  ru: number;
  throttled: number;
  provisioned: number | null;
}

const provisionedNow = (c: Container) => (c.throughput.mode === "serverless" ? c.shareRuPerSecond : c.throughput.ruPerSecond);

function useHistory(span: Span) {
  const { database, container: name } = address.value;
  const amount = span === "hour" ? { seconds: 3600 } : { minutes: 1440 };
  const provisioned = container.value && provisionedNow(container.value);
  const history = useRead(() => admin<History>("history", { database, container: name, ...amount }), [span, provisioned]);
  const added = useSignal<Added[]>([]);
  useEffect(() => {
    const c = container.value, now = live.value?.now;
    if (c && now && span === "hour") added.value = [...added.value, { time: Math.floor(now / 1000) - 1, ru: c.ruPerSecond, throttled: c.throttledPerSecond, provisioned: provisionedNow(c) }].slice(-3600);
  }, [live.value]);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && history.refresh(), REREAD_MS);
    return () => clearInterval(timer);
  }, []);
  return { history, added };
}

interface Lines {
  times: number[];
  ru: number[];
  throttled: number[];
  provisioned: (number | null)[];
}

function linesOf(h: History, added: Added[]): Lines {
  const end = h.from + h.count * h.stepSeconds;
  const newer = h.stepSeconds === 1 ? added.filter((a) => a.time >= end) : [];
  return {
    times: [...h.ru.map((_, i) => h.from + i * h.stepSeconds), ...newer.map((a) => a.time)].slice(-h.count),
    ru: [...h.ru.map((v) => v / h.stepSeconds), ...newer.map((a) => a.ru)].slice(-h.count),
    throttled: [...h.throttled.map((v) => v / h.stepSeconds), ...newer.map((a) => a.throttled)].slice(-h.count),
    provisioned: [...h.provisioned, ...newer.map((a) => a.provisioned)].slice(-h.count),
  };
}

const STEPS_SHOWN = 5;

function Steps({ changes }: { changes: Step[] }) {
  const list = changes.slice(-STEPS_SHOWN).reverse();
  return list.length === 0 ? null : (
    <ul class="steps" aria-label={text("throughputChanges")}>
      {list.map((c, i) => (
        <li key={changes.length - i}>
          <time>{format.time(c.second * 1000)}</time> {text("throughputStep", { before: format.ruRate(c.before), after: format.ruRate(c.after) })}
        </li>
      ))}
    </ul>
  );
}

function Consumed({ lines, changes, span }: { lines: Lines; changes: Step[]; span: Span }) {
  const series: Series[] = [{ name: text("consumed"), colour: "accent", values: lines.ru, fill: true }];
  if (lines.provisioned.some((value) => value !== null)) series.push({ name: text("provisioned"), colour: "level3", values: lines.provisioned, steps: true });
  return (
    <>
      <Chart label={text("consumedChart")} times={lines.times} series={series} unit="RU/s" />
      <Steps changes={changes} />
      <h3>{text("throttledChart")}</h3>
      <Chart label={text("throttledChart")} times={lines.times} series={[{ name: text("throttled"), colour: "level4", values: lines.throttled, fill: true }]} unit="429/s" height={110} />
      <p class="about">{text(span === "hour" ? "perSecondAbout" : "perMinuteAbout")}</p>
    </>
  );
}

function ByOperation({ history }: { history: History }) {
  const kinds = OPERATIONS.filter((kind) => history.ruByOperation[kind]);
  const sums = kinds.map((kind) => history.ruByOperation[kind]!.reduce((sum, v) => sum + v, 0));
  const all = sums.reduce((sum, v) => sum + v, 0);
  if (!kinds.length) return <p class="about">{text("noCharges")}</p>;
  const times = history.ru.map((_, i) => history.from + i * history.stepSeconds);
  const series = kinds.map((kind): Series => ({ name: text(`op_${kind}` as TextName), colour: `op-${kind}`, values: history.ruByOperation[kind]!.map((v) => v / history.stepSeconds) }));
  return (
    <>
      <Chart label={text("byOperation")} times={times} series={series} unit="RU/s" stacked />
      <table class="keys bars operations">
        <tbody>
          {kinds.map((kind, i) => (
            <tr key={kind} data-operation={kind}>
              <th scope="row">{text(`op_${kind}` as TextName)}</th>
              <td class="bar">
                <meter min={0} max={1} value={sums[i]! / all} aria-label={text("ofCharge")} />
              </td>
              <td>{format.ru(sums[i]!)}</td>
              <td>{format.percent(sums[i]! / all, 1)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

// ---- changing it ----

// What is chosen or typed stays when the offer is read again.
function Change({ found, changed }: { found: Provisioned; changed: () => void }) {
  const limit = found.offer.content.offerAutopilotSettings?.maxThroughput;
  const chosen = useSignal<Mode | undefined>(undefined);
  const typed = useSignal<number | undefined>(undefined);
  const mode = chosen.value ?? (limit === undefined ? "manual" : "autoscale");
  const value = typed.value ?? limit ?? found.offer.content.offerThroughput;
  const busy = useSignal(false);
  const problem = useSignal("");
  const done = useSignal(false);
  const isAutoscale = mode === "autoscale";
  const least = isAutoscale ? Math.max(1000, found.least) : found.least;
  async function apply(e: Event) {
    e.preventDefault();
    busy.value = true;
    problem.value = "";
    done.value = false;
    try {
      await changeThroughput(found.offer, isAutoscale, value);
      done.value = true;
      changed();
    } catch (why) {
      problem.value = problemText(why);
    }
    busy.value = false;
  }
  return (
    <form onSubmit={apply} class="line-form" aria-label={text("changeThroughput")}>
      <Segments<Mode> label={text("throughputMode")} value={mode} choices={[["manual", text("manual")], ["autoscale", text("autoscale")]]} onChoose={(m) => (chosen.value = m)} />
      <label>
        {text(isAutoscale ? "maximumRu" : "valueRu")}
        <input type="number" name="throughput" min={least} max={1_000_000} step={isAutoscale ? 1000 : 100} value={value} required onInput={(e) => (typed.value = Number(e.currentTarget.value))} />
      </label>
      <button type="submit" disabled={busy.value}>
        {text(busy.value ? "applying" : "apply")}
      </button>
      <p class="about wide">
        {text("throughputLeast", { least: format.ruRate(least) })} {found.shared && text("sharedByDatabase")}
      </p>
      {problem.value && <Notice kind="error">{problem.value}</Notice>}
      {done.value && <Notice kind="good">{text("throughputChanged")}</Notice>}
    </form>
  );
}

function Provision({ c }: { c: Container }) {
  const { database, container: name } = address.value;
  const found = useRead(() => readThroughput({ database, container: name }), [c.throughput.mode, c.throughput.ruPerSecond]);
  const list = ranges.value;
  return (
    <Panel title={text("changeThroughput")} about={provisionedText(c, list.length)}>
      <Problem of={found.problem.value} />
      {canWrite.value && found.value.value && <Change found={found.value.value} changed={found.refresh} />}
      {canWrite.value && !found.value.value && c.throughput.mode === "serverless" && <p class="about">{text("serverlessAbout")}</p>}
      <div class="small">{list.length > 0 && <Mosaic ranges={list} metric="heat" selected="" onSelect={() => (location.hash = `#/partitions/${encodeURIComponent(database)}/${encodeURIComponent(name)}`)} />}</div>
    </Panel>
  );
}

function provisionedText(c: Container, partitions: number): string {
  const ru = format.ruRate(c.throughput.ruPerSecond);
  const words = { manual: "isManual", autoscale: "isAutoscale", serverless: "isServerless" } as const;
  return text(words[c.throughput.mode], { ru, partitions }) + (c.throughput.shared ? ` ${text("isShared")}` : "");
}

function Shown() {
  const span = useSignal<Span>("hour");
  const c = container.value!;
  const { history, added } = useHistory(span.value);
  const read = history.value.value;
  const lines = useComputed(() => (history.value.value ? linesOf(history.value.value, added.value) : undefined)).value;
  const choice = <Segments label={text("span")} value={span.value} choices={[["hour", text("lastHour")], ["day", text("lastDay")]]} onChoose={(s) => (span.value = s)} />;
  return (
    <>
      <Panel title={text("consumedChart")} actions={choice}>
        <Problem of={history.problem.value} />
        {read && lines ? <Consumed lines={lines} changes={read.provisionedChanges} span={span.value} /> : <p class="about">{text("loading")}</p>}
      </Panel>
      <Provision c={c} />
      <Panel title={text("byOperation")}>{read && <ByOperation history={read} />}</Panel>
    </>
  );
}

export const Throughput = () => <Shown key={JSON.stringify(address.value)} />;
