import { linesOfTests, sizesOf, sumOf, wordsOfDocs, type Size } from "./lines.ts";

/** `npm run lines -- [folder …]`: the sizes of folders of code (`src` and `console/src` if none is named). */

const print = (...columns: readonly (string | number)[]): void => {
  const [name = "", ...figures] = columns;
  process.stdout.write(
    `${String(name).padEnd(28)}${figures.map((figure) => String(figure).padStart(9)).join("")}\n`,
  );
};

const row = (name: string, { lines, files }: Size): void => print(name, lines, files);

const named = process.argv.slice(2);
for (const folder of named.length > 0 ? named : ["src", "console/src"]) {
  const sizes = sizesOf(folder);
  print(folder, "lines", "files");
  for (const [part, size] of [...sizes].sort(([, a], [, b]) => b.lines - a.lines)) row(`  ${part}`, size);
  row("  together", sumOf(sizes.values()));
}
if (named.length === 0) {
  print("lines of test/", linesOfTests("test"));
  print("words of docs/ and README", wordsOfDocs("."));
}
