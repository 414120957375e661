/** Every series that a scrape of ebb can hold, with its labels. */
import { COMPUTE_METRICS, createTelemetry } from '../../src/adapters/telemetry/telemetry.ts';
import { METRICS, type MetricDeclaration } from '../../src/ports/metrics.ts';

/** Labels that Prometheus gives to whatever it scrapes. */
const OF_THE_SCRAPE = ['job', 'instance'];

/** Names of series as they are queried (`…_bucket` for a histogram), each with its labels. */
export async function knownSeries(): Promise<Map<string, Set<string>>> {
  const known = new Map([['up', new Set(OF_THE_SCRAPE)]]);
  const add = (name: string, labels: readonly string[]) => known.set(name, new Set([...labels, ...OF_THE_SCRAPE]));
  for (const [name, { type, labels }] of Object.entries<MetricDeclaration>({ ...METRICS, ...COMPUTE_METRICS })) {
    if (type !== 'histogram') {
      add(name, labels);
      continue;
    }
    add(`${name}_bucket`, [...labels, 'le']);
    for (const ending of ['sum', 'count']) add(`${name}_${ending}`, labels);
  }
  for (const name of await processMetrics()) add(name, []);
  return known;
}

/** Those of Node without labels, as a scrape has them. */
async function processMetrics(): Promise<string[]> {
  const telemetry = createTelemetry({
    level: 'error',
    version: 'test',
    secrets: [],
    destination: { write: () => {} },
  });
  const { body } = await telemetry.text();
  return [...body.matchAll(/^((?:process|nodejs)_\w+) /gm)].map(([, name]) => name ?? '');
}
