import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBench, type Bench } from "../../faults/bench.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { temporaryFolder } from "../../helpers/temporary-folder.ts";

/** Trusted TLS receivers: a server in a process of its own, which trusts one more authority. */

let database: FreshDatabase;
let bench: Bench;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeAll(async () => {
  folder = await temporaryFolder();
  database = await freshDatabase();
  bench = await openBench(database.connectionString);
});
afterAll(async () => {
  await bench.close();
  await database.drop();
  await folder.remove();
});

const openssl = async (...parameters: string[]): Promise<void> => {
  await promisify(execFile)("openssl", parameters, { cwd: folder.path });
};
const EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-batch"];

/** A self-signed authority; `name`.pem is its certificate. */
const anAuthority = async (name: string): Promise<void> => {
  const usage = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"];
  const files = ["-keyout", `${name}.key`, "-out", `${name}.pem`];
  await openssl("req", "-x509", ...EC, ...files, "-days", "2", "-subj", `/CN=${name}`, ...usage);
};

/** A key and a certificate for a host, by an authority. */
const aCertificate = async (authority: string, host: string): Promise<{ key: string; cert: string }> => {
  const name = `${authority}-${host.replaceAll(/\W/g, "-")}`;
  await openssl("req", ...EC, "-keyout", `${name}.key`, "-out", `${name}.csr`, "-subj", "/CN=receiver");
  await writeFile(join(folder.path, `${name}.ext`), `subjectAltName=${host}\n`);
  const by = ["-CA", `${authority}.pem`, "-CAkey", `${authority}.key`, "-CAcreateserial"];
  const files = ["-in", `${name}.csr`, "-out", `${name}.pem`, "-extfile", `${name}.ext`];
  await openssl("x509", "-req", ...files, ...by, "-days", "2");
  const read = (end: string) => readFile(join(folder.path, `${name}.${end}`), "utf8");
  return { key: await read("key"), cert: await read("pem") };
};

test("a receiver gets webhooks over TLS if the server trusts its certificate's authority, and they are retried until then", async () => {
  await anAuthority("trusted");
  await anAuthority("stranger");
  const good = await aCertificate("trusted", "IP:127.0.0.1");
  const ofStranger = await aCertificate("stranger", "IP:127.0.0.1");
  const ofAnother = await aCertificate("trusted", "DNS:another.example");

  const bodies: string[] = [];
  const receiver = createServer(ofStranger, (request, response) => {
    request.on("data", (chunk: Buffer) => bodies.push(chunk.toString()));
    request.on("end", () => response.writeHead(204).end());
  });
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  const { port } = receiver.address() as AddressInfo;
  try {
    const { api } = await bench.start({
      environment: {
        NODE_EXTRA_CA_CERTS: join(folder.path, "trusted.pem"),
        LANGGRAPH_WEBHOOKS: JSON.stringify({ url: { disable_loopback: false, require_https: true } }),
      },
    });
    const { run_id: runId } = await api.aRun(await api.aThread(), {
      assistant_id: "two-step",
      input: { messages: [] },
      webhook: `https://127.0.0.1:${port}/hook`,
    });
    interface Delivery {
      state: string;
      failures: number;
      last_error: string | null;
    }
    const untilTried = (is: (delivery: Delivery) => boolean): Promise<Delivery> =>
      eventually("the receiver was tried", async () => {
        const found = await api.get<Delivery>(`/webhooks/deliveries/${runId}`);
        return found.status === 200 && is(found.body) ? found.body : undefined;
      });
    const again = () => bench.query("update threadloom.deliveries set due_at = now()");

    expect(await untilTried(({ failures }) => failures === 1)).toMatchObject({
      state: "pending",
      last_error: expect.stringContaining("certificate is refused") as string,
    });
    receiver.setSecureContext(ofAnother);
    await again();
    expect(await untilTried(({ failures }) => failures === 2)).toMatchObject({
      state: "pending",
      last_error: expect.stringContaining("certificate is refused") as string,
    });
    expect(bodies).toEqual([]);
    receiver.setSecureContext(good);
    await again();
    await untilTried(({ state }) => state === "delivered");
    expect(JSON.parse(bodies.join(""))).toMatchObject({ run_id: runId, status: "success" });
  } finally {
    receiver.closeAllConnections();
    receiver.close();
  }
});
