import { FileText, X } from "lucide-react";
import { IconButton } from "../../design/icon-button.tsx";
import { truncate } from "../../design/truncate.ts";
import { isImage, type Attachment } from "./attachments.ts";
import { bytesIn, sizeText } from "../messages/file-block.ts";
import styles from "./attached-files.module.css";

const CHARACTERS_OF_NAME = 40;

interface AttachedFilesProps {
  files: readonly Attachment[];
  onRemove(index: number): void;
}

export const AttachedFiles = ({ files, onRemove }: AttachedFilesProps) =>
  files.length === 0 ? null : (
    <ul className={styles.files} aria-label="Files to send">
      {files.map((file, index) => (
        <li key={index}>
          {isImage(file) ? (
            <img src={`data:${file.mimeType};base64,${file.data}`} alt={file.name} />
          ) : (
            <span className={styles.file}>
              <FileText aria-hidden size={16} />
              <span>{truncate(file.name, CHARACTERS_OF_NAME)}</span>
              <span className="faint">{sizeText(bytesIn(file.data))}</span>
            </span>
          )}
          <IconButton
            label={`Remove ${truncate(file.name, CHARACTERS_OF_NAME)}`}
            icon={X}
            size="small"
            onClick={() => onRemove(index)}
          />
        </li>
      ))}
    </ul>
  );
