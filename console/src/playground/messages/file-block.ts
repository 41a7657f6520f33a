import { isObject } from "../../parts/is-object.ts";

export const textIn = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

export interface FileBlock {
  kind: "audio" | "file";
  name: string;
  mimeType: string;
  /** base64; undefined if the block has only an address or an id. */
  data: string | undefined;
  /** Instead of `data`. */
  text: string | undefined;
  url: string | undefined;
}

const KINDS: ReadonlyMap<unknown, FileBlock["kind"]> = new Map([
  ["file", "file"],
  ["input_file", "file"],
  ["document", "file"],
  ["text-plain", "file"],
  ["video", "file"],
  ["audio", "audio"],
  ["input_audio", "audio"],
]);

const MIME_TYPE = /^[\w.+-]+\/[\w.+-]+$/;
const DATA_ADDRESS = /^data:([\w.+-]+\/[\w.+-]+)?[^,]*;base64,/;

/** LangChain, OpenAI and Anthropic name the parts of a file differently. */
export const fileOf = (block: Record<string, unknown>): FileBlock | undefined => {
  const kind = KINDS.get(block["type"]);
  if (kind === undefined) return undefined;
  const inner = [block["file"], block["input_audio"], block["source"]].find(isObject) ?? {};
  const metadata = isObject(block["metadata"]) ? block["metadata"] : {};
  const first = (...names: string[]): string | undefined =>
    [inner, block, metadata].flatMap((from) => names.map((name) => textIn(from[name]))).find(Boolean);
  const given = first("data", "file_data");
  const address = given === undefined ? undefined : DATA_ADDRESS.exec(given);
  const format = first("format");
  const type =
    first("mimeType", "mime_type", "media_type") ??
    address?.[1] ??
    (kind === "audio" && format !== undefined ? `audio/${format}` : undefined);
  const text = block["source_type"] === "text" || inner["type"] === "text" || kind === "file";
  return {
    kind,
    name: first("filename", "name", "title") ?? "File",
    mimeType: type !== undefined && MIME_TYPE.test(type) ? type : "application/octet-stream",
    data: given?.slice(address?.[0].length ?? 0),
    text: text && given === undefined ? first("text") : undefined,
    url: first("url", "file_url"),
  };
};

/** Of base64, whose end is filled with `=`. */
export const bytesIn = (data: string): number => Math.floor(data.replace(/=+$/, "").length * 0.75);

export const bytesOf = ({ data, text }: FileBlock): number | undefined =>
  data === undefined ? text?.length : bytesIn(data);

/** E.g. `12 KB`. */
export const sizeText = (bytes: number): string =>
  bytes < 1_000
    ? `${bytes} B`
    : bytes < 1_000_000
      ? `${Math.round(bytes / 1_000)} KB`
      : `${(bytes / 1_000_000).toFixed(1)} MB`;

/** @throws DOMException if the data is not base64 */
export const blobOf = ({ data, text }: FileBlock, type: string): Blob =>
  new Blob([data === undefined ? (text ?? "") : Uint8Array.from(atob(data), (one) => one.charCodeAt(0))], {
    type,
  });
