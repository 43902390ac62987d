import { type IncomingMessage, request } from 'node:http'
import { text as readText } from 'node:stream/consumers'
import { codeOfStatus, RsmError } from '../../core/errors.ts'
import {
  type ControlCalls,
  type ControlName,
  type ControlStreamName,
  type ControlStreams,
  controlTrailer,
} from '../../core/protocol/control.ts'
import { controlSocket } from '../../disk/control-socket.ts'
import { cutUpgrade } from '../../disk/upgrade-traces.ts'

/** Timeout for the server's response, in milliseconds. */
const patience = 60_000

interface Envelope {
  readonly message: string
  readonly hint?: string
  readonly data: object
}

function exchange(socketPath: string, name: string, input: object): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options = { socketPath, path: `/${name}`, method: 'POST', timeout: patience }
    const call = request(options, resolve)
    call.on('timeout', () => call.destroy(new Error(`no answer in ${patience / 1000} s`)))
    call.on('error', reject)
    call.end(JSON.stringify(input))
  })
}

class NoServer extends RsmError {
  constructor(dataDir: string, cause: unknown) {
    super('unreachable', `no server is running on the data directory ${dataDir}`, {
      hint: 'choose its directory with --data-dir (RSM_DATA_DIR), or start the server',
      cause,
    })
  }
}

function explain(error: unknown, dataDir: string): RsmError {
  if (error instanceof RsmError) return error
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'ENOTDIR') return new NoServer(dataDir, error)
  if (code === 'EACCES' || code === 'EPERM')
    return new RsmError('forbidden', `the data directory ${dataDir} belongs to another user`, {
      hint: "run this as the server's user, or as root",
      cause: error,
    })
  return new RsmError('unreachable', `the server on ${dataDir} does not answer: ${message}`, { cause: error })
}

/** Whether no server runs on the data directory; taking its lock proves it. */
export const isWithoutServer = (error: unknown): boolean => error instanceof NoServer

/** Resolves with the response once its headers arrive. */
async function ask(dataDir: string, name: string, input: object): Promise<IncomingMessage> {
  const explained = (error: unknown) => {
    throw explain(error, dataDir)
  }
  const socket = await controlSocket(dataDir).catch(explained)
  try {
    return await exchange(socket.path, name, input).catch(explained)
  } finally {
    await socket.release()
  }
}

async function refusal(response: IncomingMessage): Promise<RsmError> {
  const { message, hint } = JSON.parse(await readText(response)) as Envelope
  return new RsmError(codeOfStatus(response.statusCode ?? 500), message, hint === undefined ? {} : { hint })
}

/** Calls the server on a data directory. Errors: `unreachable` if none runs there, `forbidden`, and the server's own. */
export async function control<N extends ControlName>(
  dataDir: string,
  name: N,
  input: ControlCalls[N]['input'],
): Promise<ControlCalls[N]['answer']> {
  const response = await ask(dataDir, name, input)
  if (response.statusCode !== 200) throw await refusal(response)
  return (JSON.parse(await readText(response)) as Envelope).data as ControlCalls[N]['answer']
}

/** Like `control`; if no server runs, calls `alone`, which takes the lock of the directory. */
export async function controlOr<N extends ControlName>(
  dataDir: string,
  name: N,
  input: ControlCalls[N]['input'],
  alone: (dataDir: string) => Promise<ControlCalls[N]['answer']>,
): Promise<ControlCalls[N]['answer']> {
  try {
    return await control(dataDir, name, input)
  } catch (error) {
    if (!(error instanceof NoServer)) throw error
    return alone(dataDir)
  }
}

/** Like `control`, for a response of bytes. If the server aborts, the stream fails with its reason. */
export async function controlStream<N extends ControlStreamName>(
  dataDir: string,
  name: N,
  input: ControlStreams[N]['input'],
): Promise<AsyncIterable<Buffer>> {
  const response = await ask(dataDir, name, input)
  if (response.statusCode !== 200) throw await refusal(response)
  // The reader sets the pace from here on.
  response.setTimeout(0)
  return whole(response, dataDir)
}

async function* whole(response: IncomingMessage, dataDir: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of response) yield chunk as Buffer
  } catch (cause) {
    throw new RsmError('unreachable', `the server on ${dataDir} stopped before its answer was complete`, {
      hint: 'read its log, and try again when `rsm server status` answers',
      cause,
    })
  }
  const reason = response.trailers[controlTrailer]
  if (reason === undefined) return
  const { code, message, hint } = JSON.parse(decodeURIComponent(reason)) as Envelope & { code: number }
  throw new RsmError(codeOfStatus(code), message, hint === undefined ? {} : { hint })
}

/** Replaces `error` if no server runs because an upgrade was interrupted: says so, and how to continue. */
export function cutFault(dataDir: string, error: unknown): unknown {
  const cut = cutUpgrade(dataDir)
  const isStopped = isWithoutServer(error) || (error instanceof RsmError && error.code === 'interrupted')
  if (cut === null || !isStopped) return error
  return new RsmError('unavailable', cut.message, { hint: cut.advice, cause: error })
}
