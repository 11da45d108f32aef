// draw.js — airports and routes as a map in SVG. The same graph always gives the same text.
//
//   draw([{ id: "Seattle", lat: 47, lon: -122, routes: 6 }, …], [{ from: "Seattle", to: "Tokyo" }, …], ["Seattle", "Tokyo"])

const scale = 3.6; // pixels of a degree
const [west, east, north, south] = [-140, 195, 72, -46];
const [width, height] = [(east - west) * scale, (north - south) * scale];
const textSize = 12;

export function draw(places, lines, highlighted) {
  const dots = places.map(dot).sort((a, b) => (a.id < b.id ? -1 : 1));
  const at = new Map(dots.map((place) => [place.id, place]));
  const pairs = lines.filter(({ from, to }) => from < to).sort((a, b) => (a.from + a.to < b.from + b.to ? -1 : 1));
  const onWay = ({ from, to }) => highlighted.some((id, i) => i && [id, highlighted[i - 1]].sort().join() === [from, to].join());
  const curves = (chosen) => pairs.filter(chosen).flatMap(({ from, to }) => curve(at.get(from), at.get(to)));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="${textSize}">
<rect width="${width}" height="${height}" fill="#f6f8fa"/>
<g fill="none" stroke="#9db4c8">
${curves((pair) => !onWay(pair)).join("\n")}
</g>
<g fill="none" stroke="#d9480f" stroke-width="3">
${curves(onWay).join("\n")}
</g>
<g fill="#1f4e79">
${dots.map(({ x, y, r }) => `<circle cx="${x}" cy="${y}" r="${r}"/>`).join("\n")}
</g>
<g fill="#1b1f24" stroke="#f6f8fa" stroke-width="3" paint-order="stroke">
${labels(dots).join("\n")}
</g>
</svg>
`;
}

function dot({ id, lat, lon, routes }) {
  const round = (value) => Math.round(value * 10) / 10;
  return { id, x: round((lon - west) * scale), y: round((north - lat) * scale), r: round(2 + Math.sqrt(routes)) };
}

// A curve that bends to the nearer pole's side. A route over the date line leaves the map at one edge and comes back at the other.
function curve(a, b) {
  const turn = 360 * scale;
  if (Math.abs(a.x - b.x) <= turn / 2) return [arc(a, b)];
  const [left, right] = a.x < b.x ? [a, b] : [b, a];
  return [arc({ ...left, x: left.x + turn }, right), arc(left, { ...right, x: right.x - turn })];
}

function arc(a, b) {
  const up = (a.y + b.y) / 2 < north * scale ? -1 : 1;
  const bend = 0.12 * Math.abs(a.x - b.x) * up;
  return `<path d="M${a.x.toFixed(1)} ${a.y}Q${((a.x + b.x) / 2).toFixed(1)} ${((a.y + b.y) / 2 + bend).toFixed(1)} ${b.x.toFixed(1)} ${b.y}"/>`;
}

// Each label goes to the side of its dot where it covers least of dots and of labels before it, and stays on the map.
function labels(dots) {
  const isOnMap = ({ box }) => box.left > 0 && box.right < width;
  const taken = dots.map(({ x, y, r }) => ({ left: x - r, right: x + r, top: y - r, bottom: y + r }));
  return dots.map((place) => {
    const [best] = sides(place)
      .filter(isOnMap)
      .map((side) => ({ ...side, covered: taken.reduce((sum, box) => sum + overlap(side.box, box), 0) }))
      .sort((a, b) => a.covered - b.covered);
    taken.push(best.box);
    return `<text x="${best.x.toFixed(1)}" y="${best.y.toFixed(1)}" text-anchor="${best.anchor}">${place.id}</text>`;
  });
}

function sides({ id, x, y, r }) {
  const long = id.length * textSize * 0.56;
  const side = (anchor, dx, dy) => {
    const left = x + dx - { start: 0, middle: long / 2, end: long }[anchor];
    const box = { left, right: left + long, top: y + dy - textSize * 0.8, bottom: y + dy + textSize * 0.2 };
    return { anchor, x: x + dx, y: y + dy, box };
  };
  return [side("start", r + 3, 4), side("end", -r - 3, 4), side("middle", 0, -r - 4), side("middle", 0, r + textSize)];
}

function overlap(a, b) {
  const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  return wide > 0 && high > 0 ? wide * high : 0;
}
