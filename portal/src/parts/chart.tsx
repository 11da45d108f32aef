// Charts over time: uPlot with the page's colours, drawn again when the page becomes wider or dark.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import * as format from "../format";
import { language } from "../i18n";

export interface Series {
  name: string;
  colour: string; // the name of a variable of style.css
  values: (number | null)[];
  fill?: boolean;
  steps?: boolean; // a value holds until the next one
}

interface Properties {
  label: string;
  times: number[]; // seconds
  series: Series[];
  unit: string;
  stacked?: boolean;
  height?: number;
}

const colourOf = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Each series is drawn on top of those before it.
function stack(series: Series[]): (number | null)[][] {
  const sums: number[] = [];
  return series.map((s) => s.values.map((value, i) => (sums[i] = (sums[i] ?? 0) + (value ?? 0))));
}

// Of stacked series, the last one reaches highest: it is drawn first, the others over it.
function dataOf({ times, series, stacked }: Properties): uPlot.AlignedData {
  const values = stacked ? stack(series).reverse() : series.map((s) => s.values);
  return [times, ...values] as uPlot.AlignedData;
}

function optionsOf(p: Properties, width: number): uPlot.Options {
  const ink = colourOf("faint"), line = colourOf("line");
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui, sans-serif" };
  const drawn = p.stacked ? [...p.series].reverse() : p.series;
  return {
    width,
    height: p.height ?? 220,
    cursor: { y: false },
    legend: { show: false },
    scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(most * 1.08, 1)] } },
    axes: [
      { ...axis, values: (_, ticks) => ticks.map((t) => format.hourMinute(t * 1000)) },
      { ...axis, size: 64, values: (_, ticks) => ticks.map((v) => format.decimal(v, 1)), label: p.unit, labelFont: "12px system-ui, sans-serif", labelSize: 18 },
    ],
    series: [
      {},
      ...drawn.map((s) => ({
        label: s.name,
        stroke: colourOf(s.colour),
        width: 1.5,
        points: { show: false },
        ...(s.fill || p.stacked ? { fill: colourOf(s.colour) + (p.stacked ? "" : "33") } : {}),
        ...(s.steps ? { paths: uPlot.paths.stepped!({ align: 1 }), dash: [6, 4] } : {}),
      })),
    ],
  };
}

const lastOf = (s: Series) => s.values.at(-1) ?? 0;
const mostOf = (s: Series) => s.values.reduce<number>((most, v) => Math.max(most, v ?? 0), 0);

export function Chart(properties: Properties) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const names = properties.series.map((s) => s.name).join();
  useEffect(() => {
    const element = place.current!;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(optionsOf(properties, element.clientWidth), dataOf(properties), element);
    };
    draw();
    const resized = new ResizeObserver(() => plot.current!.width !== element.clientWidth && plot.current!.setSize({ width: element.clientWidth, height: properties.height ?? 220 }));
    resized.observe(element);
    dark.addEventListener("change", draw);
    return () => {
      resized.disconnect();
      dark.removeEventListener("change", draw);
      plot.current?.destroy();
    };
  }, [names, language.value]);
  useEffect(() => plot.current?.setData(dataOf(properties)), [properties.times, properties.series]);
  return (
    <figure class="chart">
      <div ref={place} role="img" aria-label={`${properties.label}: ${properties.series.map((s) => `${s.name} ${format.decimal(lastOf(s), 1)} ${properties.unit}`).join(", ")}`} />
      <figcaption>
        {properties.series.map((s) => (
          <span key={s.name} class={`key ${s.colour}`}>
            {s.name}
            <small>
              {format.decimal(lastOf(s), 1)} · max {format.decimal(mostOf(s), 1)}
            </small>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}
