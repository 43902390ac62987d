import { chmod, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { httpStatus, RsmError } from '../../../core/errors.ts'
import {
  type ControlCalls,
  type ControlName,
  type ControlStreamName,
  type ControlStreams,
  controlTrailer,
} from '../../../core/protocol/control.ts'
import { controlSocket, type SocketPath } from '../../../disk/control-socket.ts'
import type { Log } from '../../../disk/log.ts'

export type ControlOperations = {
  readonly [N in ControlName]: (input: ControlCalls[N]['input']) => Promise<ControlCalls[N]['answer']>
} & {
  readonly [N in ControlStreamName]: (input: ControlStreams[N]['input']) => Promise<Readable>
}

/** The socket for commands on the server's own machine. */
export interface Control {
  close(): Promise<void>
}

const longestBody = 64 * 1024

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = ''
  try {
    for await (const piece of request.setEncoding('utf8')) {
      text += piece
      if (text.length > longestBody) break
    }
    return JSON.parse(text)
  } catch (cause) {
    throw new RsmError('invalid', 'the body is not JSON, or incomplete', { cause })
  }
}

/**
 * Listens on the Unix socket of a data directory. The caller holds its lock, so an existing socket is a
 * leftover of a killed server. If the file system does not support sockets, logs an error and continues
 * without.
 */
export async function serveControl(
  directory: string,
  operations: ControlOperations,
  log: Log,
): Promise<Control> {
  async function answer(request: IncomingMessage): Promise<object | Readable> {
    const name = request.url?.slice(1) ?? ''
    if (request.method !== 'POST' || !Object.hasOwn(operations, name))
      throw new RsmError('not_found', `unknown operation ${request.method} ${request.url}`, {
        hint: 'the command is of another version of rsm than the server: restart the server',
      })
    const operation = operations[name as ControlName] as (input: unknown) => Promise<object>
    return operation(await bodyOf(request))
  }

  function refusal(error: unknown): { code: number; message: string; hint?: string | undefined } {
    if (error instanceof RsmError)
      return { code: httpStatus(error), message: error.message, hint: error.hint }
    log.error({ err: error }, 'an operation of the control socket failed')
    return { code: 500, message: 'Internal server error' }
  }

  /** A started response cannot become an error, so a trailer carries the error. */
  async function send(stream: Readable, response: ServerResponse): Promise<void> {
    response.writeHead(200, { 'content-type': 'application/octet-stream', trailer: controlTrailer })
    try {
      await pipeline(stream, response, { end: false })
    } catch (error) {
      if (response.destroyed) return
      response.addTrailers({ [controlTrailer]: encodeURIComponent(JSON.stringify(refusal(error))) })
    }
    response.end()
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const envelope = await answer(request).then((data) => {
      if (data instanceof Readable) return data
      return { code: 200, message: 'OK', data }
    }, refusal)
    if (envelope instanceof Readable) return send(envelope, response)
    response.writeHead(envelope.code, { 'content-type': 'application/json' })
    response.end(JSON.stringify(envelope))
  }

  const server = createServer((request, response) => void respond(request, response))
  let socket: SocketPath | undefined
  try {
    socket = await controlSocket(directory)
    const { path } = socket
    await rm(path, { force: true })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(path, resolve)
    })
    // Its data directory is 0700, so no other user can connect before this.
    await chmod(path, 0o600)
  } catch (error) {
    log.error(
      { err: error },
      'no control socket: commands such as `rsm server confirm-restore` cannot reach this server',
    )
  }
  return {
    async close() {
      server.closeAllConnections()
      // Also removes the socket.
      if (server.listening) await new Promise((resolve) => server.close(resolve))
      await socket?.release()
    },
  }
}
