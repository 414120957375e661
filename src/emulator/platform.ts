import type { EmulatorClock } from './clock.ts';
import type { Command } from './world/commands.ts';
import type { WorldEvent, WorldState } from './world/entities.ts';
import { execute } from './world/execute.ts';
import type { Outcome } from './world/outcome.ts';

/** The world and its time, as the routes see them. */
export interface Platform {
  /** The world as it is at this instant: time passes before every look. */
  world(): WorldState;
  /** The world as the last command left it: what its answer shows, before anything else falls due. */
  peek(): WorldState;
  /** Carries a command out at this instant. */
  run(command: Command): Outcome;
  clock: EmulatorClock;
  /** Tells `listener` what happens, in order, until the returned function is called. */
  onEvents(listener: (events: readonly WorldEvent[]) => void): () => void;
}

export function createPlatform(options: { world: WorldState; clock: EmulatorClock }): Platform {
  const { world, clock } = options;
  const listeners = new Set<(events: readonly WorldEvent[]) => void>();
  const run = (command: Command): Outcome => {
    const { outcome, events } = execute(world, command, clock.now());
    if (events.length > 0) for (const listener of listeners) listener(events);
    return outcome;
  };
  return {
    clock,
    run,
    peek: () => world,
    world() {
      run({ kind: 'pass_time' });
      return world;
    },
    onEvents(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
