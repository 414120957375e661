import type { Platform } from '../platform.ts';
import type { Compute, Operation, WorldEvent } from '../world/entities.ts';
import { type ComputeServers, createComputeServers } from './compute-servers.ts';
import { POSTGRES_USER, type PostgresBinaries } from './data-folders.ts';
import { type Front, openFront } from './front.ts';

/** Runs computes as real servers: executes the starts and stops of the world, and reports to it when they have ended. */
export interface PostgresPower {
  /** The URL for clients of a compute; undefined for a new compute until its first start begins. */
  urlOf(computeId: string): string | undefined;
  /** Number of clients that the compute's server has refused as too many. */
  refusedOf(computeId: string): number | undefined;
  close(): Promise<void>;
}

/** The longest delay of a change that no request causes, such as a suspension, in real milliseconds. */
const LONGEST_POLL_MS = 500;
const SHORTEST_POLL_MS = 10;

/** Starts the servers of all active computes. If one doesn't start, it stops the others and rejects. */
export async function startPostgresPower(platform: Platform, binaries: PostgresBinaries): Promise<PostgresPower> {
  const servers = await createComputeServers(binaries);
  const fronts = createFronts(platform, servers);
  const tasks = new Set<Promise<unknown>>();
  let isClosed = false;

  const start = async ({ id, maxCu }: Compute): Promise<void> => {
    await fronts.open(id);
    await servers.start(id, maxCu);
  };

  const execute = async (compute: Compute, operation: Operation): Promise<void> => {
    const work = operation.action === 'start_compute' ? start(compute) : servers.stop(compute.id);
    const failure = await work.then(
      () => undefined,
      (error: Error) => error.message,
    );
    if (isClosed) return;
    const { id: operationId, projectId } = operation;
    platform.run({ kind: 'end_operation', operationId, projectId, error: failure });
    fronts.stopping.delete(compute.id);
  };

  const track = (task: Promise<unknown>): void => {
    const tracked = task.finally(() => tasks.delete(tracked));
    tasks.add(tracked);
  };

  const onEvent = (event: WorldEvent): void => {
    if (event.type === 'clients') fronts.onEvent(event);
    if (event.type === 'deleted') track(fronts.close(event.computeId).then(() => servers.remove(event.computeId)));
    const found = event.type === 'operation' ? externalOperation(platform, event) : undefined;
    if (found === undefined) return;
    if (found.operation.action === 'suspend_compute') fronts.stopping.add(found.compute.id);
    track(execute(found.compute, found.operation));
  };

  const unsubscribe = platform.onEvents((events) => {
    for (const event of events) onEvent(event);
  });
  const ticker = keepPolling(platform);

  const close = async (): Promise<void> => {
    isClosed = true;
    ticker.stop();
    unsubscribe();
    await fronts.closeAll();
    await Promise.allSettled(tasks);
    await servers.close();
  };

  try {
    const computes = [...platform.world().computes.values()];
    await Promise.all(
      computes.map((compute) => (compute.state === 'active' ? start(compute) : fronts.open(compute.id))),
    );
  } catch (error) {
    await close();
    throw error;
  }
  return { urlOf: fronts.urlOf, refusedOf: fronts.refusedOf, close };
}

/** The operation of an event, if a server has to execute it. If a fault decides how the operation ends, no server does. */
function externalOperation(
  platform: Platform,
  event: Extract<WorldEvent, { type: 'operation' }>,
): { compute: Compute; operation: Operation } | undefined {
  const isPower = event.action === 'start_compute' || event.action === 'suspend_compute';
  if (!isPower || event.status !== 'running') return undefined;
  const world = platform.peek();
  const operation = world.projects.get(event.projectId)?.operations.findLast(({ id }) => id === event.operationId);
  const compute = world.computes.get(event.computeId ?? '');
  if (operation === undefined || compute === undefined) return undefined;
  return operation.endsAs === undefined && operation.hangs === undefined ? { compute, operation } : undefined;
}

/** Advances the world when something falls due, so that it happens on time without a request. */
function keepPolling(platform: Platform): { stop(): void } {
  let timer: NodeJS.Timeout;
  const poll = (): void => {
    const nextAtMs = platform.world().due.nextAtMs();
    const untilNextMs = nextAtMs === undefined ? LONGEST_POLL_MS : platform.clock.realDelayMs(nextAtMs);
    timer = setTimeout(poll, Math.max(SHORTEST_POLL_MS, Math.min(LONGEST_POLL_MS, untilNextMs)));
  };
  timer = setTimeout(poll, SHORTEST_POLL_MS);
  return { stop: () => clearTimeout(timer) };
}

interface Fronts {
  open(computeId: string): Promise<void>;
  onEvent(event: Extract<WorldEvent, { type: 'clients' }>): void;
  urlOf(computeId: string): string | undefined;
  refusedOf(computeId: string): number | undefined;
  close(computeId: string): Promise<void>;
  closeAll(): Promise<void>;
  /** Computes whose server is being stopped, which cuts off their sessions. */
  stopping: Set<string>;
}

function createFronts(platform: Platform, servers: ComputeServers): Fronts {
  const fronts = new Map<string, Front>();
  const stopping = new Set<string>();
  const close = async (computeId: string): Promise<void> => {
    const front = fronts.get(computeId);
    fronts.delete(computeId);
    await front?.close();
  };
  return {
    stopping,
    async open(computeId) {
      if (fronts.has(computeId)) return;
      const front = await openFront({
        computeId,
        platform,
        socketPath: () => servers.socketPath(computeId),
        isStopping: () => stopping.has(computeId),
      });
      fronts.set(computeId, front);
    },
    onEvent: (event) => fronts.get(event.computeId)?.onEvent(event),
    urlOf(computeId) {
      const port = fronts.get(computeId)?.port;
      return port === undefined ? undefined : `postgres://${POSTGRES_USER}@127.0.0.1:${port}/postgres`;
    },
    refusedOf: (computeId) => fronts.get(computeId)?.refused(),
    close,
    closeAll: async () => {
      await Promise.all([...fronts.keys()].map(close));
    },
  };
}
