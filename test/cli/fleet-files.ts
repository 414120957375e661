/** A small fleet in a file, and the policies for it: a Monday's office hours in UTC. */
export const MONDAY_NINE = '2026-03-02T09:00:00Z';

export const POLICIES = `version: 1
policies:
  - name: office-hours
    kind: schedule
    select: { projects: ["web-*"] }
    priority: 100
    windows:
      - at: Mon-Fri 08:00-18:00
        size: 1-4
        suspend_after: never
    otherwise: { size: 0.25-1, suspend_after: 5m }
`;

/** Policies that save by day and night, and the trial that measures it; `head` holds further fields of the file. */
export const onTrial = (from: string, until: string, head = '') => `version: 1
${head}policies:
  - name: nights
    kind: schedule
    select: { projects: ["*"] }
    windows: [{ at: 08:00-18:00, size: 1-4 }]
    otherwise: { size: 0.25-1 }
  - name: proof
    kind: trial
    select: { projects: ["*"] }
    of: [nights]
    control: 50%
    from: ${from}
    until: ${until}
`;

interface FileCompute {
  min_cu?: number;
  max_cu?: number;
  suspend_timeout_seconds?: number;
  state?: string;
  created_at?: string;
  started_at?: string;
  last_active?: string;
  connections?: number;
  baseline?: object;
  branch?: object;
}

/** One project for each key but the last part: `web-shop/ep-busy`. */
export function fleetFile(computes: Record<string, FileCompute>, more: object = {}): string {
  const projects = new Map<string, object[]>();
  for (const [place, fields] of Object.entries(computes)) {
    const [project = '', id = ''] = place.split('/');
    const usual = { min_cu: 0.25, max_cu: 1, suspend_timeout_seconds: 0, state: 'active' };
    const compute = { id, branch_id: `br-${id.slice(3)}`, type: 'read_write', ...usual, ...fields };
    projects.set(project, [...(projects.get(project) ?? []), compute]);
  }
  const all = [...projects].map(([id, list]) => ({
    ...{ id, name: id, region_id: 'aws-eu-central-1', pg_version: 17 },
    computes: list,
  }));
  return JSON.stringify({ ...more, projects: all });
}

export const FLEET = fleetFile({
  'web-shop/ep-busy': { connections: 12 },
  'web-shop/ep-asleep': { min_cu: 2, max_cu: 8, suspend_timeout_seconds: 300, state: 'idle' },
  'web-shop/ep-right': { min_cu: 1, max_cu: 4, suspend_timeout_seconds: -1 },
  'other/ep-other': {},
});
