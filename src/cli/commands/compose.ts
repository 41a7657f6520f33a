import { createImageCommand } from "../image/command.ts";
import { composeText } from "../image/compose.ts";
import type { CreateCommand } from "./command.ts";

const EXAMPLES = `
Examples:
  $ threadloom compose
  $ threadloom compose --output docker-compose.yml

It builds the Dockerfile of 'threadloom dockerfile'. Secrets have no defaults. The server gets the file that env of langgraph.json names.
Exit codes: 0 done, 1 not done, 2 wrong usage.`;

export const createCompose: CreateCommand = (surroundings) =>
  createImageCommand(surroundings, {
    name: "compose",
    description: "Prints a compose file for this project: a server and its database.",
    examples: EXAMPLES,
    text: composeText,
  });
