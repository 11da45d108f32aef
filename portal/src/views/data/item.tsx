// One item: edited as JSON, saved only if nobody has changed it since it was read; the price is shown before.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, type Item } from "../../api";
import * as format from "../../format";
import { createItem, deleteItem, idOf, keyProperties, readItem, replaceItem, withoutSystem, type Collection, type Place } from "../../items";
import { text } from "../../i18n";
import { Dialog, Notice, problemText } from "../../parts/common";
import { Editor } from "../../parts/editor";
import { priceOf, type Price } from "../../parts/price";
import { download, JsonView } from "../../parts/rows";
import { canWriteItems, isForeign, session } from "../../state";

interface Properties {
  place: Place;
  collection: Collection;
  item: Item | null; // null: a new one
  onClose: () => void;
  onChanged: () => void;
}

const pretty = (item: Item) => JSON.stringify(withoutSystem(item), null, 2);

// What a new item has to have: of a table a PartitionKey and a RowKey, of a container its partition key.
function template(collection: Collection): string {
  const names = keyProperties(collection.partitionKey?.paths ?? []).filter((name) => !name.startsWith("_"));
  const id = names.includes("PartitionKey") && isForeign.value ? "RowKey" : "id";
  return JSON.stringify(Object.fromEntries([id, ...names].map((name) => [name, ""])), null, 2);
}

// What saving would cost, asked a moment after the last change.
function usePrice(place: Place, before: Item | null, value: string) {
  const price = useSignal<Price | null>(null);
  useEffect(() => {
    if (!session.value!.overview) return undefined;
    const timer = setTimeout(async () => {
      price.value = await priceOf(place, value, before ? withoutSystem(before) : undefined).catch(() => null);
    }, 400);
    return () => clearTimeout(timer);
  }, [value, before]);
  return price.value;
}

function PriceNote({ price, before }: { price: Price | null; before: Item | null }) {
  if (!price) return null;
  const size = format.bytes(price.bytes);
  return (
    <p class="about" data-price={before ? price.replace : price.create}>
      {before && price.replace !== undefined ? text("replaceCosts", { ru: format.ru(price.replace), size, terms: price.termsChanged ?? 0 }) : text("createCosts", { ru: format.ru(price.create), size, terms: price.terms })}
    </p>
  );
}

export function ItemDialog({ place, collection, item, onClose, onChanged }: Properties) {
  const before = useSignal(item);
  const value = useSignal(item ? pretty(item) : template(collection));
  const theirs = useSignal<Item | null>(null);
  const taken = useSignal(0); // how often the other version was taken
  const problem = useSignal("");
  const note = useSignal("");
  const price = usePrice(place, before.value, value.value);

  // The item has changed since it was read, or is gone: shows what is there now.
  async function conflict() {
    theirs.value = (await readItem(place, collection, before.value!)).body;
  }

  async function attempt(work: () => Promise<void>) {
    problem.value = note.value = "";
    try {
      await work();
    } catch (why) {
      if (why instanceof ApiError && why.status === 412 && before.value) await conflict().catch((e: unknown) => (problem.value = problemText(e)));
      else problem.value = problemText(why);
    }
  }

  const save = () =>
    attempt(async () => {
      const changed = JSON.parse(value.value) as Item;
      const answer = before.value ? await replaceItem(place, collection, before.value, changed) : await createItem(place, collection, changed);
      before.value = answer.body;
      theirs.value = null;
      note.value = text("savedFor", { ru: format.ru(answer.charge), time: format.duration(answer.ms * 1000) });
      onChanged();
    });
  const remove = () =>
    attempt(async () => {
      await deleteItem(place, collection, before.value!);
      onChanged();
      onClose();
    });
  const keepMine = () => {
    before.value = theirs.value;
    void save();
  };
  const takeTheirs = () => {
    before.value = theirs.value;
    value.value = pretty(theirs.value!);
    theirs.value = null;
    taken.value++;
  };

  return (
    <Dialog title={item ? idOf(item) : text("newItem")} onClose={onClose}>
      <Editor key={taken.value} language="json" label={text("item")} start={value.value} onChange={canWriteItems.value ? (v) => (value.value = v) : undefined} onRun={() => void save()} />
      {canWriteItems.value && <PriceNote price={price} before={before.value} />}
      {problem.value && <Notice kind="error">{problem.value}</Notice>}
      {note.value && <Notice kind="good">{note.value}</Notice>}
      {theirs.value && (
        <section class="conflict" aria-label={text("conflict")}>
          <Notice kind="warning">{text("conflict")}</Notice>
          <JsonView value={withoutSystem(theirs.value)} />
          <div class="buttons">
            <button type="button" onClick={takeTheirs}>
              {text("takeTheirs")}
            </button>
            <button type="button" class="danger" onClick={keepMine}>
              {text("keepMine")}
            </button>
          </div>
        </section>
      )}
      <div class="buttons">
        {canWriteItems.value && !theirs.value && (
          <button type="button" onClick={() => void save()}>
            {text("save")}
          </button>
        )}
        {before.value && (
          <button type="button" class="quiet" onClick={() => download("item.json", JSON.stringify(before.value, null, 2))}>
            {text("download")}
          </button>
        )}
        <span class="space" />
        {canWriteItems.value && before.value && (
          <button type="button" class="danger" onClick={() => void remove()}>
            {text("delete")}
          </button>
        )}
      </div>
      {before.value && (
        <p class="about">
          <code>
            _etag {String(before.value._etag)} · {format.dateTime(Number(before.value._ts) * 1000)}
          </code>
        </p>
      )}
    </Dialog>
  );
}
