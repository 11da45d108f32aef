// The change feed, watched live. The stream says when a partition has advanced; only then its feed is read.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { sql, type Item } from "../../api";
import * as format from "../../format";
import { idOf, keyOf, withoutSystem, type Place } from "../../items";
import { text } from "../../i18n";
import type { Range } from "../../model";
import { Problem } from "../../parts/common";
import { JsonView } from "../../parts/rows";
import { ranges } from "../../state";
import type { ContainerProperties } from "./explorer";

const KEPT = 200;

interface Change {
  number: number;
  range: string;
  item: Item;
}

interface Feed {
  Documents: Item[];
}

// Where the feed of each partition continues. A partition that came from others continues where the first of them was.
type Positions = Map<string, string>;

function startOf(positions: Positions, range: Range): string {
  const known = positions.get(range.id) ?? range.parents.map((id) => positions.get(id)).find((etag) => etag !== undefined);
  const position = known ?? `"${range.lsn}"`;
  positions.set(range.id, position);
  return position;
}

const hasAdvanced = (position: string, range: Range) => Number(position.replaceAll('"', "")) < range.lsn;

async function readRange(place: Place, range: Range, positions: Positions): Promise<Item[]> {
  const headers = { "a-im": "Incremental feed", "if-none-match": startOf(positions, range), "x-ms-documentdb-partitionkeyrangeid": range.id };
  const answer = await sql<Feed | undefined>("GET", ["dbs", place.database, "colls", place.container, "docs"], { headers });
  if (answer.etag) positions.set(range.id, answer.etag);
  return answer.body?.Documents ?? [];
}

export function Changes({ place, collection }: ContainerProperties) {
  const changes = useSignal<Change[]>([]);
  const watching = useSignal(true);
  const problem = useSignal<unknown>(undefined);
  const positions = useRef<Positions>(new Map());
  const busy = useRef(false);
  const number = useRef(0);

  async function follow() {
    busy.current = true;
    for (const range of ranges.value) {
      if (!hasAdvanced(startOf(positions.current, range), range)) continue;
      const items = await readRange(place, range, positions.current);
      const found = items.map((item) => ({ number: ++number.current, range: range.id, item }));
      changes.value = [...found.reverse(), ...changes.value].slice(0, KEPT);
    }
    busy.current = false;
  }
  useEffect(() => {
    if (!watching.value || busy.current) return;
    follow().catch((why: unknown) => {
      busy.current = false;
      problem.value = why;
    });
  }, [ranges.value, watching.value]);

  return (
    <section class="panel" aria-label={text("changes")}>
      <div class="buttons">
        <p class="about">{text(changes.value.length ? "changesAbout" : "changesNone")}</p>
        <span class="space" />
        <button type="button" class="quiet" aria-pressed={!watching.value} onClick={() => (watching.value = !watching.value)}>
          {text(watching.value ? "pause" : "resume")}
        </button>
      </div>
      <Problem of={problem.value} />
      <ol class="changes">
        {changes.value.map((change) => (
          <li key={change.number}>
            <details>
              <summary>
                <time>{format.time(Number(change.item._ts) * 1000)}</time> <bdi class="cut">{idOf(change.item)}</bdi>{" "}
                <small>
                  {text("partition", { id: change.range })} · <bdi>{format.keyText(JSON.stringify(keyOf(change.item, collection) ?? []))}</bdi>
                </small>
              </summary>
              <JsonView value={withoutSystem(change.item)} />
            </details>
          </li>
        ))}
      </ol>
    </section>
  );
}
