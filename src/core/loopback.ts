/**
 * Whether a host, as `--host` or a URL has it, is this machine itself whatever a name service says: what is sent there in
 * the clear never leaves it.
 */
export function isLoopback(host: string): boolean {
  return /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[?::1\]?)$/i.test(host)
}

/** Whether what goes to this URL can be read on its way. */
export function isInTheClear(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'http:' && !isLoopback(hostname)
}
