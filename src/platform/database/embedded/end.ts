/** The child process of `abandon` in embedded.ts. */
import { argv } from "node:process";
import { stopAbandoned } from "./embedded.ts";

const [, , folder] = argv;
if (folder !== undefined) await stopAbandoned(folder);
