import type { FleetDocument } from '../../src/ports/status-page.ts';

/** The page of a fleet that nobody has read yet. */
export function emptyFleet(at: string): FleetDocument {
  return {
    ...{ at, projects: { listed: 0, read: 0 }, upcoming: [], known: 0, matched: 0, page: 1, pages: 1 },
    overdue: { computes: 0, first: null },
    next_hour: { computes: 0, first: null },
    saved_now: { computes: 0, low_cu: 0, high_cu: 0 },
    totals: { computes: 0, active: 0, min_cu: 0, max_cu: 0 },
    ...{ groups: [], owners: [], computes: [] },
  };
}
