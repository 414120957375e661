import { NO_TEAM } from '../../domain/policy/team-parts.ts';
import type { DaemonDocument, StatusDocument } from '../../ports/documents.ts';

/** A part of the policy set that daemons have staged. */
export interface StagedPart {
  /** The team whose files are staged, or {@link NO_TEAM}. */
  team: string;
  /** The hash of their policies; absent from daemons of older versions. */
  setHash: string | undefined;
  /** The hash by which a person approves them. */
  hash: string;
  message: string;
}

/** Returns the parts that daemons report, each once: several daemons of a group may have staged the same, and count its computes on their own. */
export function stagedInReports(
  reports: readonly Pick<DaemonDocument, 'staged' | 'staged_sets'>[],
): readonly StagedPart[] {
  const all = reports.flatMap(({ staged, staged_sets = [] }) =>
    staged.map((message, index) => stagedPart({ hash: '', ...staged_sets[index], message })),
  );
  return [...new Map(all.map((one) => [one.hash || one.message, one])).values()];
}

export function stagedInStatus({
  staged,
  staged_teams,
}: Pick<StatusDocument, 'staged' | 'staged_teams'>): readonly StagedPart[] {
  return [staged ?? [], staged_teams].flat().map(stagedPart);
}

function stagedPart(one: { owner?: string; hash: string; set_hash?: string; message: string }): StagedPart {
  const { owner: team = NO_TEAM, hash, set_hash: setHash, message } = one;
  return { team, setHash, hash, message };
}
