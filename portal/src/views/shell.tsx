// The frame around the views: sign-in, navigation, the choice of the container.
import type { ComponentType } from "preact";
import { lazy, Notice } from "../parts/common";
import { chooseLanguage, language, text, type TextName } from "../i18n";
import { address, addressOf, connected, container, containers, go, live, session, signOut } from "../state";
import { Partitions } from "./partitions";
import { SignIn } from "./signin";

interface View {
  name: TextName;
  page: ComponentType;
  everywhere?: boolean; // needs no container
}

const views: View[] = [
  { name: "partitions", page: Partitions },
  { name: "throughput", page: lazy(() => import("./throughput").then((m) => m.Throughput)) },
  { name: "data", page: lazy(() => import("./data/explorer").then((m) => m.Data)), everywhere: true },
  { name: "charge", page: lazy(() => import("./charge").then((m) => m.Charge)) },
  { name: "requests", page: lazy(() => import("./requests").then((m) => m.Requests)), everywhere: true },
  { name: "connect", page: lazy(() => import("./connect").then((m) => m.Connect)), everywhere: true },
];

const Logo = () => (
  <svg viewBox="0 0 32 32" class="logo" aria-hidden="true">
    <rect x="2" y="2" width="13" height="13" rx="2" />
    <rect x="17" y="2" width="13" height="7" rx="2" />
    <rect x="17" y="11" width="13" height="19" rx="2" />
    <rect x="2" y="17" width="13" height="13" rx="2" />
  </svg>
);

export const LanguageChoice = () => (
  <select aria-label={text("language")} value={language.value} onChange={(e) => chooseLanguage(e.currentTarget.value)}>
    <option value="en">English</option>
    <option value="es">Español</option>
  </select>
);

function ContainerChoice() {
  const databases = [...new Set(containers.value.map((c) => c.database))];
  const { database, container: name } = address.value;
  return (
    <select
      class="choice"
      aria-label={text("container")}
      value={name ? JSON.stringify([database, name]) : ""}
      onChange={(e) => {
        const [database, container] = JSON.parse(e.currentTarget.value) as [string, string];
        go({ database, container });
      }}
    >
      {!container.value && <option value="">{text("chooseContainer")}</option>}
      {databases.map((database) => (
        <optgroup label={database} key={database}>
          {containers.value
            .filter((c) => c.database === database)
            .map((c) => (
              <option key={c.container} value={JSON.stringify([database, c.container])}>
                {c.container}
              </option>
            ))}
        </optgroup>
      ))}
    </select>
  );
}

function Top() {
  const hasAdmin = session.value?.overview !== null;
  return (
    <header class="top">
      <a class="brand" href="#/partitions">
        <Logo />
        <span>{text("title")}</span>
      </a>
      {hasAdmin && <ContainerChoice />}
      <span class="space" />
      {session.value?.readOnly && <span class="badge">{text("readOnly")}</span>}
      {hasAdmin && (
        <span class={`state ${connected.value ? "on" : "off"}`} role="status">
          {text(connected.value ? "live" : "offline")}
        </span>
      )}
      <LanguageChoice />
      <button type="button" class="quiet" onClick={signOut}>
        {text("signOut")}
      </button>
    </header>
  );
}

function Navigation({ shown }: { shown: View[] }) {
  return (
    <nav aria-label={text("views")}>
      {shown.map((view) => (
        <a key={view.name} href={addressOf({ view: view.name })} aria-current={address.value.view === view.name ? "page" : undefined}>
          {text(view.name)}
        </a>
      ))}
    </nav>
  );
}

function Content({ view }: { view: View }) {
  const { database, container: name } = address.value;
  const Page = view.page;
  if (view.everywhere || container.value) return <Page />;
  if (!live.value) return <p class="about">{text("loading")}</p>;
  if (name) return <Notice kind="warning">{text("unknownContainer", { name: `${database}/${name}` })}</Notice>;
  const first = containers.value[0];
  if (first) {
    queueMicrotask(() => !address.value.container && location.replace(addressOf({ database: first.database, container: first.container })));
    return null;
  }
  return <Notice kind="plain">{text("noContainers")}</Notice>;
}

export function App() {
  if (!session.value) return <SignIn />;
  const shown = session.value.overview ? views : views.filter((view) => view.name === "data");
  const view = shown.find((v) => v.name === address.value.view) ?? shown[0]!;
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), document.getElementById("main")?.focus())}>
        {text("skip")}
      </a>
      <Top />
      <Navigation shown={shown} />
      <main id="main" tabIndex={-1} key={view.name}>
        <h1>{text(view.name)}</h1>
        <Content view={view} />
      </main>
    </>
  );
}
