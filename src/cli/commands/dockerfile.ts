import { createImageCommand } from "../image/command.ts";
import { dockerfileText } from "../image/texts.ts";
import type { CreateCommand } from "../command.ts";

const EXAMPLES = `
Examples:
  $ threadloom dockerfile
  $ threadloom dockerfile --output Dockerfile

It uses node_version and dockerfile_lines of langgraph.json, and the lock file of npm, pnpm or yarn. A container needs DATABASE_URL,
and API_KEYS or keys of 'threadloom keys create'.
Exit codes: 0 done, 1 not done, 2 wrong usage.`;

export const create: CreateCommand = (surroundings) =>
  createImageCommand(surroundings, {
    name: "dockerfile",
    description: "Prints a Dockerfile for this project.",
    examples: EXAMPLES,
    text: dockerfileText,
    next: "Build it with 'docker build --tag agents .', or with the file of 'threadloom compose'.",
  });
