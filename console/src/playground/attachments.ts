export interface Attachment {
  name: string;
  mimeType: string;
  /** base64 */
  data: string;
}

/** Per message, because each state keeps all images. */
export const ATTACHED_BYTES_AT_MOST = 2_500_000;

const base64Of = async (file: File): Promise<string> => {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  const CHUNK = 0x8000;
  for (let start = 0; start < bytes.length; start += CHUNK)
    binary += String.fromCharCode(...bytes.subarray(start, start + CHUNK));
  return btoa(binary);
};

/** @throws Error for the user */
export const readImages = async (files: readonly File[]): Promise<Attachment[]> => {
  const images = files.filter(({ type }) => type.startsWith("image/"));
  if (images.length < files.length) throw new Error("Only images can be attached to a message.");
  refuseMoreThan(images.reduce((sum, { size }) => sum + size, 0));
  const read = images.map(async (file) => ({
    name: file.name,
    mimeType: file.type,
    data: await base64Of(file),
  }));
  return await Promise.all(read);
};

/** @throws Error for the user if the images are too large */
export const attach = (attached: readonly Attachment[], added: readonly Attachment[]): Attachment[] => {
  const all = [...attached, ...added];
  refuseMoreThan(all.reduce((sum, { data }) => sum + data.length * 0.75, 0));
  return all;
};

const refuseMoreThan = (bytes: number): void => {
  if (bytes > ATTACHED_BYTES_AT_MOST)
    throw new Error(`The images of a message may have ${ATTACHED_BYTES_AT_MOST / 1_000_000} MB in total.`);
};

export const humanMessage = (text: string, attached: readonly Attachment[]): Record<string, unknown> => ({
  type: "human",
  content:
    attached.length === 0
      ? text
      : [
          ...(text === "" ? [] : [{ type: "text", text }]),
          ...attached.map(({ mimeType, data }) => ({
            type: "image",
            source_type: "base64",
            mime_type: mimeType,
            data,
          })),
        ],
});

/** Undefined unless the input is a single human message. */
export const writtenIn = (
  input: Record<string, unknown>,
): { text: string; attached: Attachment[] } | undefined => {
  const messages = input["messages"];
  if (Object.keys(input).length !== 1 || !Array.isArray(messages) || messages.length !== 1) return undefined;
  const { type, content } = (messages[0] ?? {}) as { type?: unknown; content?: unknown };
  if (type !== "human") return undefined;
  if (typeof content === "string") return { text: content, attached: [] };
  if (!Array.isArray(content)) return undefined;
  const blocks = content as { text?: string; mime_type?: string; data?: string }[];
  return {
    text: blocks.map(({ text = "" }) => text).join(""),
    attached: blocks.flatMap(({ mime_type: mimeType, data }, index) =>
      mimeType === undefined || data === undefined ? [] : [{ name: `image ${index}`, mimeType, data }],
    ),
  };
};
