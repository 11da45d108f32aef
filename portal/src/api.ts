// Requests to the server that serves this page: signed in the browser, so that the key itself is not sent. The key is only in this module's memory.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Item = { [name: string]: Json };

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryMs = 0,
    readonly substatus = 0,
  ) {
    super(message);
  }
}

export interface Answer<T> {
  body: T;
  charge: number;
  ms: number;
  continuation: string | null;
  etag: string | null;
  headers: Headers;
}

interface Credentials {
  key?: CryptoKey; // signs
  bearer?: string; // the key's text, for the one request that cannot be signed: the event stream
  token?: string; // a resource token
}
let credentials: Credentials = {};

export async function useKey(text: string): Promise<void> {
  const trimmed = text.trim();
  if (trimmed.startsWith("type=resource")) {
    credentials = { token: trimmed };
    return;
  }
  const bytes = Uint8Array.from(atob(trimmed), (c) => c.charCodeAt(0));
  const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  credentials = { key, bearer: trimmed };
}

export const forgetKey = () => void (credentials = {});
export const bearer = () => credentials.bearer;
export const hasToken = () => credentials.token !== undefined;

async function authorization(verb: string, type: string, link: string, date: string): Promise<string> {
  if (credentials.token) return encodeURIComponent(credentials.token);
  if (!credentials.key) return "";
  const text = `${verb.toLowerCase()}\n${type.toLowerCase()}\n${link}\n${date.toLowerCase()}\n\n`;
  const mac = await crypto.subtle.sign("HMAC", credentials.key, new TextEncoder().encode(text));
  const signature = btoa(String.fromCharCode(...new Uint8Array(mac)));
  return encodeURIComponent(`type=master&ver=1.0&sig=${signature}`);
}

interface Options {
  headers?: Record<string, string>;
  body?: unknown;
  signal?: AbortSignal;
}

async function send<T>(verb: string, path: string, type: string, link: string, { headers = {}, body, signal }: Options): Promise<Answer<T>> {
  const date = new Date().toUTCString();
  const started = performance.now();
  const fields: Record<string, string> = { "x-ms-date": date, "x-ms-version": "2020-07-15", "content-type": "application/json", ...headers };
  const proof = await authorization(verb, type, link, date);
  if (proof) fields.authorization = proof;
  const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
  const init: RequestInit = { method: verb, headers: fields, cache: "no-store", credentials: "omit", redirect: "error" };
  if (text !== undefined) init.body = text;
  if (signal) init.signal = signal;
  const response = await fetch(path, init).catch((why: Error) => {
    throw why.name === "AbortError" ? why : new ApiError(0, "Offline", "");
  });
  const answer = await response.text();
  const parsed = answer ? (JSON.parse(answer) as unknown) : undefined;
  if (!response.ok && response.status !== 304) {
    const problem = (parsed ?? {}) as { code?: string; message?: string };
    const message = (problem.message ?? response.statusText).split(/\r?\nActivityId/)[0]!;
    throw new ApiError(response.status, problem.code ?? "", message, Number(response.headers.get("x-ms-retry-after-ms") ?? 0), Number(response.headers.get("x-ms-substatus") ?? 0));
  }
  return {
    body: parsed as T,
    charge: Number(response.headers.get("x-ms-request-charge") ?? 0),
    ms: performance.now() - started,
    continuation: response.headers.get("x-ms-continuation"),
    etag: response.headers.get("etag"),
    headers: response.headers,
  };
}

// ---- the admin API ----

export async function admin<T>(path: string, parameters: Record<string, string | number | undefined> = {}): Promise<T> {
  const query = Object.entries(parameters)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(value!)}`)
    .join("&");
  return (await send<T>("GET", `/_tesela/${path}${query && `?${query}`}`, "", "", {})).body;
}

export async function adminPost<T>(path: string, body: unknown): Promise<T> {
  return (await send<T>("POST", `/_tesela/${path}`, "", "", { body })).body;
}

// ---- the SQL API ----

// A path of names and types, such as ["dbs", "shop", "colls"]; a feed has an odd number of parts.
export function sql<T>(verb: string, parts: string[], options: Options = {}): Promise<Answer<T>> {
  const isFeed = parts.length % 2 === 1;
  const type = parts[parts.length - (isFeed ? 1 : 2)] ?? "";
  const names = isFeed ? parts.slice(0, -1) : parts;
  const link = type === "offers" && !isFeed ? names[names.length - 1]!.toLowerCase() : names.join("/");
  return send<T>(verb, "/" + parts.map(encodeURIComponent).join("/"), type, link, options);
}

export const keyHeader = (key: Json[] | undefined): Record<string, string> =>
  key === undefined ? {} : { "x-ms-documentdb-partitionkey": ascii(JSON.stringify(key)) };

// Header fields are ASCII: other characters are escaped as JSON has it.
export const ascii = (text: string) => text.replace(/[\u007f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

export interface Query {
  query: string;
  parameters: { name: string; value: Json }[];
}

export interface Page {
  Documents: Json[];
}

export function queryItems(database: string, container: string, query: Query, options: { limit: number; continuation?: string | null; key?: Json[] | undefined }) {
  const headers: Record<string, string> = {
    "content-type": "application/query+json",
    "x-ms-documentdb-isquery": "True",
    "x-ms-documentdb-query-enablecrosspartition": "True",
    "x-ms-max-item-count": String(options.limit),
    ...keyHeader(options.key),
  };
  if (options.continuation) headers["x-ms-continuation"] = options.continuation;
  return sql<Page>("POST", ["dbs", database, "colls", container, "docs"], { headers, body: query });
}
