// What a query would cost, before it is run: asked of the server a moment after the last change. Nothing is read or charged.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { adminPost, type Json } from "../api";
import * as format from "../format";
import { counted, text } from "../i18n";
import type { Place } from "../items";
import { session } from "../state";

interface Price {
  requestCharge: number;
  pages: number;
  ranges: number;
  rangesCharge: number;
  itemsLoaded: number;
  itemsCharge: number;
  indexEntries: number;
  entriesCharge: number;
  rowsCharge: number;
  searchCharge: number;
  functionsCharge: number;
}

export interface Estimate {
  problem?: string; // it is no query yet
  ranges: number;
  items: number;
  itemBytes: number;
  matches: number;
  exact: boolean;
  capped: boolean;
  rest: boolean;
  covered: boolean;
  whole: boolean;
  joined: boolean;
  first: Price;
  all: Price;
}

const WAIT_MS = 350;

export function useEstimate(place: Place, query: string, key: Json[] | undefined, limit: number): Estimate | null {
  const found = useSignal<Estimate | null>(null);
  useEffect(() => {
    if (!session.value!.overview || !query.trim()) return void (found.value = null);
    let current = true;
    const timer = setTimeout(() => {
      const body = { ...place, query, maxItemCount: limit, estimate: true, ...(key ? { partitionKey: key } : {}) };
      adminPost<Estimate>("explain", body).then(
        (estimate) => current && (found.value = estimate.problem === undefined ? estimate : null),
        () => current && (found.value = null),
      );
    }, WAIT_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [place.database, place.container, query, JSON.stringify(key), limit]);
  return found.value;
}

function accuracy(e: Estimate): string {
  if (e.capped) return text("estimateCapped");
  if (e.rest) return text("estimateRest");
  return text(e.exact ? "estimateExact" : "estimateRough");
}

// What the price is made of; what costs nothing is left out.
function reasons(e: Estimate, p: Price): [string, number, string][] {
  const rows: [string, number, string][] = [
    [text("estimateRanges"), p.rangesCharge, text("estimateRangesWhy", { ranges: counted("nPartitions", p.ranges) })],
    [text("estimateItems"), p.itemsCharge, text("estimateItemsWhy", { loaded: format.count(p.itemsLoaded), items: format.count(e.items), size: format.bytes(e.itemBytes) })],
    [text("estimateEntries"), p.entriesCharge, text("estimateEntriesWhy", { entries: counted("nEntries", p.indexEntries) })],
    [text("estimateRows"), p.rowsCharge, text("estimateRowsWhy")],
    [text("estimateSearch"), p.searchCharge, text("estimateSearchWhy")],
    [text("estimateCalls"), p.functionsCharge, text("estimateCallsWhy")],
  ];
  return rows.filter(([name, ru]) => ru > 0 || (e.covered && name === text("estimateEntries")));
}

export function EstimateNote({ of, open = false }: { of: Estimate | null; open?: boolean }) {
  if (!of) return null;
  const several = of.all.pages > 1;
  const price = several ? of.first : of.all;
  return (
    <details class="estimate" open={open} data-estimate={price.requestCharge} data-all={of.all.requestCharge}>
      <summary>
        <span>
          {text(several ? "estimateFirst" : "estimateAll")} <strong>≈ {format.ru(price.requestCharge)}</strong>
        </span>
        {several && (
          <span>
            {text("estimatePages", { pages: format.count(of.all.pages) })} <strong>≈ {format.ru(of.all.requestCharge)}</strong>
          </span>
        )}
        <span class="faint">{of.rest || of.capped ? text("estimateAtMost") : text("estimateMatches", { n: format.count(of.matches), items: counted("nItems", of.items) })}</span>
      </summary>
      <table class="keys prices">
        <tbody>
          {reasons(of, price).map(([name, ru, why]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{format.ru(ru)}</td>
              <td class="why">{why}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="about">
        {accuracy(of)} {of.whole && text("estimateWhole")} {of.joined && text("estimateJoined")}
      </p>
    </details>
  );
}
