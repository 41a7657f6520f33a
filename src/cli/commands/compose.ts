import { createImageCommand } from "../image/command.ts";
import { composeText } from "../image/texts.ts";
import type { CreateCommand } from "../command.ts";

const EXAMPLES = `
Examples:
  $ threadloom compose
  $ threadloom compose --output docker-compose.yml

It builds the Dockerfile of 'threadloom dockerfile', and starts the server beside PostgreSQL, as a role that is no superuser. Secrets
have no defaults. The file's first lines are the steps to start it, and a first request. The server gets .env, and the file that env
of langgraph.json names.
Exit codes: 0 done, 1 not done, 2 wrong usage.`;

export const create: CreateCommand = (surroundings) =>
  createImageCommand(surroundings, {
    name: "compose",
    description: "Prints a compose file for this project: a server and its database.",
    examples: EXAMPLES,
    text: composeText,
    next: "Its first lines say how to start it, and how to send a first request.",
  });
