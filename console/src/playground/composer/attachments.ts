export interface Attachment {
  name: string;
  mimeType: string;
  /** base64 */
  data: string;
}

/** Per message, because each state keeps all files. */
export const ATTACHED_BYTES_AT_MOST = 2_500_000;

/** Some of these names have other types, e.g. `.ts` that of a video. */
const TEXT_NAME =
  /\.(txt|md|csv|tsv|json|jsonl|ya?ml|toml|xml|html?|css|log|[cm]?[jt]sx?|py|rb|go|rs|java|c|h|cpp|sh|sql)$/i;

/** For the file chooser of the browser. */
export const ACCEPTED =
  "image/*,application/pdf,text/*,.md,.csv,.json,.jsonl,.yaml,.yml,.ts,.tsx,.py,.sql,.log";

const typeOfFile = ({ name, type }: File): string | undefined => {
  if (type.startsWith("image/") || type === "application/pdf") return type;
  if (type.startsWith("text/") || type === "application/json") return type;
  return TEXT_NAME.test(name) ? "text/plain" : undefined;
};

const base64Of = async (file: File): Promise<string> => {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  const CHUNK = 0x8000;
  for (let start = 0; start < bytes.length; start += CHUNK)
    binary += String.fromCharCode(...bytes.subarray(start, start + CHUNK));
  return btoa(binary);
};

const CHARACTERS_OF_NAME = 60;

/** @throws Error for the user */
export const readFiles = async (files: readonly File[]): Promise<Attachment[]> => {
  const typed = files.map((file) => {
    const mimeType = typeOfFile(file);
    if (mimeType === undefined)
      throw new Error(
        `“${file.name.slice(0, CHARACTERS_OF_NAME)}” can't be attached. A message takes images, PDFs and text files.`,
      );
    return { file, mimeType };
  });
  refuseMoreThan(files.reduce((sum, { size }) => sum + size, 0));
  return await Promise.all(
    typed.map(async ({ file, mimeType }) => ({ name: file.name, mimeType, data: await base64Of(file) })),
  );
};

/** @throws Error for the user if the files are too large */
export const attach = (attached: readonly Attachment[], added: readonly Attachment[]): Attachment[] => {
  const all = [...attached, ...added];
  refuseMoreThan(all.reduce((sum, { data }) => sum + data.length * 0.75, 0));
  return all;
};

const refuseMoreThan = (bytes: number): void => {
  if (bytes > ATTACHED_BYTES_AT_MOST)
    throw new Error(
      `These files are too large. A message takes ${ATTACHED_BYTES_AT_MOST / 1_000_000} MB of files in total.`,
    );
};

export const isImage = ({ mimeType }: Attachment): boolean => mimeType.startsWith("image/");

/** LangChain's standard blocks; models need the name of a file. */
const blockOf = (attachment: Attachment): Record<string, unknown> => ({
  type: isImage(attachment) ? "image" : "file",
  source_type: "base64",
  mime_type: attachment.mimeType,
  data: attachment.data,
  ...(!isImage(attachment) && { metadata: { filename: attachment.name } }),
});

export const humanMessage = (text: string, attached: readonly Attachment[]): Record<string, unknown> => ({
  type: "human",
  content:
    attached.length === 0
      ? text
      : [...(text === "" ? [] : [{ type: "text", text }]), ...attached.map(blockOf)],
});
