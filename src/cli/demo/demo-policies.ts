import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ConnectionSource, PolicySet } from '../../domain/policy/policy.ts';

/** The policies that come with ebb. */
export const POLICIES = fileURLToPath(new URL('../../../policies', import.meta.url));

/** Those that come with ebb leave headroom out, since it needs a source of connections. The demo has one: the emulator. */
const HEADROOM = `version: 1
timezone: Europe/Berlin
owner: platform

sources:
  emulator:
    from: prometheus
    url: http://127.0.0.1
    query: sum(neon_connection_counts{endpoint_id="$compute"})
    every: 30m # of a day that goes by in a minute

policies:
  - name: connection-headroom-web
    kind: headroom
    select:
      projects: ["demo-web-*"]
    connections: emulator
    target: 70%
    max_size: 8
    scale_down:
      after: 30m
`;

/** Writes the demo's own policy file into its folder; the path of it. */
export async function writeHeadroomPolicy(folder: string): Promise<string> {
  const file = join(folder, 'demo-headroom.yaml');
  await writeFile(file, HEADROOM);
  return file;
}

/** The same policies, but every Prometheus that they name is this one: of the demo's computes no other knows. */
export function countingBy(policies: PolicySet, url: string): PolicySet {
  const sources = new Map<string, ConnectionSource>();
  for (const [name, source] of policies.sources) {
    const { refused: _asWritten, ...asked } = source;
    sources.set(name, asked.from === 'prometheus' ? { ...asked, url } : source);
  }
  return { ...policies, sources };
}
