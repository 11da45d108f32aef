// Connect: where the server listens, with which key and certificate, and a first program for each API and language.
import { useSignal } from "@preact/signals";
import { bearer } from "../api";
import { text } from "../i18n";
import { Notice, Panel, Segments } from "../parts/common";
import { session } from "../state";
import { snippets, type Api } from "./snippets";

function Copy({ value, label }: { value: string; label: string }) {
  const done = useSignal(false);
  const copy = async () => {
    await navigator.clipboard.writeText(value).then(() => (done.value = true), () => undefined);
    setTimeout(() => (done.value = false), 1500);
  };
  return (
    <button type="button" class="quiet" aria-label={`${text("copy")}: ${label}`} onClick={() => void copy()}>
      {text(done.value ? "copied" : "copy")}
    </button>
  );
}

function Line({ name, value, shown = value }: { name: string; value: string; shown?: string }) {
  return (
    <div class="address">
      <dt>{name}</dt>
      <dd>
        <code>{shown}</code> <Copy value={value} label={name} />
      </dd>
    </div>
  );
}

function KeyLine() {
  const visible = useSignal(false);
  const key = bearer() ?? "";
  return (
    <div class="address">
      <dt>{text("yourKey")}</dt>
      <dd>
        <code data-key={visible.value ? "shown" : "hidden"}>{visible.value ? key : "•".repeat(16)}</code>{" "}
        <button type="button" class="quiet" aria-pressed={visible.value} onClick={() => (visible.value = !visible.value)}>
          {text(visible.value ? "hideKey" : "showKey")}
        </button>{" "}
        <Copy value={key} label={text("yourKey")} />
      </dd>
    </div>
  );
}

const names: Record<Api, string> = { sql: "SQL (Core)", mongo: "MongoDB", cassandra: "Cassandra", table: "Table", gremlin: "Gremlin" };

function Snippets({ ports }: { ports: Record<string, number> }) {
  const apis = (Object.keys(names) as Api[]).filter((api) => ports[api]);
  const api = useSignal<Api>(apis[0] ?? "sql");
  const list = snippets(api.value, location.hostname, ports[api.value] ?? 0);
  const chosen = useSignal("");
  const snippet = list.find((s) => s.language === chosen.value) ?? list[0]!;
  return (
    <Panel title={text("firstProgram")} about={text("snippetAbout")}>
      <div class="buttons">
        <Segments label="API" value={api.value} choices={apis.map((a) => [a, names[a]])} onChoose={(a) => (api.value = a)} />
        <Segments label={text("programmingLanguage")} value={snippet.language} choices={list.map((s) => [s.language, s.language])} onChoose={(l) => (chosen.value = l)} />
        <span class="space" />
        <Copy value={snippet.code} label={text("firstProgram")} />
      </div>
      {snippet.install && (
        <pre class="install" tabIndex={0}>
          {snippet.install}
        </pre>
      )}
      <pre class="snippet" tabIndex={0} dir="ltr">
        {snippet.code}
      </pre>
    </Panel>
  );
}

export function Connect() {
  const { ports } = session.value!.overview!;
  const isSecure = location.protocol === "https:";
  return (
    <>
      <Panel title={text("addresses")}>
        <dl class="addresses">
          {(Object.keys(names) as Api[])
            .filter((api) => ports[api])
            .map((api) => (
              <Line key={api} name={names[api]} value={endpoint(api, ports[api]!)} />
            ))}
          <KeyLine />
          <div class="address">
            <dt>{text("certificate")}</dt>
            <dd>
              <a href="/_explorer/emulator.pem" download="tesela.pem">
                {text("downloadCertificate")}
              </a>
            </dd>
          </div>
        </dl>
        {!isSecure && <Notice kind="plain">{text("httpAbout")}</Notice>}
      </Panel>
      <Snippets ports={ports} />
    </>
  );
}

function endpoint(api: Api, port: number): string {
  const host = location.hostname;
  if (api === "mongo") return `mongodb://${host}:${port}/`;
  if (api === "cassandra") return `${host}:${port}`;
  if (api === "gremlin") return `wss://${host}:${port}/`;
  return `https://${host}:${port}/`;
}
