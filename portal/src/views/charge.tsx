// Charge: what an operation would cost, and why. Nothing is written.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { adminPost } from "../api";
import * as format from "../format";
import { text } from "../i18n";
import { keyProperties } from "../items";
import { Notice, Panel, Problem, problemText } from "../parts/common";
import { Editor } from "../parts/editor";
import { EstimateNote, useEstimate } from "../parts/estimate";
import { Explanation, type Explained } from "../parts/explain";
import { priceOf, type Price } from "../parts/price";
import { address, container, live } from "../state";

const SECONDS_A_MONTH = 86_400 * 30;

const sample = (paths: string[]) =>
  JSON.stringify({ id: "order-1", ...Object.fromEntries(keyProperties(paths).map((name) => [name, "customer-7"])), city: "Lima", total: 42.5, lines: [{ product: "tea", n: 2 }] }, null, 2);

function Why({ price }: { price: Price }) {
  const size = format.bytes(price.bytes);
  const terms = price.terms * price.perTerm;
  const rows: [string, number, string][] = [
    [text("op_read"), price.read, text("whyRead", { size })],
    [text("op_create"), price.create, text("whyCreate", { size, sizeRu: format.ru(price.create - terms), terms: price.terms, termsRu: format.ru(terms) })],
    [text("replaceSame"), price.replace ?? 0, text("whyReplace", { sizeRu: format.ru(price.replace ?? 0), terms: price.termsChanged ?? 0 })],
    [text("op_delete"), price.delete, text("whyDelete", { terms: price.terms })],
  ];
  const provisioned = container.value?.throughput.ruPerSecond ?? 0;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={text("chargeItem")}>
      <table class="prices">
        <thead>
          <tr>
            <th scope="col">{text("operation")}</th>
            <th scope="col">{text("charge")}</th>
            <th scope="col">{text("aSecond")}</th>
            <th scope="col">{text("why")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, ru, why]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="number">{format.ru(ru)}</td>
              <td class="number" data-label={text("aSecond")}>{provisioned && ru ? format.decimal(provisioned / ru, 0) : "–"}</td>
              <td class="why">{why}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ItemCharge() {
  const { database, container: name } = address.value;
  const paths = container.value!.partitionKey;
  const value = useSignal(sample(paths));
  const price = useSignal<Price | null>(null);
  const problem = useSignal("");
  useEffect(() => {
    const timer = setTimeout(async () => {
      try {
        price.value = await priceOf({ database, container: name }, value.value, JSON.parse(value.value));
        problem.value = "";
      } catch (why) {
        problem.value = problemText(why);
      }
    }, 300);
    return () => clearTimeout(timer);
  }, [value.value]);
  return (
    <Panel title={text("chargeItem")} about={text("chargeItemAbout")}>
      <Editor language="json" label={text("item")} start={value.value} onChange={(v) => (value.value = v)} />
      {problem.value && <Notice kind="error">{problem.value}</Notice>}
      {price.value && <Why price={price.value} />}
    </Panel>
  );
}

const ROWS = 100; // of a page

function QueryCharge() {
  const { database, container: name } = address.value;
  const query = useSignal("SELECT * FROM c");
  const rate = useSignal(1);
  const found = useSignal<Explained | null>(null);
  const problem = useSignal<unknown>(undefined);
  const estimate = useEstimate({ database, container: name }, query.value, undefined, ROWS);
  const run = async () => {
    problem.value = undefined;
    try {
      found.value = await adminPost<Explained>("explain", { database, container: name, query: query.value, maxItemCount: ROWS });
    } catch (why) {
      problem.value = why;
    }
  };
  return (
    <Panel title={text("chargeQuery")} about={text("chargeQueryAbout")}>
      <Editor language="sql" label={text("query")} start={query.value} onChange={(v) => (query.value = v)} onRun={() => void run()} />
      <EstimateNote of={estimate} open />
      <div class="buttons">
        <button type="button" onClick={() => void run()}>
          {text("tryPage")}
        </button>
        <label class="line">
          {text("timesASecond")}
          <input type="number" min={0.001} step="any" value={rate.value} onInput={(e) => (rate.value = Number(e.currentTarget.value))} />
        </label>
      </div>
      <Problem of={problem.value} />
      {found.value && (
        <>
          <Notice kind="plain">
            {text("queryCosts", { ru: format.ru(found.value.requestCharge), rate: format.ruRate(found.value.requestCharge * rate.value), month: format.ru(found.value.requestCharge * rate.value * SECONDS_A_MONTH) })}
          </Notice>
          <Explanation of={found.value} />
        </>
      )}
    </Panel>
  );
}

export function Charge() {
  return live.value ? (
    <>
      <ItemCharge key={address.value.container} />
      <QueryCharge />
    </>
  ) : null;
}
