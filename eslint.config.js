import js from "@eslint/js";
import reactHooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["node_modules", "dist", ".threadloom", "coverage"] },
  js.configs.recommended,
  ...tseslint.configs.recommended,
  {
    rules: {
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/consistent-type-imports": "error",
      // `import { type X } from "pkg"` still loads the package at run time: LangChain's cost 500 ms of the start.
      "@typescript-eslint/no-import-type-side-effects": "error",
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-console": "error",
    },
  },
  {
    // A statement whose text lost its backticks would send the name of a parameter.
    files: ["src/**"],
    rules: { "no-template-curly-in-string": "error" },
  },
  {
    // Sent as it is.
    files: ["console/public/*.js"],
    languageOptions: {
      globals: Object.fromEntries(
        [
          "addEventListener",
          "document",
          "fetch",
          "location",
          "performance",
          "sessionStorage",
          "setTimeout",
          "URL",
        ].map((name) => [name, "readonly"]),
      ),
    },
  },
  {
    // Of Node; what is below is of browsers, and in TypeScript.
    files: ["console/*.js", ".ci/*.js"],
    languageOptions: { globals: { URL: "readonly", process: "readonly" } },
  },
  {
    files: ["console/src/**"],
    ...reactHooks.configs.flat.recommended,
    rules: {
      ...reactHooks.configs.flat.recommended.rules,
      // It says what React's compiler leaves as it is; the page is built without it.
      "react-hooks/incompatible-library": "off",
    },
  },
  {
    // They keep messages of a stream until the next one has read the stored state. React state would render all messages twice
    // per token.
    files: [
      "console/src/playground/live-thread/branches.ts",
      "console/src/playground/live-thread/foreign-runs.ts",
      "console/src/playground/live-thread/live-thread.ts",
    ],
    rules: { "react-hooks/refs": "off" },
  },
  {
    files: ["test/bench/**", "bin/**"],
    rules: { "no-console": "off" },
  },
  {
    files: ["templates/**/*.js"],
    languageOptions: { globals: { fetch: "readonly" } },
  },
);
