import { Command, InvalidArgumentError } from "commander";
import {
  assertEncryptionKeys,
  forgetEncryptionKey,
  listEncryptionKeys,
} from "../../platform/database/encryption-keys.ts";
import type { Database } from "../../platform/database/database.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { newCipher, type Cipher } from "../../platform/encryption/cipher.ts";
import { walkEncrypted, type WalkCount, type WalkOptions } from "../../server/key-rotation/walk.ts";
import { answeringJson, jsonLine } from "../flags.ts";
import { onDatabase, onOwnDatabase, type DatabaseFlags } from "../own-database.ts";
import type { CommandSurroundings } from "../command.ts";

const EXAMPLES = `
Examples:
  $ threadloom encryption status
  $ threadloom encryption rotate
  $ threadloom encryption forget Ab3_x9

It takes LANGGRAPH_AES_KEY and LANGGRAPH_AES_JSON_KEYS from the environment, as servers do. Servers
may run meanwhile. To replace an old key by a new one:
  1. restart all servers with LANGGRAPH_AES_KEY=old,new     2. restart them with LANGGRAPH_AES_KEY=new,old
  3. rotate                                                 4. forget the old key, then restart without it
Exit codes: 0 done, 1 not done, 2 wrong usage.`;

const keyId = (text: string): string => {
  if (/^[\w-]{6}$/.test(text)) return text;
  throw new InvalidArgumentError("A key's id has 6 characters: see 'status'.");
};

const answering = (command: Command): Command => answeringJson(onDatabase(command));

interface Status {
  /** The key that encrypts comes first. */
  keys: { id: string; encrypts: boolean; configured: boolean; rows: number }[];
  /** Rows with an unencrypted value that would be encrypted today. */
  plain: number;
  reencrypted: number;
  busy: number;
  /** Rows that can't be decrypted although their keys are configured. */
  unreadable: number;
}

const statusOf = (
  { byKey, ...counts }: WalkCount,
  known: readonly string[],
  cipher: Cipher | undefined,
): Status => {
  const current = cipher === undefined ? [] : [cipher.keyId];
  const keys = [...new Set([...current, ...known, ...byKey.keys()])].map((id) => ({
    id,
    encrypts: id === cipher?.keyId,
    configured: cipher?.keyIds.includes(id) === true,
    rows: byKey.get(id) ?? 0,
  }));
  return { keys, ...counts };
};

const useOf = ({ encrypts, configured, rows }: Status["keys"][number]): string => {
  if (encrypts) return "encrypts from now on";
  if (!configured) return "not configured: these rows can't be decrypted, and stay unchanged";
  return rows === 0 ? "no longer needed" : "is still needed";
};

const statusText = ({ keys, plain, unreadable }: Status): string => {
  const hasKey = keys.some(({ encrypts }) => encrypts);
  return [
    ...keys.map((key) => `${key.id}  ${key.rows} rows  ${useOf(key)}\n`),
    `${plain} rows hold unencrypted data that `,
    hasKey ? "would be encrypted now\n" : "a key would encrypt; LANGGRAPH_AES_KEY is not set\n",
    unreadable === 0 ? "" : `${unreadable} rows can't be decrypted although their key is configured\n`,
  ].join("");
};

/** Why a rotation has to run again; undefined: only the current key is needed. */
const leftOver = ({ keys, busy, unreadable }: Status): string | undefined => {
  if (busy > 0) return `${busy} rows changed during the rotation. Run it again.`;
  const lacking = keys.filter(({ configured }) => !configured);
  if (lacking.length > 0)
    return (
      `${lacking.reduce((total, { rows }) => total + rows, 0)} rows are encrypted with keys that are not configured ` +
      `(${lacking.map(({ id }) => id).join(", ")}), and did not change. ` +
      "Add the keys to LANGGRAPH_AES_KEY, after the first key, and run it again."
    );
  if (unreadable > 0)
    return `${unreadable} rows can't be decrypted although their keys are configured: they were changed outside the server.`;
  const needed = keys.filter((key) => !key.encrypts && key.rows > 0);
  return needed.length === 0
    ? undefined
    : `${needed.map((key) => `${key.rows} rows need the key '${key.id}'`).join(", ")}: a server stored them meanwhile. ` +
        "Put the newest key first on every server, and run it again.";
};

