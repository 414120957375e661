const IPV4_LOOPBACK = /^127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$/;

/**
 * True if the host of a URL or a listening address can only mean this machine: 127.0.0.0/8, ::1 (also in brackets), localhost.
 * Names are not resolved: any other name counts as foreign.
 */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  return bare === 'localhost' || bare === '::1' || IPV4_LOOPBACK.test(bare);
}
