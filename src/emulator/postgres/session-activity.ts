/** Follows both directions of a Postgres session and knows whether its client waits for something or holds a transaction. */
export interface SessionActivity {
  fromClient(chunk: Buffer): void;
  fromServer(chunk: Buffer): void;
}

/** The message that ends every answer; its one byte says whether a transaction is open. */
const READY_FOR_QUERY = 'Z'.charCodeAt(0);
const NO_TRANSACTION = 'I'.charCodeAt(0);
const HEADER_BYTES = 5;
/** Questions that a client may ask before its first message, each answered by a single byte. */
const NEGOTIATION_CODES: ReadonlySet<number> = new Set([80_877_103, 80_877_104]);
const NEGOTIATION_BYTES = 8;

function isNegotiation(chunk: Buffer): boolean {
  return chunk.length === NEGOTIATION_BYTES && NEGOTIATION_CODES.has(chunk.readInt32BE(4));
}

/** `onChange` is called when the session becomes idle and when it works again; it works from its start. */
export function createSessionActivity(onChange: (isBusy: boolean) => void): SessionActivity {
  let isBusy = true;
  let negotiations = 0;
  let hasStarted = false;
  /** Of the server's current message: what came of its header, and how many bytes of its body are still to come. */
  let header: number[] = [];
  let bodyBytes = 0;

  const set = (next: boolean): void => {
    if (next === isBusy) return;
    isBusy = next;
    onChange(next);
  };

  const readByte = (byte: number): void => {
    if (header.length < HEADER_BYTES) {
      header.push(byte);
      if (header.length === HEADER_BYTES) bodyBytes = Buffer.from(header).readInt32BE(1) - 4;
    } else {
      bodyBytes -= 1;
      if (header[0] === READY_FOR_QUERY) set(byte !== NO_TRANSACTION);
    }
    if (header.length === HEADER_BYTES && bodyBytes === 0) header = [];
  };

  return {
    fromClient(chunk) {
      if (!hasStarted && isNegotiation(chunk)) negotiations += 1;
      else hasStarted = true;
      set(true);
    },
    fromServer(chunk) {
      let index = Math.min(negotiations, chunk.length);
      negotiations -= index;
      while (index < chunk.length) {
        const isInBody = header.length === HEADER_BYTES && header[0] !== READY_FOR_QUERY;
        if (isInBody) {
          // Bodies that say nothing here are stepped over, not read.
          const step = Math.min(bodyBytes, chunk.length - index);
          bodyBytes -= step;
          index += step;
          if (bodyBytes === 0) header = [];
        } else {
          readByte(chunk[index] ?? 0);
          index += 1;
        }
      }
    },
  };
}
