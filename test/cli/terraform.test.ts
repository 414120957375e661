import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder } from '../support/platform.ts';

const compute = (id: string, more: object = {}) => ({
  ...{ id, branch_id: `br-${id.slice(3)}`, type: 'read_write', min_cu: 0.25, max_cu: 1 },
  ...{ suspend_timeout_seconds: 0, state: 'idle', ...more },
});
const project = (id: string, name: string, ...computes: object[]) => ({
  ...{ id, name, region_id: 'aws-eu-central-1', pg_version: 17, computes },
});
/** What a name must not do: end a comment, and have something evaluated. */
const NASTY = `*/ "\${file("/")}\r\n}`;
const FLEET = JSON.stringify({
  projects: [
    project(
      'pr-1',
      'web-shop',
      compute('ep-main', { branch: { name: 'main', default: true } }),
      compute('ep-reader', { type: 'read_only', branch: { name: 'main', default: true }, branch_id: 'br-main' }),
      compute('ep-young', { branch: { name: 'dev' }, created_at: new Date().toISOString() }),
    ),
    project('pr-2', 'job\n}\u2028resource "x" "y" {', compute('ep-job', { branch: { name: NASTY } })),
    project('pr-3', 'other', compute('ep-other'), compute('ep-rest')),
    project('nobody', 'nobody', compute('ep-none')),
  ],
});
const POLICIES = `version: 1
sources: { counts: { from: prometheus, url: "http://127.0.0.1:1", query: 'sum(c{id="$compute"})' } }
policies:
  - name: office-hours
    kind: schedule
    select: { computes: [ep-main, ep-young], min_age: 1h }
    windows: [{ at: Mon-Fri 08:00-18:00, size: 1-4 }]
    otherwise: leave
  - name: sleep
    kind: schedule
    mode: observe
    select: { computes: [ep-main, ep-reader] }
    windows: [{ at: 20:00-06:00, suspend_after: 1m }]
    otherwise: leave
  - { name: room, kind: headroom, select: { projects: [pr-2] }, connections: counts, target: 70%, max_size: 8, act: advise }
  - { name: bounds, kind: limits, select: { computes: [ep-other] }, suspend_after: { max: 1h } }
  - { name: updates, kind: restart, select: { projects: ["pr-*"] }, at: Sun 03:00-04:00 }
  - { name: party, kind: freeze, select: { projects: ["*"] }, at: Sun 05:00-06:00 }
  - { name: off, kind: limits, enabled: false, select: { projects: ["*"] }, size: { max: 4 } }
`;
const HCL = `# What ebb may change: each block belongs in the resource of its compute.
# Policies that only observe or advise count, too: somebody may let them enforce later.

# Project pr-1 (web-shop)

# neon_endpoint ep-main, branch br-main (main)
# Policies: office-hours, sleep (only observes)
# If the neon_project creates it, put this there instead: ignore_changes = [default_endpoint_settings]
lifecycle {
  ignore_changes = [
    autoscaling_limit_min_cu,
    autoscaling_limit_max_cu,
    suspend_timeout_seconds,
  ]
}

# neon_endpoint ep-reader, branch br-main (main)
# Policies: sleep (only observes)
lifecycle {
  ignore_changes = [
    suspend_timeout_seconds,
  ]
}

# neon_endpoint ep-young, branch br-young (dev)
# Policies: office-hours
lifecycle {
  ignore_changes = [
    autoscaling_limit_min_cu,
    autoscaling_limit_max_cu,
  ]
}

# Project pr-2 (job?}?resource "x" "y" {)

# neon_endpoint ep-job, branch br-job (*/ "\${file("/")}??})
# Policies: room (only advises)
lifecycle {
  ignore_changes = [
    autoscaling_limit_min_cu,
    autoscaling_limit_max_cu,
  ]
}

# Project pr-3 (other)

# neon_endpoint ep-other, branch br-other
# Policies: bounds
# If the neon_project creates it, put this there instead: ignore_changes = [default_endpoint_settings]
lifecycle {
  ignore_changes = [
    suspend_timeout_seconds,
  ]
}`;

let folder: Awaited<ReturnType<typeof makeFolder>>;
beforeAll(async () => {
  const rests =
    'version: 1\npolicies:\n  - { name: r, kind: restart, select: { projects: ["*"] }, at: Sun 03:00-04:00 }\n';
  folder = await makeFolder({ 'fleet.json': FLEET, 'policies.yaml': POLICIES, 'restarts.yaml': rests });
});
afterAll(() => folder?.remove());

async function terraform(...args: string[]) {
  const run = startEbb(['terraform', '--fleet', 'fleet.json', ...args], { cwd: folder.path, env: {} });
  const status = await run.ended;
  return { status, stdout: run.lines.join('\n'), stderr: run.stderr() };
}

describe('ebb terraform', () => {
  it('prints for each compute only what its policies may change, and no name from outside leaves its comment', async () => {
    expect(await terraform('--policies', 'policies.yaml')).toEqual({ status: 0, stdout: HCL, stderr: '' });
  });

  it('prints the same as JSON', async () => {
    const { status, stdout } = await terraform('--policies', 'policies.yaml', '--json');
    const size = ['autoscaling_limit_min_cu', 'autoscaling_limit_max_cu'];
    const timeout = ['suspend_timeout_seconds'];
    const row = (place: string, branch: string, policies: string[], ignore: string[]) => {
      const [project_id, compute_id] = place.split('/');
      return { project_id, compute_id, branch, policies, ignore_changes: ignore };
    };
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toEqual([
      row('pr-1/ep-main', 'main', ['office-hours', 'sleep'], [...size, ...timeout]),
      row('pr-1/ep-reader', 'main', ['sleep'], timeout),
      row('pr-1/ep-young', 'dev', ['office-hours'], size),
      row('pr-2/ep-job', NASTY, ['room'], size),
      row('pr-3/ep-other', 'br-other', ['bounds'], timeout),
    ]);
  });

  it('says so where policies change nothing', async () => {
    const stderr = 'no policy changes size or timeout of any compute: Terraform has nothing to ignore\n';
    const rests = ['--policies', 'restarts.yaml'];
    expect(await terraform(...rests)).toEqual({ status: 0, stdout: '', stderr });
    expect(await terraform(...rests, '--json')).toEqual({ status: 0, stdout: '[]', stderr });
  });
});
