/**
 * The thread that reads the names of a bundle's components. A stand-in that can be read, called and extended replaces
 * the page's packages (React, …), which modules use as they load.
 */
import vm from "node:vm";
import { parentPort, workerData } from "node:worker_threads";

const LOADING_MS = 2_000;

const MAKE_STAND_IN = `(() => {
  const standIn = new Proxy(function () {}, {
    get: (target, key) =>
      key === "prototype" ? target.prototype
      : key === "then" ? undefined
      : key === Symbol.toPrimitive ? () => ""
      : key === Symbol.iterator ? () => [][Symbol.iterator]()
      : standIn,
    getPrototypeOf: () => standIn,
    apply: () => standIn,
    construct: () => ({}),
  });
  globalThis[Symbol.for("LGUI_REQUIRE")] = () => standIn;
  const silent = () => undefined;
  globalThis.console = { log: silent, info: silent, warn: silent, error: silent, debug: silent };
})()`;

const { script, globalName } = workerData;
try {
  const context = vm.createContext({}, { codeGeneration: { strings: false, wasm: false } });
  vm.runInContext(MAKE_STAND_IN, context);
  vm.runInContext(script, context, { timeout: LOADING_MS });
  const names = vm.runInContext(`JSON.stringify(${globalName}.names)`, context, { timeout: LOADING_MS });
  parentPort?.postMessage(JSON.parse(names));
} catch {
  parentPort?.postMessage(undefined);
}
