import { describe, expect, test } from "vitest";
import { webhookConfigOf, webhooksSchema, webhookHeaders } from "../../../src/graphs/project/webhooks.ts";
import { refusalOf } from "../../../src/protocols/webhooks/url-rules.ts";
import { NEVER_PRIVATE, PRIVATE, REFUSED } from "./refused-addresses.ts";
import { ownRouteOf, webhookRefusal } from "../../../src/protocols/webhooks/url-rules.ts";

/** The webhook addresses that a run may name. Names are resolved when they are called: request.test.ts. */

const configOf = (webhooks: object) => webhookConfigOf(webhooksSchema.parse(webhooks), false);
const USUAL = configOf({});
const withRules = (url: object) => configOf({ url });

test.each(REFUSED)("%s is refused", (url) => {
  expect(webhookRefusal(url, USUAL)).toMatch(/^names /);
});

test.each(NEVER_PRIVATE)("%s is refused even if private addresses are allowed", (url) => {
  expect(webhookRefusal(url, withRules({ disable_private_ips: false }))).toMatch(/^names /);
});

test.each(PRIVATE)("%s is private and may be allowed", (url) => {
  expect(webhookRefusal(url, withRules({ disable_private_ips: false }))).toBeUndefined();
});

test.each([
  "//127.0.0.1/",
  "/\\127.0.0.1/",
  "/\\/127.0.0.1/",
  "/\t/127.0.0.1/",
  "http:///",
  "http://[fe80::1%25eth0]/",
  "http://",
  "ftp://example.com/",
  "file:///etc/passwd",
  "javascript:alert(1)",
  "data:text/plain,a",
  "unix:/var/run/docker.sock",
  "hook",
  "../hook",
  "example.com/hook",
])("%s is not an address of a receiver", (url) => {
  expect(webhookRefusal(url, USUAL)).toMatch(/^must be an http or https address/);
});

test.each([
  "https://example.com/hook?token=1#part",
  "http://example.com:8080/",
  "https://user:password@example.com/",
  "https://münchen.example/",
  "http://8.8.8.8/",
  "http://[2606:4700::1111]/",
  "/hook",
  "/hook?token=1",
])("%s may be called", (url) => {
  expect(webhookRefusal(url, USUAL)).toBeUndefined();
});

describe("webhooks.url", () => {
  test("require_https", () => {
    const rules = withRules({ require_https: true });
    expect(webhookRefusal("http://example.com/", rules)).toBe("must be an https address");
    expect(webhookRefusal("https://example.com/", rules)).toBeUndefined();
  });

  test("allowed_domains accepts names, and with *. their subdomains, but not the name itself", () => {
    const rules = withRules({ allowed_domains: ["Hooks.example.com", "*.corp.example"] });
    for (const name of ["hooks.example.com", "HOOKS.example.com.", "a.corp.example", "a.b.corp.example"])
      expect(webhookRefusal(`https://${name}/`, rules)).toBeUndefined();
    for (const name of ["example.com", "corp.example", "xcorp.example", "a.corp.example.evil.org", "8.8.8.8"])
      expect(webhookRefusal(`https://${name}/`, rules)).toContain("allowed_domains");
  });

  test("an allowed name does not allow its address", () => {
    const rules = withRules({ allowed_domains: ["127.0.0.1", "localhost"] });
    expect(webhookRefusal("http://127.0.0.1/", rules)).toContain("a loopback address");
    expect(webhookRefusal("http://localhost/", rules)).toContain("this machine");
  });

  test("allowed_ports considers default ports", () => {
    const rules = withRules({ allowed_ports: [443, 8443] });
    expect(webhookRefusal("https://example.com/", rules)).toBeUndefined();
    expect(webhookRefusal("http://example.com:8443/", rules)).toBeUndefined();
    expect(webhookRefusal("http://example.com/", rules)).toBe(
      "names port 80, which 'allowed_ports' does not have",
    );
  });

  test("max_url_length", () => {
    expect(webhookRefusal("https://example.com/", withRules({ max_url_length: 10 }))).toContain(
      "10 characters",
    );
    expect(webhookRefusal(`https://example.com/${"a".repeat(4_096)}`, USUAL)).toContain("4096 characters");
  });

  test("disable_loopback: true refuses paths of this server, false allows loopback", () => {
    expect(webhookRefusal("/hook", withRules({ disable_loopback: true }))).toContain("absolute");
    const allowing = withRules({ disable_loopback: false });
    for (const url of ["/hook", "http://127.0.0.1:3000/", "http://localhost/", "http://[::1]/"])
      expect(webhookRefusal(url, allowing)).toBeUndefined();
    for (const url of ["http://10.0.0.1/", "http://169.254.169.254/", "http://0.0.0.0/", "http://[fe80::1]/"])
      expect(webhookRefusal(url, allowing)).toMatch(/^names /);
  });

  test("disable_private_ips: false allows private addresses, and no others", () => {
    const allowing = withRules({ disable_private_ips: false });
    for (const url of ["http://10.0.0.1/", "http://192.168.0.1/", "http://[fd12::1]/", "http://100.64.0.1/"])
      expect(webhookRefusal(url, allowing)).toBeUndefined();
    for (const url of ["http://127.0.0.1/", "http://169.254.169.254/", "http://[::ffff:169.254.169.254]/"])
      expect(webhookRefusal(url, allowing)).toMatch(/^names /);
  });
});

test("an address with a zone, and an invalid one, are refused", () => {
  expect(refusalOf("fe80::1%eth0", USUAL)).toBe("a link-local address");
  expect(refusalOf("example.com", USUAL)).toBe("no address");
  expect(refusalOf("", USUAL)).toBe("no address");
});

test("a path of this server keeps its query and loses the parts that requests don't have", () => {
  expect(ownRouteOf("/a/../hook?x=1#part")).toBe("/hook?x=1");
  expect(ownRouteOf("//evil.example/hook")).toBeUndefined();
});

describe("webhooks.headers", () => {
  const headersOf = (headers: object, environment: Record<string, string>, prefix?: string) =>
    webhookHeaders(configOf({ headers, env_prefix: prefix }), environment);

  test("may contain variables with the prefix", () => {
    expect(
      headersOf(
        { "X-A": "a ${{ env.LG_WEBHOOK_A }}-${{env.LG_WEBHOOK_B}}" },
        { LG_WEBHOOK_A: "1", LG_WEBHOOK_B: "2" },
      ),
    ).toEqual({ "X-A": "a 1-2" });
    expect(headersOf({ "X-A": "${{ env.MY_A }}" }, { MY_A: "$&1" }, "MY_")).toEqual({ "X-A": "$&1" });
  });

  test("may contain no other variable, no missing one, and nothing else in braces", () => {
    const environment = { SECRET: "s", LG_WEBHOOK_LINES: "a\r\nb: c" };
    expect(() => headersOf({ A: "${{ env.SECRET }}" }, environment)).toThrow(/with the prefix LG_WEBHOOK_/);
    expect(() => headersOf({ A: "${{ env.LG_WEBHOOK_NO }}" }, environment)).toThrow(/is not set/);
    expect(() => headersOf({ A: "${{ secrets.X }}" }, environment)).toThrow(/env\.NAME/);
    expect(() => headersOf({ A: "${{ env.LG_WEBHOOK_LINES }}" }, environment)).toThrow(/one line/);
  });

  test.each(["webhook-id", "Webhook-Signature", "Content-Length", "host", "a b", ""])(
    "may not be the server's own, or invalid: '%s'",
    (name) => {
      expect(() => headersOf({ [name]: "x" }, {})).toThrow(/header/);
    },
  );
});
