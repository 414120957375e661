/** Builds dist/ anew: the compiler's output, what pages need besides, and the executable bit on the command. */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, rmSync } from 'node:fs';

rmSync('dist', { recursive: true, force: true });
const compiled = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], {
  stdio: 'inherit',
});
if (compiled.status !== 0) process.exit(compiled.status ?? 1);
cpSync('src/adapters/http/page/assets', 'dist/adapters/http/page/assets', { recursive: true });
chmodSync('dist/cli/main.js', 0o755);
