import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { adminLogin, type TestServer } from './server.ts'

export interface Exchange {
  /** The client address of the connection. */
  from?: string
  preamble?: Buffer
  headers?: readonly string[]
  tls?: boolean
  /** Whether every byte is a write of its own. */
  inBytes?: boolean
}

export const portOf = ({ url }: Pick<TestServer, 'url'>) => Number(new URL(url).port)

/** Sends a request over a connection of its own; returns its status and the whole response. */
export async function ask(
  server: Pick<TestServer, 'url'>,
  request: string,
  { from = '127.0.0.1', preamble: begins, tls = false, inBytes = false }: Exchange = {},
): Promise<{ status: number; text: string }> {
  const socket = connect({ host: '127.0.0.1', port: portOf(server), localAddress: from })
  await once(socket, 'connect')
  for (const piece of inBytes
    ? [...(begins ?? [])].map((byte) => Buffer.from([byte]))
    : [begins ?? Buffer.alloc(0)]) {
    socket.write(piece)
    if (inBytes) await new Promise((resolve) => setTimeout(resolve, 2))
  }
  const wire = tls ? connectTls({ socket, rejectUnauthorized: false }) : socket
  wire.write(request)
  let text = ''
  wire.on('data', (data) => {
    text += String(data)
  })
  await new Promise((resolve) => wire.on('error', resolve).on('close', resolve))
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]), text }
}

/** Tries to log the admin in. */
export const login = (password: string, headers: readonly string[] = []) => {
  const body = JSON.stringify({ ...adminLogin, password })
  const lines = ['POST /api/auth/login HTTP/1.1', 'host: rsm', 'content-type: application/json', ...headers]
  return `${lines.join('\r\n')}\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

/** An upgrade by hand, as a proxy would forward it. */
export const upgrade = (path: string, headers: readonly string[]) =>
  [
    `GET ${path} HTTP/1.1`,
    'host: rsm.example',
    'connection: Upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    `sec-websocket-key: ${randomBytes(16).toString('base64')}`,
    ...headers,
    '\r\n',
  ].join('\r\n')
