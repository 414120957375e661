/**
 * Hears of every SIGHUP from now on, which then no longer ends the process; those that come before there is a listener are told
 * to it once.
 */
export function hangUps(): (listen: () => void) => void {
  let heard = false;
  let listener = () => {
    heard = true;
  };
  process.on('SIGHUP', () => listener());
  return (listen) => {
    listener = listen;
    if (heard) listen();
  };
}
