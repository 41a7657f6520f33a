/**
 * Of a task's writes, each line is encrypted after its index, which the database function `merge_writes` reads. A place
 * names no column that differs in a copy of the thread, so that the database can copy encrypted rows.
 */

import { openText, type Cipher } from "../../../platform/encryption/cipher.ts";
import { LINE, OLDER } from "./separators.ts";
import { threadKey } from "./thread-key.ts";

export const elementsPlace = ({ list, position }: { list: number; position: number }): string =>
  `elements ${list} ${position}`;
export const contentPlace = (hash: string): string => `content ${hash}`;
export const checkpointPlace = (checkpointNs: string, checkpointId: string): string =>
  `checkpoint ${checkpointId.toLowerCase()} ${checkpointNs}`;

interface TaskOfCheckpoint {
  checkpointNs: string;
  checkpointId: string;
  taskId: string;
}

const writePlace = ({ checkpointNs, checkpointId, taskId }: TaskOfCheckpoint, index: string): string =>
  `write ${checkpointId.toLowerCase()} ${threadKey(taskId)} ${index} ${checkpointNs}`;

/** A line is `index,channel,record`. */
const eachLine = (lines: string, change: (rest: string, index: string) => string): string =>
  lines
    .split(LINE)
    .map((line) => {
      const end = line.indexOf(",");
      return end < 0 ? line : `${line.slice(0, end)},${change(line.slice(end + 1), line.slice(0, end))}`;
    })
    .join(LINE);

export const encryptWrites = (cipher: Cipher, lines: string, task: TaskOfCheckpoint): string =>
  eachLine(lines, (rest, index) => cipher.encrypt(rest, writePlace(task, index)));

export const openWrites = (cipher: Cipher | undefined, lines: string, task: TaskOfCheckpoint): string =>
  eachLine(lines, (rest, index) => openText(cipher, rest, writePlace(task, index)));

export const reencryptWrites = (cipher: Cipher, lines: string, task: TaskOfCheckpoint): string =>
  encryptWrites(cipher, openWrites(cipher, lines, task), task);

/** Contains earlier versions of a record that was stored again, each encrypted by itself. */
export const openRecord = (cipher: Cipher | undefined, record: string, place: string): string =>
  record.includes(OLDER)
    ? record
        .split(OLDER)
        .map((version) => openText(cipher, version, place))
        .join(OLDER)
    : openText(cipher, record, place);

export const reencryptRecord = (cipher: Cipher, record: string, place: string): string =>
  openRecord(cipher, record, place)
    .split(OLDER)
    .map((version) => cipher.encrypt(version, place))
    .join(OLDER);
