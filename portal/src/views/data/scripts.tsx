// Stored procedures, triggers and functions: edited, and procedures run under a partition key.
import { useSignal } from "@preact/signals";
import { keyHeader, sql, type Json } from "../../api";
import * as format from "../../format";
import { keyFromText } from "../../items";
import { text, type TextName } from "../../i18n";
import { Notice, Problem, problemText, Segments, useRead } from "../../parts/common";
import { Editor } from "../../parts/editor";
import { JsonView } from "../../parts/rows";
import { canWrite, container, isForeign, session } from "../../state";
import type { ContainerProperties } from "./explorer";

type Kind = "sprocs" | "triggers" | "udfs";

interface Script {
  id: string;
  body: string;
  triggerType?: string;
  triggerOperation?: string;
}

export const apiNames: Record<string, string> = { mongo: "MongoDB", cassandra: "Cassandra", table: "Table" };

const lists = { sprocs: "StoredProcedures", triggers: "Triggers", udfs: "UserDefinedFunctions" } as const;

const templates: Record<Kind, string> = {
  sprocs: `function hello(name) {\n  const context = getContext();\n  context.getResponse().setBody("Hello, " + name);\n}`,
  triggers: `function stamp() {\n  const request = getContext().getRequest();\n  const item = request.getBody();\n  item.stamped = true;\n  request.setBody(item);\n}`,
  udfs: `function half(x) {\n  return x / 2;\n}`,
};

// ---- running a stored procedure ----

interface Outcome {
  value: Json;
  charge: number;
  ms: number;
  log: string;
}

function Run({ place, id }: ContainerProperties & { id: string }) {
  const key = useSignal("");
  const parameters = useSignal("[]");
  const outcome = useSignal<Outcome | null>(null);
  const problem = useSignal("");
  async function run(e: Event) {
    e.preventDefault();
    problem.value = "";
    try {
      const headers = { ...keyHeader(keyFromText(key.value)), "x-ms-documentdb-script-enable-logging": "True" };
      const answer = await sql<Json>("POST", ["dbs", place.database, "colls", place.container, "sprocs", id], { headers, body: JSON.parse(parameters.value) });
      const log = decodeURIComponent(answer.headers.get("x-ms-documentdb-script-log-results") ?? "");
      outcome.value = { value: answer.body, charge: answer.charge, ms: answer.ms, log };
    } catch (why) {
      problem.value = problemText(why);
    }
  }
  return (
    <form class="line-form" onSubmit={run} aria-label={text("runProcedure")}>
      <label>
        {text("partitionKeyValue")}
        <input name="key" value={key.value} onInput={(e) => (key.value = e.currentTarget.value)} />
      </label>
      <label>
        {text("parameters")}
        <input name="parameters" value={parameters.value} onInput={(e) => (parameters.value = e.currentTarget.value)} />
      </label>
      <button type="submit">{text("runProcedure")}</button>
      {problem.value && <Notice kind="error">{problem.value}</Notice>}
      {outcome.value && (
        <div class="wide" role="status">
          <p class="about">{text("savedFor", { ru: format.ru(outcome.value.charge), time: format.duration(outcome.value.ms * 1000) })}</p>
          <JsonView value={outcome.value.value ?? null} />
          {outcome.value.log && <pre>{outcome.value.log}</pre>}
        </div>
      )}
    </form>
  );
}

// ---- one script ----

