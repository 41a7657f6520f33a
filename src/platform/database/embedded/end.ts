/** The program of the process that stops the embedded PostgreSQL of one that has exited; see `abandon` in embedded.ts. */
import { argv } from "node:process";
import { stopAbandoned } from "./embedded.ts";

const [, , folder] = argv;
if (folder !== undefined) await stopAbandoned(folder);
