import { expect, it } from 'vitest';
import type { Compute } from '../../src/domain/compute/compute.ts';
import type { ConnectionCounter } from '../../src/ports/connections.ts';
import { eventually } from '../support/eventually.ts';

/** A source whose counts a test can set. */
export interface CountedWorld {
  counter: ConnectionCounter;
  /** An active compute that the source knows. */
  compute: Compute;
  /** Makes it so that so many clients are connected. */
  connect(connections: number): Promise<void>;
  /** A counter of the same world whose secret is wrong. */
  withWrongSecret(): Promise<ConnectionCounter>;
  /** A counter of the same world whose secret can't be read, with these words. */
  withoutSecret(words: string): ConnectionCounter;
  /** From then on nothing listens there. */
  stop(): Promise<void>;
}

const NEVER = new AbortController().signal;

/** What every source of connection counts does. */
export function describeConnectionCounter(current: () => CountedWorld): void {
  const outcomeOf = async (counter = current().counter, compute = current().compute, signal = NEVER) =>
    (await counter.count([{ compute }], signal)).get(compute.computeId);
  const codeOf = async (counter?: ConnectionCounter, signal?: AbortSignal) => {
    const outcome = await outcomeOf(counter, current().compute, signal);
    return outcome?.ok === false ? outcome.error.code : outcome;
  };

  it('counts those who are connected, and not itself', async () => {
    for (const connections of [0, 3, 1]) {
      await current().connect(connections);
      await eventually(() => outcomeOf()).toMatchObject({ ok: true, value: { connections } });
    }
  });

  it('asks nothing where nothing is asked', async () => {
    expect(await current().counter.count([], NEVER)).toEqual(new Map());
  });

  it('says that its secret is wrong, or cannot be read, and shows none', async () => {
    const wrong = await current().withWrongSecret();
    const outcome = await outcomeOf(wrong);
    expect(outcome).toMatchObject({ ok: false, error: { code: 'unauthorised' } });
    expect(JSON.stringify(outcome)).not.toContain('wrong-secret');
    await wrong.close();
    const lost = await outcomeOf(current().withoutSecret('the variable EBB_DSN_A is not set'));
    expect(lost).toEqual({ ok: false, error: { code: 'misconfigured', message: 'the variable EBB_DSN_A is not set' } });
  });

  it('ends when it is told to', async () => {
    expect(await codeOf(current().counter, AbortSignal.abort())).toBe('timeout');
  });

  it('says that its source is down', async () => {
    await current().stop();
    expect(await codeOf()).toBe('unavailable');
  });
}
