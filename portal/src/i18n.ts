// The texts of the portal, in English and Spanish. `text` is reactive: what calls it is drawn again when the language changes.
import { effect, signal } from "@preact/signals";
import { en } from "./texts/en";
import { es } from "./texts/es";

export type Texts = { [name in keyof typeof en]: string };
export type TextName = keyof typeof en;
const all: Record<string, Texts> = { en, es };

function preferred(): string {
  const kept = localStorage.getItem("language");
  return kept && kept in all ? kept : navigator.language.startsWith("es") ? "es" : "en";
}

export const language = signal(preferred());
effect(() => void (document.documentElement.lang = language.value));

export function chooseLanguage(name: string) {
  language.value = name;
  localStorage.setItem("language", name);
}

// A text with its places {name} filled in.
export function text(name: TextName, values: Record<string, string | number> = {}): string {
  return all[language.value]![name].replace(/\{(\w+)\}/g, (place, key: string) => String(values[key] ?? place));
}

// A text with a form for one and a form for other numbers: "{n} row|{n} rows".
export function counted(name: TextName, n: number): string {
  const [one, other] = all[language.value]![name].split("|");
  const form = new Intl.PluralRules(language.value).select(n) === "one" ? one! : other!;
  return form.replace("{n}", n.toLocaleString(language.value));
}
