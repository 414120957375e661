import { randomUUID } from 'node:crypto';
import { hostname, userInfo } from 'node:os';
import { type Caller, MAX_CHARACTERS } from '../ports/operator.ts';

/** Names the user of this process by the operating system's user name, which nobody verifies. */
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
