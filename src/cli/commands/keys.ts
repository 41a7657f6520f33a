import { Command, InvalidArgumentError } from "commander";
import { KEY_SCOPES, type KeyScope } from "../../access/caller.ts";
import { isScope } from "../../access/keys/scopes.ts";
import { createKeyRepository } from "../../access/keys/repository.ts";
import { createKeyService, type KeyService } from "../../access/keys/service.ts";
import { answeringJson } from "../flags.ts";
import { onDatabase, onOwnDatabase, type DatabaseFlags } from "../own-database.ts";
import type { CommandSurroundings } from "./command.ts";
import { createdText, jsonOf, listText } from "../keys/answers.ts";
import { parseExpiry } from "../keys/expiry.ts";

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

export const createKeys = (
  surroundings: Pick<CommandSurroundings, "environment" | "write" | "note">,
  withDatabase = onOwnDatabase(surroundings),
): Command => {
  const { write, note } = surroundings;
  const withKeys = <Result>(
    flags: DatabaseFlags,
    work: (keys: KeyService) => Promise<Result>,
  ): Promise<Result> =>
    withDatabase(flags, (database) => work(createKeyService(createKeyRepository(database))));
  const json = (value: unknown): void => write(`${JSON.stringify(value)}\n`);
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
      if (flags.json) return json({ ...jsonOf(record), key });
      note(createdText(record));
      write(`${key}\n`);
    });

  answering(keys.command("list"))
    .description("Lists the keys, oldest first, without their secrets.")
    .option("--all", "revoked ones, too")
    .action(async (flags: DatabaseFlags & { all?: true }) => {
      const records = await withKeys(flags, (service) => service.list({ withRevoked: flags.all === true }));
      if (flags.json) json(records.map(jsonOf));
      else write(listText(records, flags.all === true));
    });

  answering(keys.command("revoke"))
    .description("Revokes a key for good. Revoking the last one does not open the server.")
    .argument("<key>", "the key's name or id, or the key itself")
    .action(async (reference: string, flags: DatabaseFlags) => {
      const record = await withKeys(flags, (service) => service.revoke(reference));
      if (flags.json) json(jsonOf(record));
      else
        note(`The key '${record.name}' (${record.key_id}) is revoked: servers refuse it within a second.\n`);
    });

  answering(keys.command("forget"))
    .description("Deletes the list of revoked keys. Servers on loopback without API_KEYS are open again.")
    .requiredOption("--yes", "yes, open them")
    .action(async (flags: DatabaseFlags) => {
      const forgotten = await withKeys(flags, (service) => service.forget());
      if (flags.json) json({ forgotten });
      else note(`${forgotten} revoked keys are forgotten.\n`);
    });
  return keys;
};
