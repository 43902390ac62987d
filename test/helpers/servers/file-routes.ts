import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FileOfTask } from '../../../src/core/protocol/messages.ts'
import type { FakeServer } from './fake-server.ts'

type Answer = (request: IncomingMessage, response: ServerResponse, nth: number) => boolean

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** The two routes by which agents download and upload files, on a fake server. */
export class FileRoutes {
  readonly files: Map<string, Buffer> = new Map()
  /** The uploaded bytes of each task, and their final checksum. */
  readonly sent: Map<string, { bytes: Buffer; sha256: string | null }> = new Map()
  readonly requests: { method: string; url: string; range: string | undefined; token: string | undefined }[] =
    []
  /** Answers in place of the routes if it returns true. */
  fault: Answer | undefined

  constructor(server: FakeServer) {
    server.takes = (request, response) => {
      const { method = '', url = '', headers } = request
      if (!/^\/api\/agent\/(files|tasks)\//.test(url)) return false
      this.requests.push({ method, url, range: headers.range, token: headers.authorization })
      if (this.fault?.(request, response, this.requests.length) !== true) this.#answer(request, response)
      return true
    }
  }

  /** Serves a file from now on; returns its description in an order. */
  put(fileId: string, content: Uint8Array | string): FileOfTask {
    const bytes = Buffer.from(content)
    this.files.set(fileId, bytes)
    return { fileId, size: bytes.length, sha256: sha256(bytes) }
  }

  /** The bytes that a request asks for, from its first byte on; null if the file does not exist. */
  asked({ url = '', headers }: IncomingMessage): { from: number; bytes: Buffer } | null {
    const bytes = this.files.get(url.split('/').at(-1) ?? '')
    const from = Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1] ?? 0)
    return bytes === undefined ? null : { from, bytes: bytes.subarray(from) }
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    if (request.method === 'PUT') return this.#take(request, response)
    const asked = this.asked(request)
    if (asked === null) response.writeHead(404).end()
    else response.writeHead(asked.from > 0 ? 206 : 200).end(asked.bytes)
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
    const taskId = pathname.split('/')[4] ?? ''
    const held = this.sent.get(taskId) ?? { bytes: Buffer.alloc(0), sha256: null }
    this.sent.set(taskId, held)
    const say = (status: number) => {
      const data = { offset: held.bytes.length }
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ code: status, message: 'offset', data }))
    }
    if (Number(searchParams.get('offset')) !== held.bytes.length) {
      request.resume()
      return say(409)
    }
    request.on('data', (piece: Buffer) => {
      held.bytes = Buffer.concat([held.bytes, piece])
    })
    request.on('error', () => {})
    request.on('end', () => {
      if (searchParams.get('end') === 'true') held.sha256 = searchParams.get('sha256')
      say(200)
    })
  }
}
