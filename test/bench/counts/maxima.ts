/** The maximum cost of a request, by TRACES. `UPDATE_COUNTS=1 npx vitest run test/bench/counts` writes this file. */
export const MAXIMA = {
  off: {
    "two steps": { statements: 3, rows: 9, walBytes: 5400, calls: 2523 },
    "ten steps": { statements: 4, rows: 17, walBytes: 11000, calls: 6060 },
    stream: { statements: 3, rows: 9, walBytes: 5430, calls: 2646 },
    search: { statements: 4, rows: 0, walBytes: 0, calls: 2770 },
    idle: { statements: 5 },
  },
  all: {
    "two steps": { statements: 3, rows: 10, walBytes: 5810, calls: 2604 },
    "ten steps": { statements: 4, rows: 18, walBytes: 12100, calls: 6377 },
    stream: { statements: 3, rows: 10, walBytes: 5840, calls: 2727 },
  },
};
