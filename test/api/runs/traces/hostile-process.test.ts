import { testHostileGraphs } from "./hostile-cases.ts";

testHostileGraphs({ traces: "all", graphProcesses: 1 });
