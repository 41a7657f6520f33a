import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { temporaryFolder } from "../../helpers/temporary-folder.ts";
import type { Replica } from "../bench.ts";
import { complaintsWhere, type Scenario } from "../scenario.ts";

/** From Debian's package `faketime`. */
const LIBRARY = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
const STEP_SECONDS_AT_MOST = 60;
/** The library reads its file once a second. */
const BETWEEN_STEPS_MS = 1_500;
const STEPS_PER_TURN = 4;
const STEP_MS = 500;

const aStep = (): number => Math.round((Math.random() * 2 - 1) * STEP_SECONDS_AT_MOST);
const from1To = (count: number): string => JSON.stringify(Array.from({ length: count }, (_, at) => at + 1));

/** 25: clocks that change while graphs run, and servers with different clocks on one database. */
export const steppingClocks = ({ threads, turns }: { threads: number; turns: number }): Scenario => ({
  number: 25,
  title: "clocks: one server steps by -60 to +60 s while it runs, one is 30 s ahead, one 30 s behind",
  criterion:
    "every turn of a conversation ends as success, with all steps of all turns before it; no effect is lost",
  scaled: `${threads} threads with ${turns} turns`,
  async run({ bench }) {
    if (!existsSync(LIBRARY)) return { figure: "", complaints: [], skipped: `there is no ${LIBRARY}` };
    const folder = await temporaryFolder();
    const offset = (name: string) => join(folder.path, name);
    const start = async (name: string, ahead: number): Promise<Replica> => {
      await writeFile(offset(name), signed(ahead));
      const environment = {
        LD_PRELOAD: LIBRARY,
        FAKETIME_TIMESTAMP_FILE: offset(name),
        FAKETIME_CACHE_DURATION: "1",
        FAKETIME_DONT_FAKE_MONOTONIC: "1",
      };
      return await bench.start({ environment });
    };
    const replicas = await Promise.all([start("stepping", 0), start("ahead", 30), start("behind", -30)]);
    let isOver = false;
    let steps = 0;
    const stepping = (async () => {
      while (!isOver) {
        await writeFile(offset("stepping"), signed(aStep()));
        steps += 1;
        await pause(BETWEEN_STEPS_MS);
      }
    })();
    const complaints: string[] = [];
    let lostEffects = 0;
    const converse = async (thread: number): Promise<void> => {
      const at = (turn: number): Replica => replicas[(thread + turn) % replicas.length] as Replica;
      const threadId = await at(0).api.aThread();
      for (let turn = 1; turn <= turns; turn += 1) {
        const { api } = at(turn);
        const total = turn * STEPS_PER_TURN;
        const result = await api.aFinishedRun(threadId, {
          assistant_id: "ledger",
          input: { steps: total, milliseconds: STEP_MS },
          durability: (["sync", "async", "exit"] as const)[(thread + turn) % 3],
        });
        const { values } = await api.state(threadId);
        const [answered, stored] = [result["done"], values["done"]].map((done) => JSON.stringify(done));
        if (answered !== from1To(total))
          complaints.push(`turn ${turn} answered ${answered ?? JSON.stringify(result)}`);
        if (stored !== from1To(total)) {
          lostEffects += 1;
          complaints.push(`after turn ${turn} the state is ${stored}`);
        }
      }
    };
    await Promise.all(Array.from({ length: threads }, (_, thread) => converse(thread)));
    isOver = true;
    await stepping;
    const lost = await bench.untilAllEnded();
    const doubled = await bench.doubledWinners();
    await folder.remove();
    return {
      figure:
        `${threads * turns} turns, ${steps} steps of the clock: lost effects ${lostEffects}; ` +
        `lost ${lost}; doubled ${doubled}`,
      complaints: [
        ...complaints,
        ...complaintsWhere({
          "a run was lost": lost > 0,
          "two attempts wrote": doubled > 0,
        }),
      ],
    };
  },
});

/** In the format of libfaketime. */
const signed = (seconds: number): string => `${seconds < 0 ? "" : "+"}${seconds}\n`;
