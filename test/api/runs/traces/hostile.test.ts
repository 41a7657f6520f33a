import { testHostileGraphs } from "./hostile-cases.ts";

for (const traces of ["all", "errors", "off"] as const) testHostileGraphs({ traces, graphProcesses: 0 });
