import { Download, ExternalLink, FileAudio, FileText } from "lucide-react";
import { useState } from "react";
import { IconButton } from "../../design/icon-button.tsx";
import { truncate } from "../../design/truncate.ts";
import { blobOf, bytesOf, sizeText, type FileBlock } from "./file-block.ts";
import styles from "./file-card.module.css";

const KEPT_MS = 60_000;

/** A blob has the origin of this page, so nothing opens that could run a script. */
const typeToOpen = ({ mimeType }: FileBlock): string | undefined =>
  mimeType === "application/pdf" ? mimeType : /^text\/|\/json$/.test(mimeType) ? "text/plain" : undefined;

const follow = (blob: Blob, download: string | undefined): void => {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.rel = "noopener";
  if (download === undefined) link.target = "_blank";
  else link.download = download;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
};

export const FileCard = ({ file }: { file: FileBlock }) => {
  const [isBroken, setIsBroken] = useState(false);
  const { kind, name, mimeType, data, text, url } = file;
  const shown = truncate(name);
  const hasData = data !== undefined || text !== undefined;
  const bytes = bytesOf(file);
  const opened = typeToOpen(file);
  const show = (type: string, download?: string): void => {
    try {
      follow(blobOf(file, type), download);
    } catch {
      setIsBroken(true);
    }
  };
  const Icon = kind === "audio" ? FileAudio : FileText;
  return (
    <div className={styles.card} role="group" aria-label={`File ${shown}`}>
      <Icon aria-hidden size={20} strokeWidth={1.5} />
      <div className={styles.words}>
        <p className={styles.name}>{shown}</p>
        <p className={styles.about}>
          {isBroken
            ? "This file can't be read."
            : [mimeType, bytes === undefined ? "not in this message" : sizeText(bytes)].join(" · ")}
        </p>
      </div>
      {hasData && opened !== undefined && (
        <IconButton label={`Open ${shown}`} icon={ExternalLink} onClick={() => show(opened)} />
      )}
      {hasData && (
        <IconButton
          label={`Download ${shown}`}
          icon={Download}
          onClick={() => show("application/octet-stream", name)}
        />
      )}
      {!hasData && url !== undefined && /^https?:\/\//i.test(url) && (
        <a href={url} target="_blank" rel="noopener noreferrer">
          Open
        </a>
      )}
    </div>
  );
};

export const AudioPlayer = ({ file: { name, mimeType, data = "" } }: { file: FileBlock }) => (
  <audio
    className={styles.audio}
    controls
    src={`data:${mimeType};base64,${data}`}
    aria-label={truncate(name)}
  />
);
