/**
 * Asks once for all who ask at the same time. Who comes while an answer is under way waits for the next, so that nobody gets
 * an answer to a question that was asked before theirs: what it tells is as true as if they had asked alone.
 */
export function sharedAsk<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
  let underWay: Promise<unknown> = Promise.resolve();
  let next: Promise<Answer> | undefined;

  async function askNext(): Promise<Answer> {
    await underWay;
    next = undefined;
    const answer = ask();
    underWay = answer.catch(() => {});
    return answer;
  }

  return () => {
    next ??= askNext();
    return next;
  };
}
