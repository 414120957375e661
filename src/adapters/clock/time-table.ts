/** A pair of instants that are the same moment: `realMs` after the start, `simulatedMs` since the epoch. */
export interface TimePoint {
  realMs: number;
  simulatedMs: number;
}

interface Axis {
  from: 'realMs' | 'simulatedMs';
  to: 'realMs' | 'simulatedMs';
}

/**
 * Throws a RangeError unless the table has a point and both columns ascend strictly. Only then is every simulated instant
 * reached exactly once, which is what makes a real delay computable.
 */
export function assertAscending(table: readonly TimePoint[]): void {
  if (table.length === 0) throw new RangeError('a time table needs at least one point');
  for (const [index, point] of table.entries()) {
    const before = table[index - 1];
    if (before === undefined) continue;
    if (point.realMs <= before.realMs || point.simulatedMs <= before.simulatedMs) {
      throw new RangeError(`point ${index} of the time table must be later than the one before it, in both columns`);
    }
  }
}

/** The simulated instant at `realMs` after the start. Outside the table time runs as fast as real time. */
export function simulatedAt(table: readonly TimePoint[], realMs: number): number {
  return interpolate(table, { from: 'realMs', to: 'simulatedMs' }, realMs);
}

/** How many real milliseconds after the start it is `simulatedMs`; the inverse of {@link simulatedAt}. */
export function realAt(table: readonly TimePoint[], simulatedMs: number): number {
  return interpolate(table, { from: 'simulatedMs', to: 'realMs' }, simulatedMs);
}

function interpolate(table: readonly TimePoint[], { from, to }: Axis, value: number): number {
  const index = table.findLastIndex((point) => point[from] <= value);
  const low = table[Math.max(index, 0)];
  if (low === undefined) throw new RangeError('a time table needs at least one point');
  const high = index < 0 ? undefined : table[index + 1];
  if (high === undefined) return low[to] + (value - low[from]);
  return low[to] + ((value - low[from]) * (high[to] - low[to])) / (high[from] - low[from]);
}
