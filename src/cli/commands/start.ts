import { Command } from "commander";
import { flagsOf, helpText, onServer } from "../server-flags.ts";
import type { CreateCommand } from "./command.ts";

export const createStart: CreateCommand = () => {
  const command = onServer(new Command("start"), (listsEnvironment) => helpText({ listsEnvironment }));
  return command.description("Starts the server.").action(async () => {
    const flags = flagsOf(command);
    const { serve } = await import("../start/serve.ts");
    await serve(flags);
  });
};
