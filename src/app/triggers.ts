import type { Context } from './context.ts';

/** Asks for a look at a project soon; many askers make one look. */
export async function requestReconcile({ queue }: Context, projectId: string): Promise<void> {
  await queue.add('reconcile', { key: projectId, data: { projectId } });
}

/**
 * Asks for a look at a project at a boundary that is about to come. It has a key of its own: merged with a trigger that waits already
 * it would be looked at before the instant.
 */
export async function requestAtBoundary({ queue }: Context, projectId: string, instantMs: number): Promise<void> {
  await queue.add('reconcile', { key: `${projectId}@${instantMs}`, data: { projectId, instantMs } });
}

/** Asks for a look at a project at an instant. The id holds the instant, so several daemons ask once. */
export async function wakeAt({ queue }: Context, projectId: string, instantMs: number): Promise<void> {
  const id = `w-${projectId}-${Math.ceil(instantMs)}`;
  await queue.addAt('boundaries', { id, atMs: instantMs, data: { projectId, instantMs } });
}

/** Asks that the operations of a project are followed to their end; one follower for each project is enough. */
export async function requestFollowing({ queue }: Context, projectId: string): Promise<void> {
  await queue.add('operations', { key: projectId, data: { projectId } });
}
