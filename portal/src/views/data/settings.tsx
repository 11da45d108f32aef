// A container's settings: its properties as JSON, of which the indexing policy, TTL and others can be changed; and its end.
import { useSignal } from "@preact/signals";
import { sql } from "../../api";
import { systemProperties } from "../../items";
import { text } from "../../i18n";
import { Notice, Problem } from "../../parts/common";
import { Editor } from "../../parts/editor";
import { addressOf, canWrite, container, go, isForeign } from "../../state";
import type { ContainerProperties } from "./explorer";
import { apiNames } from "./scripts";

const hidden = [...systemProperties, "_docs", "_sprocs", "_triggers", "_udfs", "_conflicts", "statistics"];

export function ContainerSettings({ place, collection, changed }: ContainerProperties & { changed: () => void }) {
  const shown = JSON.stringify(Object.fromEntries(Object.entries(collection).filter(([name]) => !hidden.includes(name))), null, 2);
  const value = useSignal(shown);
  const typed = useSignal("");
  const problem = useSignal<unknown>(undefined);
  const saved = useSignal(false);
  const parts = ["dbs", place.database, "colls", place.container];
  const attempt = (work: () => Promise<void>) => async (e: Event) => {
    e.preventDefault();
    problem.value = undefined;
    saved.value = false;
    await work().catch((why: unknown) => (problem.value = why));
  };
  const save = attempt(async () => {
    await sql("PUT", parts, { body: JSON.parse(value.value) });
    saved.value = true;
    changed();
  });
  const remove = attempt(async () => {
    await sql("DELETE", parts);
    go({ container: "" });
  });
  return (
    <section class="panel" aria-label={text("settings")}>
      <p class="about">
        {isForeign.value ? text("settingsOfOwner", { api: apiNames[container.value!.api] ?? container.value!.api }) : text("settingsAbout")} <a href={addressOf({ view: "throughput" })}>{text("throughput")}</a>
      </p>
      <Editor language="json" label={text("settings")} start={value.value} onChange={canWrite.value && !isForeign.value ? (v) => (value.value = v) : undefined} />
      <Problem of={problem.value} />
      {saved.value && <Notice kind="good">{text("saved")}</Notice>}
      {canWrite.value && (
        <>
          {!isForeign.value && (
            <div class="buttons">
              <button type="button" onClick={save} disabled={value.value === shown}>
                {text("save")}
              </button>
            </div>
          )}
          <form class="line-form" onSubmit={remove}>
            <label>
              {text("typeToDelete", { name: place.container })}
              <input name="confirm" value={typed.value} onInput={(e) => (typed.value = e.currentTarget.value)} />
            </label>
            <button class="danger" disabled={typed.value !== place.container}>
              {text("deleteContainer")}
            </button>
          </form>
        </>
      )}
    </section>
  );
}
