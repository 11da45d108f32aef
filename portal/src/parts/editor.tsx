// A text editor: CodeMirror, loaded when one is first shown. It is in a shadow tree, where it adds its styles as sheets: in the document itself
// it would add a style element, which the page's policy forbids. The page's colours reach it as variables.
import { autocompletion, closeBrackets, completionKeymap, type CompletionSource } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { sql, SQLDialect } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";

export type Language = "sql" | "json" | "javascript";

const keywords =
  "select value distinct top from in join where and or not between like escape is null undefined true false order by asc desc rank group offset limit as exists array udf";
const functions =
  "abs array_concat array_contains array_length array_slice avg ceiling concat contains count datetimeadd datetimediff datetimepart endswith floor getcurrentdatetime iif index_of is_array is_bool is_defined is_number is_object is_string left length lower ltrim max min objecttoarray power regexmatch replace reverse right round rtrim sqrt st_distance st_within startswith substring sum tostring trim upper vectordistance";
const dialect = SQLDialect.define({ keywords, builtin: functions, doubleQuotedStrings: true, operatorChars: "*+-%<>!=&|^/?", specialVar: "@", identifierQuotes: "`" });

const coloured = (name: string) => ({ color: `var(--code-${name})` });
const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.bool, tags.null], ...coloured("keyword") },
  { tag: [tags.string, tags.special(tags.string)], ...coloured("string") },
  { tag: tags.number, ...coloured("number") },
  { tag: [tags.propertyName, tags.standard(tags.name)], ...coloured("name") },
  { tag: tags.comment, color: "var(--faint)" },
]);

const selection = { background: "var(--level1)" };
const look = EditorView.theme({
  "&": { maxHeight: "24rem", color: "var(--ink)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", fontSize: "0.86rem", lineHeight: "1.55", minHeight: "var(--editor-least)" },
  ".cm-content": { caretColor: "var(--ink)", minHeight: "var(--editor-least)" },
  ".cm-gutters": { background: "none", border: "0", color: "var(--faint)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-selectionBackground": selection,
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": selection,
  ".cm-tooltip": { background: "var(--panel)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "6px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { background: "var(--accent)", color: "var(--accent-ink)" },
});

// Property names behind `c.` and at the beginnings of words; a source of its own beside the language's keywords.
const completeNames =
  (names: () => string[]): CompletionSource =>
  (context) => {
    const word = context.matchBefore(/[\w.]+/);
    if (!word && !context.explicit) return null;
    const from = word ? word.from + word.text.lastIndexOf(".") + 1 : context.pos;
    const isPath = word?.text.includes(".");
    if (!isPath && !context.explicit) return null;
    return { from, options: names().map((label) => ({ label, type: "property" })), validFor: /^\w*$/ };
  };

function languageOf(language: Language, names?: () => string[]): Extension {
  if (language === "json") return json();
  if (language === "javascript") return javascript();
  return [sql({ dialect }), names ? dialect.language.data.of({ autocomplete: completeNames(names) }) : []];
}

export interface EditorProperties {
  language: Language;
  start: string; // the text at first; give the editor another key to replace it
  label: string;
  onChange?: ((value: string) => void) | undefined;
  onRun?: (() => void) | undefined; // Control-Enter
  names?: (() => string[]) | undefined; // property names to complete
}

function extensions(given: { current: EditorProperties }): Extension[] {
  const { language, label, names, onChange } = given.current;
  const run = () => (given.current.onRun?.(), given.current.onRun !== undefined);
  // Escape leaves the editor, so that Tab can be used in it without trapping the keyboard.
  const leave = (view: EditorView) => ((view.root as ShadowRoot).host.closest<HTMLElement>("dialog, main")?.focus(), true);
  return [
    keymap.of([{ key: "Mod-Enter", run }, ...completionKeymap, ...defaultKeymap, ...historyKeymap, ...(language === "sql" ? [] : [indentWithTab]), { key: "Escape", run: leave }]),
    history(),
    drawSelection(),
    bracketMatching(),
    closeBrackets(),
    autocompletion({ activateOnTyping: true, icons: false }),
    language === "sql" ? [] : lineNumbers(),
    EditorView.lineWrapping,
    look,
    syntaxHighlighting(colours),
    languageOf(language, names),
    EditorState.readOnly.of(!onChange),
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
    EditorView.updateListener.of((update) => update.docChanged && given.current.onChange?.(update.state.doc.toString())),
  ];
}

export function Editor(properties: EditorProperties) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>();
  const given = useRef(properties);
  given.current = properties;
  useEffect(() => {
    const root = place.current!.shadowRoot ?? place.current!.attachShadow({ mode: "open" });
    view.current = new EditorView({ parent: root, root, state: EditorState.create({ doc: properties.start, extensions: extensions(given) }) });
    return () => view.current?.destroy();
  }, [properties.language, properties.onChange === undefined]);
  return <div class={`editor ${properties.language}`} ref={place} />;
}
