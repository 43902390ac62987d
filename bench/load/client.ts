/**
 * The lightest correct client: keep-alive sockets, one request at a time on each, requests prepared in advance. The cost of a
 * richer client would add to both servers' times and flatter the slower one.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { LoadOrder, LoadResult } from './load.ts'

const endOfHead = '\r\n\r\n'

/** Bytes of the first response in `data`; 0 if it is incomplete. */
function answerLength(data: Buffer): number {
  const end = data.indexOf(endOfHead)
  if (end < 0) return 0
  const head = data.toString('latin1', 0, end)
  if (!head.startsWith('HTTP/1.1 200 ')) throw new Error(data.toString('utf8', 0, 400))
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
  if (length === undefined) throw new Error(`a response without a length: ${head}`)
  const whole = end + endOfHead.length + Number(length)
  return data.length >= whole ? whole : 0
}

/**
 * Sets the current time in a heartbeat, as agents do: a host whose clock or uptime seems to jump is a change that servers send
 * to each other. Both texts keep their lengths.
 */
function stamp(request: Buffer): Buffer {
  const now = new Date()
  const put = (name: string, text: string) => {
    const at = request.indexOf(name)
    if (at >= 0) request.write(text, at + name.length, 'latin1')
  }
  put('"timestamp":"', now.toISOString())
  put('"uptime":', String(Math.floor(now.getTime() / 1000)))
  return request
}

async function run({ port, requests, connections, milliseconds }: LoadOrder): Promise<LoadResult> {
  const bytes = requests.map((request) => Buffer.from(request))
  const times: number[] = []
  const sockets: Socket[] = []
  for (let at = 0; at < connections; at++) {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    await once(socket, 'connect')
    sockets.push(socket)
  }
  const start = performance.now()
  const end = start + milliseconds
  await Promise.all(
    sockets.map(
      (socket, index) =>
        new Promise<void>((resolve, reject) => {
          let next = index
          let sent = 0
          let waiting: Buffer | null = null
          const send = () => {
            sent = performance.now()
            const request = bytes[next % bytes.length]
            if (request) socket.write(stamp(request))
            next += connections
          }
          socket.on('data', (chunk: Buffer) => {
            try {
              const data: Buffer = waiting ? Buffer.concat([waiting, chunk]) : chunk
              if (answerLength(data) === 0) {
                waiting = data
                return
              }
            } catch (error) {
              reject(error)
              return
            }
            waiting = null
            const now = performance.now()
            times.push(now - sent)
            if (now < end) send()
            else resolve()
          })
          socket.on('error', reject)
          socket.on('close', () => reject(new Error('the server closed the connection')))
          send()
        }),
    ),
  )
  const seconds = (performance.now() - start) / 1000
  for (const socket of sockets) socket.removeAllListeners('close').destroy()
  times.sort((a, b) => a - b)
  return { perSecond: times.length / seconds, p99: times[Math.floor(times.length * 0.99)] ?? Number.NaN }
}

process.on('message', (order: LoadOrder) => {
  run(order).then(
    (result) => process.send?.(result),
    (error: unknown) => process.send?.({ error: String(error) }),
  )
})
