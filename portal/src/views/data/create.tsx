// New databases and containers: name, key, throughput, indexing policy.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { sql } from "../../api";
import { throughputHeaders } from "../../items";
import { text } from "../../i18n";
import { Dialog, Notice, problemText, Segments } from "../../parts/common";
import { Editor } from "../../parts/editor";
import { address } from "../../state";

type Mode = "manual" | "autoscale" | "none";

// What both dialogs share: sending, progress, the error.
function Form({ title, onClose, send, children }: { title: string; onClose: () => void; send: () => Promise<void>; children: ComponentChildren }) {
  const busy = useSignal(false);
  const problem = useSignal("");
  async function submit(e: Event) {
    e.preventDefault();
    busy.value = true;
    problem.value = "";
    try {
      await send();
      onClose();
    } catch (why) {
      problem.value = problemText(why);
    }
    busy.value = false;
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="form" onSubmit={submit}>
        {children}
        {problem.value && <Notice kind="error">{problem.value}</Notice>}
        <div class="buttons">
          <button type="submit" disabled={busy.value}>
            {text("create")}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function ThroughputFields({ mode, value, onMode, onValue, none }: { mode: Mode; value: number; onMode: (m: Mode) => void; onValue: (v: number) => void; none: string }) {
  const choices: [Mode, string][] = [["manual", text("manual")], ["autoscale", text("autoscale")], ["none", none]];
  return (
    <fieldset>
      <legend>{text("throughput")}</legend>
      <Segments label={text("throughputMode")} value={mode} choices={choices} onChoose={(m) => (onMode(m), onValue(m === "autoscale" ? 1000 : 400))} />
      {mode !== "none" && (
        <label>
          {text(mode === "autoscale" ? "maximumRu" : "valueRu")}
          <input type="number" name="ru" min={mode === "autoscale" ? 1000 : 400} max={1_000_000} step={mode === "autoscale" ? 1000 : 100} value={value} required onInput={(e) => onValue(Number(e.currentTarget.value))} />
        </label>
      )}
    </fieldset>
  );
}

export function NewDatabase({ onClose, onMade }: { onClose: () => void; onMade: (id: string) => void }) {
  const id = useSignal("");
  const mode = useSignal<Mode>("none");
  const value = useSignal(400);
  const send = async () => {
    await sql("POST", ["dbs"], { body: { id: id.value }, headers: throughputHeaders(mode.value, value.value) });
    onMade(id.value);
  };
  return (
    <Form title={text("newDatabase")} onClose={onClose} send={send}>
      <label>
        {text("name")}
        <input name="id" required maxLength={255} value={id.value} onInput={(e) => (id.value = e.currentTarget.value)} />
      </label>
      <ThroughputFields mode={mode.value} value={value.value} onMode={(m) => (mode.value = m)} onValue={(v) => (value.value = v)} none={text("ofContainers")} />
      <p class="about">{text("sharedAbout")}</p>
    </Form>
  );
}

const plainPolicy = JSON.stringify({ indexingMode: "consistent", automatic: true, includedPaths: [{ path: "/*" }], excludedPaths: [{ path: '/"_etag"/?' }] }, null, 2);

export function NewContainer({ databases, onClose, onMade }: { databases: string[]; onClose: () => void; onMade: (database: string, container: string) => void }) {
  const database = useSignal(databases.includes(address.value.database) ? address.value.database : databases[0]!);
  const id = useSignal("");
  const key = useSignal("/");
  const mode = useSignal<Mode>("manual");
  const value = useSignal(400);
  const policy = useSignal(plainPolicy);
  const send = async () => {
    const paths = key.value.split(",").map((path) => path.trim());
    const partitionKey = { paths, kind: paths.length > 1 ? "MultiHash" : "Hash", version: 2 };
    const body = { id: id.value, partitionKey, indexingPolicy: JSON.parse(policy.value) as unknown };
    await sql("POST", ["dbs", database.value, "colls"], { body, headers: throughputHeaders(mode.value, value.value) });
    onMade(database.value, id.value);
  };
  return (
    <Form title={text("newContainer")} onClose={onClose} send={send}>
      <label>
        {text("database")}
        <select value={database.value} onChange={(e) => (database.value = e.currentTarget.value)}>
          {databases.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        {text("name")}
        <input name="id" required maxLength={255} value={id.value} onInput={(e) => (id.value = e.currentTarget.value)} />
      </label>
      <label>
        {text("partitionKey")}
        <input name="key" required pattern="/.+" value={key.value} onInput={(e) => (key.value = e.currentTarget.value)} />
      </label>
      <p class="about">{text("partitionKeyAbout")}</p>
      <ThroughputFields mode={mode.value} value={value.value} onMode={(m) => (mode.value = m)} onValue={(v) => (value.value = v)} none={text("ofDatabase")} />
      <details>
        <summary>{text("indexingPolicy")}</summary>
        <Editor language="json" label={text("indexingPolicy")} start={policy.value} onChange={(v) => (policy.value = v)} />
      </details>
    </Form>
  );
}
