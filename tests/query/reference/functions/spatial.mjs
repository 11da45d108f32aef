// GeoJSON on the WGS-84 ellipsoid. Distances between points are exact (Vincenty). Containment treats shapes as flat in degrees, which is
// accurate for shapes of some kilometres; cases and random queries use no larger ones.

import { typeOf } from "../values.mjs";

const radians = (degrees) => (degrees * Math.PI) / 180;
const [a, flattening] = [6378137, 1 / 298.257223563];
const b = a * (1 - flattening);

// ---- validity ----

const isPosition = (one) => Array.isArray(one) && (one.length === 2 || one.length === 3) && one.every(Number.isFinite);
const positions = (shape) => {
  if (shape.type === "Point") return [shape.coordinates];
  if (shape.type === "LineString") return shape.coordinates;
  return shape.type === "Polygon" ? shape.coordinates.flat(1) : shape.coordinates.flat(2);
};

// Why the shape is invalid, or undefined.
function fault(shape) {
  if (typeOf(shape) !== "object") return "The spatial expression must be an object.";
  const forms = {
    Point: isPosition,
    LineString: (list) => isList(list) && list.length >= 2 && list.every(isPosition),
    Polygon: isPolygon,
    MultiPolygon: (list) => isList(list) && list.every(isPolygon),
  };
  if (!Object.hasOwn(forms, String(shape.type)) || !forms[shape.type](shape.coordinates)) return "The coordinates do not make such a shape.";
  for (const [longitude, latitude] of positions(shape)) {
    if (Math.abs(latitude) > 90) return "Latitude values must be between -90 and 90 degrees.";
    if (Math.abs(longitude) > 180) return "Longitude values must be between -180 and 180 degrees.";
  }
}

const isList = Array.isArray;
const isRing = (ring) => isList(ring) && ring.length >= 4 && ring.every(isPosition) && ring[0].every((one, i) => one === ring.at(-1)[i]);
function isPolygon(rings) {
  return isList(rings) && rings.length > 0 && rings.every(isRing);
}

const valid = (operation) => (shapes) => (shapes.some(fault) ? undefined : operation(...shapes));

// ---- measures ----

function distanceOfPoints([x1, y1], [x2, y2]) {
  if (x1 === x2 && y1 === y2) return 0;
  const [u1, u2] = [y1, y2].map((y) => Math.atan((1 - flattening) * Math.tan(radians(y))));
  const across = radians(x2 - x1);
  let lambda = across;
  let step;
  for (let i = 0; i < 200; i++) {
    step = arc(u1, u2, lambda);
    const c = (flattening / 16) * step.cos2Alpha * (4 + flattening * (4 - 3 * step.cos2Alpha));
    const inner = step.cos2m + c * step.cos * (-1 + 2 * step.cos2m ** 2);
    const next = across + (1 - c) * flattening * step.sinAlpha * (step.sigma + c * step.sin * inner);
    if (Math.abs(next - lambda) < 1e-14) break;
    lambda = next;
  }
  const u = (step.cos2Alpha * (a * a - b * b)) / (b * b);
  const k = 1 + (u / 16384) * (4096 + u * (-768 + u * (320 - 175 * u)));
  const l = (u / 1024) * (256 + u * (-128 + u * (74 - 47 * u)));
  const far = step.cos * (-1 + 2 * step.cos2m ** 2) - (l / 6) * step.cos2m * (-3 + 4 * step.sin ** 2) * (-3 + 4 * step.cos2m ** 2);
  return b * k * (step.sigma - l * step.sin * (step.cos2m + (l / 4) * far));
}

function arc(u1, u2, lambda) {
  const sin = Math.hypot(Math.cos(u2) * Math.sin(lambda), Math.cos(u1) * Math.sin(u2) - Math.sin(u1) * Math.cos(u2) * Math.cos(lambda));
  const cos = Math.sin(u1) * Math.sin(u2) + Math.cos(u1) * Math.cos(u2) * Math.cos(lambda);
  const sinAlpha = (Math.cos(u1) * Math.cos(u2) * Math.sin(lambda)) / sin;
  const cos2Alpha = 1 - sinAlpha ** 2;
  const cos2m = cos2Alpha === 0 ? 0 : cos - (2 * Math.sin(u1) * Math.sin(u2)) / cos2Alpha;
  return { sin, cos, sigma: Math.atan2(sin, cos), sinAlpha, cos2Alpha, cos2m };
}

