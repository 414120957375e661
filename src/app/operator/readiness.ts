import { messageOf } from '../../common/errors.ts';
import { firstNames } from '../../common/names.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { ControlApi } from '../../ports/control-api.ts';
import type { Readiness } from '../../ports/documents.ts';
import type { JobQueue } from '../../ports/job-queue.ts';
import type { Store } from '../../ports/store.ts';
import type { Mode } from '../evaluate-project/evaluate.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { describeOffset, type StoreClock } from '../group/clock-skew.ts';
import type { StoredTimes } from '../group/stored-times.ts';
import { describeSets, type SetsDeps } from '../rollout/write-permission.ts';
import { CONTROL_API, controlApiFor, listOf, type Outages } from '../telemetry/outages.ts';
import { projectsOf } from './documents.ts';

type Check = Readiness['checks'][number];

export interface ReadinessDeps extends SetsDeps {
  api: Pick<ControlApi, 'accountStatus'>;
  fleet: Pick<Fleet, 'projectIds' | 'cachedProject' | 'cachedProjects' | 'latestEvaluation'>;
  mode: Mode;
  outages: Outages;
  queue: Pick<JobQueue, 'counts'>;
  store: Pick<Store, 'storeId' | 'brokenRecords' | 'records'>;
  storeClock: Pick<StoreClock, 'lastExcessiveOffsetMs'>;
  storedTimes: Pick<StoredTimes, 'problem'>;
  /** The name of the engine of queue and store, by which its outages are found. */
  engineName: string;
}

/** A daemon is ready if queue, store, records and clocks are fine, and the control API answers for each account. Other checks only inform. */
export async function checkReadiness(deps: ReadinessDeps): Promise<Readiness> {
  const checks = [
    await check('queue', () => deps.queue.counts()),
    await storeCheck(deps),
    await recordsCheck(deps),
    { name: 'policies', ok: true, message: describeSets(deps) },
    clockCheck(deps),
    storedTimesCheck(deps),
    apiCheck(deps),
    projectsCheck(deps),
    ...accountChecks(deps),
  ];
  return { ready: checks.every(({ ok }) => ok), checks };
}

/** Checks the store. It is not asked in a known outage, since a store that can't be written to may still answer reads. */
function storeCheck({ store, outages, engineName }: ReadinessDeps): Promise<Check> {
  const outage = outages.current().get(engineName);
  if (outage !== undefined) return Promise.resolve({ name: 'store', ok: false, message: outage });
  return check('store', () => store.storeId());
}

/** Checks that all records can be read. Broken records are read again here, since nothing else may read them for long. */
async function recordsCheck({ store }: ReadinessDeps): Promise<Check> {
  try {
    for (const projectId of new Set((await store.brokenRecords()).values())) await store.records(projectId);
    const broken = [...(await store.brokenRecords()).keys()];
    if (broken.length === 0) return { name: 'records', ok: true, message: 'can be read' };
    const message = `the records of ${broken.length} computes cannot be read, so these computes are not touched: ${firstNames(broken, 5)}; see docs/operations.md`;
    return { name: 'records', ok: false, message };
  } catch (error) {
    return { name: 'records', ok: false, message: messageOf(error) };
  }
}

function clockCheck({ storeClock }: ReadinessDeps): Check {
  const offsetMs = storeClock.lastExcessiveOffsetMs();
  if (offsetMs === undefined) return { name: 'clock', ok: true, message: "agrees with the group's time" };
  return { name: 'clock', ok: false, message: `${describeOffset(offsetMs)}; set it right` };
}

function storedTimesCheck({ storedTimes }: ReadinessDeps): Check {
  const problem = storedTimes.problem();
  return { name: 'stored times', ok: problem === undefined, message: problem ?? 'none is ahead of the clock' };
}

/** Tells how many projects are read. This check always passes, since a rolling update must not wait until a large fleet is read. */
function projectsCheck({ fleet }: ReadinessDeps): Check {
  const { listed, read } = projectsOf(fleet);
  return { name: 'projects', ok: true, message: `${read} of ${listed} read` };
}

/** Checks the control API. In an outage the message also says how old the shown state of computes is. */
function apiCheck({ outages, fleet }: ReadinessDeps): Check {
  const outage = outages.current().get(CONTROL_API);
  if (outage === undefined) return { name: CONTROL_API, ok: true, message: 'answers' };
  const readAtMs = [...fleet.cachedProjects()].reduce((newest, { readAtMs }) => Math.max(newest, readAtMs), 0);
  const since = readAtMs === 0 ? 'nothing was read yet' : `computes are shown as of ${isoInstant(readAtMs)}`;
  return { name: CONTROL_API, ok: false, message: `${outage}; ${since}` };
}

function accountChecks({ api, outages }: ReadinessDeps): Check[] {
  return api.accountStatus().map(({ account, key, message, stalledMs = 0 }) => {
    const outage = outages.current().get(controlApiFor(account)) ?? outages.current().get(listOf(account));
    const problem = message ?? stalled(stalledMs) ?? outage;
    const okMessage = key === 'valid' ? 'the API key is accepted' : 'not asked yet';
    return { name: `account ${account}`, ok: problem === undefined, message: problem ?? okMessage };
  });
}

/** An account counts as stalled if it could send nothing for this long, in real milliseconds. */
const STALLED_MS = 60_000;

function stalled(stalledMs: number): string | undefined {
  if (stalledMs < STALLED_MS) return undefined;
  const seconds = Math.round(stalledMs / 1000);
  return `nothing could be sent for ${seconds} s: the control API answers 429, or the rate budget is used up; see who else uses the account`;
}

async function check(name: string, ask: () => Promise<unknown>): Promise<Check> {
  try {
    await ask();
    return { name, ok: true, message: 'answers' };
  } catch (error) {
    return { name, ok: false, message: messageOf(error) };
  }
}
