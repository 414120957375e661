import { type AwakeHistory, awakeHistory } from '../../../src/domain/awake/intervals.ts';
import { createOperationLog } from '../../../src/domain/awake/operation-log.ts';
import type { Simulated, Span } from '../../support/demand.ts';

/** What the awake log says of a compute that was simulated. */
export function historyOf({ operations }: Pick<Simulated, 'operations'>, span: Span): AwakeHistory {
  const log = createOperationLog().project('p');
  for (const row of operations) log.add(row);
  return awakeHistory(log.eventsOf('ep'), { ...span, present: { state: 'idle', createdAtMs: 0 } });
}
