import { afterAll, beforeAll, expect, test } from "vitest";
import { createToolRepository } from "../../../src/protocols/mcp/tools/repository.ts";
import { EVERY_ASSISTANT } from "../../helpers/access.ts";
import { explainingDatabase } from "../../helpers/explaining.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

/* The blocks that a call of a tool reads to find its assistant by name. */

const ASSISTANTS = 20_000;
const FEW_BLOCKS = 40;
const DEPLOYED = { graphIds: ["test"], systemIds: [] };

let fresh: FreshDatabase;
let id = "";
beforeAll(async () => {
  fresh = await freshDatabase();
  const database = openTestDatabase(fresh.connectionString);
  await database.query(
    `insert into threadloom.assistants (assistant_id, graph_id, name, version)
     select gen_random_uuid(), 'test', 'helper ' || number, 1 from generate_series(1, $1) number`,
    [ASSISTANTS],
  );
  const [row] = await database.query<{ assistant_id: string }>(
    "select assistant_id from threadloom.assistants where name = 'helper 500'",
  );
  id = row!.assistant_id;
  await database.query("vacuum analyze");
  await database.close();
});
afterAll(() => fresh.drop());

test("a tool is found in few blocks beside 20,000 others, by both of its names", async () => {
  const database = openTestDatabase(fresh.connectionString);
  const { explaining, blocks } = explainingDatabase(database);
  for (const name of ["helper_500", `helper_500_${id.slice(-8)}`]) {
    const found = await createToolRepository(database).find(EVERY_ASSISTANT, DEPLOYED, name);
    expect(found).toBe(id);
    await createToolRepository(explaining).find(EVERY_ASSISTANT, DEPLOYED, name);
    const read = blocks();
    expect(read).toBeGreaterThan(0);
    expect(read).toBeLessThan(FEW_BLOCKS);
  }
  await database.close();
});
