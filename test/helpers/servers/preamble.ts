import { isIPv4 } from 'node:net'

const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')

function bytesOf(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number))
  const [head = '', tail] = address.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const zeros = tail === undefined ? 0 : 8 - groups(head).length - groups(tail).length
  const all = [...groups(head), ...Array.from({ length: zeros }, () => '0'), ...groups(tail ?? '')]
  return Buffer.from(all.map((group) => group.padStart(4, '0')).join(''), 'hex')
}

/** A PROXY preamble of version 2 with these bytes after its header. */
export function preambleOf(command: number, family: number, rest: Buffer, length = rest.length): Buffer {
  return Buffer.concat([signature, Buffer.from([command, family, length >> 8, length & 255]), rest])
}

/** The preamble for a client that connected to the proxy by TCP; `more` follows the addresses. */
export function preamble(client: string, more: Buffer = Buffer.alloc(0)): Buffer {
  const own = isIPv4(client) ? '192.0.2.1' : '2001:db8::1'
  const ports = Buffer.from([0xc0, 0, 0x01, 0xbb])
  return preambleOf(
    0x21,
    isIPv4(client) ? 0x11 : 0x21,
    Buffer.concat([bytesOf(client), bytesOf(own), ports, more]),
  )
}

/** The preamble for a connection of the proxy itself, such as a health check. */
export const localPreamble = preambleOf(0x20, 0, Buffer.alloc(0))
