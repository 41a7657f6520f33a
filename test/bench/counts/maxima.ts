/** The maximum cost of a request. `UPDATE_COUNTS=1 npx vitest run test/bench/counts` writes this file. */
export const MAXIMA = {
  "two steps": { statements: 3, rows: 9, walBytes: 5253, calls: 2378 },
  "ten steps": { statements: 4, rows: 17, walBytes: 10277, calls: 5817 },
  stream: { statements: 3, rows: 9, walBytes: 5347, calls: 2495 },
  search: { statements: 5, rows: 0, walBytes: 0, calls: 1756 },
  idle: { statements: 17 },
};
