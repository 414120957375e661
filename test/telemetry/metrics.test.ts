import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { COMPUTE_METRICS, createTelemetry, type TelemetryOptions } from '../../src/adapters/telemetry/telemetry.ts';
import { METRICS } from '../../src/ports/metrics.ts';
import type { ComputeSeries } from '../../src/ports/telemetry.ts';
import { aCompute } from '../support/builders.ts';
import { programPath } from '../support/programs.ts';
import { describeWith } from '../support/requirements.ts';

function telemetry(options: Partial<TelemetryOptions> = {}) {
  return createTelemetry({
    level: 'error',
    version: '1.2.3',
    secrets: [],
    destination: { write: () => {} },
    ...options,
  });
}

function series(fields: Partial<ComputeSeries> = {}): ComputeSeries {
  return {
    compute: aCompute(),
    desired: { minCu: 1, maxCu: 4, suspendTimeoutSeconds: null },
    baseline: undefined,
    owner: 'team-web',
    ...fields,
  };
}

/** The samples of a scrape: `name{labels} value` lines, without comments. */
async function samples({ text }: ReturnType<typeof telemetry>): Promise<string[]> {
  return (await text()).body.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

describe('metrics', () => {
  it('are all declared from the start, the closed label sets at zero', async () => {
    const one = telemetry();
    const { body, contentType } = await one.text();
    expect(contentType).toMatch(/^text\/plain; version=0\.0\.4/);
    for (const [name, { type }] of Object.entries(METRICS)) expect(body).toContain(`# TYPE ${name} ${type}\n`);
    expect(await samples(one)).toEqual(
      expect.arrayContaining([
        'ebb_build_info{version="1.2.3"} 1',
        'ebb_mode{mode="enforce"} 0',
        'ebb_mode{mode="observe"} 0',
        'ebb_computes{status="degraded"} 0',
        'ebb_estimated_saved_cu_seconds_total{bound="low"} 0',
        'ebb_api_throttled_seconds_total 0',
      ]),
    );
  });

  it('record counters, gauges and histograms; clearing a gauge leaves only its zeros', async () => {
    const one = telemetry();
    one.metrics.increment('ebb_skipped_total', { reason: 'observe' });
    one.metrics.increment('ebb_skipped_total', { reason: 'observe' }, 2);
    one.metrics.set('ebb_computes', { status: 'enforced' }, 7);
    one.metrics.set('ebb_computes_pending', { reason: 'gone', owner: '' }, 3);
    one.metrics.observe('ebb_operation_duration_seconds', { action: 'apply_config', status: 'finished' }, 0.3);
    one.metrics.clear('ebb_computes');
    one.metrics.clear('ebb_computes_pending');
    const lines = await samples(one);
    expect(lines).toContain('ebb_skipped_total{reason="observe"} 3');
    expect(lines).toContain('ebb_computes{status="enforced"} 0');
    expect(lines.filter((line) => line.startsWith('ebb_computes_pending'))).toEqual([]);
    expect(lines).toContain(
      'ebb_operation_duration_seconds_bucket{le="0.5",action="apply_config",status="finished"} 1',
    );
    expect(lines).toContain('ebb_operation_duration_seconds_sum{action="apply_config",status="finished"} 0.3');
  });

  it('drop a value that would spoil them instead of throwing', async () => {
    const one = telemetry();
    one.metrics.increment('ebb_api_throttled_seconds_total', {}, -1);
    one.metrics.increment('ebb_api_throttled_seconds_total', {}, Number.NaN);
    one.metrics.set('ebb_inventory_age_seconds', {}, Number.POSITIVE_INFINITY);
    one.metrics.observe('ebb_decision_duration_seconds', {}, Number.NaN);
    const lines = await samples(one);
    expect(lines).toContain('ebb_api_throttled_seconds_total 0');
    expect(lines).toContain('ebb_inventory_age_seconds 0');
    expect(lines).toContain('ebb_decision_duration_seconds_count 0');
  });

  it('never show a secret that got into a label', async () => {
    const one = telemetry({ secrets: ['pl4nted-secret'] });
    one.metrics.set('ebb_api_key_valid', { account: 'pl4nted-secret' }, 1);
    one.seriesFrom(() => [series({ owner: 'pl4nted-secret' })]);
    expect((await one.text()).body).not.toContain('pl4nted');
  });
});

describe('the series of each compute', () => {
  it('show state, sizes, timeout and what the policies want, and vanish with their compute', async () => {
    const one = telemetry();
    let all = [series()];
    one.seriesFrom(() => all);
    const ofCompute = async () => (await samples(one)).filter((line) => line.startsWith('ebb_compute_'));
    const identity = 'project="p-one",compute="ep-one"';
    const place = `${identity},branch="br-one",type="read_write"`;
    expect(await ofCompute()).toEqual([
      `ebb_compute_state{${place},state="init"} 0`,
      `ebb_compute_state{${place},state="active"} 1`,
      `ebb_compute_state{${place},state="idle"} 0`,
      `ebb_compute_min_cu{${identity}} 0.25`,
      `ebb_compute_max_cu{${identity}} 2`,
      `ebb_compute_desired_min_cu{${identity}} 1`,
      `ebb_compute_desired_max_cu{${identity}} 4`,
      `ebb_compute_suspend_timeout_seconds{${identity}} 300`,
      `ebb_compute_info{${place},account="default",project_name="web-shop",region="aws-eu-central-1",owner="team-web"} 1`,
    ]);
    all = [series({ desired: { minCu: null, maxCu: null, suspendTimeoutSeconds: null } })];
    expect((await ofCompute()).filter((line) => line.includes('desired'))).toEqual([]);
    all = [];
    expect(await ofCompute()).toEqual([]);
  });

  it('carry exactly the labels that are declared', async () => {
    const one = telemetry();
    one.seriesFrom(() => [series()]);
    for (const line of await samples(one)) {
      const name = line.slice(0, line.indexOf('{'));
      if (!(name in COMPUTE_METRICS)) continue;
      const labels = [...line.matchAll(/(\w+)="/g)].map(([, label]) => label);
      expect(labels).toEqual(COMPUTE_METRICS[name as keyof typeof COMPUTE_METRICS].labels);
    }
  });

  it('appear once for a compute that the source gives twice', async () => {
    const one = telemetry();
    one.seriesFrom(() => [series(), series()]);
    expect((await samples(one)).filter((line) => line.startsWith('ebb_compute_min_cu'))).toHaveLength(1);
  });

  it('can be switched off', async () => {
    const one = telemetry({ perComputeMetrics: false });
    one.seriesFrom(() => [series()]);
    expect((await one.text()).body).not.toContain('ebb_compute_');
  });

  it('leave other work its turn while 10,000 computes are rendered', async () => {
    const one = telemetry();
    const many = Array.from({ length: 10_000 }, (_, index) =>
      series({ compute: aCompute({ computeId: `ep-${index}` }) }),
    );
    one.seriesFrom(() => many);
    let turns = 0;
    let rendering = true;
    const takeTurn = () => {
      turns++;
      if (rendering) setImmediate(takeTurn);
    };
    setImmediate(takeTurn);
    const { body } = await one.text();
    rendering = false;
    expect(body.match(/^ebb_compute_info/gm)).toHaveLength(10_000);
    expect(turns).toBeGreaterThan(30);
  });
});

describeWith('promtool', 'promtool check metrics', () => {
  it('finds nothing to object to, whatever names the computes have', async () => {
    const one = telemetry();
    one.metrics.increment('ebb_operations_total', { action: 'apply_config', status: 'finished' });
    one.metrics.observe('ebb_api_request_duration_seconds', { route: 'GET /projects' }, 0.02);
    const projectName = 'quote " backslash \\ line\nfeed é { } ,';
    one.seriesFrom(() => [
      series({ compute: aCompute({ projectName }) }),
      series({ compute: aCompute({ computeId: 'ep-two', suspendTimeoutSeconds: -1 }), owner: undefined }),
    ]);
    const { body } = await one.text();
    const checked = spawnSync(programPath('promtool'), ['check', 'metrics'], { input: body, encoding: 'utf8' });
    expect({ status: checked.status, said: checked.stdout + checked.stderr }).toEqual({ status: 0, said: '' });
  });
});
