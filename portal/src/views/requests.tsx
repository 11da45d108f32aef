// Requests: the last ones with their charge and time, errors first; and for what is refused, why and what would help.
import { useSignal } from "@preact/signals";
import { admin } from "../api";
import * as format from "../format";
import { text, type TextName } from "../i18n";
import type { HotKeys, Range, RecentRequest } from "../model";
import { Notice, Panel, Segments, useRead } from "../parts/common";
import { address, container, ranges, requests } from "../state";

const HOT_PART = 0.5; // of what a partition spends: one key that takes more is the reason

// ---- throttling in words ----

function Throttled({ range }: { range: Range }) {
  const { database, container: name } = address.value;
  const hot = useRead(() => admin<HotKeys>("hotkeys", { database, container: name, range: range.id }), [range.id, range.throttledPerSecond > 0]);
  const byRu = hot.value.value?.byRu ?? [];
  const key = byRu[0];
  if (!key) return null;
  const part = key.ruPerSecond / byRu.reduce((sum, k) => sum + k.ruPerSecond, 0);
  const values = { id: range.id, key: format.keyText(key.key), part: format.percent(part), refused: format.count(range.throttledPerSecond) };
  return (
    <Notice kind="warning">
      {text("throttledNow", values)} {text(part >= HOT_PART ? "oneHotKey" : "manyKeys", values)}
    </Notice>
  );
}

function Throttling() {
  const refusing = ranges.value.filter((range) => range.throttledPerSecond > 0);
  if (!container.value) return null;
  return (
    <>
      {refusing.map((range) => (
        <Throttled key={range.id} range={range} />
      ))}
    </>
  );
}

// ---- the list ----

const shownStatus = (r: RecentRequest) => (r.substatus ? `${r.status}/${r.substatus}` : String(r.status));

const meanings: Record<string, TextName> = { "400": "means400", "403": "means403", "403/1014": "means1014", "404": "means404", "409": "means409", "412": "means412", "429": "means429" };

function meaning(r: RecentRequest): string {
  const name = meanings[shownStatus(r)] ?? meanings[r.status];
  return name ? text(name) : "";
}

function Row({ r }: { r: RecentRequest }) {
  return (
    <tr class={r.failed ? "failed" : ""}>
      <td>{format.time(r.time)}</td>
      <td>{r.api}</td>
      <th scope="row" class="cut" title={r.path}>
        {r.verb} <bdi>{r.path}</bdi>
      </th>
      <td class="number" title={meaning(r)}>
        {shownStatus(r)}
      </td>
      <td class="number">{format.ru(r.ru)}</td>
      <td class="number">{format.duration(r.us)}</td>
      <td class="number">{r.range ?? "–"}</td>
    </tr>
  );
}

const failedFirst = (list: RecentRequest[]) => [...list].sort((a, b) => Number(b.failed) - Number(a.failed) || b.number - a.number);

export function Requests() {
  const order = useSignal<"errors" | "newest" | "dearest">("errors");
  const all = requests.value;
  const list = order.value === "errors" ? failedFirst(all) : order.value === "newest" ? [...all].reverse() : [...all].sort((a, b) => b.ru - a.ru);
  const failed = all.filter((r) => r.failed);
  const kinds = [...new Set(failed.map(shownStatus))];
  const choice = <Segments label={text("order")} value={order.value} choices={[["errors", text("errorsFirst")], ["newest", text("newestFirst")], ["dearest", text("dearestFirst")]]} onChoose={(o) => (order.value = o)} />;
  return (
    <>
      <Throttling />
      <Panel title={text("lastRequests")} about={text("requestsAbout")} actions={choice}>
        {kinds.length > 0 && (
          <ul class="meanings">
            {kinds.map((kind) => {
              const some = failed.filter((r) => shownStatus(r) === kind);
              return (
                <li key={kind}>
                  <strong>{text("timesStatus", { n: some.length, status: kind })}</strong> {meaning(some[0]!)}
                </li>
              );
            })}
          </ul>
        )}
        {all.length === 0 ? (
          <p class="about">{text("noRequests")}</p>
        ) : (
          <div class="scroll" tabIndex={0} role="region" aria-label={text("lastRequests")}>
            <table>
              <thead>
                <tr>
                  {([["time"], ["api"], ["operation"], ["status", "number"], ["charge", "number"], ["took", "number"], ["partitionName", "number"]] as const).map(([name, kind]) => (
                    <th key={name} scope="col" class={kind}>
                      {text(name)}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {list.slice(0, 200).map((r) => (
                  <Row key={r.number} r={r} />
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Panel>
    </>
  );
}
