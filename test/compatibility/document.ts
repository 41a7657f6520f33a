import type { Cell } from "./feature.ts";

export interface Result extends Pick<Cell, "table" | "row" | "column"> {
  file: string;
  outcome: "green" | "differs" | "not yet" | "skipped";
  /** The reason why it is not green. */
  reason?: string;
}

/** A table of the document: its cells by row and column, and the files of their tests. */
export interface Table {
  name: string;
  files: string[];
  columns: string[];
  rows: Map<string, Map<string, string>>;
}

export const GREEN = "✓";

const textOf = ({ outcome, reason }: Result): string =>
  outcome === "green" ? GREEN : `${outcome}: ${reason ?? ""}`;

const rankOf = (status: string): number => (status === "success" ? 0 : Number(status));
const isStatus = (column: string): boolean => /^(\d{3}|success)$/.test(column);

/** The tables of a run, in the order of their cells. */
export const tablesOf = (results: readonly Result[]): Table[] => {
  const tables = new Map<string, Table>();
  for (const result of results) {
    const { table: name, row, column, file } = result;
    const table: Table = tables.get(name) ?? { name, files: [], columns: [], rows: new Map() };
    tables.set(name, table);
    if (!table.files.includes(file)) table.files.push(file);
    if (!table.columns.includes(column)) table.columns.push(column);
    const cells = table.rows.get(row) ?? new Map<string, string>();
    table.rows.set(row, cells);
    if (cells.has(column)) throw new Error(`Two tests are the cell '${name}: ${row}: ${column}'.`);
    cells.set(column, textOf(result));
  }
  for (const table of tables.values()) {
    table.files.sort();
    if (table.columns.every(isStatus)) table.columns.sort((a, b) => rankOf(a) - rankOf(b));
  }
  return [...tables.values()];
};

/** A run's table, in which skipped cells keep their written content. */
export const keepingSkipped = (run: Table, written: Table | undefined): Table => ({
  ...run,
  rows: new Map(
    [...run.rows].map(([row, cells]) => [
      row,
      new Map(
        [...cells].map(([column, text]) => [
          column,
          text.startsWith("skipped") ? (written?.rows.get(row)?.get(column) ?? text) : text,
        ]),
      ),
    ]),
  ),
});

const HEAD = `# Compatibility

This page shows which clients work, and how the server differs from the hosted service and the local JavaScript server
(\`langgraphjs dev\`). Each cell is a test of an official client, or of a request, with the real server and PostgreSQL.
[Moving from the hosted service](migrating/from-the-hosted-service.md) has the differences in short.

| A cell | means |
| --- | --- |
| ${GREEN} | it works as with the hosted server: the client gets what it expects, and the answer matches the published contract |
| differs | it works, but the answer differs from the contract on purpose. The number leads to the reason below the table. In the table of the local JavaScript server, that server differs |
| not yet | it is not built; the reason says what happens instead |
| skipped | the machine that wrote this page could not show it |
| (empty) | there is nothing to show: the contract has no such answer for this operation |

Tables of clients have a row for each use, and a column for each version. Tables of operations have a column for each answer that
the contract documents: \`success\` and the statuses of errors. A test provokes each error. The contract is the hosted server's
OpenAPI document (\`test/contract/openapi.json\`).
`;

const TAIL = `The tests write this page (\`UPDATE_COMPATIBILITY=1 npm run test:clients\`). A run fails if its results differ from
this page ([CONTRIBUTING.md](../CONTRIBUTING.md)).
`;

const escaped = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");
const line = (cells: readonly string[]): string => `| ${cells.map(escaped).join(" | ")} |`;

