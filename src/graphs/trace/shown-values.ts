import { errorForClients } from "../../platform/domain/error-for-clients.ts";
import { frameOf } from "../error-place.ts";
import type { SpanFields } from "./scope.ts";

const MESSAGE_LENGTH_AT_MOST = 1_000;

/** Clients see the place, so it does not name the folders of the server. */
const FOLDERS_SHOWN = 3;

const described = (thrown: unknown): SpanFields => {
  const { error: type, message } = errorForClients(thrown);
  const frame = frameOf(thrown);
  return {
    error: {
      type: type.slice(0, 100).toWellFormed(),
      message: message.slice(0, MESSAGE_LENGTH_AT_MOST).toWellFormed(),
      ...(frame === undefined
        ? {}
        : {
            at: `${frame.file.split("/").slice(-FOLDERS_SHOWN).join("/")}:${frame.line}:${frame.column ?? 1}`,
          }),
    },
  };
};

/** `at`: the first place in the project's code: the end of `file:line:column`. Never throws. */
export const errorFields = (thrown: unknown): SpanFields => {
  try {
    return described(thrown);
  } catch {
    // Reading a thrown value may throw; the graph must see what was thrown.
    return { error: { type: "Error", message: "(can't be shown)" } };
  }
};

const CHARACTERS_AT_MOST = 2_000;

const cut = (text: string): string =>
  (text.length > CHARACTERS_AT_MOST ? `${text.slice(0, CHARACTERS_AT_MOST)}…` : text).toWellFormed();

/**
 * Writes JSON until the text is long enough. `JSON.stringify` would read a large value to its end: the `toJSON` of a
 * `Buffer` alone makes an array of all its bytes.
 */
class BoundedJson {
  text = "";
  private readonly around: object[] = [];

  private get isFull(): boolean {
    return this.text.length > CHARACTERS_AT_MOST;
  }

  write(value: unknown): void {
    if (typeof value === "string") this.text += JSON.stringify(value.slice(0, CHARACTERS_AT_MOST));
    else if (typeof value !== "object" || value === null)
      this.text += typeof value === "number" || typeof value === "bigint" ? String(value) : asJson(value);
    else if (this.around.includes(value)) this.text += '"(circular)"';
    else this.writeObject(value);
  }

  private writeObject(value: object): void {
    if (!ArrayBuffer.isView(value) && "toJSON" in value && typeof value.toJSON === "function") {
      const json: unknown = value.toJSON();
      if (json !== value) return this.within(value, () => this.write(json));
    }
    if (Array.isArray(value) || ArrayBuffer.isView(value)) {
      const items = value as ArrayLike<unknown>;
      this.text += "[";
      this.within(value, () => {
        for (let index = 0; index < items.length && !this.isFull; index += 1) {
          if (index > 0) this.text += ",";
          this.write(items[index]);
        }
      });
      this.text += "]";
      return;
    }
    this.text += "{";
    let isFirst = true;
    this.within(value, () => {
      for (const name of Object.keys(value)) {
        if (this.isFull) break;
        const part = (value as Record<string, unknown>)[name];
        if (part === undefined || typeof part === "function" || typeof part === "symbol") continue;
        this.text += `${isFirst ? "" : ","}${JSON.stringify(name.slice(0, CHARACTERS_AT_MOST))}:`;
        isFirst = false;
        this.write(part);
      }
    });
    this.text += "}";
  }

  private within(value: object, write: () => void): void {
    this.around.push(value);
    write();
    this.around.pop();
  }
}

const asJson = (value: unknown): string => JSON.stringify(value) ?? "null";

/** Any value as text of at most 2,001 characters: JSON, or its beginning. */
export const shownValue = (value: unknown): string => {
  if (typeof value === "string") return cut(value);
  const json = new BoundedJson();
  try {
    if (typeof value !== "object" || value === null) return cut(String(value));
    json.write(value);
    return cut(json.text);
  } catch {
    // Values of a graph may throw when read.
    return cut(`${json.text}(can't be shown)`);
  }
};
