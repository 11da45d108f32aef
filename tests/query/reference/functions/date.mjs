// Dates are text, "YYYY-MM-DDThh:mm:ss.fffffffZ"; internally a BigInt of ticks (100 ns) since 1970.

const ticksPer = { day: 864000000000n, hour: 36000000000n, minute: 600000000n, second: 10000000n, millisecond: 10000n, microsecond: 10n };
const form = /^(\d{4})-(\d\d)-(\d\d)(?:Z?|[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,7}))?Z?)$/;
const parts = {};
for (const [name, words] of Object.entries({
  year: "year yyyy yy", month: "month mm m", day: "day dd d", hour: "hour hh", minute: "minute mi n", second: "second ss s",
  millisecond: "millisecond ms", microsecond: "microsecond mcs", nanosecond: "nanosecond ns",
})) {
  for (const word of words.split(" ")) parts[word] = name;
}
const firstTicks = -621355968000000000n; // 0001-01-01
const lastTicks = 2534023007999999999n; // last tick of 9999
const windowsEpoch = -116444736000000000n; // 1601-01-01
const floorDivide = (a, b) => (a % b < 0n ? a / b - 1n : a / b);

function daysInMonth(year, month) {
  return new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate();
}

function daysSince1970(year, month, day) {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return BigInt(date.getTime()) / 86400000n;
}

function ticksOf(year, month, day, hour = 0, minute = 0, second = 0, fraction = 0) {
  const isDate = year >= 1 && year <= 9999 && month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month);
  if (!isDate || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 || fraction < 0 || fraction > 9999999) return undefined;
  return daysSince1970(year, month, day) * ticksPer.day + BigInt((hour * 60 + minute) * 60 + second) * ticksPer.second + BigInt(fraction);
}

export function parseDate(text) {
  if (typeof text !== "string") return undefined;
  const found = form.exec(text);
  if (!found) return undefined;
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map((one) => Number(one ?? 0));
  return ticksOf(year, month, day, hour, minute, second, Number((found[7] ?? "").padEnd(7, "0")));
}

// The time as { year, month, day, hour, minute, second, ticks }.
function fields(ticks) {
  const days = floorDivide(ticks, ticksPer.day);
  const rest = ticks - days * ticksPer.day;
  const date = new Date(Number(days) * 86400000);
  return {
    year: date.getUTCFullYear(),
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    hour: Number(rest / ticksPer.hour),
    minute: Number((rest / ticksPer.minute) % 60n),
    second: Number((rest / ticksPer.second) % 60n),
    ticks: Number(rest % ticksPer.second),
  };
}

const pad = (n, width) => String(n).padStart(width, "0");

function writeDate(ticks) {
  if (ticks === undefined || ticks < firstTicks || ticks > lastTicks) return undefined;
  const f = fields(ticks);
  return `${pad(f.year, 4)}-${pad(f.month, 2)}-${pad(f.day, 2)}T${pad(f.hour, 2)}:${pad(f.minute, 2)}:${pad(f.second, 2)}.${pad(f.ticks, 7)}Z`;
}

// Adds months; the day becomes the month's last if the month is shorter.
function addMonths(ticks, n) {
  const f = fields(ticks);
  const month = f.year * 12 + f.month - 1 + n;
  const [year, inYear] = [Math.floor(month / 12), (((month % 12) + 12) % 12) + 1];
  if (year < 1 || year > 9999) return undefined;
  const days = daysSince1970(year, inYear, Math.min(f.day, daysInMonth(year, inYear))) - daysSince1970(f.year, f.month, f.day);
  return ticks + days * ticksPer.day;
}

function add(part, n, ticks) {
  const name = typeof part === "string" ? parts[part] : undefined;
  if (name === undefined || ticks === undefined || !Number.isInteger(n)) return undefined;
  if (name === "year" || name === "month") return addMonths(ticks, name === "year" ? n * 12 : n);
  if (name === "nanosecond") return ticks + floorDivide(BigInt(n), 100n);
  return ticks + BigInt(n) * ticksPer[name];
}

const monthNumber = (ticks) => fields(ticks).year * 12 + fields(ticks).month - 1;

// The number of boundaries of the part between two times.
function difference([part, from, to]) {
  const [name, a, b] = [parts[part], parseDate(from), parseDate(to)];
  if (typeof part !== "string" || name === undefined || a === undefined || b === undefined) return undefined;
  if (name === "year") return fields(b).year - fields(a).year;
  if (name === "month") return monthNumber(b) - monthNumber(a);
  if (name === "nanosecond") return Number((b - a) * 100n);
  return Number(floorDivide(b, ticksPer[name]) - floorDivide(a, ticksPer[name]));
}

