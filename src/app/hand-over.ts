import type { JobHandler, QueueName } from '../ports/job-queue.ts';
import type { DaemonContext } from './context.ts';
import { cannotWrite } from './policy-sets.ts';
import { requestReconcile } from './triggers.ts';
import { untilItWorks } from './until-it-works.ts';

/** Triggers that would come to nothing here. */
const LEFT_TO_OTHERS: readonly QueueName[] = ['reconcile', 'boundaries'];

/**
 * A daemon whose clock is wrong looks at nothing: what it would decide, and what it would store for the others, is of another time.
 * It looks at everything once its clock is right.
 */
export function withRightClock({ groupTime }: Pick<DaemonContext, 'groupTime'>, handler: JobHandler): JobHandler {
  return async (job, signal) => ((await groupTime.tooFarOff()) === undefined ? handler(job, signal) : { kind: 'done' });
}

/**
 * A daemon that may not write while others of its group may leaves the triggers to them; when it may again, it takes them again and
 * looks at all that it knows. To be called whenever that may have changed.
 */
export function handOver(context: DaemonContext): () => void {
  const { queue, fleet } = context;
  let isResting = false;
  let changing = Promise.resolve();

  async function change(rests: boolean): Promise<void> {
    for (const name of LEFT_TO_OTHERS) await (rests ? queue.rest(name) : queue.resume(name));
    if (rests) return;
    for (const projectId of fleet.projectIds()) await requestReconcile(context, projectId);
  }

  return () => {
    const blocked = cannotWrite(context);
    // A staged set keeps nobody else from writing, but there may be nobody else: then somebody must still look.
    const rests = blocked === 'superseded' || blocked === 'clock_off';
    if (rests === isResting) return;
    isResting = rests;
    changing = changing.then(() => untilItWorks(context, () => change(rests)));
  };
}
