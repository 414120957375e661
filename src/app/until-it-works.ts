import type { Context } from './context.ts';

/**
 * Runs a round of something that comes again. While the engine is away it has said so itself; any other failure is said here, and the
 * next round tries again.
 */
export async function untilItWorks(
  { outages, telemetry }: Pick<Context, 'outages' | 'telemetry'>,
  round: () => Promise<void>,
): Promise<void> {
  try {
    await round();
  } catch (error) {
    if (outages.current().size > 0) return;
    const message = error instanceof Error ? error.message : String(error);
    telemetry.log.error({ event: 'ebb.keeper_failed', err: error }, `a round of the keeper failed: ${message}`);
  }
}