/** Reasons are below the table, by number: each once, however many cells have it. */
const renderTable = ({ name, files, columns, rows }: Table): string => {
  const reasons: string[] = [];
  const short = (text: string | undefined): string => {
    if (text === undefined || text === GREEN) return text ?? "";
    if (!reasons.includes(text)) reasons.push(text);
    return `${text.slice(0, text.indexOf(":"))} (${reasons.indexOf(text) + 1})`;
  };
  const body = [...rows].map(([row, cells]) =>
    line([row, ...columns.map((column) => short(cells.get(column)))]),
  );
  return [
    `## ${name}`,
    "",
    `From ${files.map((file) => `\`${file}\``).join(", ")}.`,
    "",
    line(["", ...columns]),
    line(["---", ...columns.map(() => "---")]),
    ...body,
    "",
    ...reasons.map((reason, index) => `${index + 1}. ${reason}`),
    ...(reasons.length === 0 ? [] : [""]),
  ].join("\n");
};

/** The number of cells of each kind; those that are not green by their names. */
const countCells = (tables: readonly Table[]): { all: number; green: number; others: string } => {
  const cells = tables.flatMap(({ rows }) => [...rows.values()].flatMap((row) => [...row.values()]));
  const kinds = new Map<string, number>();
  for (const cell of cells) {
    const kind = cell === GREEN ? GREEN : cell.slice(0, cell.indexOf(":"));
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  const green = kinds.get(GREEN) ?? 0;
  kinds.delete(GREEN);
  return {
    all: cells.length,
    green,
    others: [...kinds].map(([kind, count]) => `${count} ${kind}`).join(", "),
  };
};

/** The tables in the order in which a reader needs them, by the beginnings of their names. Others are details. */
const GROUPS: readonly (readonly [title: string, names: readonly string[]])[] = [
  [
    "Clients",
    [
      "Methods of the JavaScript SDK",
      "Runs by the JavaScript SDK",
      "Run streams whose connection is cut",
      "RemoteGraph of JavaScript",
      "Event streaming: sessions on a thread",
      "Hooks of front ends",
      "Components of generative user interfaces",
      "Python SDK",
      "RemoteGraph of Python",
      "Event streaming",
    ],
  ],
  [
    "Beside the hosted service",
    [
      ...["Assistants", "Threads", "Runs", "Streams of threads", "Crons", "Store", "Server"].map(
        (name) => `Operations: ${name}`,
      ),
      "Operations",
    ],
  ],
  ["Beside the local server", ["Beside the local JavaScript server"]],
  ["Details", [""]],
];
const PLACES = GROUPS.flatMap(([title, names]) => names.map((beginning) => ({ title, beginning })));
const placeOf = ({ name }: Table): number => PLACES.findIndex(({ beginning }) => name.startsWith(beginning));

/** GitHub's anchor for a heading. */
const anchorOf = (name: string): string =>
  name
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");

/** All tables with their counts, by group. The overview precedes the first heading, so `parse` skips it. */
const renderOverview = (tables: readonly Table[]): string => {
  const { all, green, others } = countCells(tables);
  const rowsOf = (title: string, some: readonly Table[]): string[] =>
    some.length === 0
      ? []
      : [
          line([title, "cells", GREEN, "other"]),
          line(["---", "---", "---", "---"]),
          ...some.map((table) => {
            const counts = countCells([table]);
            const link = `[${table.name}](#${anchorOf(table.name)})`;
            return line([link, String(counts.all), String(counts.green), counts.others]);
          }),
          "",
        ];
  return [
    `**${all} cells: ${green} green (${GREEN}), ${all - green} other${others === "" ? "" : ` (${others})`}.**`,
    "",
    ...GROUPS.flatMap(([group]) =>
      rowsOf(
        group,
        tables.filter((table) => PLACES[placeOf(table)]?.title === group),
      ),
    ),
  ].join("\n");
};

/** Tables that begin with the same words are sorted by name, so the order in which files ran does not matter. */
export const render = (tables: readonly Table[]): string => {
  const ordered = tables.toSorted((a, b) => placeOf(a) - placeOf(b) || a.name.localeCompare(b.name));
  return [HEAD, renderOverview(ordered), TAIL, ...ordered.map(renderTable)].join("\n");
};

const unescapedCells = (text: string): string[] =>
  text
    .slice(2, -2)
    .split(" | ")
    .map((cell) => cell.trim().replaceAll("\\|", "|"));

/** The tables of a document that `render` has written. */
export const parse = (document: string): Table[] =>
  document
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const lines = section.trimEnd().split("\n");
      const reasons = lines.flatMap((text) => /^\d+\. (.*)$/.exec(text)?.[1] ?? []);
      const [head, , ...body] = lines.filter((text) => text.startsWith("|"));
      const columns = unescapedCells(head ?? "").slice(1);
      const long = (text: string): string => {
        const number = /\((\d+)\)$/.exec(text)?.[1];
        return number === undefined ? text : (reasons[Number(number) - 1] ?? text);
      };
      const rows = body.map((text) => {
        const [row, ...cells] = unescapedCells(text);
        const filled = cells.flatMap((cell, index): [string, string][] =>
          cell === "" ? [] : [[columns[index] ?? "", long(cell)]],
        );
        return [row ?? "", new Map(filled)] as const;
      });
      return {
        name: lines[0] ?? "",
        files: [...(lines[2] ?? "").matchAll(/`([^`]+)`/g)].map(([, file]) => file ?? ""),
        columns,
        rows: new Map(rows),
      };
    });

/**
 * The differences between a table of the document and the run. The run may have fewer columns (two lines of the SDK where the document has
 * all) but the same rows. A cell that was skipped here may be green there, because this machine may lack something.
 */
export const differencesOf = (run: Table, written: Table | undefined): string[] => {
  const found: string[] = [];
  const at = (row: string, column: string): string => `${run.name}: ${row}: ${column}`;
  for (const [row, cells] of run.rows) {
    for (const [column, text] of cells) {
      const before = written?.rows.get(row)?.get(column);
      if (before === undefined) found.push(`${at(row, column)} is missing`);
      else if (before !== text && !text.startsWith("skipped")) {
        found.push(`${at(row, column)} is '${text}', not '${before}'`);
      }
    }
  }
  for (const [row, cells] of written?.rows ?? []) {
    if (!run.rows.has(row)) found.push(`${run.name}: ${row} is shown by no test`);
    for (const column of cells.keys()) {
      const isKnown = run.rows.has(row) && run.columns.includes(column);
      if (isKnown && run.rows.get(row)?.has(column) !== true)
        found.push(`${at(row, column)} is shown by no test`);
    }
  }
  return found;
};
