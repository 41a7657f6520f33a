import { expect, test } from "vitest";
import { addressFor, publicAddress } from "../../src/http/public-address.ts";

test.each([
  ["127.0.0.1:8123", "http://127.0.0.1:8123"],
  ["localhost", "http://localhost"],
  ["agents.example", "https://agents.example"],
  ["agents.example:443", "https://agents.example:443"],
  ["agents.example:8443", "https://agents.example:8443"],
  ["[2001:db8::1]", "https://[2001:db8::1]"],
  ["[2001:db8::1]:8123", "http://[2001:db8::1]:8123"],
  ["threadloom:8123", "http://threadloom:8123"],
  ["10.0.0.5:44300", "http://10.0.0.5:44300"],
])("a client that asks '%s' reads the address %s", (host, address) => {
  expect(publicAddress({ host })).toBe(address);
});

test("a proxy's words count more than the host", () => {
  const headers = { host: "threadloom:8123", "x-forwarded-host": "agents.example" };
  expect(publicAddress(headers)).toBe("https://agents.example");
  expect(publicAddress({ ...headers, "x-forwarded-proto": "http" })).toBe("http://agents.example");
  expect(publicAddress({ ...headers, "x-forwarded-prefix": "/v1" })).toBe("https://agents.example/v1");
  expect(addressFor(headers)).toBe("//agents.example");
});

test("a request without a host that can be called is the caller's mistake", () => {
  for (const host of [undefined, "", "a b", 'x"><script>'])
    expect(() => publicAddress({ host })).toThrow("no Host");
});
