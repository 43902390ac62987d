import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { TestServer } from '../servers/server.ts'
import type { Identity } from './scripted-agent.ts'

/** One frame of a client (RFC 6455 §5.2): `first` holds FIN, RSV and opcode. */
export function wireFrame(first: number, payload: Buffer, isMasked = true): Buffer {
  const { length } = payload
  const head =
    length < 126
      ? Buffer.from([first, length])
      : length < 65_536
        ? Buffer.from([first, 126, length >> 8, length & 255])
        : Buffer.concat([
            Buffer.from([first, 127, 0, 0, 0, 0]),
            Buffer.from(new Uint32Array([length]).buffer).swap32(),
          ])
  if (!isMasked) return Buffer.concat([head, payload])
  head[1] = (head[1] ?? 0) | 0x80
  // A mask of zeros leaves the payload unchanged.
  return Buffer.concat([head, Buffer.alloc(4), payload])
}

/** A hand-made agent link on which the test writes every byte. */
export async function rawLink(
  server: Pick<TestServer, 'url'>,
  { agentId, token }: Identity,
): Promise<{ socket: Socket; closeCode: Promise<number | null> }> {
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined)
  const lines = [
    `GET /ws/agent/${agentId} HTTP/1.1`,
    `Host: ${hostname}:${port}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
    'Sec-WebSocket-Protocol: rsm.1',
    'Sec-WebSocket-Extensions: permessage-deflate',
    `Authorization: Bearer ${token}`,
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  if (!answer.toString('latin1').startsWith('HTTP/1.1 101')) throw new Error(answer.toString('latin1'))
  if (/permessage-deflate/i.test(answer.toString('latin1'))) throw new Error('the server compresses')
  let received = Buffer.alloc(0)
  socket.on('data', (data: Buffer) => {
    received = Buffer.concat([received, data]).subarray(-65_536)
  })
  const closeCode = once(socket, 'close').then(() => {
    // Frames before the close frame are small here, so the last 0x88 begins the close frame.
    const at = received.lastIndexOf(0x88)
    return at < 0 || received.length < at + 4 ? null : received.readUInt16BE(at + 2)
  })
  return { socket, closeCode }
}
