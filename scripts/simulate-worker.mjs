/** Runs seeds by the bundles that it is told: what they share, their packages, is loaded once. */

process.on('message', async ({ module, seeds }) => {
  const { runSeed } = await import(module);
  for (const seed of seeds) process.send(await runSeed(seed));
  process.send('ready');
});
