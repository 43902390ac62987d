import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** Whole requests, sent round robin; every answer has to be a 200. */
export interface LoadOrder {
  port: number
  requests: string[]
  connections: number
  milliseconds: number
}

export interface LoadResult {
  perSecond: number
  /** Milliseconds of the slowest request in a hundred. */
  p99: number
}

/** One process that makes requests, so that neither server shares its own with the load. */
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

/** A request as it goes over the wire. */
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
