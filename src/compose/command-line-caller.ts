import { randomUUID } from 'node:crypto';
import { hostname, userInfo } from 'node:os';
import { type Caller, MOST_CHARACTERS } from '../ports/operator.ts';

/** Who runs this process, as the system knows them: nobody has verified it. */
export function commandLineCaller(): Caller {
  return { who: `${userName()}@${hostname()}`.slice(0, MOST_CHARACTERS.owner), requestId: randomUUID() };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'unknown';
  }
}
