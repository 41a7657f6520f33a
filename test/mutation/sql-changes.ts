import type { Change } from "./mutant.ts";

/**
 * The faults for an SQL statement: a missing condition, `<` for `<=`, a missing lock, a wrong order, an assignment or a limit without
 * effect. A condition is not removed but made always true (`(x or true)`), so the statement keeps its parameters and PostgreSQL can infer
 * their types.
 */

interface Token {
  text: string;
  start: number;
  end: number;
}

/** The content of brackets, or between `case` and `end`. */
type Item = Token | Group;
interface Group {
  items: Item[];
  start: number;
  end: number;
}

const TOKENS =
  /\$\{(?:[^{}]|\{[^{}]*\})*\}|'(?:[^']|'')*'|\$\d+|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*|\d+(?:\.\d+)?|::|=>|<=|>=|<>|->>|->|<<|@>|\|\||\S/g;

const OPENING = new Set(["(", "[", "case"]);
const CLOSING = new Set([")", "]", "end"]);

/** Words that end the preceding part. */
const BREAKS = new Set(
  `where and or when then else on select returning set , order limit offset for from as group having with over union values
   update insert delete using join`.split(/\s+/),
);
const BOUNDARIES: Record<string, string> = { "<": "<=", "<=": "<", ">": ">=", ">=": ">" };

const isGroup = (item: Item | undefined): item is Group => item !== undefined && "items" in item;
const wordOf = (item: Item | undefined): string =>
  item === undefined || isGroup(item) ? "" : item.text.toLowerCase();

const parse = (sql: string): Group => {
  const whole: Group = { items: [], start: 0, end: sql.length };
  const open = [whole];
  for (const match of sql.matchAll(TOKENS)) {
    const token = { text: match[0], start: match.index, end: match.index + match[0].length };
    const word = token.text.toLowerCase();
    const group = open.at(-1) ?? whole;
    if (OPENING.has(word)) {
      const inner: Group = { items: [], start: token.start, end: token.end };
      group.items.push(inner);
      open.push(inner);
    } else if (CLOSING.has(word) && open.length > 1) {
      group.end = token.end;
      open.pop();
    } else {
      group.items.push(token);
    }
  }
  return whole;
};

/** Parts of a group between such words. */
interface Stretch {
  before: string;
  items: Item[];
  after: string;
}

const stretches = (group: Group, opening: string): Stretch[] => {
  const found: Stretch[] = [];
  let current: Stretch = { before: opening, items: [], after: "" };
  for (const item of group.items) {
    const word = wordOf(item);
    if (!BREAKS.has(word) || (word === "from" && wordOf(current.items.at(-1)) === "distinct")) {
      current.items.push(item);
      continue;
    }
    found.push({ ...current, after: word });
    current = { before: word, items: [], after: "" };
  }
  found.push(current);
  return found.filter(({ items }) => items.length > 0);
};

const CONDITION_AFTER = new Set(["where", "and", "or", "when", "on", "having"]);
const isCondition = ({ before, items, after }: Stretch): boolean =>
  wordOf(items[0]) !== "conflict" && (CONDITION_AFTER.has(before) || after === "and" || after === "or");

