import { BaseSequencer, type TestSpecification } from "vitest/node";
import { defineConfig } from "vitest/config";
import { globalSetup, ordinary, plugins } from "../../vitest.config.ts";

/** In the order in which they are most likely to notice; MUTATION_TESTS names them. */
class InGivenOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const order = (process.env["MUTATION_TESTS"] ?? "").split(",");
    const rank = ({ moduleId }: TestSpecification): number =>
      order.findIndex((test) => moduleId.endsWith(test));
    return [...files].sort((a, b) => rank(a) - rank(b));
  }
}

/** The usual tests, one file after the other, up to the first failure. */
export default defineConfig({
  plugins,
  test: {
    ...ordinary,
    globalSetup,
    include: ["test/**/*.test.ts"],
    bail: 1,
    fileParallelism: false,
    sequence: { sequencer: InGivenOrder },
    // Resources broken by a mutant may never close.
    hookTimeout: 15_000,
    teardownTimeout: 5_000,
  },
});
