import { Command } from "commander";
import { flagsOf, onServer } from "../../src/cli/server-flags.ts";
import type { Flags } from "../../src/platform/config/resolve.ts";

/** The flags of `threadloom start` with these arguments. */
export const flagsIn = (argv: readonly string[]): Flags =>
  flagsOf(
    onServer(new Command(), {}, "")
      .exitOverride()
      .configureOutput({ writeErr: () => undefined })
      .parse(argv, { from: "user" }),
  );
