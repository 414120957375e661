import type { Fleet, FleetCompute, FleetProject, Load } from './fleet.ts';
import { createRandom, nextInteger, nextRandom, pick, type RandomState } from './world/random.ts';

const TEAMS = ['web', 'api', 'dev', 'shop', 'data'] as const;
const REGIONS = ['aws-eu-central-1', 'aws-us-east-2'] as const;
const SIZES = [
  [0.25, 0.25],
  [0.25, 1],
  [0.25, 2],
  [0.5, 4],
  [1, 4],
  [2, 8],
] as const;
const TIMEOUTS_SECONDS = [0, 0, 300, 900, 3600, -1] as const;
const ACTIVE_SHARE = 0.25;

interface GenerateOptions {
  projects: number;
  computesPerProject: number;
  seed: number;
  /** Adds loads to the computes, and an organization for the consumption routes. */
  loads?: boolean;
}

function generateCompute(random: RandomState, projectNumber: string, index: number): FleetCompute {
  const [minCu, maxCu] = pick(random, SIZES);
  const isActive = nextRandom(random) < ACTIVE_SHARE;
  const isReplica = index % 2 === 1;
  const branchNumber = Math.floor(index / 2);
  return {
    id: `ep-${projectNumber}-${index + 1}`,
    branchId: `br-${projectNumber}-${branchNumber + 1}`,
    branch: {
      name: branchNumber === 0 ? 'main' : `preview/${branchNumber}`,
      default: branchNumber === 0,
      protected: false,
    },
    type: isReplica ? 'read_only' : 'read_write',
    minCu,
    maxCu,
    suspendTimeoutSeconds: pick(random, TIMEOUTS_SECONDS),
    state: isActive ? 'active' : 'idle',
    connections: isActive ? nextInteger(random, 1, 20) : 0,
  };
}

const OFFICE: Load = { class: 'office_users', cu: 1, utcOffsetHours: 1 };
const LOADS: readonly (readonly Load[])[] = [
  [OFFICE],
  [OFFICE, { class: 'night_batch', cu: 2, utcOffsetHours: 1 }],
  [{ class: 'bursty_api', cu: 0.5, utcOffsetHours: 1 }],
  [{ class: 'cron_ping', cu: 0, everySeconds: 60 }],
  [OFFICE, { class: 'cron_ping', cu: 0, everySeconds: 900 }],
  [{ class: 'idle_in_transaction', hours: 4, utcOffsetHours: 1 }],
  [{ class: 'queue_poller', cu: 0.05, everySeconds: 10 }],
  [],
];

function generateProject(random: RandomState, index: number, options: GenerateOptions): FleetProject {
  const projectNumber = String(index + 1).padStart(5, '0');
  const team = TEAMS[index % TEAMS.length];
  return {
    id: `${team}-project-${projectNumber}`,
    name: `${team}-${projectNumber}`,
    ...(options.loads === true && { account: 'emulator' }),
    regionId: pick(random, REGIONS),
    pgVersion: 17,
    computes: Array.from({ length: options.computesPerProject }, (_, computeIndex) =>
      generateCompute(random, projectNumber, computeIndex),
    ),
  };
}

/**
 * Generates a fleet; equal seeds give equal fleets. Each branch has a primary and a replica. With an odd number of computes, the last branch has
 * no replica. About a quarter of the computes are active; with loads, all begin asleep.
 */
export function generateFleet(options: GenerateOptions): Fleet {
  const random = createRandom(options.seed);
  const projects = Array.from({ length: options.projects }, (_, index) => generateProject(random, index, options));
  if (options.loads !== true) return { projects };
  // Loads are drawn last, so that a seed gives the same sizes with and without loads.
  const withLoad = (compute: FleetCompute): FleetCompute => ({
    ...compute,
    state: 'idle',
    connections: 0,
    load: LOADS[nextInteger(random, 0, LOADS.length - 1)] ?? [],
  });
  return { projects: projects.map((project) => ({ ...project, computes: project.computes.map(withLoad) })) };
}
