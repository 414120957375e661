/** A real Prometheus with the configuration and the rules of the repository. */
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { type DashboardQuery, dashboardQueries, filledIn } from '../grafana/dashboard-queries.ts';
import { endServer, onFreePort, startServer } from './child-server.ts';
import { programPath } from './programs.ts';

export interface PrometheusSample {
  metric: Record<string, string>;
}

export interface Prometheus {
  /** Answer of its HTTP API, below /api/v1; throws what it says is wrong. */
  ask<T>(path: string): Promise<T>;
  /** Those queries of the dashboards to which it has no answer: neither now nor, for a graph, in the last `seconds`. */
  unanswered(seconds: number): Promise<DashboardQuery[]>;
  close(): Promise<void>;
}

/** As the container of docker-compose.yml starts it. */
const COMMAND = ['--config.file=/etc/prometheus/prometheus.yml', '--storage.tsdb.path=/prometheus'];

/** Scrapes `target` every second, and lets alerts fire at once instead of after their time; the rest is as in compose. */
export async function startPrometheus(options: {
  folder: string;
  target: string;
  command?: readonly string[];
}): Promise<Prometheus> {
  const { command = COMMAND, folder, target } = options;
  const configFolder = join(folder, 'prometheus');
  await cp('prometheus', configFolder, { recursive: true });
  await rewrite(join(configFolder, 'prometheus.yml'), (text) =>
    text.replace('ebb:9464', target).replaceAll('interval: 15s', 'interval: 1s'),
  );
  await rewrite(join(configFolder, 'rules', 'ebb.yml'), (text) => text.replaceAll(/for: \w+/g, 'for: 0s'));
  const here = command.map((word) =>
    word.replace('/etc/prometheus', configFolder).replace('=/prometheus', `=${join(folder, 'tsdb')}`),
  );
  const { port, started: child } = await onFreePort((on) => {
    const args = [...here, `--web.listen-address=127.0.0.1:${on}`];
    return startServer(programPath('prometheus'), args, /Server is ready to receive web requests/);
  });
  const ask = async <T>(path: string): Promise<T> => {
    const { body } = await request(`http://127.0.0.1:${port}/api/v1/${path}`);
    const answer = (await body.json()) as { status: string; error?: string; data: T };
    if (answer.status !== 'success') throw new Error(`${path}: ${answer.error}`);
    return answer.data;
  };
  return { ask, unanswered: (seconds) => unanswered(ask, seconds), close: () => endServer(child, 'SIGKILL') };
}

async function unanswered(ask: Prometheus['ask'], seconds: number): Promise<DashboardQuery[]> {
  const empty: DashboardQuery[] = [];
  for (const query of dashboardQueries()) {
    const [expr, end] = [encodeURIComponent(filledIn(query.expr)), Date.now() / 1000];
    const range = `query_range?query=${expr}&start=${end - seconds}&end=${end}&step=1`;
    const { result } = await ask<{ result: unknown[] }>(query.isRange ? range : `query?query=${expr}`);
    if (result.length === 0) empty.push(query);
  }
  return empty;
}

async function rewrite(path: string, change: (text: string) => string): Promise<void> {
  await writeFile(path, change(await readFile(path, 'utf8')));
}
