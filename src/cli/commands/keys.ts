import { Command, InvalidArgumentError } from "commander";
import { KEY_SCOPES, type KeyScope } from "../../access/caller.ts";
import { isScope } from "../../access/keys/scopes.ts";
import { createKeyRepository, type KeyRecord } from "../../access/keys/repository.ts";
import { createKeyService, type KeyService } from "../../access/keys/service.ts";
import { answeringJson, jsonLine, secondsOf } from "../flags.ts";
import { onDatabase, onOwnDatabase, type DatabaseFlags } from "../own-database.ts";
import { tableText } from "../printable.ts";
import type { CommandSurroundings } from "../command.ts";
import { timestamp } from "../../platform/lib/timestamps.ts";

const jsonOf = (record: KeyRecord) => ({
  id: record.key_id,
  name: record.name,
  scopes: record.scopes,
  status: record.status,
  created_at: timestamp(record.created_at),
  expires_at: record.expires_at === null ? null : timestamp(record.expires_at),
  last_used_at: record.last_used_at === null ? null : timestamp(record.last_used_at),
  revoked_at: record.revoked_at === null ? null : timestamp(record.revoked_at),
});

const minute = (time: Date): string => `${time.toISOString().slice(0, 16).replace("T", " ")} UTC`;

const createdText = ({ key_id, name, scopes, expires_at }: KeyRecord): string =>
  `The key '${name}' (${key_id}) has the scopes ${scopes.join(", ")} and ` +
  `${expires_at === null ? "never expires" : `expires on ${minute(expires_at)}`}.\n` +
  "It is shown this once: only its hash is stored. Servers know it within a second. Callers send it as the header X-Api-Key.\n";

/** Revoked keys keep a server closed, so a list without them must mention them. */
const listText = (records: readonly KeyRecord[], withRevoked: boolean): string => {
  if (records.length === 0)
    return `There are no keys.${withRevoked ? "" : " Revoked ones, which keep a server closed, are listed with --all."}\n`;
  const rows = records.map((record) => [
    record.key_id,
    record.name,
    record.scopes.join(","),
    record.status,
    minute(record.created_at),
    record.expires_at === null ? "never" : minute(record.expires_at),
    record.last_used_at === null ? "never" : minute(record.last_used_at),
  ]);
  return tableText(["ID", "NAME", "SCOPES", "STATUS", "CREATED", "EXPIRES", "LAST USED"], rows, undefined);
};

/**
 * Seconds from now of a duration (`90m`, `12h`, `30d`, `2w`, `1y`) or an ISO 8601 time; undefined for `never`. @throws
 * InvalidArgumentError
 */
export const parseExpiry = (text: string, now = new Date()): number | undefined => {
  if (text === "never") return undefined;
  const seconds = secondsOf(text);
  if (seconds !== undefined) return seconds;
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(time)) {
    throw new InvalidArgumentError("Use a duration or a time: 90m, 12h, 30d, 2w, 1y, 2027-01-31, or never.");
  }
  return (time - now.getTime()) / 1_000;
};

const parseScopes = (text: string): KeyScope[] => {
  const scopes = text.split(",").map((scope) => scope.trim());
  const known = scopes.filter((scope): scope is KeyScope => isScope(scope));
  if (known.length < scopes.length) {
    throw new InvalidArgumentError(`Use ${KEY_SCOPES.join(", ")}, separated by commas.`);
  }
  return known;
};

const EXAMPLES = `
Examples:
  $ threadloom keys create --name ci --scopes read,run --expires 30d
  $ threadloom keys list --json
  $ threadloom keys revoke ci

Scopes (each includes those before it):
  read   reads everything: threads, runs, assistants, crons, items of the store
  run    creates and changes threads, starts and cancels runs, writes to the store
  admin  everything: assistants, crons, deleting threads

Servers accept a new key, and refuse a revoked one, within a second. Exit codes: 0 done, 1 not done, 2 wrong usage.`;

const answering = (command: Command): Command => answeringJson(onDatabase(command));

export const create = (
  surroundings: Pick<CommandSurroundings, "environment" | "write" | "note">,
  withDatabase = onOwnDatabase(surroundings),
): Command => {
  const { write, note } = surroundings;
  const withKeys = <Result>(
    flags: DatabaseFlags,
    work: (keys: KeyService) => Promise<Result>,
  ): Promise<Result> =>
    withDatabase(flags, (database) => work(createKeyService(createKeyRepository(database))));
  const keys = new Command("keys").description("Creates, lists and revokes the API keys of a deployment.");
  keys.addHelpText("after", EXAMPLES);

  answering(keys.command("create"))
    .description("Creates a key and shows it once.")
    .requiredOption("--name <name>", "the key's name (required)")
    .requiredOption(
      "--scopes <scopes>",
      "the scopes (required): read, run, admin, separated by commas",
      parseScopes,
    )
    .option("--expires <when>", "a duration or a time: 12h, 30d, 1y, 2027-01-31 (default: never)", (text) =>
      parseExpiry(text),
    )
    .action(async (flags: DatabaseFlags & { name: string; scopes: KeyScope[]; expires?: number }) => {
      const { name, scopes, expires: expiresInSeconds } = flags;
      const { key, record } = await withKeys(flags, (service) =>
        service.create({ name, scopes, expiresInSeconds }),
      );
      if (flags.json) return write(jsonLine({ ...jsonOf(record), key }));
      note(createdText(record));
      write(`${key}\n`);
    });

  answering(keys.command("list"))
    .description("Lists the keys, oldest first, without their secrets.")
    .option("--all", "revoked ones, too")
    .action(async (flags: DatabaseFlags & { all?: true }) => {
      const records = await withKeys(flags, (service) => service.list({ withRevoked: flags.all === true }));
      write(flags.json ? jsonLine(records.map(jsonOf)) : listText(records, flags.all === true));
    });

  answering(keys.command("revoke"))
    .description("Revokes a key for good. Revoking the last one does not open the server.")
    .argument("<key>", "the key's name or id, or the key itself")
    .action(async (reference: string, flags: DatabaseFlags) => {
      const record = await withKeys(flags, (service) => service.revoke(reference));
      if (flags.json) write(jsonLine(jsonOf(record)));
      else
        note(`The key '${record.name}' (${record.key_id}) is revoked: servers refuse it within a second.\n`);
    });

  answering(keys.command("forget"))
    .description("Deletes the list of revoked keys. Servers on loopback without API_KEYS are open again.")
    .requiredOption("--yes", "yes, open them")
    .action(async (flags: DatabaseFlags) => {
      const forgotten = await withKeys(flags, (service) => service.forget());
      if (flags.json) write(jsonLine({ forgotten }));
      else note(`${forgotten} revoked keys are forgotten.\n`);
    });
  return keys;
};
