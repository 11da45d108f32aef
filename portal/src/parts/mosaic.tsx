// The mosaic: a tile for each physical partition, along the hash space.
import { useRef } from "preact/hooks";
import * as format from "../format";
import { text } from "../i18n";
import { widthOf, type Range } from "../model";

export type Metric = "storage" | "heat";

const LEVELS = 5;

export function valueOf(range: Range, metric: Metric): number {
  return metric === "storage" ? range.bytes + range.indexBytes : range.ruPerSecond;
}

// How far a tile is from what its width lets one expect, in levels: 0 is empty or below, 2 is its due, 4 is three times as much and more.
// Heat also counts what the partition spends of its share.
function level(range: Range, metric: Metric, total: number): number {
  const due = total * widthOf(range);
  const times = due > 0 ? valueOf(range, metric) / due : 0;
  const strained = metric === "heat" ? range.normalizedPercent / 100 : 0;
  const byTimes = times < 0.1 ? 0 : times < 0.6 ? 1 : times < 1.6 ? 2 : times < 3 ? 3 : 4;
  const byStrain = strained < 0.7 ? 0 : strained < 0.95 ? 3 : 4;
  return Math.min(LEVELS - 1, metric === "heat" ? Math.max(byStrain, Math.min(byTimes, byStrain || 3)) : byTimes);
}

interface Properties {
  ranges: Range[];
  metric: Metric;
  selected: string;
  onSelect: (id: string) => void;
}

export function Mosaic({ ranges, metric, selected, onSelect }: Properties) {
  const list = useRef<HTMLDivElement>(null);
  const total = ranges.reduce((sum, range) => sum + valueOf(range, metric), 0);
  const most = Math.max(...ranges.map((range) => valueOf(range, metric)), 1e-9);
  const move = (by: number) => {
    const tiles = [...list.current!.querySelectorAll("button")];
    const at = tiles.indexOf(document.activeElement as HTMLButtonElement);
    tiles[Math.min(tiles.length - 1, Math.max(0, at + by))]?.focus();
  };
  const onKey = (e: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1, Home: -1e6, End: 1e6 }[e.key];
    if (by) {
      e.preventDefault();
      move(by);
    }
  };
  return (
    <div class="mosaic" role="group" aria-label={text("mosaic")} ref={list} onKeyDown={onKey}>
      {ranges.map((range) => (
        <Tile key={range.id} range={range} metric={metric} level={level(range, metric, total)} height={valueOf(range, metric) / most} selected={range.id === selected} onSelect={onSelect} />
      ))}
    </div>
  );
}

interface TileProperties {
  range: Range;
  metric: Metric;
  level: number;
  height: number; // of the bar, from 0 to 1
  selected: boolean;
  onSelect: (id: string) => void;
}

function Tile({ range, metric, level, height, selected, onSelect }: TileProperties) {
  const width = widthOf(range);
  const label = text("tileLabel", {
    id: range.id,
    width: format.percent(width, 1),
    bytes: format.bytes(range.bytes + range.indexBytes),
    items: format.count(range.items),
    ru: format.ruRate(range.ruPerSecond),
  });
  return (
    <button
      type="button"
      class={`tile level${level}`}
      style={{ flexGrow: Math.max(width, 0.002) * 1000 }}
      aria-pressed={selected}
      aria-label={label}
      title={label}
      data-range={range.id}
      data-level={level}
      data-height={height.toFixed(3)}
      onClick={() => onSelect(range.id)}
    >
      <span class="bar" style={{ height: `${Math.max(height * 100, height > 0 ? 1.5 : 0)}%` }} />
      <span class="name">{range.id}</span>
      <span class="value">{metric === "storage" ? format.bytes(valueOf(range, metric)) : format.ruRate(range.ruPerSecond)}</span>
      {range.throttledPerSecond > 0 && <span class="alert">429</span>}
    </button>
  );
}
