import type { Host } from '../../core/protocol/http/hosts.ts'

/** Whether the host's name, addresses, tags and system contain every word of `search`; ignores case. */
export function matches(
  host: Pick<Host, 'hostname' | 'ip' | 'tags' | 'systemInfo'>,
  search: string,
): boolean {
  const tags = Object.entries(host.tags).map(([key, value]) => `${key}:${value}`)
  const { ipAddresses = [], os = '', distribution = '' } = host.systemInfo ?? {}
  const text = [host.hostname, host.ip, ...ipAddresses, os, distribution, ...tags].join('\n').toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}
