/** Lets one caller in at a time, in the order of their asking. Resolves to the function that lets the next one in. */
export type Mutex = () => Promise<() => void>;

export function createMutex(): Mutex {
  let last = Promise.resolve();
  return async () => {
    const before = last;
    let unlock = () => {};
    last = new Promise((resolve) => {
      unlock = resolve;
    });
    await before;
    return unlock;
  };
}
