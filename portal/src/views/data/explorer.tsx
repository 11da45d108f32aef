// Data: databases, their containers, and of the chosen container items, scripts, changes and settings.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { sql } from "../../api";
import { readCollection, type Collection, type Place } from "../../items";
import { text } from "../../i18n";
import { Notice, Problem, Segments, useRead } from "../../parts/common";
import { address, addressOf, canWrite, containers, go, live, session } from "../../state";
import { Changes } from "./changes";
import { NewContainer, NewDatabase } from "./create";
import { Items } from "./items";
import { Scripts } from "./scripts";
import { ContainerSettings } from "./settings";

interface Databases {
  Databases: { id: string }[];
}

// ---- the tree ----

function Tree({ databases, onNew }: { databases: string[]; onNew: (what: "database" | "container") => void }) {
  const { database: chosen, container: name } = address.value;
  return (
    <aside class="tree" aria-label={text("databases")}>
      <ul>
        {databases.map((database) => (
          <li key={database}>
            <a class="database" href={addressOf({ database, container: "" })} aria-current={database === chosen && !name ? "true" : undefined}>
              <bdi>{database}</bdi>
            </a>
            <ul>
              {containers.value
                .filter((c) => c.database === database)
                .map((c) => (
                  <li key={c.container}>
                    <a href={addressOf({ database, container: c.container })} aria-current={database === chosen && c.container === name ? "true" : undefined} title={c.container}>
                      <bdi>{c.container}</bdi>
                      {c.api !== "sql" && c.api !== "" && <small>{c.api}</small>}
                    </a>
                  </li>
                ))}
            </ul>
          </li>
        ))}
      </ul>
      {databases.length === 0 && <p class="about">{text("noDatabases")}</p>}
      {canWrite.value && (
        <div class="buttons">
          <button type="button" class="quiet" onClick={() => onNew("database")}>
            {text("newDatabase")}
          </button>
          {databases.length > 0 && (
            <button type="button" class="quiet" onClick={() => onNew("container")}>
              {text("newContainer")}
            </button>
          )}
        </div>
      )}
    </aside>
  );
}

// ---- one database ----

function DatabasePage({ database, onGone }: { database: string; onGone: () => void }) {
  const typed = useSignal("");
  const problem = useSignal<unknown>(undefined);
  const remove = async (e: Event) => {
    e.preventDefault();
    try {
      await sql("DELETE", ["dbs", database]);
      go({ database: "", container: "" });
      onGone();
    } catch (why) {
      problem.value = why;
    }
  };
  const n = containers.value.filter((c) => c.database === database).length;
  return (
    <section class="panel" aria-label={text("database")}>
      <h2>
        <bdi>{database}</bdi>
      </h2>
      <p class="about">{text("databaseHas", { n })}</p>
      <Problem of={problem.value} />
      {canWrite.value && (
        <form class="line-form" onSubmit={remove}>
          <label>
            {text("typeToDelete", { name: database })}
            <input value={typed.value} onInput={(e) => (typed.value = e.currentTarget.value)} />
          </label>
          <button class="danger" disabled={typed.value !== database}>
            {text("deleteDatabase")}
          </button>
        </form>
      )}
    </section>
  );
}

// ---- one container ----

type Tab = "items" | "scripts" | "changes" | "settings";

function ContainerPage({ place }: { place: Place }) {
  const tab = useSignal<Tab>("items");
  const found = useRead(() => readCollection(place), [place.database, place.container]);
  const collection = found.value.value?.body;
  const hasAdmin = session.value!.overview !== null;
  const tabs: [Tab, string][] = [["items", text("items")], ["scripts", text("scripts")]];
  if (hasAdmin) tabs.push(["changes", text("changes")], ["settings", text("settings")]);
  if (!collection) return found.problem.value ? <Problem of={found.problem.value} /> : <p class="about">{text("loading")}</p>;
  const common = { place, collection };
  return (
    <div class="container-page">
      <div class="tabs">
        <h2>
          <bdi>{place.container}</bdi>
        </h2>
        <Segments label={text("views")} value={tab.value} choices={tabs} onChoose={(t) => (tab.value = t)} />
      </div>
      {collection.partitionKey && (
        <p class="about">
          {text("partitionKey")}: <code>{collection.partitionKey.paths.join(", ")}</code>
        </p>
      )}
      {tab.value === "items" && <Items {...common} />}
      {tab.value === "scripts" && <Scripts {...common} />}
      {tab.value === "changes" && <Changes {...common} />}
      {tab.value === "settings" && <ContainerSettings {...common} changed={found.refresh} />}
    </div>
  );
}

export interface ContainerProperties {
  place: Place;
  collection: Collection;
}

export function Data() {
  const { database, container } = address.value;
  const hasAdmin = session.value!.overview !== null;
  const found = useRead(async () => (hasAdmin ? (await sql<Databases>("GET", ["dbs"])).body.Databases.map((d) => d.id) : []), [live.value?.containersTotal]);
  const dialog = useSignal<"" | "database" | "container">("");
  const databases = found.value.value ?? [];
  const first = containers.value[0];
  useEffect(() => {
    if (!database && first) location.replace(addressOf({ database: first.database, container: first.container }));
  }, [first === undefined]);
  return (
    <div class={hasAdmin ? "explorer" : ""}>
      {hasAdmin && <Tree databases={databases} onNew={(what) => (dialog.value = what)} />}
      <div class="explored">
        <Problem of={found.problem.value} />
        {container ? <ContainerPage key={`${database}/${container}`} place={{ database, container }} /> : database ? <DatabasePage key={database} database={database} onGone={found.refresh} /> : <Notice kind="plain">{text("chooseFromTree")}</Notice>}
      </div>
      {dialog.value === "database" && <NewDatabase onClose={() => (dialog.value = "")} onMade={(id) => (found.refresh(), go({ database: id, container: "" }))} />}
      {dialog.value === "container" && <NewContainer databases={databases} onClose={() => (dialog.value = "")} onMade={(database, container) => go({ database, container })} />}
    </div>
  );
}
