import type { Context } from './context.ts';

/** Asks for a look at a project soon; many askers make one look. `instantMs`: the boundary that is the reason. */
export async function requestReconcile({ queue }: Context, projectId: string, instantMs?: number): Promise<void> {
  const data = { projectId, ...(instantMs !== undefined && { instantMs }) };
  await queue.add('reconcile', { key: projectId, data });
}

/** Asks that a project is taken over a boundary that is about to come. */
export async function requestCrossing({ queue }: Context, projectId: string, instantMs: number): Promise<void> {
  await queue.add('crossings', { key: `${projectId}@${instantMs}`, data: { projectId, instantMs } });
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
