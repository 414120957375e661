/** `npm run bench [NAME…]`: runs the benches, all or those named. Figures are of this machine; ratios travel better. */
const BENCHES: Record<string, () => Promise<{ run(): Promise<void> }>> = {
  applied: () => import('./applied.ts'),
  audit: () => import('./audit.ts'),
  awake: () => import('./awake.ts'),
  commands: () => import('./commands.ts'),
  'control-api': () => import('./control-api.ts'),
  decide: () => import('./decide.ts'),
  emulator: () => import('./emulator.ts'),
  explain: () => import('./explain.ts'),
  findings: () => import('./findings.ts'),
  guarded: () => import('./guarded.ts'),
  'real-use': () => import('./real-use.ts'),
  fleet: () => import('./fleet.ts'),
  forecast: () => import('./forecast.ts'),
  limit: () => import('./limit.ts'),
  notifications: () => import('./notifications.ts'),
  page: () => import('./page.ts'),
  plan: () => import('./plan.ts'),
  projection: () => import('./projection.ts'),
  'same-saving': () => import('./same-saving.ts'),
  'runs-out': () => import('./runs-out.ts'),
  queue: () => import('./queue.ts'),
  readings: () => import('./readings.ts'),
  ready: () => import('./ready.ts'),
  restart: () => import('./restart.ts'),
  routes: () => import('./routes.ts'),
  savings: () => import('./savings.ts'),
  validate: () => import('./validate.ts'),
};

const names = process.argv.slice(2);
for (const name of names.filter((wanted) => !(wanted in BENCHES))) {
  process.stderr.write(`no bench is named ${name}; there are: ${Object.keys(BENCHES).join(', ')}\n`);
  process.exit(1);
}
for (const [name, load] of Object.entries(BENCHES)) {
  if (names.length > 0 && !names.includes(name)) continue;
  process.stdout.write(`\n${name}\n`);
  await (await load()).run();
}
