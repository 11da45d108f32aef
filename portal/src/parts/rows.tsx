// Rows of a query: as a table, as JSON, as a file. Everything is drawn as text.
import type { Item, Json } from "../api";
import { systemProperties } from "../items";
import { text } from "../i18n";

const COLUMNS_MAX = 14;
const CELL_MAX = 200; // characters

const isItem = (row: Json): row is Item => row !== null && typeof row === "object" && !Array.isArray(row);

function columnsOf(rows: Json[]): string[] {
  const names = new Set<string>();
  for (const row of rows) for (const name of isItem(row) ? Object.keys(row) : []) if (!systemProperties.includes(name)) names.add(name);
  return [...names].sort((a, b) => Number(b === "id") - Number(a === "id")).slice(0, COLUMNS_MAX);
}

function cellText(value: Json | undefined): string {
  const whole = value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
  return whole.length > CELL_MAX ? whole.slice(0, CELL_MAX) + "…" : whole;
}

// Whether the row is a whole item, which can be opened.
const isWhole = (row: Json): row is Item => isItem(row) && typeof row._etag === "string" && typeof row._rid === "string";

function Row({ row, columns, onOpen }: { row: Json; columns: string[]; onOpen: (item: Item) => void }) {
  const opens = isWhole(row);
  const cells = columns.length ? columns.map((name) => cellText(isItem(row) ? row[name] : undefined)) : [cellText(row)];
  return (
    <tr>
      {cells.map((cell, i) => (
        <td key={i} class={typeof (isItem(row) ? row[columns[i]!] : row) === "number" ? "number" : "cut"}>
          {i === 0 && opens ? (
            <button type="button" class="link" onClick={() => onOpen(row)}>
              <bdi>{cell}</bdi>
            </button>
          ) : (
            <bdi>{cell}</bdi>
          )}
        </td>
      ))}
    </tr>
  );
}

export function Rows({ rows, onOpen }: { rows: Json[]; onOpen: (item: Item) => void }) {
  const columns = columnsOf(rows);
  if (!rows.length) return <p class="about">{text("noRows")}</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={text("rows")}>
      <table class="rows">
        <thead>
          <tr>
            {columns.map((name) => (
              <th key={name} scope="col" class="cut">
                <bdi>{name}</bdi>
              </th>
            ))}
            {columns.length === 0 && <th scope="col">{text("value")}</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <Row key={i} row={row} columns={columns} onOpen={onOpen} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

export const JsonView = ({ value }: { value: unknown }) => (
  <pre class="scroll json" tabIndex={0} dir="ltr">
    {JSON.stringify(value, null, 2)}
  </pre>
);

export function download(name: string, content: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: "application/json" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
