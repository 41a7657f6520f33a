import { Command } from "commander";
import { readCommandLine } from "../../platform/config/config.ts";
import { helpText } from "../../platform/config/help.ts";
import type { CreateCommand } from "./command.ts";

export const createStart: CreateCommand = ({ write }) =>
  new Command("start")
    .description("Starts the server.")
    .helpOption(false)
    .configureHelp({ formatHelp: () => helpText() })
    .allowUnknownOption()
    .passThroughOptions()
    .argument("[options...]")
    .action(async (argv: string[]) => {
      const { help, helpWithEnvironment } = readCommandLine(argv);
      if (help) return write(helpText({ listsEnvironment: helpWithEnvironment }));
      const { serve } = await import("../start/serve.ts");
      await serve(argv);
    });
