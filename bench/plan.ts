import { planFleet } from '../src/domain/evaluate/plan-fleet.ts';
import { compilePolicies } from '../src/domain/policy/compiled-policies.ts';
import { parsePolicyFiles } from '../src/policy/parse.ts';
import { aCompute } from '../test/support/builders.ts';
import { percentile, printTable } from './figures.ts';

const POLICIES = 900;
const COMPUTES = 50;
const NOON = Date.parse('2026-03-28T12:00:00Z');

/** Windows of the policies, all of which select all computes. */
const WINDOWS: Record<string, (index: number) => string> = {
  'office hours, each its own': (index) => `Mon-Fri ${clock(index)}-18:30`,
  'every two minutes, for one': () => '{ cron: "*/2 * * * *", for: 1m }',
  'cron, each its own': (index) => `{ cron: "${index % 60} ${index % 24} * * 1-5", for: 2h }`,
};

/** What a plan takes where very many policies select each compute: the first of a process, and a later one. */
export async function run(): Promise<void> {
  const computes = Array.from({ length: COMPUTES }, (_, index) =>
    aCompute({ computeId: `ep-${index}`, projectId: `p-${index % 25}`, projectName: `web-${index % 25}` }),
  );
  const rows: string[][] = [];
  for (const [name, windowOf] of Object.entries(WINDOWS)) {
    const readSet = () => {
      const read = parsePolicyFiles([0, 1, 2].map((file) => fileOf(file, windowOf)));
      if (!read.ok) throw new Error(read.problems[0]?.message);
      return read.set;
    };
    const plan = () => {
      const policies = compilePolicies(readSet());
      planFleet({
        ...{ policies, computes, records: new Map(), profiles: new Map(), nowMs: NOON, mode: 'enforce' },
      });
    };
    const firstMs = cpuMs(plan);
    const laterMs = percentile(
      Array.from({ length: 5 }, () => cpuMs(plan)),
      0.5,
    );
    rows.push([name, `${firstMs.toFixed(0)} ms`, `${laterMs.toFixed(0)} ms`]);
  }
  printTable([`${POLICIES} policies, ${COMPUTES} computes`, 'CPU to read and plan, the first time', 'later'], rows);
}

function cpuMs(work: () => void): number {
  const begun = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1000;
}

function fileOf(file: number, windowOf: (index: number) => string) {
  const policies = Array.from({ length: POLICIES / 3 }, (_, place) => {
    const index = file * (POLICIES / 3) + place;
    return `  - { name: p${index}, kind: schedule, select: { projects: ["*"] }, priority: ${index % 3}, otherwise: leave, windows: [{ at: ${windowOf(index)}, size: ${1 + (index % 2)} }] }\n`;
  });
  return { path: `f${file}.yaml`, text: `version: 1\ntimezone: Europe/Berlin\npolicies:\n${policies.join('')}` };
}

function clock(index: number): string {
  return `${String(6 + (index % 8)).padStart(2, '0')}:${String(index % 60).padStart(2, '0')}`;
}
