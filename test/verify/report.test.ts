/** The report of `ebb verify`: it can be shown to anybody, and ebb.yaml takes what it found. */
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { verifiedYaml, verifyJson, verifyMarkdown, verifyText } from '../../src/cli/verify/text.ts';
import { ACCOUNT_FACTS, FACT_NAMES } from '../../src/domain/compute/account-facts.ts';
import { settingsSchema } from '../../src/settings/schema.ts';
import { COMPUTE, KEY, reportOf, serviceOf, type Truth } from './service.ts';

const OTHER = Object.fromEntries(FACT_NAMES.map((fact) => [fact, ACCOUNT_FACTS[fact].at(-1)])) as Truth;

it('has each fact, with how it was measured, and neither an id nor a name nor the key', async () => {
  const service = serviceOf(OTHER, { state: 'active' });
  const report = reportOf(await service.verify());
  const [json, markdown] = [verifyJson(report), verifyMarkdown(report)];
  expect(json).toMatchObject({ requests: report.requests, facts: FACT_NAMES.map((fact) => ({ fact })) });
  for (const { fact, verdict, observed, experiment } of json.facts) {
    expect([verdict, observed]).toEqual(['differs', OTHER[fact]]);
    expect(markdown).toMatch(new RegExp(`^\\| \`${fact}\` \\| .* \\| ${OTHER[fact]}.* \\| differs \\|$`, 'm'));
    if (fact !== 'limits') expect(experiment?.requests.length).toBeGreaterThan(0);
  }
  const { name, id } = [...service.emulator.platform.peek().projects.values()][0] ?? { name: '', id: '' };
  expect([name, id]).toEqual(['ebb-verify-1', service.projectId]);
  for (const text of [JSON.stringify(json), markdown, verifyText(report)])
    for (const secret of [KEY, COMPUTE, id, name, 'br-main', 'default', 'aws-eu-central-1'])
      expect(text).not.toContain(secret);
});

it('has the block for ebb.yaml, with what was observed alone', async () => {
  const service = serviceOf(OTHER, { state: 'idle' });
  const report = reportOf(await service.verify({ database: false }));
  const { last_active: _active, restart_drops: _drops, timeout_change: _timeout, ...observed } = OTHER;
  expect(settingsSchema.parse(parse(verifiedYaml(report))).verified).toEqual(observed);
  expect(verifyText(report)).toContain(`so that ebb uses them:\n${verifiedYaml(report)}`);
  const nothing = { ...report, facts: report.facts.map(({ observed: _, ...fact }) => fact) };
  expect([verifiedYaml(nothing), verifyText(nothing)]).toEqual([
    'verified: {}',
    expect.not.stringContaining('ebb.yaml'),
  ]);
});
