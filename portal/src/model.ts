// What the server says of itself: the shapes of the admin API's answers.

export interface Load {
  items: number;
  bytes: number;
  indexBytes: number;
  logicalPartitions: number;
  shareRuPerSecond: number | null;
  ruPerSecond: number;
  normalizedPercent: number;
  requestsPerSecond: number;
  throttledPerSecond: number;
  latencyAverageUs: number;
  latencyMaxUs: number;
}

export interface Container extends Load {
  database: string;
  container: string;
  api: string;
  partitionKey: string[];
  throughput: { mode: "manual" | "autoscale" | "serverless"; shared: boolean; ruPerSecond: number };
  ranges: number;
  ruByOperation?: Record<string, number>;
}

export interface Range extends Load {
  id: string;
  min: string;
  max: string;
  parents: string[];
  lsn: number;
  segments: number;
  moving: boolean;
  hottest: { key: string; ruPerSecond: number } | null;
}

export interface Reshape {
  number: number;
  time: number;
  kind: "split" | "merge";
  reason: string;
  before: string[];
  after: string[];
  items: number;
  bytes: number;
  tookUs: number;
  heldUs: number;
}

export interface HotKeys {
  byRu: { key: string; range: string; ruPerSecond: number }[];
  bySize: { key: string; range: string; bytes: number; items?: number; exact: boolean }[];
  sizesComplete: boolean;
}

export interface Overview {
  version: string;
  readOnly: boolean;
  limits: { throttling: boolean; partitionRuPerSecond: number; partitionBytes: number; logicalPartitionBytes: number; fixedContainerBytes: number };
  ports: Record<string, number>;
}

export interface RecentRequest {
  number: number;
  time: number;
  api: string;
  verb: string;
  path: string;
  status: number;
  substatus: number;
  ru: number;
  us: number;
  range: string | null;
  failed: boolean;
}

export interface LiveMessage {
  now: number;
  event: number;
  connections: number;
  memoryBytes: number;
  cpuSeconds: number;
  containers: Container[];
  containersTotal: number;
  ranges: Range[];
  requests?: RecentRequest[];
}

// ---- the hash space ----

// Where an effective partition key lies in the hash space, from 0 to 1. Hashes of version 2 are below 40 (hex); those of version 1 are numbers
// written behind 05C1, up to 05C1DF.
export function placeOf(epk: string): number {
  if (epk === "") return 0;
  if (epk.startsWith("FF")) return 1;
  const first = epk.startsWith("05C1") && epk.length < 32;
  const digits = (first ? epk.slice(4) : epk).slice(0, 8).padEnd(8, "0");
  return Math.min(1, parseInt(digits, 16) / (first ? 0xe0000000 : 0x40000000));
}

export const widthOf = (range: Range) => Math.max(0, placeOf(range.max) - placeOf(range.min));
