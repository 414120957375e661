import type { Compute } from '../../domain/compute/compute.ts';
import { isoInstant } from '../../domain/time/instants.ts';

/** The text of `baseline.json`: what every compute has now, in the words of the control API, so that it can be put back. */
export function baselineFile({
  apiUrl,
  computes,
  atMs,
}: {
  apiUrl: string;
  computes: readonly Compute[];
  atMs: number;
}) {
  const baseline = {
    taken_at: isoInstant(atMs),
    api_url: apiUrl,
    computes: computes.map((compute) => ({
      account: compute.account,
      project_id: compute.projectId,
      project_name: compute.projectName,
      compute_id: compute.computeId,
      min_cu: compute.minCu,
      max_cu: compute.maxCu,
      suspend_timeout_seconds: compute.suspendTimeoutSeconds,
    })),
  };
  return `${JSON.stringify(baseline, null, 2)}\n`;
}
