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

/** How long a server may take to answer, in milliseconds. */
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
    super('unreachable', `no server runs on the data directory ${dataDir}`, {
      hint: 'name the directory of the server with --data-dir (RSM_DATA_DIR), or start the server',
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
      hint: 'run this as the user that the server runs as, or as root',
      cause: error,
    })
  return new RsmError('unreachable', `the server on ${dataDir} does not answer: ${message}`, { cause: error })
}

/** Whether no server runs on a data directory, which its lock then proves to who takes it. */
export const isWithoutServer = (error: unknown): boolean => error instanceof NoServer

/** The answer of the server on a data directory, as it begins. */
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

/** Asks the server that runs on a data directory. Errors: `unreachable` where none does, `forbidden`, and the server's own. */
export async function control<N extends ControlName>(
  dataDir: string,
  name: N,
  input: ControlCalls[N]['input'],
): Promise<ControlCalls[N]['answer']> {
  const response = await ask(dataDir, name, input)
  if (response.statusCode !== 200) throw await refusal(response)
  return (JSON.parse(await readText(response)) as Envelope).data as ControlCalls[N]['answer']
}

/** As `control`; where no server runs `alone` does it, which takes the lock of the directory. */
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

/** As `control`, for what answers with bytes; their stream fails with the server's reason where that breaks off. */
export async function controlStream<N extends ControlStreamName>(
  dataDir: string,
  name: N,
  input: ControlStreams[N]['input'],
): Promise<AsyncIterable<Buffer>> {
  const response = await ask(dataDir, name, input)
  if (response.statusCode !== 200) throw await refusal(response)
  // From here on it goes as fast as its reader.
  response.setTimeout(0)
  return whole(response, dataDir)
}

async function* whole(response: IncomingMessage, dataDir: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of response) yield chunk as Buffer
  } catch (cause) {
    throw new RsmError('unreachable', `the server on ${dataDir} ended before its answer did`, {
      hint: 'read its log, and try again when `rsm server status` answers',
      cause,
    })
  }
  const reason = response.trailers[controlTrailer]
  if (reason === undefined) return
  const { code, message, hint } = JSON.parse(decodeURIComponent(reason)) as Envelope & { code: number }
  throw new RsmError(codeOfStatus(code), message, hint === undefined ? {} : { hint })
}

/** In place of `error`, where no server runs since an upgrade was cut: that, and how to go on. */
export function cutFault(dataDir: string, error: unknown): unknown {
  const cut = cutUpgrade(dataDir)
  const isStopped = isWithoutServer(error) || (error instanceof RsmError && error.code === 'interrupted')
  if (cut === null || !isStopped) return error
  return new RsmError('unavailable', cut.message, { hint: cut.advice, cause: error })
}
