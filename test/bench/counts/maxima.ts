/** The maximum cost of a request, by TRACES. `UPDATE_COUNTS=1 npx vitest run test/bench/counts` writes this file. */
export const MAXIMA = {
  off: {
    "two steps": { statements: 3, rows: 9, walBytes: 5253, calls: 2450 },
    "ten steps": { statements: 4, rows: 17, walBytes: 10261, calls: 5900 },
    stream: { statements: 3, rows: 9, walBytes: 5400, calls: 2570 },
    search: { statements: 3, rows: 0, walBytes: 0, calls: 1716 },
    idle: { statements: 5 },
  },
  all: {
    "two steps": { statements: 3, rows: 10, walBytes: 5800, calls: 2530 },
    "ten steps": { statements: 4, rows: 18, walBytes: 11500, calls: 6170 },
    stream: { statements: 3, rows: 10, walBytes: 5850, calls: 2650 },
  },
};
