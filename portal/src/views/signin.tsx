// Signing in: the key is tried with one request, and kept in memory only.
import { useSignal } from "@preact/signals";
import { admin, ApiError, forgetKey, hasToken, sql, useKey } from "../api";
import { text } from "../i18n";
import type { Overview } from "../model";
import { Notice, problemText } from "../parts/common";
import { address, connect, go, session } from "../state";
import { LanguageChoice } from "./shell";

// Public: the emulator of Azure Cosmos DB has the same one everywhere. Servers accept it on loopback only.
const emulatorKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);

async function signInWithKey() {
  const overview = await admin<Overview>("");
  session.value = { overview, readOnly: overview.readOnly };
  connect();
}

async function signInWithToken(database: string, container: string) {
  if (!database || !container) throw new Error(text("tokenNeeds"));
  await sql("GET", ["dbs", database, "colls", container]);
  session.value = { overview: null, readOnly: false };
  go({ view: "data", database, container });
}

export function SignIn() {
  const key = useSignal("");
  const database = useSignal(address.value.database);
  const container = useSignal(address.value.container);
  const problem = useSignal("");
  const busy = useSignal(false);
  const isToken = key.value.trim().startsWith("type=resource");

  async function submit(value: string) {
    busy.value = true;
    problem.value = "";
    try {
      await useKey(value);
      await (hasToken() ? signInWithToken(database.value, container.value) : signInWithKey());
    } catch (why) {
      forgetKey();
      problem.value = why instanceof DOMException ? text("badKey") : why instanceof ApiError && why.status === 401 ? text("wrongKey") : problemText(why);
    }
    busy.value = false;
  }

  return (
    <main class="signin">
      <form
        onSubmit={(e) => {
          e.preventDefault();
          void submit(key.value);
        }}
      >
        <h1>tesela</h1>
        <p class="about">{text("signInAbout")}</p>
        <label>
          {text("key")}
          <input type="password" name="key" autocomplete="off" spellcheck={false} required value={key.value} onInput={(e) => (key.value = e.currentTarget.value)} />
        </label>
        {isToken && (
          <>
            <label>
              {text("tokenDatabase")}
              <input value={database.value} onInput={(e) => (database.value = e.currentTarget.value)} />
            </label>
            <label>
              {text("tokenContainer")}
              <input value={container.value} onInput={(e) => (container.value = e.currentTarget.value)} />
            </label>
          </>
        )}
        {problem.value && <Notice kind="error">{problem.value}</Notice>}
        <div class="buttons">
          <button type="submit" disabled={busy.value}>
            {text("signIn")}
          </button>
          {isLocal && (
            <button type="button" class="quiet" disabled={busy.value} onClick={() => void submit(emulatorKey)}>
              {text("emulatorKey")}
            </button>
          )}
        </div>
        <LanguageChoice />
      </form>
    </main>
  );
}
