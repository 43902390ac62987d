import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** Complete requests, sent round robin; every response must be 200. */
export interface LoadOrder {
  port: number
  requests: string[]
  connections: number
  milliseconds: number
}

export interface LoadResult {
  perSecond: number
  /** Milliseconds; 1 % of the requests are slower. */
  p99: number
}

/** A process of its own for the load, so that neither server shares one with it. */
export interface Load {
  run(order: LoadOrder): Promise<LoadResult>
  stop(): void
}

export function startLoad(): Load {
  const program = fileURLToPath(new URL('client.js', import.meta.url))
  const child: ChildProcess = fork(program)
  return {
    async run(order) {
      child.send(order)
      const [result] = (await once(child, 'message')) as [LoadResult | { error: string }]
      if ('error' in result) throw new Error(result.error)
      return result
    },
    stop: () => child.disconnect(),
  }
}

/** A request as sent over the wire. */
export function requestText(method: string, path: string, token: string, body?: unknown): string {
  const json = body === undefined ? '' : JSON.stringify(body)
  const content = json
    ? [`content-type: application/json`, `content-length: ${Buffer.byteLength(json)}`]
    : ([] as string[])
  const head = [
    `${method} ${path} HTTP/1.1`,
    'host: 127.0.0.1',
    `authorization: Bearer ${token}`,
    'accept: application/json',
    ...content,
  ]
  return `${head.join('\r\n')}\r\n\r\n${json}`
}