function ScriptEditor({ kind, script, isNew, isSaved, onSaved, onGone, ...properties }: ContainerProperties & { kind: Kind; script: Script; isNew: boolean; isSaved: boolean; onSaved: (id: string) => void; onGone: () => void }) {
  const { place } = properties;
  const id = useSignal(script.id);
  const body = useSignal(script.body);
  const when = useSignal(script.triggerType ?? "Pre");
  const operation = useSignal(script.triggerOperation ?? "All");
  const problem = useSignal("");
  const parts = ["dbs", place.database, "colls", place.container, kind];
  const attempt = async (work: () => Promise<void>) => {
    problem.value = "";
    await work().catch((why: unknown) => void (problem.value = problemText(why)));
  };
  const save = () =>
    attempt(async () => {
      const content = { id: id.value, body: body.value, ...(kind === "triggers" ? { triggerType: when.value, triggerOperation: operation.value } : {}) };
      await (isNew ? sql("POST", parts, { body: content }) : sql("PUT", [...parts, script.id], { body: content }));
      onSaved(id.value);
    });
  const remove = () => attempt(async () => void (await sql("DELETE", [...parts, script.id]), onGone()));
  return (
    <>
      <div class="buttons">
        <label class="line">
          {text("name")}
          <input name="script" value={id.value} disabled={!isNew} onInput={(e) => (id.value = e.currentTarget.value)} />
        </label>
        {kind === "triggers" && (
          <>
            <select aria-label={text("triggerType")} value={when.value} onChange={(e) => (when.value = e.currentTarget.value)}>
              <option>Pre</option>
              <option>Post</option>
            </select>
            <select aria-label={text("triggerOperation")} value={operation.value} onChange={(e) => (operation.value = e.currentTarget.value)}>
              {["All", "Create", "Replace", "Delete", "Update"].map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </>
        )}
      </div>
      <Editor language="javascript" label={text(kind as TextName)} start={body.value} onChange={canWrite.value ? (v) => (body.value = v) : undefined} />
      {problem.value && <Notice kind="error">{problem.value}</Notice>}
      {isSaved && !problem.value && body.value === script.body && <Notice kind="good">{text("saved")}</Notice>}
      {canWrite.value && session.value!.overview && (
        <div class="buttons">
          <button type="button" disabled={!id.value} onClick={() => void save()}>
            {text("save")}
          </button>
          <span class="space" />
          {!isNew && (
            <button type="button" class="danger" onClick={() => void remove()}>
              {text("delete")}
            </button>
          )}
        </div>
      )}
      {kind === "sprocs" && !isNew && canWrite.value && <Run {...properties} id={script.id} />}
    </>
  );
}

export function Scripts(properties: ContainerProperties) {
  const { place } = properties;
  const kind = useSignal<Kind>("sprocs");
  const chosen = useSignal("");
  const isNew = useSignal(false);
  const saved = useSignal(""); // the script whose last change was saved
  const found = useRead(async () => {
    const answer = await sql<Record<string, Script[]>>("GET", ["dbs", place.database, "colls", place.container, kind.value]);
    return { kind: kind.value, list: answer.body[lists[kind.value]] ?? [] };
  }, [place.container, kind.value]);
  const list = found.value.value?.kind === kind.value ? found.value.value.list : [];
  const script = isNew.value ? { id: "", body: templates[kind.value] } : list.find((s) => s.id === chosen.value);
  const choose = (id: string) => ((isNew.value = false), (saved.value = ""), (chosen.value = id));
  return (
    <section class="panel" aria-label={text("scripts")}>
      <div class="buttons">
        <Segments label={text("scripts")} value={kind.value} choices={(["sprocs", "triggers", "udfs"] as const).map((k) => [k, text(k)])} onChoose={(k) => ((kind.value = k), choose(""))} />
        {list.map((s) => (
          <button type="button" key={s.id} class="quiet" aria-pressed={s.id === chosen.value && !isNew.value} onClick={() => choose(s.id)}>
            <bdi>{s.id}</bdi>
          </button>
        ))}
        {canWrite.value && !isForeign.value && (
          <button type="button" class="quiet" onClick={() => (isNew.value = true)}>
            {text("newScript")}
          </button>
        )}
      </div>
      {isForeign.value && <p class="about">{text("scriptsOfOwner", { api: apiNames[container.value!.api] ?? container.value!.api })}</p>}
      <Problem of={found.problem.value} />
      {!script && list.length === 0 && <p class="about">{text("noScripts")}</p>}
      {script && (
        <ScriptEditor
          key={`${kind.value}/${isNew.value ? "" : script.id}`}
          {...properties}
          kind={kind.value}
          script={script}
          isNew={isNew.value}
          isSaved={saved.value === script.id && script.id !== ""}
          onSaved={(id) => (found.refresh(), choose(id), (saved.value = id))}
          onGone={() => (found.refresh(), choose(""))}
        />
      )}
    </section>
  );
}
