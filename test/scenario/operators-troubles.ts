/** Ten kinds of trouble of an ordinary morning, and the minutes until somebody was told. */
import { join } from 'node:path';
import { DEFAULT_POLICY_SETTINGS, loadPolicySet } from '../../src/policy/load.ts';
import type { ConnectionCounters } from '../../src/ports/connections.ts';
import type { SendOutcome } from '../../src/ports/outbox.ts';
import type { RulesReading } from '../../src/ports/rules.ts';
import { makeFolder } from '../support/platform.ts';
import { givenReadings } from '../support/simulated/given-readings.ts';
import { COUNTED_TEAM, MINUTE_MS, type OperatorsWeek, POLICIES, startWeek } from './operators-week.ts';
import { firstFired } from './rules-test.ts';

/** A Monday, 20 minutes before the boundary of most teams. */
const FROM_MS = Date.UTC(2026, 0, 12, 7, 40);
/** A minute before the boundary of the last team. */
const TROUBLE_MS = Date.UTC(2026, 0, 12, 9, 29);
const UNTIL_MS = Date.UTC(2026, 0, 12, 10, 10);

/** What of the world a trouble changes. */
interface World {
  week: OperatorsWeek;
  /** Gives the next reading of the rules. */
  give(reading: RulesReading): void;
  /** Clients of each awake compute of {@link COUNTED_TEAM}. */
  clients: number;
  sent: SendOutcome;
}

export interface Trouble {
  what: string;
  alert: string;
  /** {@link TROUBLE_MS} if absent. */
  atMs?: number;
  begin(world: World): Promise<void>;
}

const PATCH = 'PATCH /projects/{project_id}/endpoints/{endpoint_id}';
const fault = (spec: object) => (world: World) => world.week.daemon.platform.control('faults', spec);

export const TROUBLES: readonly Trouble[] = [
  { what: 'no daemon runs', alert: 'EbbDown', begin: ({ week }) => week.end() },
  {
    what: 'the control API is down',
    alert: 'EbbBlind',
    begin: async ({ week }) => week.daemon.setOutage(true),
  },
  { what: 'the key is refused', alert: 'EbbKeyRejected', begin: fault({ kind: 'status', status: 401 }) },
  {
    what: 'an edited policy restarts a tenth of the computes each minute',
    alert: 'EbbRestartStorm',
    async begin(world) {
      world.give(await readingOf(world.week, POLICIES.replaceAll('size: 1-4', 'size: 2-4')));
    },
  },
  {
    what: 'connections run out',
    alert: 'EbbHeadroomLow',
    async begin(world) {
      world.clients = 2000;
    },
  },
  {
    what: 'a policy file is broken',
    alert: 'EbbPoliciesNotLive',
    async begin(world) {
      world.give({ ok: false, problems: ['policy.yaml:3:1: unknown kind'] });
    },
  },
  {
    what: 'operations fail',
    alert: 'EbbOperationFailed',
    begin: fault({ kind: 'operation', action: 'apply_config', outcome: 'fail' }),
  },
  {
    what: 'changes are refused',
    alert: 'EbbComputesDegraded',
    begin: fault({ kind: 'status', status: 400, message: 'not allowed by the plan', route: PATCH }),
  },
  {
    what: 'operations hang',
    alert: 'EbbOperationStuck',
    begin: fault({ kind: 'operation', action: 'start_compute', outcome: 'hang' }),
  },
  {
    what: 'a receiver is down',
    alert: 'EbbNotificationsStuck',
    // Its teams are told 15 minutes before their boundary.
    atMs: TROUBLE_MS - 15 * MINUTE_MS,
    async begin(world) {
      world.sent = { ok: false, isRefused: false, message: 'connection refused' };
    },
  },
];

/** Runs a morning with a trouble; returns the minutes until each alert fired. */
export async function runTrouble(
  { atMs = TROUBLE_MS, begin }: Trouble,
  options: { size: number; seed: number },
): Promise<Map<string, number>> {
  const { source, give } = givenReadings();
  const world: Partial<World> & Pick<World, 'give' | 'clients' | 'sent'> = { give, clients: 20, sent: { ok: true } };
  const counters: ConnectionCounters = {
    of: () => ({
      async count(requests) {
        const counted = ({ compute }: (typeof requests)[number]) =>
          compute.projectId.startsWith(COUNTED_TEAM) ? world.clients : 20;
        return new Map(
          requests.map((one) => [one.compute.computeId, { ok: true, value: { connections: counted(one) } }]),
        );
      },
      close: async () => {},
    }),
    close: async () => {},
  };
  const week = await startWeek({ ...options, fromMs: FROM_MS, counters, source, answer: () => world.sent });
  try {
    await week.runTo(atMs);
    await begin(Object.assign(world, { week }));
    await week.runTo(UNTIL_MS);
    const minutes = (UNTIL_MS - FROM_MS) / MINUTE_MS;
    const fired = firstFired(Object.fromEntries(week.series), minutes);
    return new Map([...fired].map(([name, { atMinute }]) => [name, atMinute - (atMs - FROM_MS) / MINUTE_MS] as const));
  } finally {
    await week.end();
  }
}

/** What the daemon reads of its rules with this text of the policies. */
export async function readingOf({ daemon }: Pick<OperatorsWeek, 'daemon'>, text: string): Promise<RulesReading> {
  const folder = await makeFolder({ 'policy.yaml': text });
  try {
    const loaded = await loadPolicySet({
      paths: [join(folder.path, 'policy.yaml')],
      settings: DEFAULT_POLICY_SETTINGS,
    });
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    return { ok: true, rules: { ...daemon.rules.current, policies: loaded.set }, warnings: [], needRestart: [] };
  } finally {
    await folder.remove();
  }
}
