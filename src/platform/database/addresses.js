// @ts-check
/** JavaScript, because the heartbeat thread imports it (engine/lease/heartbeat-thread-entry.js). */
import { URL } from "node:url";
import pg from "pg";

/** A password may contain a comma. */
const BETWEEN = /\s*,\s*(?=postgres(?:ql)?:\/\/)/;

/**
 * The addresses of a connection string: one, or several of the same database.
 * @param {string} connectionString
 */
export const addressesOf = (connectionString) => connectionString.split(BETWEEN);

/**
 * @param {string} connectionString
 * @param {(address: string) => string} change
 */
export const changeAddresses = (connectionString, change) =>
  addressesOf(connectionString).map(change).join(",");

/** `cannot_connect_now`, a passing fault. */
const standby = () =>
  Object.assign(new Error("This address leads to a standby, which takes no writes."), { code: "57P03" });

/**
 * By the servers of a list, whatever the settings in its addresses: the connections made until an address worked.
 * @type {Map<string, number>}
 */
const turns = new Map();

/**
 * Like `pg.Client`, but takes one of several addresses: that of the last connection that worked. After a failure, or if it
 * leads to a standby, the next connection takes the next one.
 */
export class Client extends pg.Client {
  /** Undefined: there is one address. */
  #servers;
  #address;
  #turn;

  /** @param {pg.ClientConfig} [config] */
  constructor(config = {}) {
    const addresses = addressesOf(config.connectionString ?? "");
    const servers = addresses.length === 1 ? undefined : addresses.map((each) => new URL(each).host).join();
    const turn = turns.get(servers ?? "") ?? 0;
    const address = addresses[turn % addresses.length];
    super({ ...config, connectionString: address });
    this.#address = address;
    this.#servers = servers;
    this.#turn = turn;
  }

  /** That this connection takes. It contains the password. */
  get address() {
    return this.#address;
  }

  /** @param {string} servers */
  async #connectTo(servers) {
    // Without a listener a loss ends the process, and the caller may listen only after this has resolved.
    this.on("error", () => undefined);
    try {
      await super.connect();
      const { rows } = await this.query("select pg_is_in_recovery() as standby");
      if (rows[0].standby) throw standby();
    } catch (error) {
      // Connections that fail together must not skip an address.
      if ((turns.get(servers) ?? 0) === this.#turn) turns.set(servers, this.#turn + 1);
      void this.end().catch(() => undefined);
      throw error;
    }
    return this;
  }

  /**
   * @override
   * @param {(error?: any, client?: any) => void} [callback]
   * @returns {any}
   */
  connect(callback) {
    const servers = this.#servers;
    if (servers === undefined) return callback === undefined ? super.connect() : super.connect(callback);
    const connected = this.#connectTo(servers);
    if (callback === undefined) return connected;
    connected.then((client) => callback(null, client), callback);
  }
}
