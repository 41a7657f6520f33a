/**
 * Reads what vitest's JSON reporter wrote.
 *
 *     node .ci/summary.js failed-files <file>             the files of tests that failed, a line each
 *     node .ci/summary.js summary <folder> <failed steps> each failure with its first line, then "N passed, N failed"
 */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";

const SCRIPTS = ["fast", "slow", "node-24"];

/** The results of one run of tests; `undefined` if it crashed before it wrote any. */
function resultsOf(file) {
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

function failedFiles(results) {
  return results.testResults.filter(({ status }) => status === "failed");
}

/** "file: name of the test: first line of the error", for each test that failed and each file that didn't load. */
function failuresOf(results) {
  return failedFiles(results).flatMap(({ name, message, assertionResults }) => {
    const file = path.relative(process.cwd(), name);
    const failed = assertionResults.filter(({ status }) => status === "failed");
    if (failed.length === 0) return [`${file}: ${firstLine(message)}`];
    return failed.map((test) => `${file}: ${test.fullName}: ${firstLine(test.failureMessages[0])}`);
  });
}

function print(...parts) {
  process.stdout.write(`${parts.join(" ")}\n`);
}

function firstLine(text) {
  return (text ?? "").split("\n", 1)[0].slice(0, 300);
}

function summary(folder, failedSteps) {
  let passed = 0;
  let failed = failedSteps;
  for (const script of SCRIPTS) {
    const first = resultsOf(path.join(folder, `${script}.json`));
    if (first === undefined) continue;
    passed += first.numPassedTests;
    const failures = failuresOf(first);
    if (failures.length === 0) continue;
    const again = resultsOf(path.join(folder, `${script}-again.json`));
    print(`Failed (${script}):`, ...failures.map((failure) => `\n  ${failure}`));
    if (again?.success === true) {
      passed += first.numFailedTests;
      print("  All of these passed alone.");
    } else {
      // The step that failed is counted by its tests; if it names none, as one.
      failed += Math.max(first.numFailedTests - 1, 0);
      if (again !== undefined) {
        failed -= 1;
        print("Failed again, alone:", ...failuresOf(again).map((failure) => `\n  ${failure}`));
      }
    }
  }
  print(`${passed} passed, ${failed} failed`);
}

const [command, ...args] = process.argv.slice(2);
if (command === "failed-files") {
  const results = resultsOf(args[0]);
  for (const { name } of results === undefined ? [] : failedFiles(results))
    print(path.relative(process.cwd(), name));
} else {
  summary(args[0], Number(args[1]));
}
