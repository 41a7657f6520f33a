import { readFile, writeFile } from "node:fs/promises";
import { Command } from "commander";
import { StartError } from "../../platform/domain/errors.ts";
import { graphConfigFileOf, type Environment } from "../../platform/config/resolve.ts";
import { readImageProject, type ImageProject } from "./project.ts";

interface ImageText {
  name: string;
  description: string;
  examples: string;
  text(project: ImageProject): string;
  /** A sentence that tells the user the next command. */
  next: string;
}

interface Surroundings {
  environment: Environment;
  write(text: string): void;
  note(text: string): void;
}

interface Flags {
  config?: string;
  output?: string;
  force?: true;
}

export const createImageCommand = (
  { environment, write, note }: Surroundings,
  { name, description, examples, text: textOf, next }: ImageText,
): Command => {
  return new Command(name)
    .description(description)
    .option("--config <path>", "path of langgraph.json")
    .option("--output <file>", "write it to this file")
    .option("--force", "overwrite an existing file")
    .addHelpText("after", examples)
    .action(async ({ config, output, force }: Flags) => {
      const project = await readImageProject(graphConfigFileOf(environment, config));
      if (project.meaningless.length > 0)
        note(
          `These keys of langgraph.json have no effect on this image: ${project.meaningless.join(", ")}.\n`,
        );
      const text = textOf(project);
      if (output === undefined) return write(text);
      // So the steps of the documentation may be repeated.
      if ((await readFile(output, "utf8").catch(() => undefined)) === text)
        return note(`${output} is up to date. ${next}\n`);
      await writeFile(output, text, { flag: force ? "w" : "wx" }).catch((error: NodeJS.ErrnoException) => {
        const why =
          error.code === "EEXIST"
            ? "exists already. Use --force to overwrite it"
            : `can't be written: ${error.message}`;
        throw new StartError(`${output} ${why}.`, { cause: error });
      });
      note(`Written to ${output}. ${next}\n`);
    });
};
