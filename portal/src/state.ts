// What all views share: the session, the address, and the server's live figures.
import { computed, effect, signal } from "@preact/signals";
import { bearer, forgetKey } from "./api";
import type { Container, LiveMessage, Overview, Range, RecentRequest } from "./model";

// ---- session ----

export interface Session {
  overview: Overview | null; // null: signed in with a resource token, which reads items only
  readOnly: boolean;
}
export const session = signal<Session | null>(null);
export const canWrite = computed(() => session.value !== null && !session.value.readOnly);

export function signOut() {
  forgetKey();
  disconnect();
  session.value = null;
  requests.value = [];
  live.value = null;
}

// ---- address: #/view/database/container ----

export interface Address {
  view: string;
  database: string;
  container: string;
}

function decode(part: string | undefined): string {
  try {
    return decodeURIComponent(part ?? "");
  } catch {
    return "";
  }
}

function readAddress(): Address {
  const [, view, database, container] = location.hash.split("/");
  return { view: decode(view) || "partitions", database: decode(database), container: decode(container) };
}
export const address = signal(readAddress());
addEventListener("hashchange", () => (address.value = readAddress()));

export function addressOf(change: Partial<Address>): string {
  const { view, database, container } = { ...address.value, ...change };
  return "#" + [view, database, container].filter((part) => part !== "").map((part) => "/" + encodeURIComponent(part)).join("");
}
export const go = (change: Partial<Address>) => void (location.hash = addressOf(change));

// ---- live figures ----

export const live = signal<LiveMessage | null>(null);
export const connected = signal(false);
export const requests = signal<RecentRequest[]>([]);
export const containers = computed<Container[]>(() => live.value?.containers ?? []);
export const container = computed<Container | undefined>(() =>
  containers.value.find((c) => c.database === address.value.database && c.container === address.value.container),
);
// Rows of the Cassandra API need timestamps of its own; the SQL API, which this page uses, only reads them.
export const canWriteItems = computed(() => canWrite.value && container.value?.api !== "cassandra");
// Scripts and settings of containers that another API has made are that API's.
export const isForeign = computed(() => !["sql", "", undefined].includes(container.value?.api));
export const ranges = computed<Range[]>(() => (container.value ? (live.value?.ranges ?? []) : []));

const REQUESTS_KEPT = 500;
let socket: WebSocket | null = null;
let retry: ReturnType<typeof setTimeout> | undefined;
let wait = 500;

function choice() {
  const { view, database, container } = address.value;
  return { database, container, requests: view === "requests" };
}

function receive(message: LiveMessage) {
  live.value = message;
  if (message.requests?.length) {
    const newest = requests.value.at(-1)?.number ?? 0;
    requests.value = [...requests.value, ...message.requests.filter((r) => r.number > newest)].slice(-REQUESTS_KEPT);
  }
}

export function connect() {
  disconnect();
  const opened = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/_tesela/live`);
  socket = opened;
  opened.onopen = () => {
    const key = bearer();
    opened.send(JSON.stringify({ ...(key ? { authorization: `Bearer ${key}` } : {}), ...choice() }));
  };
  opened.onmessage = (event) => {
    connected.value = true;
    wait = 500;
    receive(JSON.parse(event.data as string) as LiveMessage);
  };
  opened.onclose = (event) => {
    if (socket !== opened) return;
    connected.value = false;
    if (event.code === 4401) return signOut();
    retry = setTimeout(connect, wait);
    wait = Math.min(wait * 2, 10_000);
  };
}

export function disconnect() {
  clearTimeout(retry);
  const closing = socket;
  socket = null;
  connected.value = false;
  closing?.close();
}

let told = "";
effect(() => {
  const next = JSON.stringify(choice());
  if (next !== told && socket?.readyState === WebSocket.OPEN) socket.send(next);
  told = next;
});

// A page that nobody sees asks for nothing.
document.addEventListener("visibilitychange", () => {
  if (!session.value?.overview) return;
  if (document.hidden) disconnect();
  else if (!socket) connect();
});
