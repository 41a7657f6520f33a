import { revive, settle, type Unfinished } from "../../src/state/values/reviving.ts";
import type { ValueClasses } from "../../src/state/values/classes.ts";

/** Also values that can only be built asynchronously. */
export const reviveFully = async (tree: unknown, classes?: ValueClasses): Promise<unknown> => {
  const unfinished: Unfinished = [];
  const holder = revive([tree], unfinished, classes) as [unknown];
  await settle(unfinished);
  return holder[0];
};
