import { execFileSync } from 'node:child_process';
import { programPath } from './programs.ts';

/** Makes `key.pem` and `cert.pem` of this machine in a folder; nobody vouches for the certificate but itself. */
export function makeCertificate(folder: string): void {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'key.pem'];
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'];
  const request = ['req', '-x509', ...key, '-out', 'cert.pem', '-days', '2', ...name];
  execFileSync(programPath('openssl'), request, { cwd: folder, stdio: 'pipe' });
}
