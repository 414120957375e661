import { randomUUID } from 'node:crypto';
import { hostname, userInfo } from 'node:os';
import { type Caller, MAX_CHARACTERS } from '../ports/operator.ts';

/** The user of this process by the system's name, unverified. */
export function commandLineCaller(): Caller {
  return { who: `${userName()}@${hostname()}`.slice(0, MAX_CHARACTERS.owner), requestId: randomUUID() };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'unknown';
  }
}
