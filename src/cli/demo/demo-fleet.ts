import type { Fleet } from '../../emulator/fleet.ts';

interface DemoCompute {
  project: string;
  minCu: number;
  maxCu: number;
  suspendTimeoutSeconds: number;
  state: 'active' | 'idle';
}

/** Three teams, eight computes, as many fleets are found: production sized for the peak, development never asleep. */
const COMPUTES: readonly DemoCompute[] = [
  { project: 'demo-web-shop', minCu: 1, maxCu: 4, suspendTimeoutSeconds: -1, state: 'active' },
  { project: 'demo-web-blog', minCu: 1, maxCu: 2, suspendTimeoutSeconds: -1, state: 'active' },
  { project: 'demo-web-checkout', minCu: 2, maxCu: 4, suspendTimeoutSeconds: -1, state: 'active' },
  { project: 'demo-dev-alice', minCu: 1, maxCu: 2, suspendTimeoutSeconds: 3600, state: 'idle' },
  { project: 'demo-dev-bob', minCu: 1, maxCu: 2, suspendTimeoutSeconds: -1, state: 'active' },
  { project: 'demo-dev-ci', minCu: 2, maxCu: 2, suspendTimeoutSeconds: 3600, state: 'idle' },
  { project: 'demo-data-etl', minCu: 2, maxCu: 8, suspendTimeoutSeconds: 300, state: 'idle' },
  { project: 'demo-data-reports', minCu: 1, maxCu: 4, suspendTimeoutSeconds: -1, state: 'active' },
];

/** The compute of a demo project; each has one. */
export function computeIdOf(project: string): string {
  return `ep-${project}`;
}

/** The other way round. */
export function projectOf(computeId: string): string {
  return computeId.slice(computeIdOf('').length);
}

export function demoFleet(): Fleet {
  return {
    projects: COMPUTES.map(({ project, ...compute }) => ({
      id: project,
      name: project,
      regionId: 'aws-eu-central-1',
      pgVersion: 17,
      computes: [
        {
          ...compute,
          id: computeIdOf(project),
          branchId: `br-${project}`,
          branch: { name: 'main', default: true },
          type: 'read_write',
          connections: 0,
        },
      ],
    })),
  };
}
