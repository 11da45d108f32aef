// What can be changed here of a container that another API has made.
import { text, type TextName } from "../../i18n";
import { container } from "../../state";

const notes: Record<string, TextName> = { mongo: "ofMongo", table: "ofTable", cassandra: "ofCassandra" };

export function ForeignNote() {
  const note = notes[container.value?.api ?? ""];
  return note ? <p class="about" data-foreign={container.value!.api}>{text(note)}</p> : null;
}
