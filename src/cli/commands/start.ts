import { Command } from "commander";
import { flagsOf, onServer } from "../server-flags.ts";
import type { CreateCommand } from "../command.ts";

const EXAMPLES = `
Examples:
  $ threadloom start --port 8124
  $ DATABASE_URL=postgresql://… threadloom start --workers auto
`;

export const create: CreateCommand = () => {
  const command = onServer(new Command("start"), {}, EXAMPLES);
  return command.description("Starts the server.").action(async () => {
    const { serve } = await import("../start/serve.ts");
    await serve(flagsOf(command));
  });
};