function bin([text, part, size = 1, start = "1970-01-01T00:00:00.0000000Z"]) {
  const [ticks, name, origin] = [parseDate(text), parts[part], parseDate(start)];
  if (ticks === undefined || name === undefined || origin === undefined || origin < windowsEpoch) return undefined;
  if (!Number.isInteger(size) || size <= 0) return undefined;
  if (name === "year" || name === "month") {
    const width = name === "year" ? size * 12 : size;
    let n = Math.floor((monthNumber(ticks) - monthNumber(origin)) / width);
    while (addMonths(origin, n * width) > ticks) n--;
    return writeDate(addMonths(origin, n * width));
  }
  const width = name === "nanosecond" ? BigInt(Math.max(1, Math.floor(size / 100))) : BigInt(size) * ticksPer[name];
  return writeDate(origin + floorDivide(ticks - origin, width) * width);
}

const wholes = (args) => args.every(Number.isInteger);

function part([word, text]) {
  const [name, ticks] = [parts[word], parseDate(text)];
  if (typeof word !== "string" || name === undefined || ticks === undefined) return undefined;
  const f = fields(ticks);
  const fractions = { millisecond: Math.floor(f.ticks / 10000), microsecond: Math.floor(f.ticks / 10), nanosecond: f.ticks * 100 };
  return fractions[name] ?? f[name];
}

// yyyy MM dd HH mm ss fff FFF and their shorter forms; a backslash makes the next character literal.
function format([text, pattern]) {
  const ticks = parseDate(text);
  if (ticks === undefined || typeof pattern !== "string") return undefined;
  const f = fields(ticks);
  const fraction = (n) => pad(f.ticks, 7).slice(0, n);
  const write = {
    y: (n) => (n <= 2 ? pad(f.year % 100, n) : pad(f.year, n)),
    M: (n) => pad(f.month, n),
    d: (n) => pad(f.day, n),
    H: (n) => pad(f.hour, n),
    h: (n) => pad(f.hour % 12 || 12, n),
    m: (n) => pad(f.minute, n),
    s: (n) => pad(f.second, n),
    f: fraction,
    F: (n) => fraction(n).replace(/0+$/, ""),
  };
  return pattern.replace(/\\(.)|([yMdHhmsfF])\2*/g, (run, literal, letter) => literal ?? write[letter](run.length));
}

const at = (context) => context.now ?? BigInt(Date.now()) * 10000n;

export const dates = [
  ["DATETIMEADD", 3, 3, ([word, n, text]) => writeDate(add(word, n, parseDate(text)))],
  ["DATETIMEBIN", 2, 4, bin],
  ["DATETIMEDIFF", 3, 3, difference],
  ["DATETIMEFORMAT", 2, 2, format],
  ["DATETIMEFROMPARTS", 3, 7, (args) => (wholes(args) ? writeDate(ticksOf(...args)) : undefined)],
  ["DATETIMEPART", 2, 2, part],
  ["DATETIMETOTICKS", 1, 1, ([text]) => toNumber(parseDate(text))],
  ["DATETIMETOTIMESTAMP", 1, 1, ([text]) => toNumber(divide(parseDate(text), 10000n))],
  ["TICKSTODATETIME", 1, 1, ([n]) => (Number.isInteger(n) ? writeDate(BigInt(n)) : undefined)],
  ["TIMESTAMPTODATETIME", 1, 1, ([n]) => (Number.isInteger(n) ? writeDate(BigInt(n) * 10000n) : undefined)],
  ["YEAR", 1, 1, ([text]) => part(["year", text])],
  ["MONTH", 1, 1, ([text]) => part(["month", text])],
  ["DAY", 1, 1, ([text]) => part(["day", text])],
  ["GETCURRENTDATETIME GETCURRENTDATETIMESTATIC", 0, 0, (args, context) => writeDate(at(context))],
  ["GETCURRENTTICKS GETCURRENTTICKSSTATIC", 0, 0, (args, context) => Number(at(context))],
  ["GETCURRENTTIMESTAMP GETCURRENTTIMESTAMPSTATIC", 0, 0, (args, context) => Number(at(context) / 10000n)],
  ["NOW", 0, 2, ([word, n], context) => (word === undefined ? writeDate(at(context)) : writeDate(add(word, n, at(context))))],
  ["AGO", 2, 2, ([word, n], context) => writeDate(add(word, typeof n === "number" ? -n : undefined, at(context)))],
];

function divide(a, b) {
  return a === undefined ? undefined : floorDivide(a, b);
}

function toNumber(n) {
  return n === undefined ? undefined : Number(n);
}
