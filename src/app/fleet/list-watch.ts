/** Reads the list of projects for all that wait at a boundary. Each page confirms its projects when it arrives. */
import type { Clock } from '../../ports/clock.ts';
import type { ControlApi, ListOptions, Project } from '../../ports/control-api.ts';
import { type ReportListingDeps, reportListing } from '../telemetry/outages.ts';
import { readProjectList } from './cached-projects.ts';
import { CONFIRMED_MS, DOUBTED, type Fleet } from './fleet.ts';
import { type CompareListDeps, compareList, confirmByEntry, learnFromOwnChange } from './project-list.ts';

/** With so many confirmed projects that wait for permits, the next page of the list is not needed yet: two seconds of a whole limit. */
const ENOUGH_CONFIRMED = 20;

/** The time that a page of the list may take, in milliseconds: it is requested so long before what is confirmed expires. */
const NEXT_PAGE_MS = 5_000;

/** A project waits for the rest of a list, and for the next one. If its page then comes too late to confirm it, the service is too slow. */
const MAX_LISTS = 2;

/** How often the count of confirmed projects is looked at before the next page, in milliseconds. */
const PAGE_CHECK_MS = 250;

export interface ListWatchDeps extends CompareListDeps, ReportListingDeps {
  api: ControlApi;
  clock: Clock;
}

interface ListWatch {
  /**
   * Resolves once a list of at most this age, in real milliseconds, has been compared, or an attempt of at most this age has failed. The list
   * is that of one account, or of all if none is given. Accounts don't wait for each other. With `projectId`, resolves as soon as a page has
   * shown this project: then `fleet` knows whether its reading is confirmed or doubted.
   */
  ensure(maxAgeMs: number, options: WatchOptions, projectId?: string): Promise<void>;
  /**
   * Waits as `ensure` does until the cached reading is fresh, and resolves to true. Resolves to false if the last list doesn't confirm the
   * reading. A list that takes longer than it confirms for is waited for again, twice at most: reading each project would take longer still.
   */
  isConfirmed(projectId: string, maxAgeMs: number, options: WatchOptions): Promise<boolean>;
}

interface WatchOptions extends ListOptions {
  signal: AbortSignal;
}

export function createListWatch(deps: ListWatchDeps): ListWatch {
  const { fleet, clock } = deps;
  const running = new Map<string | undefined, Promise<void>>();
  /** When a list was last requested and not aborted, by account, in monotonic time. */
  const askedAtMonotonicMs = new Map<string | undefined, number>();
  /** Ends the wait for a page that shows the project, by project id. */
  const waiting = new Map<string, () => void>();

  function onPage(page: readonly Project[], pageAskedAtMonotonicMs: number): void {
    // An account may show projects of another account, which only that one's list confirms.
    const own = page.filter(({ projectId, account }) => fleet.listed(projectId)?.account === account);
    const askedAtMs = clock.now() - (clock.monotonicMs() - pageAskedAtMonotonicMs);
    for (const project of own) {
      fleet.list(project, pageAskedAtMonotonicMs);
      learnFromOwnChange(deps, project, askedAtMs);
    }
    for (const project of own) {
      const { projectId } = project;
      const isUnchanged = confirmByEntry(fleet, project, pageAskedAtMonotonicMs);
      // A project that is waited for is read at once: the list may still have many pages.
      if (!isUnchanged && waiting.has(projectId)) fleet.confirm(projectId, DOUBTED);
      waiting.get(projectId)?.();
    }
  }

  /** Waits while enough projects can be changed: each page confirms for a short time only, and its request takes the place of a change. */
  async function beforeNextPage(account: string | undefined, signal: AbortSignal | undefined): Promise<void> {
    // A project that waits for its page, but not for a permit, prepares for a boundary, which may be near.
    const isPreparing = () => [...waiting.keys()].some((projectId) => !fleet.waitingAtBoundary.has(projectId));
    while (!isPreparing() && countConfirmed(fleet, account) >= ENOUGH_CONFIRMED)
      await clock.wait(PAGE_CHECK_MS, signal);
  }

  async function read(options: ListOptions): Promise<void> {
    const hooks = { onPage, beforeNextPage: () => beforeNextPage(options.account, options.signal) };
    const list = await readProjectList(deps, { ...options, ...hooks });
    reportListing(deps, list, options.account);
    try {
      await compareList(deps, list);
    } finally {
      if (!options.signal?.aborted) askedAtMonotonicMs.set(options.account, list.askedAtMonotonicMs);
    }
  }

  function ageMs(account: string | undefined): number {
    const taken = account === undefined ? fleet.listAskedAtMonotonicMs : fleet.listComparedAtMonotonicMs.get(account);
    const asked = askedAtMonotonicMs.get(account);
    return clock.monotonicMs() - Math.max(taken ?? Number.NEGATIVE_INFINITY, asked ?? Number.NEGATIVE_INFINITY);
  }

  async function ensure(maxAgeMs: number, options: WatchOptions, projectId?: string): Promise<void> {
    const { account } = options;
    if (ageMs(account) <= maxAgeMs) return;
    // The page of this project may have come already.
    if (projectId !== undefined && fleet.confirmedAgeMs(projectId) <= maxAgeMs) return;
    const shown = new Promise<void>((resolve) => {
      if (projectId === undefined) return;
      const others = waiting.get(projectId);
      waiting.set(projectId, () => [others, resolve].forEach((end) => void end?.()));
    });
    // If the first caller is stopped, the others continue without this reading.
    const reading =
      running.get(account) ??
      read(options)
        .catch(() => {})
        .finally(() => running.delete(account));
    running.set(account, reading);
    await Promise.race([reading, shown]);
    if (projectId !== undefined) waiting.delete(projectId);
  }

  return {
    ensure,
    async isConfirmed(projectId, maxAgeMs, options) {
      for (let lists = 0; !fleet.isFresh(projectId); lists += 1) {
        const confirmedAgeMs = fleet.confirmedAgeMs(projectId);
        const isByLastList = Number.isFinite(confirmedAgeMs) && confirmedAgeMs <= ageMs(options.account);
        if (!isByLastList || lists === MAX_LISTS || options.signal.aborted) return false;
        await ensure(maxAgeMs, options, projectId);
      }
      return true;
    },
  };
}

/** Counts the projects of an account that wait at a boundary for nothing but their permit, among those of the most urgent priority. */
function countConfirmed(fleet: Fleet, account: string | undefined): number {
  const waiting = [...fleet.waitingAtBoundary].filter(([id]) => fleet.listed(id)?.account === account);
  const isRaised = waiting.some(([, priority]) => priority === 'raise');
  const urgent = waiting.filter(([, priority]) => !isRaised || priority === 'raise');
  return urgent.filter(([id]) => fleet.confirmedAgeMs(id) <= CONFIRMED_MS - NEXT_PAGE_MS).length;
}
