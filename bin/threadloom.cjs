import("tsx").then(() => import("../src/main.ts"));
