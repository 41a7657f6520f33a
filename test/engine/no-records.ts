import type { RecordsOptions } from "../../src/engine/executors/recording.ts";

/** For executions whose trace a test does not read. */
export const NO_RECORDS: RecordsOptions = { keepsSpans: false, onRecords: () => undefined };
