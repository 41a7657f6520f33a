/** Each line of a task's writes is encrypted without its index, which the database function `merge_writes` reads. */

import type { Encryption } from "../../../platform/database/database.ts";
import { LINE, OLDER } from "./separators.ts";
import { threadKey } from "./thread-key.ts";

interface CheckpointKey {
  checkpoint_ns: string;
  checkpoint_id: string;
}

/** A line is `index,channel,record`. */
const eachLine = (lines: string, change: (rest: string, index: string) => string): string =>
  lines
    .split(LINE)
    .map((line) => {
      const end = line.indexOf(",");
      return end < 0 ? line : `${line.slice(0, end)},${change(line.slice(end + 1), line.slice(0, end))}`;
    })
    .join(LINE);

export const storedWrites = (
  encryption: Encryption,
  lines: string,
  checkpoint: CheckpointKey,
  taskId: string,
): string => {
  const task = { ...checkpoint, task_id: threadKey(taskId) };
  return eachLine(lines, (rest, index) =>
    encryption.stored("checkpoint_writes", "writes", rest, { ...task, index }),
  );
};

export const openWrites = (
  encryption: Encryption,
  lines: string,
  checkpoint: CheckpointKey,
  taskId: string,
): string => {
  const task = { ...checkpoint, task_id: threadKey(taskId) };
  return eachLine(lines, (rest, index) =>
    encryption.decryptedValue("checkpoint_writes", "writes", rest, { ...task, index }),
  );
};

/** A record that was stored again contains its earlier versions, each encrypted by itself. */
const eachVersion = (record: string, change: (version: string) => string): string =>
  record.split(OLDER).map(change).join(OLDER);

export const openRecord = (encryption: Encryption, record: string, key: CheckpointKey): string =>
  record.includes(OLDER)
    ? eachVersion(record, (version) => encryption.decryptedValue("checkpoints", "record", version, key))
    : encryption.decryptedValue("checkpoints", "record", record, key);

export const reencryptRecord = (encryption: Encryption, record: string, key: CheckpointKey): string =>
  eachVersion(record, (version) => encryption.reencrypted("checkpoints", "record", version, key));
