/** The audit as people read it. */

interface Line {
  /** ISO 8601. */
  at: string;
  compute_id: string;
  request_id: string | null;
  reasons: readonly { code: string; message: string }[];
}

/** The beginning of the message of an entry with the outcome of a change that got no clear answer. */
const NO_ANSWER = /^no clear answer came, and /;

/**
 * Moves the outcome of a change that got no clear answer into the line of the change. `lines` may be a part of the audit: an outcome whose change
 * they lack stays a line of its own.
 */
export function withOutcomes<L extends Line>(lines: readonly L[]): L[] {
  const outcomes = new Map(lines.filter(isOutcome).map((line) => [keyOf(line), line]));
  if (outcomes.size === 0) return [...lines];
  const changes = new Set(lines.filter((line) => !isOutcome(line)).map(keyOf));
  return lines.flatMap((line) => {
    if (isOutcome(line)) return changes.has(keyOf(line)) ? [] : [line];
    const outcome = outcomes.get(keyOf(line));
    return outcome ? [{ ...line, reasons: [...line.reasons, ...reasonsSeenAt(outcome)] }] : [line];
  });
}

function isOutcome({ request_id, reasons: [first] }: Line): boolean {
  return request_id !== null && first?.code === 'confirmed';
}

function keyOf({ compute_id, request_id }: Line): string {
  return `${compute_id} ${request_id}`;
}

function reasonsSeenAt({ at, reasons }: Line): Line['reasons'] {
  return reasons.map((reason) => ({ ...reason, message: `${reason.message.replace(NO_ANSWER, '')} (seen at ${at})` }));
}
