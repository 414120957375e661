import { createSender } from '../adapters/notifications/sender.ts';
import type { Result } from '../common/result.ts';
import { messageOf } from '../domain/notifications/message.ts';
import type { Sender } from '../ports/sender.ts';
import { destinationRefused } from '../settings/notify-schema.ts';
import type { Settings } from '../settings/settings.ts';
import { type CountersOptions, readSecret } from './connections.ts';

/** Sends to receivers as the settings define them; their secrets are read where they stand, each time. */
export function openSender(options: Pick<CountersOptions, 'settings' | 'hide'>): Sender {
  return createSender({
    readSecret: (place, file) => readSecret(place, file, options),
    refusedDestination: destinationRefused,
    // A signature is of real time, whatever time policies are about.
    nowMs: () => Date.now(),
  });
}

/** Sends a test message to a receiver of the settings; the problem says why it did not arrive. */
export async function sendTest(settings: Settings, name: string): Promise<Result<undefined>> {
  const { receivers } = settings.notify;
  const receiver = receivers.find((one) => one.name === name);
  const known = receivers.map((one) => one.name).join(', ') || 'none';
  if (!receiver) return { ok: false, problem: `is no receiver of "notify" in ebb.yaml; there are: ${known}` };
  const sender = openSender({ settings, hide: () => {} });
  const atMs = Date.now();
  const message = messageOf({
    id: `test:${atMs}`,
    kind: 'test',
    atMs,
    text: 'a test message of ebb: this receiver works',
  });
  try {
    const sent = await sender.send(
      receiver,
      { id: message.id, body: JSON.stringify(message) },
      new AbortController().signal,
    );
    return sent.ok ? { ok: true, value: undefined } : { ok: false, problem: sent.message };
  } finally {
    await sender.close();
  }
}
