import { createInterface } from 'node:readline/promises';

/** Asks for the number of computes to be typed; anything else is a no, also the end of the input. */
export async function confirmCount(
  count: number,
  { input, output }: { input: NodeJS.ReadableStream; output: NodeJS.WritableStream },
): Promise<boolean> {
  const reader = createInterface({ input, output });
  const closed = new Promise<undefined>((resolve) => {
    reader.once('close', () => resolve(undefined));
  });
  try {
    const noun = count === 1 ? '1 compute' : `${count} computes`;
    const answer = await Promise.race([reader.question(`Type ${count} to change ${noun} now: `), closed]);
    return answer?.trim() === String(count);
  } finally {
    reader.close();
  }
}
