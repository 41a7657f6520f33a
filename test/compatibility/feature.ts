import { test, type TestContext } from "vitest";

export interface Cell {
  table: string;
  /** An operation, or an action of a client. */
  row: string;
  /** A status, or the client and its version. */
  column: string;
  /** The reason why this server differs from the contract here, or does not implement this yet. */
  differs?: string;
  notYet?: string;
}

declare module "vitest" {
  interface TaskMeta {
    cell?: Cell;
  }
}

/**
 * A test that is a cell of docs/compatibility.md. Where it can't run it calls `context.skip("no Chromium")`: the cell shows that reason.
 */
export const feature = (
  cell: Cell,
  body: (context: TestContext) => Promise<void> | void,
  timeoutMs?: number,
): void => {
  test(
    `${cell.table}: ${cell.row}: ${cell.column}`,
    { meta: { cell }, ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }) },
    body,
  );
};