export const create = (
  surroundings: Pick<CommandSurroundings, "environment" | "write" | "note">,
  withDatabase = onOwnDatabase(surroundings),
): Command => {
  const { write, note } = surroundings;
  const progress: WalkOptions["onProgress"] = ({ table, rows, reencrypted }) =>
    note(`${table}: ${rows} rows read, ${reencrypted} re-encrypted\n`);
  const countRows = (database: Database, cipher: Cipher): Promise<WalkCount> =>
    walkEncrypted({ database, cipher, writes: false });
  const cipherOf = ({ encryption: { cipher } }: Database): Cipher => {
    if (cipher === undefined) throw new StartError("LANGGRAPH_AES_KEY names no key to encrypt with.");
    return cipher;
  };
  const answer = (status: Status, { json }: DatabaseFlags): void =>
    write(json ? jsonLine(status) : statusText(status));

  const encryption = new Command("encryption").description(
    "Shows the keys of the encrypted rows, and rotates them to the newest key.",
  );
  encryption.addHelpText("after", EXAMPLES);

  answering(encryption.command("status"))
    .description("Counts the encrypted rows by key. Reads all data.")
    .action(async (flags: DatabaseFlags) => {
      const status = await withDatabase(flags, async (database) => {
        const { cipher } = database.encryption;
        const counts = await countRows(database, cipher ?? newCipher());
        return statusOf(counts, await listEncryptionKeys(database), cipher);
      });
      answer(status, flags);
    });

  answering(encryption.command("rotate"))
    .description(
      "Re-encrypts with the newest key all data that is unencrypted, or encrypted with an older key. You may stop and repeat it.",
    )
    .action(async (flags: DatabaseFlags) => {
      const status = await withDatabase(flags, async (database) => {
        const cipher = cipherOf(database);
        await assertEncryptionKeys(database);
        const known = await listEncryptionKeys(database);
        const done = await walkEncrypted({ database, cipher, writes: true, onProgress: progress });
        const left = statusOf(await countRows(database, cipher), known, cipher);
        return { ...left, reencrypted: done.reencrypted, busy: done.busy };
      });
      answer(status, flags);
      const reason = leftOver(status);
      if (reason !== undefined) throw new StartError(reason);
    });

  answering(encryption.command("forget"))
    .description("Lets servers start without an older key that no row needs.")
    .argument("<key>", "the key's id; put '--' before an id that starts with '-'", keyId)
    .allowUnknownOption()
    .action(async (id: string, flags: DatabaseFlags) => {
      await withDatabase(flags, async (database) => {
        const cipher = cipherOf(database);
        await assertEncryptionKeys(database);
        if (id === cipher.keyId)
          throw new StartError(`The key '${id}' is the current encryption key. Put a newer key before it.`);
        const known = await listEncryptionKeys(database);
        if (!known.includes(id)) throw new StartError(`No start needs the key '${id}'.`);
        await forgetEncryptionKey(database, id, async () => {
          const { keys, unreadable } = statusOf(await countRows(database, cipher), known, cipher);
          const rows = keys.find((key) => key.id === id)?.rows ?? 0;
          if (rows > 0)
            throw new StartError(
              `${rows} rows are still encrypted with the key '${id}'; run 'rotate' first.`,
            );
          if (unreadable > 0)
            throw new StartError(`${unreadable} rows can't be decrypted, and may need the key '${id}'.`);
        });
      });
      if (flags.json) write(jsonLine({ forgotten: id }));
      else note(`No start needs the key '${id}' any more. Remove it from LANGGRAPH_AES_KEY.\n`);
    });
  return encryption;
};
