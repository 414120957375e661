/**
 * Resolves with the first SIGINT or SIGTERM. A second one ends the process at once, as it would without us.
 */
export function stopSignal(): Promise<'SIGINT' | 'SIGTERM'> {
  return new Promise((resolve) => {
    const stop = (signal: 'SIGINT' | 'SIGTERM') => {
      process.off('SIGINT', stop).off('SIGTERM', stop);
      resolve(signal);
    };
    process.on('SIGINT', stop).on('SIGTERM', stop);
  });
}

/** Calls back for every SIGHUP from now on, which then no longer ends the process; earlier signals call a new listener once. */
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