/** All changes of one statement, or of a condition. */
export const sqlChanges = (sql: string): Change[] => {
  const changes: Change[] = [];
  const short = (text: string): string => text.replace(/\s+/g, " ").trim();
  const add = (operator: string, start: number, end: number, replacement: string): void => {
    changes.push({
      operator,
      start,
      end,
      replacement,
      before: short(sql.slice(start, end)),
      after: short(replacement),
    });
  };
  const textOf = (items: Item[]): [start: number, end: number, text: string] => {
    const start = items[0]?.start ?? 0;
    const end = items.at(-1)?.end ?? start;
    return [start, end, sql.slice(start, end)];
  };

  const conditions = (group: Group, opening: string): void => {
    for (const stretch of stretches(group, opening)) {
      if (!isCondition(stretch)) continue;
      const [start, end, text] = textOf(stretch.items);
      const isAlternative = stretch.before === "or" || stretch.after === "or";
      if (!isAlternative) add("always", start, end, `(${text} or true)`);
      if (isAlternative || stretch.before === "when") add("never", start, end, `(${text} and false)`);
    }
  };

  const locks = ({ items }: Group): void => {
    items.forEach((item, index) => {
      if (wordOf(item) !== "for") return;
      const words = items.slice(index, index + 7).map(wordOf);
      const kind = /^for (?:no key update|update|share)(?: of \w+)?/.exec(words.join(" "))?.[0];
      if (kind === undefined) return;
      const length = kind.split(" ").length;
      const [start, end] = textOf(items.slice(index, index + length));
      const skips = words[length] === "skip" ? items.slice(index + length, index + length + 2) : [];
      add("no lock", start, skips.at(-1)?.end ?? end, "");
      if (skips.length > 0) add("no skip", end, skips.at(-1)?.end ?? end, "");
      if (kind === "for share") add("weaker lock", start, end, "for key share");
    });
  };

  const orders = ({ items }: Group): void => {
    items.forEach((item, index) => {
      if (wordOf(item) !== "order" || wordOf(items[index + 1]) !== "by") return;
      const rest = items.slice(index + 2);
      const stop = rest.findIndex((next) => BREAKS.has(wordOf(next)) && wordOf(next) !== ",");
      const keys = stop === -1 ? rest : rest.slice(0, stop);
      const [start, end] = textOf(keys);
      const reversed: string[] = [];
      let key: Item[] = [];
      for (const next of [...keys, undefined]) {
        if (next !== undefined && wordOf(next) !== ",") {
          key.push(next);
          continue;
        }
        const falls = wordOf(key.at(-1)) === "desc";
        const [, , text] = textOf(falls ? key.slice(0, -1) : key);
        reversed.push(falls ? text : `${text} desc`);
        key = [];
      }
      add("reversed", start, end, reversed.join(", "));
    });
  };

  const limits = ({ items }: Group): void => {
    items.forEach((item, index) => {
      const bound = items[index + 1];
      if (wordOf(item) !== "limit" || bound === undefined || isGroup(bound) || !bound.text.startsWith("$"))
        return;
      add("no limit", bound.start, bound.end, `${bound.text}::bigint + 1000`);
    });
  };

  const boundaries = (group: Group): void => {
    for (const { items } of stretches(group, "")) {
      const [, , text] = textOf(items);
      for (const item of items) {
        const other = BOUNDARIES[wordOf(item)];
        // No event happens in the exact microsecond of `now()`.
        if (other === undefined || text.includes("now()")) continue;
        add("boundary", item.start, item.end, other);
        Object.assign(changes.at(-1) ?? {}, { before: short(text), after: `… ${other} …` });
      }
    }
  };

  /** `update t [alias] set a = x, b = y`: each column keeps its value. */
  const assignments = (group: Group): void => {
    const table = group.items.findIndex((item) => wordOf(item) === "set");
    if (table < 2) return;
    const afterUpdate = group.items.slice(0, table).findLastIndex((item) => wordOf(item) === "update");
    const name = group.items.slice(afterUpdate + 1, table).map(wordOf);
    if (afterUpdate === -1 || name.length === 0) return;
    const alias = name.length > 1 ? `${name.at(-1) ?? ""}.` : "";
    const set: Group = { ...group, items: group.items.slice(table) };
    for (const { before, items } of stretches(set, "")) {
      if (before !== "set" && before !== ",") break;
      const column = wordOf(items[0]);
      if (wordOf(items[1]) !== "=" || column === "updated_at") continue;
      const [start, end, text] = textOf(items.slice(2));
      add("unassigned", start, end, `case when true then ${alias}${column} else ${text} end`);
      const last = changes.at(-1);
      if (last !== undefined)
        Object.assign(last, { before: `${column} = ${last.before}`, after: `${column} as it was` });
    }
  };

  const walk = (group: Group, opening: string): void => {
    conditions(group, opening);
    boundaries(group);
    locks(group);
    orders(group);
    limits(group);
    assignments(group);
    for (const item of group.items) if (isGroup(item)) walk(item, "");
  };
  walk(parse(sql), isStatement(sql) ? "" : "where");
  return changes.sort((a, b) => a.start - b.start);
};

/** A statement, or a named subquery (`next as (select …)`) of statements. */
const isStatement = (text: string): boolean =>
  /^\s*(?:\w+ as (?:materialized )?\()?(?:with|select|insert|update|delete)\b/.test(text);

/** Whether a text of the source is SQL: a statement, or a condition for statements. */
export const isSql = (text: string): boolean =>
  (isStatement(text) && /\b(?:from|set|into)\b/.test(text)) || /^[a-z]+\.[a-z_]+ (?:=|<|>|<=|>=) /.test(text);
