import { createSender } from '../adapters/notifications/sender.ts';
import type { Sender } from '../ports/sender.ts';
import { destinationRefused } from '../settings/notify-schema.ts';
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