const segments = (line) => line.slice(1).map((end, i) => [line[i], end]);
const polygons = (shape) => (shape.type === "Polygon" ? [shape.coordinates] : shape.type === "MultiPolygon" ? shape.coordinates : []);
const edges = (shape) => (shape.type === "LineString" ? segments(shape.coordinates) : polygons(shape).flat(1).flatMap(segments));

// The nearest point of the segment, in degrees scaled to the latitude.
function nearest([x, y], [[x1, y1], [x2, y2]]) {
  const scale = Math.cos(radians(y));
  const [dx, dy] = [(x2 - x1) * scale, y2 - y1];
  const along = dx === 0 && dy === 0 ? 0 : ((x - x1) * scale * dx + (y - y1) * dy) / (dx * dx + dy * dy);
  const t = Math.min(1, Math.max(0, along));
  return [x1 + t * (x2 - x1), y1 + t * (y2 - y1)];
}

function distance(one, other) {
  if (intersects(one, other)) return 0;
  const ways = [];
  for (const [from, to] of [[one, other], [other, one]]) {
    for (const point of positions(from)) {
      const targets = to.type === "Point" ? [to.coordinates] : edges(to).map((edge) => nearest(point, edge));
      ways.push(...targets.map((target) => distanceOfPoints(point, target)));
    }
  }
  return Math.min(...ways);
}

function isInRing([x, y], ring) {
  let inside = false;
  for (const [[x1, y1], [x2, y2]] of segments(ring)) {
    if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) inside = !inside;
  }
  return inside;
}

const isInside = (point, shape) => polygons(shape).some(([outer, ...holes]) => isInRing(point, outer) && !holes.some((hole) => isInRing(point, hole)));

function crosses([p, q], [r, s]) {
  const side = ([x1, y1], [x2, y2], [x, y]) => Math.sign((x2 - x1) * (y - y1) - (y2 - y1) * (x - x1));
  return side(p, q, r) !== side(p, q, s) && side(r, s, p) !== side(r, s, q);
}

const isOn = (point, edge) => nearest(point, edge).every((one, i) => Math.abs(one - point[i]) < 1e-12);

function intersects(one, other) {
  const points = (shape) => positions(shape);
  if (one.type === "Point" && other.type === "Point") return one.coordinates.every((c, i) => c === other.coordinates[i]);
  if (points(one).some((point) => isInside(point, other) || edges(other).some((edge) => isOn(point, edge)))) return true;
  if (points(other).some((point) => isInside(point, one) || edges(one).some((edge) => isOn(point, edge)))) return true;
  return edges(one).some((edge) => edges(other).some((against) => crosses(edge, against)));
}

function within(one, other) {
  if (polygons(other).length === 0) return one.type === "Point" ? intersects(one, other) : false;
  return positions(one).every((point) => isInside(point, other)) && !edges(one).some((edge) => edges(other).some((against) => crosses(edge, against)));
}

// On the sphere of equal area, by authalic latitudes.
function ringArea(ring) {
  const e = Math.sqrt(1 - (b * b) / (a * a));
  const q = (y) => {
    const s = Math.sin(y);
    return (1 - e * e) * (s / (1 - e * e * s * s) - (1 / (2 * e)) * Math.log((1 - e * s) / (1 + e * s)));
  };
  const sum = segments(ring).reduce((total, [[x1, y1], [x2, y2]]) => total + radians(x2 - x1) * (q(radians(y1)) + q(radians(y2))), 0);
  return Math.abs((a * a * sum) / 4);
}

function area(shape) {
  return polygons(shape).reduce((total, [outer, ...holes]) => total + ringArea(outer) - holes.reduce((sum, hole) => sum + ringArea(hole), 0), 0);
}

function detailed([shape]) {
  const reason = fault(shape);
  return reason ? { valid: false, reason } : { valid: true };
}

export const spatials = [
  ["ST_AREA", 1, 1, valid(area)],
  ["ST_DISTANCE", 2, 2, valid(distance)],
  ["ST_INTERSECTS", 2, 2, valid(intersects)],
  ["ST_ISVALID", 1, 1, ([shape]) => !fault(shape)],
  ["ST_ISVALIDDETAILED", 1, 1, detailed],
  ["ST_WITHIN", 2, 2, valid(within)],
];
