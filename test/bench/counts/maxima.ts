/** The maximum cost of a request. `UPDATE_COUNTS=1 npx vitest run test/bench/counts` writes this file. */
export const MAXIMA = {
  "two steps": { statements: 3, rows: 9, walBytes: 5253, calls: 2430 },
  "ten steps": { statements: 4, rows: 17, walBytes: 10261, calls: 5880 },
  stream: { statements: 3, rows: 9, walBytes: 5400, calls: 2550 },
  search: { statements: 3, rows: 0, walBytes: 0, calls: 1716 },
  idle: { statements: 5 },
};
