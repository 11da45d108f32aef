// Numbers with their units, which a no-break space keeps together, in the reader's language.
import { language } from "./i18n";

const number = (value: number, digits: number) => value.toLocaleString(language.value, { maximumFractionDigits: digits });

export const count = (value: number) => number(value, 0);
export const decimal = (value: number, digits = 2) => number(value, digits);
export const ru = (value: number) => `${number(value, value < 100 ? 2 : 0)}\u00a0RU`;
export const ruRate = (value: number) => `${number(value, value < 100 ? 1 : 0)}\u00a0RU/s`;
export const percent = (part: number, digits = 0) => `${number(part * 100, digits)}\u00a0%`;

export function bytes(value: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  for (; value >= 1024 && at < units.length - 1; at++) value /= 1024; // as the server's flags count
  return `${number(value, value < 10 && at > 0 ? 1 : 0)}\u00a0${units[at]}`;
}

export function duration(us: number): string {
  return us < 1000 ? `${number(us, 0)}\u00a0µs` : us < 1e6 ? `${number(us / 1000, 1)}\u00a0ms` : `${number(us / 1e6, 1)}\u00a0s`;
}

export const time = (ms: number) => new Date(ms).toLocaleTimeString(language.value, { hour12: false });
export const hourMinute = (ms: number) => new Date(ms).toLocaleTimeString(language.value, { hour: "2-digit", minute: "2-digit", hour12: false });
export const dateTime = (ms: number) => new Date(ms).toLocaleString(language.value, { dateStyle: "medium", timeStyle: "medium", hour12: false });

// A partition key as the admin API writes it, ["a"], for people.
export function keyText(json: string): string {
  try {
    const values = JSON.parse(json) as unknown[];
    return values.map((value) => (typeof value === "string" ? value : JSON.stringify(value) ?? "–")).join(" / ");
  } catch {
    return json.replace(/^\["?/, "") + "…"; // the server has cut a long one
  }
}
