/**
 * `node .ci/summary.js <folder> <failed steps>`: reads what vitest's JSON reporter wrote into the folder. Prints each failed test with the
 * first line of its error, then "N passed, N failed".
 */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";

const SCRIPTS = ["fast", "slow", "oldest", "node-24"];

/** The results of one run of tests; undefined if it crashed before it wrote any. */
function resultsOf(file) {
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

/** "file: name of the test: first line of the error", for each test that failed and each file that didn't load. */
function failuresOf({ testResults }) {
  return testResults
    .filter(({ status }) => status === "failed")
    .flatMap(({ name, message, assertionResults }) => {
      const file = path.relative(process.cwd(), name);
      const failed = assertionResults.filter(({ status }) => status === "failed");
      if (failed.length === 0) return [`${file}: ${firstLine(message)}`];
      return failed.map((test) => `${file}: ${test.fullName}: ${firstLine(test.failureMessages[0])}`);
    });
}

function firstLine(text) {
  return (text ?? "").split("\n", 1)[0].slice(0, 300);
}

function print(line) {
  process.stdout.write(`${line}\n`);
}

const [folder, failedSteps] = process.argv.slice(2);
let passed = 0;
let failed = Number(failedSteps);
for (const script of SCRIPTS) {
  const results = resultsOf(path.join(folder, `${script}.json`));
  if (results === undefined) continue;
  passed += results.numPassedTests;
  // A failed step is counted by its tests; if it names none (it crashed, or a file didn't load), as one.
  failed += Math.max(results.numFailedTests - 1, 0);
  for (const failure of failuresOf(results)) print(`Failed (${script}): ${failure}`);
}
print(`${passed} passed, ${failed} failed`);
