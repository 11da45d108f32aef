// A small chart of the last minutes: drawn as SVG, with its highest value as the scale.
import * as format from "../format";

export function Spark({ values, unit, label }: { values: number[]; unit: string; label: string }) {
  const most = Math.max(...values, 1);
  const points = values.map((value, i) => `${(i / Math.max(1, values.length - 1)) * 100},${40 - (value / most) * 38}`);
  return (
    <figure class="spark">
      <svg viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={`${label}: ${format.decimal(most)} ${unit}`}>
        <polyline points={points.join(" ")} vectorEffect="non-scaling-stroke" />
      </svg>
      <figcaption>
        {format.decimal(most)} {unit}
      </figcaption>
    </figure>
  );
}
