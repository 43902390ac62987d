import { isIPv6 } from 'node:net'

const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

/**
 * Who may flood or guess, as refusals and wrong passwords are counted: an IPv4 address, and of an IPv6 address its /64, for whoever has one address of
 * such a network has all of them. Any other text stands for itself.
 */
export function sourceOf(address: string): string {
  const v4 = mapped.exec(address)?.[1]
  if (v4 !== undefined) return v4
  if (!isIPv6(address)) return address
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const first = groups(head)
  // Dotted decimals at the end stand for two groups.
  const last = groups(tail ?? '').flatMap((group) => (group.includes('.') ? [group, ''] : [group]))
  const zeros = tail === undefined ? 0 : 8 - first.length - last.length
  const all = [...first, ...Array.from({ length: zeros }, () => '0'), ...last]
  const network = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16))
  return `${network.join(':')}::/64`
}
