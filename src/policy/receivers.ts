import { didYouMean } from '../common/names.ts';
import type { PolicyProblem } from './problem.ts';
import type { WrittenPolicy } from './reader.ts';

/** The receivers of the settings: `notify`. */
export type ReceiverNames = readonly { name: string }[];

/** Names under `notify`, of a policy or of one of its steps, that the settings don't define. */
export function unknownReceivers(written: readonly WrittenPolicy[], receivers: ReceiverNames): PolicyProblem[] {
  const known = receivers.map(({ name }) => name);
  return written.flatMap(({ at, valueAt, problemAt }) => {
    const steps = valueAt([...at, 'steps']);
    const places = [at, ...(Array.isArray(steps) ? steps.map((_, index) => [...at, 'steps', index]) : [])];
    return places.flatMap((place) => {
      const names = valueAt([...place, 'notify']);
      if (!Array.isArray(names)) return [];
      return names.flatMap((name, index) => {
        if (known.includes(name)) return [];
        const others =
          known.length > 0 ? `; there are ${known.slice(0, 20).join(', ')}` : '; "notify" of ebb.yaml has none';
        const hint = typeof name === 'string' ? didYouMean(name, known) || others : others;
        const message = `no receiver is named ${JSON.stringify(name)?.slice(0, 60)}${hint}`;
        return [problemAt([...place, 'notify', index], 'value', message)];
      });
    });
  });
}
