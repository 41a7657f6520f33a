import { expect, test } from "vitest";
import { startTestServer } from "../../helpers/app.ts";
import { createFailedLogins } from "../../../src/http/limits/failed-logins.ts";
import { unknownKey, unavailable } from "../../../src/platform/domain/errors.ts";

const [AT_MOST, KEY] = [3, "a-key-of-the-operator"];

test("an address with too many wrong credentials gets a 429, other addresses and formerly accepted credentials do not", async () => {
  const server = await startTestServer({
    apiKeys: [KEY],
    failedLoginsPerMinute: AT_MOST,
    trustedProxies: ["loopback"],
  });
  try {
    const ask = async (address: string, headers: Record<string, string>, path = "/openapi.json") =>
      await fetch(`${server.url}${path}`, { headers: { "x-forwarded-for": address, ...headers } });
    const [HERE, THERE, GOOD] = ["10.1.1.1", "10.1.1.2", { "x-api-key": KEY }];
    expect((await ask(HERE, GOOD)).status).toBe(200);
    const statuses: number[] = [];
    for (let count = 0; count < AT_MOST; count += 1)
      statuses.push((await ask(HERE, count % 2 === 0 ? {} : { "x-api-key": "wrong" })).status);
    expect(statuses).toEqual([401, 403, 401]);
    const refused = await ask(HERE, { "x-api-key": "wrong again" });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refused.json()).toEqual({
      detail:
        "At most 3 requests with wrong credentials of one address are taken in a minute; try again later.",
    });
    expect((await ask(HERE, GOOD)).status).toBe(200);
    expect((await ask(HERE, {}, "/ok")).status).toBe(200);
    expect((await ask(THERE, {})).status).toBe(401);
  } finally {
    await server.close();
  }
});

test("new credentials wait with the address, and are accepted when its time is over", () => {
  let now = 0;
  const logins = createFailedLogins({ perMinute: AT_MOST, countsAddresses: true, now: () => now });
  const request = { ip: "10.1.1.1", headers: { authorization: "Bearer new" } };
  for (let count = 0; count < AT_MOST; count += 1) logins.failed(request, unknownKey());
  expect(() => logins.assertMayTry(request)).toThrow("wrong credentials");
  now += 20_000;
  logins.assertMayTry(request);
  logins.failed(request, unknownKey());
  expect(() => logins.assertMayTry(request)).toThrow("wrong credentials");
  logins.succeeded(request);
  logins.assertMayTry(request);
});

test("failures are not counted on this machine, after server errors, where addresses mean nothing, or without a limit", () => {
  const [elsewhere, here] = ["10.1.1.1", "127.0.0.1"].map((ip) => ({ ip, headers: {} }));
  const counting = createFailedLogins({ perMinute: 1, countsAddresses: true });
  counting.failed(here!, unknownKey());
  counting.failed(elsewhere!, unavailable("away"));
  for (const request of [here!, elsewhere!]) counting.assertMayTry(request);
  for (const options of [
    { perMinute: 0, countsAddresses: true },
    { perMinute: 1, countsAddresses: false },
  ]) {
    const logins = createFailedLogins(options);
    logins.failed(elsewhere!, unknownKey());
    logins.assertMayTry(elsewhere!);
  }
});
