/** How long commands take that show what a daemon has read, and what the same takes from the control API under the rate limit. */
import { setTimeout as sleep } from 'node:timers/promises';
import { findProgram, missing } from '../test/support/programs.ts';
import { percentile, printTable } from './figures.ts';
import { type Stage, secondsOf, startDaemon } from './fleet-stage.ts';

const PROJECTS = 300;
const PER_MINUTE = 700;
const RUNS = 3;

/** Branches are selected, so that the daemon reads them for the commands that show them. */
const POLICY = `version: 1
policies:
  - name: bench
    kind: schedule
    select: { projects: ["bench-*"], branches: ["*"] }
    windows: [{ at: "Mon-Sun 00:00-12:00", size: 1-2 }]
    otherwise: { size: 1 }
    disruption: { raise: { when: idle } }
`;

const COMMANDS: readonly (readonly string[])[] = [
  ['plan'],
  ['explain', 'ep-of-nobody'],
  ['forecast'],
  ['snapshot'],
  ['cost'],
  ['recommend'],
];

/** Each request of a command with a key that is refused is one that is answered 401. */
const REFUSED_KEY = 'bench-key-of-nobody';
const KEY = 'bench-key-0';

export async function run(): Promise<void> {
  if (findProgram('redis-server') === undefined) {
    process.stdout.write(`readings is left out: ${missing('redis-server')}\n`);
    return;
  }
  const stage = await startDaemon({
    ...{ projects: PROJECTS, accounts: 1, perMinute: PER_MINUTE, policy: POLICY },
    env: { EBB_MODE: 'observe' },
  });
  try {
    // Once all have been read, and that is over a minute ago.
    await sleep(100_000);
    const rows: string[][] = [];
    for (const args of COMMANDS) rows.push([args[0] ?? '', ...(await compared(stage, args))]);
    printTable(
      [`${PROJECTS} projects`, 'p50', 'requests', '--live', 'requests (and those of the daemon)', 'ratio'],
      rows,
    );
  } finally {
    await stage.close();
  }
}

async function compared(stage: Stage, args: readonly string[]): Promise<string[]> {
  // Operations are only in the API: without a key there would be nothing to show.
  const asksApi = args[0] === 'recommend';
  const shared: number[] = [];
  const own = async () => (await stage.requests()).filter(({ status }) => asksApi || status === 401).length;
  const ownBefore = await own();
  const runs = asksApi ? 1 : RUNS;
  for (let nth = 0; nth < runs; nth += 1) shared.push(await timed(stage, args, asksApi ? KEY : REFUSED_KEY));
  const ownAsked = ((await own()) - ownBefore) / runs;
  // What the command before has used of the limit is free again.
  await sleep(60_000);
  const before = (await stage.requests()).length;
  const live = await timed(stage, [...args, '--live'], KEY);
  const liveAsked = (await stage.requests()).length - before;
  const p50 = percentile(shared, 0.5);
  const ratio = `× ${(live / p50).toFixed(1)}`;
  return [`${p50.toFixed(2)} s`, ownAsked.toFixed(0), `${live.toFixed(1)} s`, String(liveAsked), ratio];
}

function timed(stage: Stage, args: readonly string[], key: string): Promise<number> {
  const env = { EBB_API_KEY_0: key, EBB_QUEUE_URL: stage.redisUrl, EBB_POLICIES: 'policy.yaml' };
  // One that finds nothing, such as an unknown name, takes its time, too.
  return secondsOf(stage, args, { env, codes: [0, 1, 2] });
}
