import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import type { ExecutionContext } from 'ava'
import { until } from '../until.ts'

/** A received request. */
export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly body: any
}

/** A real HTTP server that receives webhooks. */
export interface Receiver {
  readonly url: string
  readonly got: Received[]
  /** Sets the answer from now on; 204 by default. */
  answers(answer: number | ((response: ServerResponse, received: Received) => void)): void
  /** Resolves with all requests once there are `count`. */
  first(count: number): Promise<Received[]>
  close(): Promise<void>
}

export const idsOf = (got: readonly Received[]) => got.map(({ headers }) => String(headers['webhook-id']))

/** Whether the request is signed according to Standard Webhooks. */
export function isSigned(secret: string, { headers, text }: Received): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature } = headers
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const digest = createHmac('sha256', key).update([id, timestamp, text].join('.')).digest('base64')
  return signature === `v1,${digest}` && Math.abs(Number(timestamp) * 1000 - Date.now()) < 300_000
}

export async function startReceiver(t: { teardown: (end: () => Promise<void>) => void }): Promise<Receiver> {
  let answer: Parameters<Receiver['answers']>[0] = 204
  const got: Received[] = []
  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const received = { path: request.url ?? '', headers: request.headers, text, body: JSON.parse(text) }
    got.push(received)
    if (typeof answer === 'number') response.writeHead(answer).end()
    else answer(response, received)
  }
  // An interrupted request does not count.
  const server = createServer((request, response) => void take(request, response).catch(() => undefined))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  t.teardown(close)
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hook`,
    got,
    answers(next) {
      answer = next
    },
    async first(count) {
      await until(`${count} deliveries`, () => got.length >= count)
      return got.slice(0, count)
    },
    close,
  }
}

/** A server that speaks TCP as `serve` does; returns its URL. */
export async function startRawReceiver(
  t: ExecutionContext,
  serve: (socket: Socket) => void,
): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    serve(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
