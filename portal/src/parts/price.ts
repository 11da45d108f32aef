// What an operation on an item would cost, from the server's own price list.
import { adminPost, type Item } from "../api";
import { withoutSystem, type Place } from "../items";

export interface Price {
  bytes: number;
  terms: number;
  perTerm: number;
  read: number;
  create: number;
  delete: number;
  termsChanged?: number;
  replace?: number;
}

export function priceOf(place: Place, text: string, before?: Item): Promise<Price> {
  const item = withoutSystem(JSON.parse(text) as Item);
  return adminPost<Price>("price", { ...place, item, ...(before ? { before } : {}) });
}
