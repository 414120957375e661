/** Resolves with the first SIGINT or SIGTERM. A second one ends the process at once. */
export function stopSignal(): Promise<'SIGINT' | 'SIGTERM'> {
  return new Promise((resolve) => {
    const stop = (signal: 'SIGINT' | 'SIGTERM') => {
      process.off('SIGINT', stop).off('SIGTERM', stop);
      resolve(signal);
    };
    process.on('SIGINT', stop).on('SIGTERM', stop);
  });
}

/** Calls `work` with a signal that Ctrl-C aborts. `names` replaces SIGINT by other signals. A second one ends the process. */
export async function untilInterrupted<T>(
  work: (signal: AbortSignal) => Promise<T>,
  names: readonly NodeJS.Signals[] = ['SIGINT'],
): Promise<T> {
  const interruption = new AbortController();
  const end = () => {
    for (const name of names) process.off(name, interrupt);
  };
  const interrupt = () => {
    end();
    interruption.abort();
  };
  for (const name of names) process.on(name, interrupt);
  try {
    return await work(interruption.signal);
  } finally {
    end();
  }
}

/** Catches SIGHUP from now on. Returns a function that sets the listener, and calls it once if a signal came before. */
export function hangUps(): (listen: () => void) => void {
  let caught = false;
  let listener = () => {
    caught = true;
  };
  process.on('SIGHUP', () => listener());
  return (listen) => {
    listener = listen;
    if (caught) listen();
  };
}
