import { create as createEncryption } from "../../src/cli/commands/encryption.ts";
import type { WithDatabase } from "../../src/cli/own-database.ts";
import { runCommand } from "../../src/cli/run-command.ts";
import { openDatabase } from "../../src/platform/database/database.ts";
import { keysOf } from "./encryption.ts";
import { listeningLogger } from "./parts.ts";

export interface EncryptionStatus {
  keys: { id: string; encrypts: boolean; configured: boolean; rows: number }[];
  plain: number;
  reencrypted: number;
  busy: number;
  unreadable: number;
}

export interface EncryptionCommandOptions {
  connectionString: string;
  /** In the form of operators, with the encrypting key first. */
  keys: readonly string[];
  metadataKeys?: readonly string[];
}

/** `threadloom encryption …` with these keys. */
export const encryptionCommand = async (
  { connectionString, keys, metadataKeys = [] }: EncryptionCommandOptions,
  ...argv: string[]
): Promise<{ code: number; written: string; stderr: string }> => {
  const out = { written: "", stderr: "" };
  const write = (text: string): void => void (out.written += text);
  const note = (text: string): void => void (out.stderr += text);
  const withDatabase: WithDatabase = async (_, work) => {
    const own = openDatabase({
      connectionString,
      poolSize: 1,
      applicationName: "rotation test",
      preparedStatements: false,
      encryption: { keys: keys.flatMap(keysOf), metadataKeys },
      logger: listeningLogger().logger,
    });
    try {
      return await work(own);
    } finally {
      await own.close();
    }
  };
  const code = await runCommand(createEncryption({ environment: {}, write, note }, withDatabase), {
    argv,
    write,
    note,
  });
  return { code, ...out };
};
